// Package registrytest gives tests a database for a registry of skills.
package registrytest

import (
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// Bucket is a registry.Bucket in a database of its own.
type Bucket struct{ db *bolt.DB }

var name = []byte("registry")

// New makes an empty one, which ends with the test.
func New(t *testing.T) Bucket {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "registry.db"), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return Bucket{db}
}

// View implements registry.Bucket. The bucket is nil before the first Update.
func (b Bucket) View(fn func(*bolt.Bucket) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return fn(tx.Bucket(name)) })
}

// Update implements registry.Bucket.
func (b Bucket) Update(fn func(*bolt.Bucket) error) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		in, err := tx.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		return fn(in)
	})
}
