package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
)

const (
	methodTime = 30 * time.Second // no method takes longer, whatever the caller's context allows
	retries    = 6                // of a transaction that the database undid
)

// Store is the records. See the package's documentation.
type Store struct {
	db    *sql.DB // of PostgreSQL
	lite  *lite   // of SQLite; nil on PostgreSQL
	d     *dialect
	path  string // of an SQLite database
	clock func() time.Time
	full  atomic.Bool             // a write has found no room on the disk, and nobody has found any since
	room  func(path string) error // writes to the disk of the database at path and takes it back
}

// Open opens the database named by dsn, "sqlite:PATH" or "postgres://...", makes it if it is new, and brings its tables
// up to date. It blocks until done or until ctx ends.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	var s *Store
	var err error
	switch path, lite := strings.CutPrefix(dsn, "sqlite:"); {
	case lite:
		s, err = openSQLite(ctx, path)
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		s, err = openPostgres(ctx, dsn)
	default:
		return nil, fmt.Errorf(`%w database name: it begins neither with "sqlite:" nor with "postgres://"`, ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	s.clock = o.Clock
	if s.clock == nil {
		s.clock = time.Now
	}
	if err = s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare migrates, and gives a restored backup its new generation.
func (s *Store) prepare(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	var backup bool
	err := s.read(ctx, Scope{}, func(t *tx) error {
		return t.row(`SELECT backup FROM installation`).Scan(&backup)
	})
	if err != nil || !backup {
		return err
	}
	_, err = s.System().Restored(ctx)
	return err
}

// Close ends the store. No method may be running.
func (s *Store) Close() error {
	if s.lite != nil {
		return s.lite.close()
	}
	return s.db.Close()
}

// NewID mints an id for a record: 26 characters of [0-9a-z], ordered by time.
func NewID() string { return strings.ToLower(ulid.Make().String()) }

// Ping tells whether the database answers. After a write that has found no room on the disk it looks whether there is room
// now, by writing: ErrFull if not.
func (y *System) Ping(ctx context.Context) error {
	if y.s.full.Load() {
		if err := y.s.tryRoom(ctx); err != nil {
			return err
		}
		y.s.full.Store(false)
	}
	return y.s.read(ctx, Scope{}, func(t *tx) error {
		var n int
		return t.row(`SELECT 1`).Scan(&n)
	})
}

// tryRoom writes. SQLite may have room in its own files when the disk has none, so there a file is written beside them.
func (s *Store) tryRoom(ctx context.Context) error {
	if s.path != "" {
		if err := s.room(s.path); full(err) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		} else if err != nil {
			return err
		}
	}
	return s.write(ctx, Scope{}, func(t *tx) error {
		_, err := t.exec(`UPDATE installation SET generation = generation`)
		return err
	})
}

// tx is one transaction of one method. Its context bounds it.
type tx struct {
	querier
	ctx context.Context
	d   *dialect
	sc  Scope
	now int64 // ms
}

func (t *tx) row(q string, args ...any) *sql.Row {
	return t.QueryRowContext(t.ctx, t.d.text(q), args...)
}

// exec gives the number of rows that were changed.
func (t *tx) exec(q string, args ...any) (int64, error) {
	res, err := t.ExecContext(t.ctx, t.d.text(q), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// one is exec for a change that must hit one row; anything else is missing.
func (t *tx) one(missing error, q string, args ...any) error {
	n, err := t.exec(q, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}

// each calls f for every row. f must not use the transaction: the rows are still being read.
func (t *tx) each(f func(scanner) error, q string, args ...any) error {
	rows, err := t.QueryContext(t.ctx, t.d.text(q), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err = f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanner is an *sql.Row or *sql.Rows.
type scanner interface{ Scan(...any) error }

// list collects what scan makes of every row.
func list[T any](t *tx, scan func(scanner) (T, error), q string, args ...any) ([]T, error) {
	var all []T
	err := t.each(func(r scanner) error {
		v, err := scan(r)
		all = append(all, v)
		return err
	}, q, args...)
	return all, err
}

// read runs f on a snapshot (SQLite) or statement by statement (PostgreSQL).
func (s *Store) read(ctx context.Context, sc Scope, f func(*tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, methodTime)
	defer cancel()
	if s.lite != nil {
		return s.lite.read(ctx, func(q querier) error { return s.method(ctx, q, sc, f) })
	}
	return s.run(ctx, sc, &sql.TxOptions{ReadOnly: true}, f)
}

// write runs f in a transaction and commits it. f may run several times and must set everything it gives anew.
func (s *Store) write(ctx context.Context, sc Scope, f func(*tx) error) error {
	return s.commit(ctx, sc, synced, f)
}

// commit is write, for SQLite with a kind of commit. PostgreSQL syncs all of them.
func (s *Store) commit(ctx context.Context, sc Scope, kind jobKind, f func(*tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, methodTime)
	defer cancel()
	var err error
	for try := range retries {
		if s.lite != nil {
			// No statement is broken off: SQLite would undo the transactions of others with it.
			whole := context.WithoutCancel(ctx)
			err = s.lite.write(ctx, kind, func(q querier) error { return s.method(whole, q, sc, f) })
			break
		}
		if err = s.run(ctx, sc, nil, f); !again(err) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(rand.Int64N(int64(5*time.Millisecond) << try))):
		}
	}
	if full(err) {
		s.full.Store(true)
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if taken(err) {
		return fmt.Errorf("%w: the id or name is taken", ErrConflict)
	}
	return err
}

// run runs f in a transaction of PostgreSQL.
func (s *Store) run(ctx context.Context, sc Scope, o *sql.TxOptions, f func(*tx) error) error {
	inner, err := s.db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = inner.Rollback() }() // after a commit it does nothing
	if err = s.method(ctx, inner, sc, f); err != nil {
		return err
	}
	return inner.Commit()
}

// method runs f within a transaction.
func (s *Store) method(ctx context.Context, q querier, sc Scope, f func(*tx) error) error {
	err := f(&tx{querier: q, ctx: ctx, d: s.d, sc: sc, now: s.clock().UnixMilli()})
	if errors.Is(err, sql.ErrNoRows) || unstorable(err) {
		return ErrNotFound
	}
	return err
}

// audit writes down what is being done. detail must hold no secret; nil is none.
func (t *tx) audit(verb, object string, detail map[string]any) error {
	return t.auditFor(t.sc, verb, object, detail)
}

func (t *tx) auditFor(sc Scope, verb, object string, detail map[string]any) error {
	_, err := t.exec(`INSERT INTO audits (at, tenant, actor, verb, object, detail) VALUES (?, ?, ?, ?, ?, ?)`,
		t.now, sc.Tenant, sc.Actor, verb, object, jsonOf(detail))
	return err
}
