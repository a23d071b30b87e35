package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrTaken is the error of [Lock] for a folder that another process uses.
var ErrTaken = errors.New("another process uses this folder: stop that one, or give this one a folder of its own")

// WriteFile puts a file in its place as a whole. After a power cut there is the old one, or none, or the new one; the new one
// once WriteFile has returned.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// CreateFile makes a file that must not exist, else the error is fs.ErrExist. After a power cut before it has returned, the file may be
// there without its content.
func CreateFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// MakeFolder makes a folder if it is not there, and those that it lies in. Each that it made outlives a power cut.
func MakeFolder(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := MakeFolder(parent, mode); err != nil {
		return err
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) { // somebody else may have made it meanwhile
		return err
	}
	return SyncFolder(parent)
}

// SyncFolder makes durable what was made, renamed or removed in a folder. It does nothing on Windows, which cannot sync a
// folder.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
