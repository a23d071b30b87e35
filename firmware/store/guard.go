package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// guard turns a panic and a memory fault of fn into ErrDamaged: bbolt reports damage by panics, and a page beyond the
// end of a mapped file is a fault that would end the process.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return fn()
}

// guarded is guard for the open file: it names a full disk and logs damage, which a caller may not.
func (s *Store) guarded(fn func() error) error {
	err := guard(fn)
	if errors.Is(err, ErrDamaged) {
		s.options.Logger.Error("database is damaged; the next start puts it aside", "path", s.options.Path, "err", err)
	}
	return named(err)
}

// named adds ErrFull to the errors that mean it.
func named(err error) error {
	if err == nil || errors.Is(err, ErrFull) {
		return err
	}
	for _, full := range []error{berrors.ErrMaxSizeReached, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	// bbolt formats the cause of a failed growth away (DB.grow).
	if strings.HasPrefix(err.Error(), "file resize error") {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// openWhole opens the file if it is whole. An error that is ErrDamaged means the file itself; any other means that it
// could not be examined.
func openWhole(path string, maxSize int, readOnly bool) (db *bolt.DB, oneMeta bool, err error) {
	oneMeta, err = surveyPath(path)
	if err != nil {
		return nil, false, err
	}
	// The handle is caught here because bbolt leaks it, and the lock on it, when it panics while opening.
	var file *os.File
	err = guard(func() (err error) {
		db, err = bolt.Open(path, 0o640, &bolt.Options{
			Timeout: DefaultLockTimeout, MaxSize: maxSize, ReadOnly: readOnly, PreLoadFreelist: true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, mode)
				file = f
				return f, err
			},
		})
		if err != nil {
			return openError(path, err)
		}
		return checkAll(db)
	})
	if err == nil {
		return db, oneMeta, nil
	}
	if file != nil {
		file.Close()
	}
	return nil, false, err
}

func surveyPath(path string) (oneMeta bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	oneMeta, err = surveyFile(f, info.Size())
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return oneMeta, nil
}

func openError(path string, err error) error {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("the database %s is %w by another program: stop it", path, ErrLocked)
	case errors.As(err, &pathErr), errors.Is(err, berrors.ErrMaxSizeReached), errors.Is(err, syscall.ENOMEM):
		return named(err)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// checkAll runs bbolt's own check. The survey before it is what makes it safe: Check follows page numbers in a
// goroutine of its own, where a fault could not be caught.
func checkAll(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		var first error
		for err := range tx.Check() { // drained to the end, or its goroutine would never end
			if first == nil {
				first = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		return first
	})
}
