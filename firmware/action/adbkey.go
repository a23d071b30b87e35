package action

import (
	"context"
	"errors"
	"io"
	"time"

	"phonerack/firmware/keyring"
	"phonerack/sync/wire"
)

// Keys are the ADB keys that phones know the rack by. Errors are those of package keyring, or refusals.
type Keys interface {
	KeyStatus() (keyring.Status, error)
	RotateKey() (keyring.Status, error)
	// FinishKey ends a change of the key; force does not wait for phones that have not taken the new one.
	FinishKey(force bool) (keyring.Status, error)
	ExportKey(w io.Writer, passphrase string) error
	ImportKey(r io.Reader, passphrase string) (keyring.Status, error)
	// AskForKey has the phone of a slot ask its person about the new key.
	AskForKey(slot int) error
}

// viaSocket is the door through which keys may go: whoever is on the board could read the file as well.
const viaSocket = "socket"

// PassphraseArgs are the arguments of adb_key_export and adb_key_import.
type PassphraseArgs struct {
	Passphrase string `json:"passphrase,omitempty" doc:"of the backup"`
}

// FinishArgs are the arguments of adb_key_finish.
type FinishArgs struct {
	Force bool `json:"force,omitempty" doc:"do not wait for phones that have not taken the new key"`
}

const keyTimeout = time.Minute // a small board derives a key from a passphrase within seconds

func keyActions() []entry {
	return []entry{
		define(Definition{Name: "adb_key_status", Summary: "show which ADB key phones know the rack by", Role: Viewer, Idempotent: true, Timeout: quick}, keyStatus),
		define(Definition{Name: "adb_key_rotate", Summary: "begin to replace the ADB key by a new one", Role: Operator, Timeout: keyTimeout}, rotateKey),
		define(Definition{Name: "adb_key_ask", Summary: "have a phone ask its person about the new ADB key", Role: Operator, NeedsLease: true, Timeout: quick}, askForKey),
		define(Definition{Name: "adb_key_finish", Summary: "put the new ADB key in the place of the old one", Role: Operator, Timeout: quick}, finishKey),
		define(Definition{Name: "adb_key_export", Summary: "write a backup of the ADB key, encrypted with a passphrase", Role: Operator, Idempotent: true, Streams: Download, Timeout: keyTimeout}, exportKey),
		define(Definition{Name: "adb_key_import", Summary: "begin to replace the ADB key by that of a backup", Role: Operator, Streams: Upload, Timeout: keyTimeout}, importKey),
	}
}

func (c *call) keys() (Keys, error) {
	k, ok := c.rack.(Keys)
	if !ok || c.actor.Via != viaSocket {
		return nil, wire.Refuse(wire.Unsupported, map[string]any{"what": "work on the ADB key from anywhere but the board itself"})
	}
	return k, nil
}

func keyStatus(_ context.Context, c *call, _ *struct{}) (any, error) {
	k, err := c.keys()
	if err != nil {
		return nil, err
	}
	return refused(k.KeyStatus())
}

func rotateKey(_ context.Context, c *call, _ *struct{}) (any, error) {
	k, err := c.keys()
	if err != nil {
		return nil, err
	}
	return refused(k.RotateKey())
}

func askForKey(_ context.Context, c *call, args *SlotArgs) (any, error) {
	k, err := c.keys()
	if err != nil {
		return nil, err
	}
	return refused(nil, k.AskForKey(args.Slot))
}

func finishKey(_ context.Context, c *call, args *FinishArgs) (any, error) {
	k, err := c.keys()
	if err != nil {
		return nil, err
	}
	return refused(k.FinishKey(args.Force))
}

func exportKey(_ context.Context, c *call, args *PassphraseArgs) (any, error) {
	k, err := c.keys()
	if err != nil {
		return nil, err
	}
	if err := k.ExportKey(c.pipes.Out, args.Passphrase); err != nil {
		return refused(nil, err)
	}
	return refused(k.KeyStatus())
}

func importKey(_ context.Context, c *call, args *PassphraseArgs) (any, error) {
	k, err := c.keys()
	if err != nil {
		return nil, err
	}
	return refused(k.ImportKey(c.pipes.In, args.Passphrase))
}

// refused gives the refusals for errors of package keyring.
func refused(result any, err error) (any, error) {
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, keyring.ErrChanging), errors.Is(err, keyring.ErrNotChanging), errors.Is(err, keyring.ErrSameKey), errors.Is(err, keyring.ErrMissing):
		return nil, wire.Refuse(wire.Conflict, map[string]any{"reason": err.Error()})
	case errors.Is(err, keyring.ErrPassphrase), errors.Is(err, keyring.ErrShort), errors.Is(err, keyring.ErrBackup):
		return nil, badRequest("%s", err)
	}
	return nil, err
}
