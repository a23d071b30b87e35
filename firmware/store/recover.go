package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

const (
	copySuffix    = ".copy"
	newSuffix     = ".new" // a file that is being written; worthless after a crash
	damagedSuffix = ".damaged-"
	copyTxSize    = 1 << 20 // bytes that one transaction of the copy carries
)

func (s *Store) copyPath() string { return s.options.Path + copySuffix }
func (s *Store) newPath() string  { return s.options.Path + newSuffix }

// openOrRecover leaves a whole, open database: the file as it is, else its last copy, else an empty one.
func (s *Store) openOrRecover() error {
	s.recovery.Outcome = Opened
	err := s.tryOpen()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		s.recovery.Outcome = Created
	case errors.Is(err, ErrDamaged):
		s.recovery.Outcome = Fresh
		s.recovery.Reason = err.Error()
		if err := s.putAside(s.options.Path); err != nil {
			return err
		}
	default:
		return err
	}
	restored, err := s.restore()
	if err != nil {
		return err
	}
	if restored {
		s.recovery.Outcome = Restored
		if s.recovery.Reason == "" {
			s.recovery.Reason = "the database file was missing"
		}
	} else if err := s.create(); err != nil {
		return fmt.Errorf("create the database: %w", named(err))
	}
	return s.tryOpen()
}

func (s *Store) tryOpen() error {
	db, oneMeta, err := openWhole(s.options.Path, s.options.MaxSize, false)
	if err != nil {
		return err
	}
	if err := checkSchema(db); err != nil {
		db.Close()
		return fmt.Errorf("%s: %w", s.options.Path, err)
	}
	if oneMeta {
		s.recovery.Reason = "one of the two meta pages is damaged: the last transaction may be missing"
	}
	s.db = db
	return nil
}

func checkSchema(db *bolt.DB) error {
	return guard(func() error {
		return db.View(func(tx *bolt.Tx) error {
			root := tx.Bucket(rootBucket)
			if root == nil {
				return fmt.Errorf("%w: it is not a rackd database", ErrDamaged)
			}
			stored := root.Get(schemaKey)
			if len(stored) != 4 {
				return fmt.Errorf("%w: it has no schema version", ErrDamaged)
			}
			if version := binary.BigEndian.Uint32(stored); version > Schema {
				return fmt.Errorf("%w: its schema is %d and this rackd knows %d: install the newer rackd, or move the file away", ErrNewer, version, Schema)
			}
			return nil
		})
	})
}

// putAside renames a damaged file; it is never deleted, because a person may still read it.
func (s *Store) putAside(path string) error {
	stamp := s.options.Now().UTC().Format("20060102T150405Z")
	aside := path + damagedSuffix + stamp
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s%s%s-%d", path, damagedSuffix, stamp, n)
	}
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("put the damaged database aside: %w", err)
	}
	s.recovery.Aside = append(s.recovery.Aside, aside)
	s.options.Logger.Error("damaged database put aside", "path", path, "aside", aside, "reason", s.recovery.Reason)
	return SyncFolder(filepath.Dir(path))
}

// restore puts the last compacted copy in place of the database; a damaged copy is put aside as well.
func (s *Store) restore() (bool, error) {
	db, _, err := openWhole(s.copyPath(), s.options.MaxSize, true)
	if err == nil {
		err = checkSchema(db)
		db.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, ErrDamaged):
		return false, s.putAside(s.copyPath())
	case err != nil:
		return false, err
	}
	if err := s.duplicate(s.copyPath()); err != nil {
		return false, fmt.Errorf("restore the database: %w", named(err))
	}
	return true, nil
}

func (s *Store) duplicate(from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(s.newPath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		dst.Close()
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	return publish(s.newPath(), s.options.Path)
}

// create makes an empty database under the temporary name and renames it when it is whole and on disk.
func (s *Store) create() error {
	db, err := s.newFile()
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		root, err := tx.CreateBucket(rootBucket)
		if err != nil {
			return err
		}
		return root.Put(schemaKey, binary.BigEndian.AppendUint32(nil, Schema))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return publish(s.newPath(), s.options.Path)
}

func (s *Store) newFile() (*bolt.DB, error) {
	if err := os.Remove(s.newPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return bolt.Open(s.newPath(), 0o640, &bolt.Options{Timeout: DefaultLockTimeout, NoSync: true})
}

// Copy writes a compacted copy of the current state, from which a damaged file is restored. It takes as long as the
// data needs, and does not block Update.
func (s *Store) Copy() error {
	s.copying.Lock()
	defer s.copying.Unlock()
	err := guard(func() error {
		db, err := s.newFile()
		if err != nil {
			return err
		}
		return errors.Join(bolt.Compact(db, s.db, copyTxSize), db.Close())
	})
	if err != nil {
		os.Remove(s.newPath())
		return fmt.Errorf("copy the database: %w", named(err))
	}
	if err := publish(s.newPath(), s.copyPath()); err != nil {
		return fmt.Errorf("copy the database: %w", named(err))
	}
	return nil
}

// publish brings a finished file to disk under its name: file, rename, folder, in this order.
func publish(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(to))
}

// makeFolder makes a folder that outlives a power cut, unless it is there.
func makeFolder(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes what was renamed, made or removed in a folder durable.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
