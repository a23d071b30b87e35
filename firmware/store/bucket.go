package store

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// A Bucket is one package's part of the store.
type Bucket struct {
	store *Store
	name  string
}

// Bucket declares a bucket and makes it if the file does not have it yet. One name belongs to one package.
func (s *Store) Bucket(name string) (*Bucket, error) {
	err := s.guarded(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists([]byte("b." + name))
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("declare bucket %s: %w", name, err)
	}
	return &Bucket{store: s, name: name}, nil
}

// View runs fn on a consistent state. Keys and values are valid inside fn only; fn must not wait for anything outside.
func (b *Bucket) View(fn func(*bolt.Bucket) error) error {
	return b.guarded(b.store.db.View, fn)
}

// Update runs fn in a transaction that is on disk when Update returns nil and has no effect otherwise. Only one Update
// runs at a time over the whole store; fn must not wait for anything outside.
func (b *Bucket) Update(fn func(*bolt.Bucket) error) error {
	return b.guarded(b.store.db.Update, fn)
}

// In is the bucket inside a transaction of the same store, so that what several packages write is there together or not.
func (b *Bucket) In(tx *bolt.Tx) *bolt.Bucket { return tx.Bucket([]byte("b." + b.name)) }

func (b *Bucket) guarded(run func(func(*bolt.Tx) error) error, fn func(*bolt.Bucket) error) error {
	return b.store.guarded(func() error {
		return run(func(tx *bolt.Tx) error {
			return fn(b.In(tx))
		})
	})
}
