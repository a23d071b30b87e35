package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
)

const (
	maxBatch      = 64  // transactions in one commit
	maxStatements = 200 // compiled ones that a connection keeps; texts of filters and lists have no bound
)

// querier is what runs the statements of a transaction.
type querier interface {
	ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

// lite is an SQLite database: connections that read, and one that writes.
//
// The writer gathers the transactions that wait for it into one commit, because a commit is one sync of the disk
// whatever is in it. Each runs in a savepoint of its own, so that one that fails takes nothing of another one back, and each
// returns only after the commit that holds it. A commit of transactions that all may be lost with the power is not synced: the
// next that is takes it along. If the commit fails, or SQLite undoes the whole of it for the sake of
// one, the others run again one by one.
type lite struct {
	w, r    *sql.DB
	readers chan *liteConn // nil stands for one that is not open yet
	jobs    chan *job
	stop    chan struct{} // closed by close
	ended   chan struct{} // closed by the writer's goroutine
}

// job is a transaction that waits for the writer.
type job struct {
	ctx   context.Context
	f     func(querier) error
	kind  jobKind
	state atomic.Int32
	err   error         // of f or of the commit
	panic *fault        // of f
	done  chan struct{} // closed by the writer
}

// jobKind says what a job asks of its commit.
type jobKind int

const (
	synced   jobKind = iota // is on the disk when the job is done
	unsynced                // may be lost with the power, and not otherwise: the kernel has it
	alone                   // not a transaction: a statement that must be in none
)

// states of a job. From jobWaiting it goes to one of the others, and stays there.
const (
	jobWaiting = iota
	jobRunning
	jobLeft // its caller has given up
)

// errClosed is the error of a transaction that comes when the writer has ended.
var errClosed = errors.New("the database is closed")

// fault is a panic in a transaction. It belongs to the caller, and must not end the writer.
type fault struct {
	value any
	stack []byte
}

func newLite(ctx context.Context, w, r *sql.DB) (*lite, error) {
	l := &lite{w: w, r: r, readers: make(chan *liteConn, readers), jobs: make(chan *job, maxBatch), stop: make(chan struct{}), ended: make(chan struct{})}
	for range readers {
		l.readers <- nil
	}
	c, err := connectLite(ctx, w)
	if err != nil {
		return nil, err
	}
	go l.run(c)
	return l, nil
}

func (l *lite) close() error {
	close(l.stop)
	<-l.ended
	var errs []error
	for range readers {
		if c := <-l.readers; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(append(errs, l.w.Close(), l.r.Close())...)
}

// read runs f on a snapshot.
func (l *lite) read(ctx context.Context, f func(querier) error) error {
	var c *liteConn
	select {
	case c = <-l.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.readers <- c }()
	var err error
	if c == nil {
		if c, err = connectLite(ctx, l.r); err != nil {
			return err
		}
	}
	over := context.WithoutCancel(ctx)
	if err = c.do(over, "BEGIN"); err != nil {
		return err
	}
	defer func() {
		if e := c.do(over, "ROLLBACK"); e != nil { // there is nothing to commit
			_ = c.close()
			c = nil
		}
	}()
	return f(c)
}

// write runs f in a transaction, if it is not alone, and returns when it is committed.
func (l *lite) write(ctx context.Context, kind jobKind, f func(querier) error) error {
	j := &job{ctx: ctx, f: f, kind: kind, done: make(chan struct{})}
	select {
	case l.jobs <- j:
	case <-l.ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-j.done:
	case <-l.ended:
		select {
		case <-j.done: // before the end
		default:
			return errClosed // nobody is going to run it
		}
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobWaiting, jobLeft) {
			return ctx.Err()
		}
		<-j.done // it runs, and what f sets belongs to the caller
	}
	if j.panic != nil {
		panic(fmt.Sprintf("%v\n%s", j.panic.value, j.panic.stack))
	}
	return j.err
}

// run is the writer.
func (l *lite) run(c *liteConn) {
	defer close(l.ended)
	defer func() { _ = c.close() }()
	for {
		var batch []*job
		select {
		case j := <-l.jobs:
			batch = append(batch, j)
		case <-l.stop:
			return
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case j := <-l.jobs:
				batch = append(batch, j)
			default:
				more = false
			}
		}
		c.serve(batch)
	}
}

// serve brings jobs to their end, those of transactions together.
func (c *liteConn) serve(batch []*job) {
	together := batch[:0:0]
	for _, j := range batch {
		switch {
		case !j.state.CompareAndSwap(jobWaiting, jobRunning):
		case j.kind == alone:
			if j.err = c.sync(context.Background(), true); j.err == nil {
				j.run(c)
			}
			close(j.done)
		default:
			together = append(together, j)
		}
	}
	if len(together) > 0 && !c.commit(together) {
		for _, j := range together { // each by itself, but those that have failed by themselves
			if j.err == nil && j.panic == nil {
				c.commit([]*job{j})
			}
		}
	}
	for _, j := range together {
		close(j.done)
	}
}

// commit runs jobs in one transaction. false: nothing of it is there, and those without an error have to run again. A
// single job gets the error itself.
func (c *liteConn) commit(jobs []*job) (whole bool) {
	ctx := context.Background()
	fail := func(err error) bool {
		_ = c.do(ctx, "ROLLBACK") // SQLite may have done it already
		if len(jobs) > 1 {
			return false
		}
		jobs[0].err = err
		return true
	}
	if err := c.sync(ctx, slices.ContainsFunc(jobs, func(j *job) bool { return j.kind != unsynced })); err != nil {
		return fail(err)
	}
	if err := c.do(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fail(err)
	}
	if len(jobs) == 1 {
		if j := jobs[0]; !j.run(c) {
			return fail(j.err)
		}
	} else if err := c.each(ctx, jobs); err != nil {
		return fail(err)
	}
	if err := c.do(ctx, "COMMIT"); err != nil {
		return fail(err)
	}
	return true
}

// sync says whether the next commit waits for the disk. In WAL mode a commit that does syncs those before it as well, and a
// checkpoint never overtakes the log's sync (https://sqlite.org/pragma.html#pragma_synchronous).
func (c *liteConn) sync(ctx context.Context, on bool) error {
	if c.lax == !on {
		return nil
	}
	level := "NORMAL"
	if on {
		level = "FULL"
	}
	// Not prepared: SQLite does it while it compiles the statement.
	if _, err := c.conn.ExecContext(ctx, "PRAGMA synchronous = "+level); err != nil {
		return err
	}
	c.lax = !on
	return nil
}

// each runs jobs in savepoints. An error means that the transaction is of no more use.
func (c *liteConn) each(ctx context.Context, jobs []*job) error {
	for _, j := range jobs {
		if err := c.do(ctx, "SAVEPOINT one"); err != nil {
			return err
		}
		if !j.run(c) {
			if err := c.do(ctx, "ROLLBACK TO one"); err != nil {
				return err
			}
		}
		if err := c.do(ctx, "RELEASE one"); err != nil {
			return err
		}
	}
	return nil
}

// run runs f. The transaction goes on whatever becomes of it.
func (j *job) run(c *liteConn) (fine bool) {
	defer func() {
		if v := recover(); v != nil {
			j.panic, fine = &fault{v, debug.Stack()}, false
		}
	}()
	if j.err = j.ctx.Err(); j.err == nil {
		j.err = j.f(c)
	}
	return j.err == nil
}

// liteConn is a connection with its statements, each compiled once. It is used by one goroutine at a time.
type liteConn struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	lax        bool // commits are not synced
}

func connectLite(ctx context.Context, db *sql.DB) (*liteConn, error) {
	ctx, cancel := context.WithTimeout(ctx, methodTime)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &liteConn{conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

func (c *liteConn) close() error {
	for _, s := range c.statements {
		_ = s.Close()
	}
	return c.conn.Close()
}

// do runs a statement about transactions. A lock that another process holds is waited for as long as busy_timeout says.
func (c *liteConn) do(ctx context.Context, q string) error {
	_, err := c.ExecContext(ctx, q)
	return err
}

// prepared gives a statement; nil if it is not to be kept, or is wrong, which running it will tell.
func (c *liteConn) prepared(ctx context.Context, q string) *sql.Stmt {
	s := c.statements[q]
	if s == nil && len(c.statements) < maxStatements {
		var err error
		if s, err = c.conn.PrepareContext(ctx, q); err != nil {
			return nil
		}
		c.statements[q] = s
	}
	return s
}

// ExecContext implements querier.
func (c *liteConn) ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error) {
	if s := c.prepared(ctx, q); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return c.conn.ExecContext(ctx, q, args...)
}

// QueryContext implements querier.
func (c *liteConn) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	if s := c.prepared(ctx, q); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return c.conn.QueryContext(ctx, q, args...)
}

// QueryRowContext implements querier.
func (c *liteConn) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	if s := c.prepared(ctx, q); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return c.conn.QueryRowContext(ctx, q, args...)
}
