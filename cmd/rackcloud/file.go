package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readFile reads a file of at most limit bytes. Anything but a file is refused before it is opened: a pipe would be waited for, and a
// device has no end.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, plainly(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file: name a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, plainly(path, err)
	}
	defer func() { _ = f.Close() }() // it was read only
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plainly(path, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s is too large: at most %d bytes are taken", path, limit)
	}
	return raw, nil
}

// plainly says what is wrong with a path, without the name of the system call.
func plainly(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}
