// Package pgtest starts a real PostgreSQL for tests, from Debian's package. The server lives in a temporary folder,
// listens on a Unix socket there only, syncs nothing to disk unless it is told to, and ends with the test.
package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

const (
	pkg       = "postgresql" // Debian's, in firmware/rig/setup.sh
	startTime = 90 * time.Second
	stopTime  = 20 * time.Second
)

// Server is a running PostgreSQL.
type Server struct {
	dir string
	n   atomic.Int64 // databases made
}

// Start starts a server for the life of the test. It fails the test if the package is not installed.
func Start(t testing.TB) *Server { t.Helper(); return start(t, "off") }

// StartDurable starts one that syncs each commit to disk, as in use, for benchmarks.
func StartDurable(t testing.TB) *Server { t.Helper(); return start(t, "on") }

func start(t testing.TB, fsync string) *Server {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pg") // not t.TempDir: a socket's path has at most 107 bytes, and its folder is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as, err := unprivileged(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.SysProcAttr, initdb.Dir = as, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s := &Server{dir: dir}
	s.run(ctx, t, bin, data, fsync, as)
	return s
}

// run starts the server and waits until it answers.
func (s *Server) run(ctx context.Context, t testing.TB, bin, data, fsync string, as *syscall.SysProcAttr) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync="+fsync,
		"-c", "full_page_writes="+fsync, "-c", "shared_buffers=16MB", "-c", "max_connections=200", "-c", "autovacuum=off")
	server.SysProcAttr, server.Dir, server.Stdout, server.Stderr = as, s.dir, log, log
	if err = server.Start(); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	ended := make(chan struct{}) // closed by the goroutine that waits for the process
	go func() {
		defer close(ended)
		_ = server.Wait()
	}()
	t.Cleanup(func() { stop(t, server.Process, ended) })
	db, err := sql.Open("pgx", s.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for db.PingContext(ctx) != nil {
		select {
		case <-ended:
			out, _ := os.ReadFile(log.Name())
			t.Fatalf("postgres ended at once:\n%s", out)
		case <-ctx.Done():
			t.Fatalf("postgres does not answer after %s", startTime)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop asks for an immediate end, which takes the server's own children with it.
func stop(t testing.TB, p *os.Process, ended <-chan struct{}) {
	_ = p.Signal(syscall.SIGQUIT)
	select {
	case <-ended:
	case <-time.After(stopTime):
		t.Errorf("postgres did not end within %s", stopTime)
		_ = p.Kill()
		<-ended
	}
}

// Database makes an empty database and gives its name for store.Open.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	db, err := sql.Open("pgx", s.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	name := "t" + strconv.FormatInt(s.n.Add(1), 10)
	// The strategy is the fast one where nothing is synced.
	if _, err = db.ExecContext(ctx, "CREATE DATABASE "+name+" STRATEGY file_copy"); err != nil {
		t.Fatal(err)
	}
	return s.dsn(name)
}

func (s *Server) dsn(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("test"), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

// binaries finds the newest version's programs.
func binaries() (string, error) {
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 {
		return "", fmt.Errorf("PostgreSQL is missing: install the package %s (make setup does)", pkg)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	newest := slices.MaxFunc(all, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// unprivileged gives the attributes of processes that work in dir. PostgreSQL refuses to run as root, so root gives the
// folder to the package's own user, or to nobody.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} // the test's process may be killed
	if os.Geteuid() != 0 {
		return as, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return as, os.Chown(dir, int(uid), int(gid))
}
