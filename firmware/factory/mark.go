package factory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"phonerack/firmware/store"
)

const (
	markFile  = "factory-reset" // asked for, and not done yet
	unjoined  = "unenrolled"    // the identity is gone because of a reset
	fileMode  = 0o600
	maxMark   = 4096 // bytes
	maxAsking = 200  // bytes of who asked
)

// A Mark says that a reset was asked for.
type Mark struct {
	By   string `json:"by"`             // who, for the log
	Keys bool   `json:"keys,omitempty"` // remove the ADB keys too
}

// Ask has the next start make the rack new. It is on disk when it returns nil. identity is the file that will have to go, ""
// for none: Ask fails if that cannot be removed.
func Ask(state, identity string, m Mark) error {
	if identity != "" {
		if err := unix.Access(filepath.Dir(identity), unix.W_OK); err != nil && exists(identity) {
			return fmt.Errorf("the identity %s could not be removed: %w", identity, err)
		}
	}
	m.By = m.By[:min(len(m.By), maxAsking)]
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return write(filepath.Join(state, markFile), raw)
}

// Asked gives the mark of a reset that is not done yet. One that cannot be read counts as one without wishes.
func Asked(state string) (m Mark, is bool, err error) {
	raw, err := os.ReadFile(filepath.Join(state, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{}, false, nil
	}
	if err != nil {
		return Mark{}, false, err
	}
	if len(raw) > maxMark || json.Unmarshal(raw, &m) != nil {
		m = Mark{By: "unknown"}
	}
	return m, true, nil
}

// Unenrolled tells whether a reset has taken the rack's identity, and nobody has given it another since.
func Unenrolled(state string) bool { return exists(filepath.Join(state, unjoined)) }

// Enrolled says that the rack has an identity again.
func Enrolled(state string) error {
	if err := remove(filepath.Join(state, unjoined)); err != nil {
		return err
	}
	return store.SyncFolder(state)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func remove(path string) error {
	if err := os.RemoveAll(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write makes a file whole or not at all.
func write(path string, content []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(fileMode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return store.SyncFolder(dir)
}
