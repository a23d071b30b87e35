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
		define(
			Definition{Name: "adb_key_status", Summary: "show which ADB key phones know the rack by", Role: Viewer, Idempotent: true, Timeout: quick},
			onKeys(func(_ *call, k Keys, _ *struct{}) (any, error) { return k.KeyStatus() }),
		),
		define(
			Definition{Name: "adb_key_rotate", Summary: "begin to replace the ADB key by a new one", Role: Operator, Timeout: keyTimeout},
			onKeys(func(_ *call, k Keys, _ *struct{}) (any, error) { return k.RotateKey() }),
		),
		define(
			Definition{Name: "adb_key_ask", Summary: "have a phone ask its person about the new ADB key", Role: Operator, NeedsLease: true, Timeout: quick},
			onKeys(func(_ *call, k Keys, a *SlotArgs) (any, error) { return nil, k.AskForKey(a.Slot) }),
		),
		define(
			Definition{Name: "adb_key_finish", Summary: "put the new ADB key in the place of the old one", Role: Operator, Timeout: quick},
			onKeys(func(_ *call, k Keys, a *FinishArgs) (any, error) { return k.FinishKey(a.Force) }),
		),
		define(
			Definition{Name: "adb_key_export", Summary: "write a backup of the ADB key, encrypted with a passphrase", Role: Operator, Idempotent: true, Streams: Download, Timeout: keyTimeout},
			onKeys(exportKey),
		),
		define(
			Definition{Name: "adb_key_import", Summary: "begin to replace the ADB key by that of a backup", Role: Operator, Streams: Upload, Timeout: keyTimeout},
			onKeys(func(c *call, k Keys, a *PassphraseArgs) (any, error) { return k.ImportKey(c.pipes.In, a.Passphrase) }),
		),
	}
}

// onKeys makes an action of work on the keys: it is for who is on the board, and its errors become refusals.
func onKeys[A any](do func(*call, Keys, *A) (any, error)) func(context.Context, *call, *A) (any, error) {
	return func(_ context.Context, c *call, args *A) (any, error) {
		k, ok := c.rack.(Keys)
		if !ok || c.actor.Via != viaSocket {
			return nil, wire.Refuse(wire.Unsupported, map[string]any{"what": "work on the ADB key from anywhere but the board itself"})
		}
		result, err := do(c, k, args)
		if err != nil {
			return nil, keyRefusal(err)
		}
		return result, nil
	}
}

func exportKey(c *call, k Keys, a *PassphraseArgs) (any, error) {
	if err := k.ExportKey(c.pipes.Out, a.Passphrase); err != nil {
		return nil, err
	}
	return k.KeyStatus()
}

// keyRefusal is the refusal for an error of package keyring; another error stays as it is.
func keyRefusal(err error) error {
	switch {
	case errors.Is(err, keyring.ErrChanging), errors.Is(err, keyring.ErrNotChanging), errors.Is(err, keyring.ErrSameKey), errors.Is(err, keyring.ErrMissing):
		return wire.Refuse(wire.Conflict, map[string]any{"reason": err.Error()})
	case errors.Is(err, keyring.ErrPassphrase), errors.Is(err, keyring.ErrShort), errors.Is(err, keyring.ErrBackup):
		return badRequest("%s", err)
	}
	return err
}
