package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var errOdd = errors.New("odd")

// crowded is a writer that is held by a transaction while others gather behind it.
type crowded struct {
	*testing.T
	s    *Store
	wg   sync.WaitGroup
	free chan struct{} // closed: the transaction in front ends
}

func newCrowd(t *testing.T) *crowded {
	t.Helper()
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "cloud.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &crowded{T: t, s: s, free: make(chan struct{})}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.lite.write(t.Context(), synced, func(q querier) error {
		_, err := q.ExecContext(t.Context(), `CREATE TABLE notes (n INTEGER PRIMARY KEY)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	c.wg.Go(func() {
		if err := s.lite.write(t.Context(), synced, func(querier) error { close(held); <-c.free; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-held
	return c
}

// add sends a transaction that notes n and then does what it is told. Its error goes to ended.
func (c *crowded) add(ctx context.Context, n int, then func(q querier) error, ended func(error)) {
	c.Helper()
	before := len(c.s.lite.jobs)
	c.wg.Go(func() {
		ended(c.s.lite.write(ctx, synced, func(q querier) error {
			if _, err := q.ExecContext(context.Background(), `INSERT INTO notes (n) VALUES (?)`, n); err != nil {
				return err
			}
			return then(q)
		}))
	})
	for len(c.s.lite.jobs) == before {
		time.Sleep(time.Millisecond)
	}
}

// wait lets them run.
func (c *crowded) wait() {
	close(c.free)
	c.wg.Wait()
}

// committed are the notes as another connection sees them.
func (c *crowded) committed() (list []int) {
	c.Helper()
	err := c.s.lite.read(context.Background(), func(q querier) error {
		rows, err := q.QueryContext(context.Background(), `SELECT n FROM notes ORDER BY n`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			list = append(list, n)
		}
		return rows.Err()
	})
	if err != nil {
		c.Fatal(err)
	}
	return list
}

func nothing(querier) error { return nil }

func (c *crowded) fine(err error) {
	if err != nil {
		c.Error(err)
	}
}

func (c *crowded) want(notes ...int) {
	c.Helper()
	got := c.committed()
	same := len(got) == len(notes)
	for i := 0; same && i < len(got); i++ {
		same = got[i] == notes[i]
	}
	if !same {
		c.Errorf("committed is %v, want %v", got, notes)
	}
}

func TestTransactionsThatWaitShareOneCommitAndReturnAfterIt(t *testing.T) {
	c := newCrowd(t)
	for n := range 5 {
		c.add(t.Context(), n, func(querier) error { c.want(); return nil }, func(err error) {
			c.fine(err)
			c.want(0, 1, 2, 3, 4)
		})
	}
	c.wait()
}

func TestATransactionThatFailsTakesNothingOfItsNeighboursBack(t *testing.T) {
	c := newCrowd(t)
	c.add(t.Context(), 1, nothing, c.fine)
	c.add(t.Context(), 2, func(querier) error { return errOdd }, func(err error) {
		if !errors.Is(err, errOdd) {
			t.Errorf("got %v", err)
		}
	})
	c.add(t.Context(), 3, nothing, c.fine)
	c.wait()
	c.want(1, 3)
}

func TestAPanicInATransactionIsItsCallersAlone(t *testing.T) {
	c := newCrowd(t)
	c.add(t.Context(), 1, nothing, c.fine)
	before := len(c.s.lite.jobs)
	c.wg.Go(func() {
		defer func() {
			if v, ok := recover().(string); !ok || !strings.Contains(v, "a fault") {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = c.s.lite.write(t.Context(), synced, func(querier) error { panic("a fault") })
		t.Error("the caller goes on")
	})
	for len(c.s.lite.jobs) == before {
		time.Sleep(time.Millisecond)
	}
	c.add(t.Context(), 3, nothing, c.fine)
	c.wait()
	c.want(1, 3)
}

// A full disk makes SQLite undo the whole transaction, and not the statement alone.
func TestWhatSQLiteUndidForTheSakeOfOneRunsAgainForTheOthers(t *testing.T) {
	c := newCrowd(t)
	c.add(t.Context(), 1, nothing, c.fine)
	c.add(t.Context(), 2, func(q querier) error {
		_, err := q.ExecContext(context.Background(), "ROLLBACK")
		return errors.Join(err, errOdd)
	}, func(err error) {
		if !errors.Is(err, errOdd) {
			t.Errorf("got %v", err)
		}
	})
	c.add(t.Context(), 3, nothing, c.fine)
	c.wait()
	c.want(1, 3)
}

// A provider's answer may come while the process ends. Its caller must not wait for a writer that is gone.
func TestATransactionThatComesWithTheEndReturnsAtOnce(t *testing.T) {
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "cloud.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range maxBatch + 1 { // more than wait in the queue
		if err := s.lite.write(ctx, synced, nothing); !errors.Is(err, errClosed) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestACallerThatGivesUpWhileItWaitsLeavesNothing(t *testing.T) {
	c := newCrowd(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	c.add(ctx, 1, nothing, func(err error) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(gone)
	})
	cancel()
	<-gone // while the writer is still held
	c.add(t.Context(), 2, nothing, c.fine)
	c.wait()
	c.want(2)
}
