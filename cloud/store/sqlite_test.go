package store

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestEveryConnectionSyncs: what is committed is on the disk, on each connection of the store and on those that make and
// copy databases, but for a transaction that has said that it need not be. SQLite's own default for WAL would lose the newest
// commits with the power.
func TestEveryConnectionSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud.db")
	s, err := openSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.lite.close()
	const full, normal = 2, 1
	is := func(what string, q querier, want int) error {
		var synchronous int
		err := q.QueryRowContext(context.WithoutCancel(t.Context()), "PRAGMA synchronous").Scan(&synchronous)
		if err == nil && synchronous != want {
			t.Errorf("%s: synchronous is %d, want %d", what, synchronous, want)
		}
		return err
	}
	look := func(what string, q querier) error { return is(what, q, full) }
	for _, kind := range []jobKind{synced, unsynced, synced, unsynced, alone} {
		want := full
		if kind == unsynced {
			want = normal
		}
		if err := s.lite.write(t.Context(), kind, func(q querier) error { return is("writer", q, want) }); err != nil {
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

// TestOneCommitThatSyncsSyncsAll: transactions that share a commit are as safe as the one that asks for most.
func TestOneCommitThatSyncsSyncsAll(t *testing.T) {
	for name, c := range map[string]struct {
		kinds []jobKind
		want  int
	}{
		"none asks": {[]jobKind{unsynced, unsynced}, 1},
		"one asks":  {[]jobKind{unsynced, synced, unsynced}, 2},
		"only one":  {[]jobKind{unsynced}, 1},
	} {
		crowd := newCrowd(t)
		var mu sync.Mutex
		var seen []int
		for _, kind := range c.kinds {
			before := len(crowd.s.lite.jobs)
			crowd.wg.Go(func() {
				err := crowd.s.lite.write(t.Context(), kind, func(q querier) error {
					var level int
					err := q.QueryRowContext(context.Background(), "PRAGMA synchronous").Scan(&level)
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, level)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
			for len(crowd.s.lite.jobs) == before {
				time.Sleep(time.Millisecond)
			}
		}
		crowd.wait()
		if len(seen) != len(c.kinds) || slices.ContainsFunc(seen, func(level int) bool { return level != c.want }) {
			t.Errorf("%s: synchronous was %v, want %d for each", name, seen, c.want)
		}
	}
}
