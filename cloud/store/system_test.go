package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/store"
)

func testRestored(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	before := must(s.System().Installation(ctx))(t)
	if before.ID == "" || before.Generation != 1 {
		t.Errorf("installation is %+v", before)
	}
	submit(t, s, store.NewTask{Repeatable: true})
	submit(t, s, store.NewTask{Repeatable: true})
	done := submit(t, s, store.NewTask{Priority: 9})
	ref := lease(t, s, claim("r1", 1, "a")).Attempt.Ref
	ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Succeeded})))
	open := lease(t, s, claim("r1", 1, "b"))
	cmd := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t)
	after := must(s.System().Restored(ctx))(t)
	if after.ID != before.ID || after.Generation != 2 {
		t.Errorf("installation is %+v", after)
	}
	// Whatever was open may have been done since the backup.
	lost, _, err := s.Tasks(ctx, acme, store.TaskFilter{States: []store.TaskState{store.Lost}}, store.Page{})
	ok(t, err)
	equal(t, "lost tasks", len(lost), 2)
	state(t, s, done.ID, store.Succeeded)
	none(t, s, claim("r1", 1, "c"))
	wants(t, second(s.Renew(ctx, acme, "r1", open.Attempt.Ref, leaseTime)), store.ErrAttemptOver)
	equal(t, "command", must(s.Command(ctx, acme, cmd.ID))(t).State, store.CommandUnknown)
	equal(t, "pending", len(must(s.PendingCommands(ctx, acme, "r1", 0))(t)), 0)
	if seq := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t).Seq; seq < 1_000_000 {
		t.Errorf("next number is %d", seq)
	}
}

func TestABackupOpensAsANewGeneration(t *testing.T) {
	p := newPlace("sqlite:" + filepath.Join(t.TempDir(), "cloud.db"))
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	task := submit(t, s, store.NewTask{})
	copied := filepath.Join(t.TempDir(), "copy.db")
	ok(t, s.System().Backup(ctx, copied))
	if err := s.System().Backup(ctx, copied); err == nil || !strings.Contains(err.Error(), copied+" is there already") {
		t.Errorf("a backup over a file: %v", err)
	}
	private(t, copied)
	entries, _ := os.ReadDir(filepath.Dir(copied))
	equal(t, "files beside the backup", len(entries), 1)
	state(t, s, task.ID, store.Queued) // the original goes on
	lease(t, s, claim("r1", 1, "a"))

	q := p
	q.dsn = "sqlite:" + copied
	for range 2 { // only the first opening makes a new generation
		r := q.open(t)
		equal(t, "generation", must(r.System().Installation(ctx))(t).Generation, 2)
		state(t, r, task.ID, store.Lost)
		none(t, r, claim("r1", 1, "a"))
	}
	var mode int64
	raw(t, q, func(db *sql.DB) { ok(t, db.QueryRow(`PRAGMA auto_vacuum`).Scan(&mode)) })
	equal(t, "auto_vacuum of the copy", mode, 2)
}

func testReseal(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	y := s.System()
	addHost(t, s, "r1")
	ok(t, second(s.AddProfile(ctx, acme, profile("p1"))))
	none := profile("p2")
	none.Credential, none.KEK = nil, ""
	ok(t, second(s.AddProfile(ctx, acme, none)))
	all := must(y.SealedUnder(ctx, "k2", 10))(t)
	if len(all) != 2 || all[0].Purpose != "profile" || all[0].Owner[0] != "p1" || all[0].Tenant != "acme" || all[0].Version != 1 ||
		all[1].Purpose != "identity" || all[1].Owner[0] != "r1" || string(all[1].Value) != "sealed r1" {
		t.Fatalf("sealed are %+v", all)
	}
	equal(t, "limited", len(must(y.SealedUnder(ctx, "k2", 1))(t)), 1)
	ok(t, s.RotateCredential(ctx, acme, "p1", []byte("newer"), "k1", 2)) // between listing and sealing
	equal(t, "overtaken", must(y.Reseal(ctx, all[0], "k2", []byte("stale")))(t), false)
	equal(t, "done", must(y.Reseal(ctx, all[1], "k2", []byte("anew")))(t), true)
	equal(t, "profile", string(must(s.Profile(ctx, acme, "p1"))(t).Credential), "newer")
	id := must(s.Identities(ctx, acme, "r1"))(t)[0]
	if string(id.MACSecret) != "anew" || id.KEK != "k2" {
		t.Errorf("identity is %+v", id)
	}
	equal(t, "left", len(must(y.SealedUnder(ctx, "k2", 10))(t)), 1)
	equal(t, "nothing else", len(must(y.SealedUnder(ctx, "k1", 10))(t)), 1)
	wants(t, second(y.Reseal(ctx, store.Sealed{Purpose: "x"}, "k2", []byte("v"))), store.ErrInvalid)
}

// raw works on the database beside the store.
func raw(t *testing.T, p place, f func(*sql.DB)) {
	t.Helper()
	driver, dsn := "pgx", p.dsn
	if path, lite := p.sqlite(); lite {
		u := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(5000)"}
		driver, dsn = "sqlite", u.String()
	}
	db, err := sql.Open(driver, dsn)
	ok(t, err)
	defer func() { ok(t, db.Close()) }()
	f(db)
}

func testNewerSchema(t *testing.T, p place) {
	s, err := store.Open(t.Context(), p.dsn, store.Options{Clock: p.clock})
	ok(t, err)
	ok(t, s.Close())
	raw(t, p, func(db *sql.DB) {
		_, err := db.Exec(`INSERT INTO schema_versions (version, at) VALUES (99, 1)`)
		ok(t, err)
	})
	_, err = store.Open(t.Context(), p.dsn, store.Options{Clock: p.clock})
	wants(t, err, store.ErrNewerSchema)
	equal(t, "sentence", err.Error(),
		"database is newer than this program: its tables are of version 99 and this program knows up to 5; run the version that wrote it, or a later one")
}

func testStartAtOnce(t *testing.T, p place) {
	const replicas = 6
	stores := make([]*store.Store, replicas)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			var err error
			if stores[i], err = store.Open(t.Context(), p.dsn, store.Options{Clock: p.clock}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for _, s := range stores {
		if s == nil {
			continue
		}
		i, err := s.System().Installation(t.Context())
		ok(t, err)
		ids[i.ID] = true
		ok(t, s.Close())
	}
	equal(t, "installations", len(ids), 1)
	raw(t, p, func(db *sql.DB) {
		var n int
		ok(t, db.QueryRow(`SELECT count(*) FROM schema_versions`).Scan(&n))
		equal(t, "migrations", n, 5)
	})
}

func private(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	ok(t, err)
	equal(t, "mode of "+filepath.Base(path), info.Mode().Perm(), fs.FileMode(0o600))
}

func TestSQLiteFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with ? and % and ü")
	ok(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, "cloud#1.db")
	ok(t, os.WriteFile(path, nil, 0o644)) // touched by somebody
	p := newPlace("sqlite:" + path)
	s := p.open(t)
	addHost(t, s, "r1")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		private(t, path+suffix)
	}
	raw(t, p, func(db *sql.DB) {
		for pragma, want := range map[string]string{"auto_vacuum": "2", "journal_mode": "wal"} {
			var got string
			ok(t, db.QueryRow(`PRAGMA `+pragma).Scan(&got))
			equal(t, pragma, got, want)
		}
	})
	entries, err := os.ReadDir(dir)
	ok(t, err)
	equal(t, "files", len(entries), 3)
}

func TestBadNames(t *testing.T) {
	for _, dsn := range []string{"", "cloud.db", "sqlite:", "sqlite::memory:", "mysql://x"} {
		_, err := store.Open(t.Context(), dsn, store.Options{})
		wants(t, err, store.ErrInvalid)
	}
	_, err := store.Open(t.Context(), "postgres://u:hunter2@[::1/x", store.Options{})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = store.Open(ctx, "postgres://u:hunter2@localhost:1/x", store.Options{})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error is %v", err)
	}
}

// TestCreationSurvivesBeingKilled kills a process again and again while it makes a database. At each instant there is
// none, or one that opens.
func TestCreationSurvivesBeingKilled(t *testing.T) {
	if path := os.Getenv("STORE_TEST_CREATE"); path != "" {
		s, err := store.Open(context.Background(), "sqlite:"+path, store.Options{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	whole := 0
	begun := time.Now()
	child := func(path string) *exec.Cmd {
		c := exec.Command(os.Args[0], "-test.run=^TestCreationSurvivesBeingKilled$")
		c.Env = append(os.Environ(), "STORE_TEST_CREATE="+path)
		return c
	}
	ok(t, child(filepath.Join(t.TempDir(), "x.db")).Run())
	usual := time.Since(begun)
	const kills = 20
	for i := range kills {
		path := filepath.Join(t.TempDir(), "cloud.db")
		c := child(path)
		ok(t, c.Start())
		time.Sleep(usual * time.Duration(i+1) / kills) // spread over its life
		_ = c.Process.Kill()
		_ = c.Wait()
		if info, err := os.Stat(path); err == nil {
			whole++
			if info.Size() == 0 {
				t.Errorf("kill %d left an empty database", i)
			}
		}
		p := newPlace("sqlite:" + path)
		s := p.open(t)
		addHost(t, s, "r1")
		raw(t, p, func(db *sql.DB) {
			var mode int
			var sound string
			ok(t, db.QueryRow(`PRAGMA auto_vacuum`).Scan(&mode))
			ok(t, db.QueryRow(`PRAGMA integrity_check`).Scan(&sound))
			equal(t, "auto_vacuum", mode, 2)
			equal(t, "integrity", sound, "ok")
		})
	}
	t.Logf("%d of %d kills came after the file was in its place", whole, kills)
}

func testOddText(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	submit(t, s, store.NewTask{})
	ref := lease(t, s, claim("r1", 1, "a")).Attempt.Ref
	ok(t, second(s.Begin(ctx, acme, plan("r1", "q", ref, "o"))))
	f := finish("r1", "q", "o")
	f.SystemPrompt, f.UserPrompt, f.Arguments = "nul \x00 and \xff", "emoji \U0001F600 ?", json.RawMessage(`{"t":"\u0000?"}`)
	ok(t, second(s.Finish(ctx, acme, f)))
	list, _, err := s.Decisions(ctx, acme, ref.Task, 1, store.Page{})
	ok(t, err)
	equal(t, "system prompt", list[0].SystemPrompt, "nul \uFFFD and \uFFFD")
	equal(t, "user prompt", list[0].UserPrompt, "emoji \U0001F600 ?")
	same(t, "arguments", list[0].Arguments, f.Arguments)
	for _, bad := range []string{"\x00", "\xff", strings.Repeat("x", 201)} {
		wants(t, s.LabelHost(ctx, acme, "r1", bad, nil), store.ErrInvalid)
		wants(t, s.LabelHost(ctx, acme, "r1", "n", []string{bad}), store.ErrInvalid)
		wants(t, second(s.Host(ctx, store.Scope{Tenant: "acme", Actor: bad}, "r1")), store.ErrInvalid)
		c := claim("r1", 1, bad)
		_, _, err = s.Claim(ctx, acme, c)
		wants(t, err, store.ErrInvalid)
	}
	// What is only looked for need not be storable.
	for _, odd := range []string{"\x00", "\xff", "'; DROP TABLE hosts; --"} {
		if _, err := s.Host(ctx, acme, odd); err == nil {
			t.Errorf("host %q was found", odd)
		}
	}
	ok(t, second(s.Host(ctx, acme, "r1")))
}
