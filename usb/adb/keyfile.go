package adb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// maxKeyFile bounds a key file in bytes; a real one has about 1700.
const maxKeyFile = 64 << 10

// LoadOrCreateKey reads the key file at path, or makes a new key and writes it
// there with mode 0600. A file that others than its owner may read is refused.
// Creation is atomic and durable: after a power cut there is a whole key or
// none. If two processes create it at once both return the one that stays.
func LoadOrCreateKey(path string) (*Key, error) {
	key, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = NewKey(); err != nil {
		return nil, err
	}
	switch err := SaveKey(path, key); {
	case errors.Is(err, fs.ErrExist):
		return LoadKey(path)
	case err != nil:
		return nil, err
	}
	return key, nil
}

// SaveKey writes a key to a new file with mode 0600, whole and durable or not at
// all. It never replaces a file (fs.ErrExist).
func SaveKey(path string, key *Key) error {
	data, err := key.MarshalPEM()
	if err != nil {
		return err
	}
	if err := createFile(path, data); err != nil {
		return fmt.Errorf("adb: creating key file: %w", err)
	}
	return nil
}

// badKeyRemedy: a bad key is never replaced by itself, because every phone would ask its person again.
const badKeyRemedy = "bring back the right file, or move this one away to have a new key made, which each phone then asks about"

// LoadKey reads the key file at path, which must be private to its owner. None is
// fs.ErrNotExist.
func LoadKey(path string) (*Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("adb: opening key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("adb: reading key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("adb: key file %s is not a regular file: move it away", path)
	}
	// Windows has no such bits; files there carry the folder's access list.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("adb: key file %s may be used by others (mode %04o): make it private with chmod 600, and replace it if others may have read it", path, mode)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("adb: reading key file: %w", err)
	}
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("adb: key file %s: %w: %s", path, ErrTooLarge, badKeyRemedy)
	}
	key, err := ParseKey(data)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w: %s", path, err, badKeyRemedy)
	}
	return key, nil
}

// createFile writes a new file whole or not at all. It fails with fs.ErrExist
// if path appeared meanwhile, on file systems with hard links.
func createFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".adbkey-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	// A link, unlike a rename, does not replace a key made by someone else.
	if err = os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		if err = os.Rename(f.Name(), path); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

// syncDir makes a new name durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be opened for writing there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
