package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Schema is the version of what is stored; a file with a higher one is left alone and refused.
const Schema = 1

// Defaults of Options.
const (
	DefaultMaxSize     = 256 << 20 // bytes
	DefaultLockTimeout = 2 * time.Second
)

var (
	// ErrLocked means that another process has the store open.
	ErrLocked = errors.New("in use")
	// ErrFull means that the disk or the bound of the file is reached; the transaction changed nothing.
	ErrFull = errors.New("storage is full")
	// ErrDamaged means that a page of the open file cannot be read; the next start puts the file aside.
	ErrDamaged = errors.New("database is damaged")
	// ErrNewer means that a later rackd wrote the file.
	ErrNewer = errors.New("written by a newer rackd")
)

// Options says where the store is and how large it may grow. Only Path is needed.
type Options struct {
	Path        string // of the database file; the copy, the lock and damaged files lie beside it
	MaxSize     int    // bytes; 0 means DefaultMaxSize
	LockTimeout time.Duration
	Now         func() time.Time // names damaged files
	Logger      *slog.Logger
}

// Outcome is what opening found.
type Outcome string

// Outcomes of Open.
const (
	Opened   Outcome = "opened"   // the file was whole
	Created  Outcome = "created"  // there was no file
	Restored Outcome = "restored" // from the last compacted copy
	Fresh    Outcome = "fresh"    // the file was damaged and there was no usable copy
)

// Recovery tells what Open had to do.
type Recovery struct {
	Outcome Outcome
	Reason  string   // why the file was not simply opened, or a doubt about it; may be empty
	Aside   []string // damaged files, under their new names
	Commits uint64   // of the database as it was found, see [Store.Commits]
}

// A Store is an open database. It is safe for concurrent use.
type Store struct {
	options  Options
	db       *bolt.DB
	lock     *os.File
	recovery Recovery
	boot     string
	copying  sync.Mutex // held while the copy is written
}

var (
	rootBucket = []byte("rackd")
	schemaKey  = []byte("schema")
	bootKey    = []byte("boot")
)

// Open opens the store, recovers it if it must, and commits the next boot counter. It waits for the lock at most
// LockTimeout; errors are ErrLocked, ErrNewer, ErrFull, or those of the file system.
func Open(o Options) (*Store, error) {
	o = withDefaults(o)
	if err := makeFolder(filepath.Dir(o.Path)); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	lock, err := takeLock(o.Path+".lock", o.LockTimeout)
	if err != nil {
		return nil, err
	}
	s := &Store{options: o, lock: lock}
	if err := s.openOrRecover(); err != nil {
		lock.Close()
		return nil, err
	}
	if s.recovery.Commits, err = s.Commits(); err != nil {
		s.db.Close()
		lock.Close()
		return nil, fmt.Errorf("count the commits: %w", err)
	}
	if err := s.countBoot(); err != nil {
		s.db.Close()
		lock.Close()
		return nil, fmt.Errorf("count this boot: %w", err)
	}
	return s, nil
}

func withDefaults(o Options) Options {
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Recovery tells what opening found.
func (s *Store) Recovery() Recovery { return s.recovery }

// Boot is "<counter>-<random>" and differs at each opening; the counter only rises while the file lives.
func (s *Store) Boot() string { return s.boot }

// Commits is the number of the newest transaction in the file. It rises with each, and an older copy of the file has a lower one.
func (s *Store) Commits() (n uint64, err error) {
	err = s.guarded(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			n = uint64(tx.ID())
			return nil
		})
	})
	return n, err
}

// countBoot raises the counter on disk before any event of this boot can be stored.
func (s *Store) countBoot() error {
	random := make([]byte, 4)
	rand.Read(random)
	return s.guarded(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			root := tx.Bucket(rootBucket)
			var counter uint64
			if stored := root.Get(bootKey); len(stored) == 8 {
				counter = binary.BigEndian.Uint64(stored)
			}
			counter++
			s.boot = fmt.Sprintf("%d-%s", counter, hex.EncodeToString(random))
			return root.Put(bootKey, binary.BigEndian.AppendUint64(nil, counter))
		})
	})
}

// Close writes the compacted copy and closes the file. A copy that cannot be written is reported, and the old one
// stays; the file itself is closed in any case. Close waits for open transactions.
func (s *Store) Close() error {
	copyErr := s.Copy()
	closeErr := s.db.Close()
	s.lock.Close()
	return errors.Join(copyErr, closeErr)
}
