//go:build linux || darwin

package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock takes a folder for this process alone, by a file in it. The error is [ErrTaken] if another has it. The kernel gives it back when
// the process ends, however it ends.
func Lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(dir+"/lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrTaken
	}
	return nil, fmt.Errorf("%s: %w", dir, err)
}
