package firmware

import (
	"fmt"
	"io"
	"time"

	"phonerack/firmware/keyring"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// openKeys reads the keys that phones know this rack by. The lock on the state folder is held.
func (r *Rack) openKeys() error {
	keys, err := keyring.Open(r.config.Rack.State, r.book.List, time.Now)
	if err != nil {
		return fmt.Errorf("open the ADB key: %w", remedied(err, r.config.Rack.State))
	}
	r.keys = keys
	return nil
}

// greeting is how the phone in a slot is greeted.
func (r *Rack) greeting(hello adb.Options, slot int) adb.Options {
	hello.ChooseKeys = func() []*adb.Key { return r.keys.Keys(slot) }
	return hello
}

// KeyStatus implements action.Keys.
func (r *Rack) KeyStatus() (keyring.Status, error) {
	return r.keys.Status()
}

// RotateKey implements action.Keys.
func (r *Rack) RotateKey() (keyring.Status, error) {
	s, err := r.keys.Rotate()
	return s, r.keyChanged("a new ADB key was made", s, err)
}

// ImportKey implements action.Keys.
func (r *Rack) ImportKey(from io.Reader, passphrase string) (keyring.Status, error) {
	s, err := r.keys.Import(from, passphrase)
	return s, r.keyChanged("an ADB key was imported", s, err)
}

// FinishKey implements action.Keys.
func (r *Rack) FinishKey(force bool) (keyring.Status, error) {
	s, err := r.keys.Finish(force)
	return s, r.keyChanged("the new ADB key is the only one now", s, err)
}

func (r *Rack) keyChanged(what string, s keyring.Status, err error) error {
	if err == nil {
		r.log.Warn(what, "key", s.Key, "known", s.Known)
	}
	return err
}

// ExportKey implements action.Keys.
func (r *Rack) ExportKey(w io.Writer, passphrase string) error {
	err := r.keys.Export(w, passphrase)
	if err == nil {
		r.log.Warn("a backup of the ADB key was written")
	}
	return err
}

// AskForKey implements action.Keys: the phone is connected anew.
func (r *Rack) AskForKey(number int) error {
	s, ok := r.slots[number]
	if !ok {
		return wire.Refuse(wire.SlotUnknown, map[string]any{"slot": number})
	}
	if err := r.keys.Ask(number); err != nil {
		return err
	}
	if _, l := s.snapshot(); l != nil {
		s.close(l.conn)
	}
	return nil
}

// provedKey remembers which key a phone has proved to know.
func (s *slot) provedKey(l *live) {
	key := l.conn.Key()
	if key == nil {
		if s.keys.Asked(s.number) {
			s.log.Info("the phone was asked about the new ADB key; it is connected anew to see whether it keeps it")
			s.close(l.conn)
		}
		return
	}
	done, err := s.keys.Noted(s.number, key)
	if err != nil {
		s.log.Error("the ADB key could not be changed", "err", err)
	}
	if done {
		s.log.Warn("each phone has taken the new ADB key, the old one is gone", "key", key.Fingerprint())
	}
}
