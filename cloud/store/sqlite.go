package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"phonerack/cloud/durable"
)

const (
	readers   = 4
	staleTemp = time.Hour // a half-made database that old was left by a crash
)

// openSQLite opens the file at path with one writing connection and some reading ones.
func openSQLite(ctx context.Context, path string) (*Store, error) {
	if path == "" || path == ":memory:" {
		return nil, fmt.Errorf("%w database name: sqlite: needs the path of a file", ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err = createSQLite(ctx, path); err != nil {
		return nil, fmt.Errorf("making the database: %w", err)
	}
	if err = os.Chmod(path, 0o600); err != nil { // the -wal and -shm files take its mode
		return nil, err
	}
	w := connectSQLite(path, "journal_mode(WAL)", 1)
	r := connectSQLite(path, "query_only(1)", readers)
	if err = ping(ctx, w); err != nil { // sets WAL before a reader comes
		_ = r.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l, err := newLite(ctx, w, r)
	if err != nil {
		return nil, errors.Join(err, w.Close(), r.Close())
	}
	return &Store{lite: l, d: &dialect{}, path: path, room: tryFile}, nil
}

// tryFile writes a file beside path, large enough for a few transactions, and removes it.
func tryFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 1<<20))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// connectSQLite makes a pool; it opens nothing yet. Transactions are begun by statements: those of the writer are immediate,
// because a deferred one that reads before it writes fails as soon as there is another writer, whatever the busy timeout.
func connectSQLite(path, pragma string, conns int) *sql.DB {
	q := url.Values{"_pragma": {"busy_timeout(10000)", "foreign_keys(1)", "synchronous(FULL)", pragma}}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		panic(err) // only an unknown driver
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// createSQLite makes the file unless it exists. It is made whole under another name, synced, and then linked into its
// place, so that a crash at any instant leaves either no database or an empty, complete one; of two processes that do
// this at once the second finds the first's. auto_vacuum must be set now: later it takes a full VACUUM.
func createSQLite(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() > 0:
		return nil
	case err == nil: // an empty file was made by someone else's touch, and has no auto_vacuum
		if err = os.Remove(path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir, base := filepath.Split(path)
	removeStale(filepath.Join(dir, "."+base+".new-*"))
	temp := filepath.Join(dir, "."+base+".new-"+NewID())
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	defer func() { _ = f.Close() }()
	if err = fillSQLite(ctx, temp); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncFolder(filepath.Dir(path))
}

// fillSQLite writes the header and one table, in the rollback journal's mode so that one file is all there is.
func fillSQLite(ctx context.Context, path string) error {
	db := connectSQLite(path, "journal_mode(DELETE)", 1)
	for _, q := range []string{`PRAGMA auto_vacuum = INCREMENTAL`, `PRAGMA page_size = 4096`, `PRAGMA user_version = 1`, `VACUUM`} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

func removeStale(pattern string) {
	old, _ := filepath.Glob(pattern)
	for _, name := range old {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > staleTemp {
			_ = os.Remove(name)
		}
	}
}
