package store

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
)

// TestEveryConnectionSyncs: what is committed is on the disk, on each connection of the store and on those that make and
// copy databases. SQLite's own default for WAL would lose the newest commits with the power.
func TestEveryConnectionSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud.db")
	s, err := openSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.lite.close()
	look := func(what string, q querier) error {
		const full = 2
		var synchronous int
		err := q.QueryRowContext(context.WithoutCancel(t.Context()), "PRAGMA synchronous").Scan(&synchronous)
		if err == nil && synchronous != full {
			t.Errorf("%s: synchronous is %d, want %d", what, synchronous, full)
		}
		return err
	}
	for _, alone := range []bool{false, true} {
		if err := s.lite.write(t.Context(), alone, func(q querier) error { return look("writer", q) }); err != nil {
			t.Error(err)
		}
	}
	var reading, all sync.WaitGroup
	all.Add(readers) // each waits for the others, so that each has a connection of its own
	for range readers {
		reading.Go(func() {
			err := s.lite.read(t.Context(), func(q querier) error {
				all.Done()
				all.Wait()
				return look("reader", q)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	reading.Wait()
	db := connectSQLite(path, "query_only(0)", 1) // as Backup and fillSQLite have theirs
	defer db.Close()
	if err := look("copying", db); err != nil {
		t.Error(err)
	}
}
