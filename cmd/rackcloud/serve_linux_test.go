package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"phonerack/cloud/api"
	"phonerack/cloud/fleet"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if binary != "" {
			_ = os.RemoveAll(filepath.Dir(binary)) // the tests are over
		}
		os.Exit(code)
	}))
}

// served is a rackcloud in this process.
type served struct {
	t     testing.TB
	admin string
	api   string
	dir   string
	log   *bytes.Buffer // to be read after stop
	stop  func()
}

func serve(t testing.TB, dir string, flags ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var log bytes.Buffer
	ended := make(chan int, 1)
	args := append([]string{
		"serve", "--state", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--mqtt", "127.0.0.1:0",
		"--name", "localhost",
	}, flags...)
	go func() {
		code := run(ctx, args, strings.NewReader(""), in, &log)
		_ = in.Close()
		ended <- code
	}()
	line := make([]byte, 1000)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("rackcloud ended with %d: %s", <-ended, log.String())
	}
	words := strings.Fields(string(line[:n]))
	if len(words) != 7 {
		t.Fatalf("got %q", line[:n])
	}
	s := &served{t: t, api: strings.Trim(words[2], ","), admin: strings.Trim(words[4], ","), dir: dir, log: &log}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("rackcloud ended with %d: %s", code, log.String())
		}
	}
	t.Cleanup(s.stop)
	return s
}

// do runs an operator's command and gives what it prints.
func (s *served) do(args ...string) string {
	s.t.Helper()
	out, code := s.try("", args...)
	if code != 0 {
		s.t.Fatalf("rackcloud %v ended with %d: %s", args, code, out)
	}
	return out
}

func (s *served) try(stdin string, args ...string) (string, int) {
	s.t.Helper()
	var out bytes.Buffer
	code := run(s.t.Context(), append([]string{"--admin", s.admin, "--json"}, args...), strings.NewReader(stdin), &out, &out)
	return out.String(), code
}

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// enrol makes a rack known and gives its bundle.
func (s *served) enrol(name string) wire.Bundle {
	s.t.Helper()
	file := filepath.Join(s.dir, name+".json")
	s.do("host", "add", "--name", name, "--out", file)
	raw, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := wire.ParseBundle(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// bucket is a link's part of a database.
type bucket struct{ db *bolt.DB }

var bucketName = []byte("link")

func (b bucket) View(fn func(*bolt.Bucket) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return fn(b.In(tx)) })
}

func (b bucket) Update(fn func(*bolt.Bucket) error) error {
	return b.db.Update(func(tx *bolt.Tx) error { return fn(b.In(tx)) })
}

func (bucket) In(tx *bolt.Tx) *bolt.Bucket { return tx.Bucket(bucketName) }

// join connects a rack by the rack's own link. cert tells whether it shows its certificate or its broker password.
func join(t testing.TB, b wire.Bundle, cert bool, handle func(*link.Link)) *link.Link {
	t.Helper()
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, "rack.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucketIfNotExists(bucketName); return err }); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys, err := b.Keys()
	if err != nil {
		t.Fatal(err)
	}
	o := link.Options{
		Broker: b.Broker, Tenant: b.Tenant, Rack: b.Rack, Keys: func() []wire.Keys { return []wire.Keys{keys} }, Generation: 1, Boot: "1-abc",
		Bucket: bucket{db}, TLS: link.TLS{CAFile: file("ca.pem", b.CA)},
	}
	if cert {
		o.TLS.CertFile, o.TLS.KeyFile = file("rack.pem", b.Certificate), file("rack.key", b.Key)
	} else {
		o.PasswordFile = file("password", b.BrokerPassword)
	}
	l, err := link.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if handle != nil {
		handle(l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	online, cancelWait := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancelWait()
	if err := l.WaitOnline(online); err != nil {
		t.Fatalf("the rack does not come online: %v, %+v", err, l.Status())
	}
	return l
}

// ask sends a request and reads its answer.
func ask[A any](t testing.TB, l *link.Link, kind wire.Kind, typ wire.Type, body any) (a A, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := l.Request(ctx, link.Call{Kind: kind, Type: typ, Body: body})
	if err != nil {
		return a, err
	}
	return a, m.Decode(&a)
}

// TestAProfileWhoseKeyCannotBeOpenedIsNamedAtTheStart: the others go on, and its key is entered again.
func TestAProfileWhoseKeyCannotBeOpenedIsNamedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("a-provider-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "bad"} {
		s.do("provider", "add", name, "--provider", "anthropic", "--model", "m", "--timeout", "5s", "--key", key)
	}
	bad := decode[[]api.Provider](t, s.do("provider", "activate", "bad"))[0]
	s.stop()

	// Sealed by an installation with another key-encryption key.
	path := filepath.Join(dir, "foreign")
	if _, err := vault.Generate(path); err != nil {
		t.Fatal(err)
	}
	foreign, err := vault.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := foreign.Seal(planner.CredentialBinding("default", bad.ID, 2), vault.NewSecret([]byte("x")))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "state", "cloud.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.RotateCredential(t.Context(), store.Scope{Tenant: "default", Actor: "test"}, bad.ID, sealed, vault.KeyID(sealed), 2)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}

	s = serve(t, dir)
	states := func() map[string]string {
		found := map[string]string{}
		for _, p := range decode[[]api.Provider](t, s.do("provider", "list")) {
			found[p.Name] = p.State
		}
		return found
	}
	if got := states(); got["good"] != "ok" || got["bad"] != "undecryptable" {
		t.Errorf("the profiles are %v", got)
	}
	s.do("provider", "rotate", "bad", "--key", key)
	if got := states(); got["bad"] != "ok" {
		t.Errorf("with its key entered again it is %v", got)
	}
	s.stop()
	said := s.log.String()
	if n := strings.Count(said, "the key of a provider profile cannot be decrypted"); n != 1 || !strings.Contains(said, "bad") || !strings.Contains(said, "provider rotate") {
		t.Errorf("told %d times: %s", n, said)
	}
}

func TestATaskGoesFromTheOperatorThroughARackAndBack(t *testing.T) {
	s := serve(t, t.TempDir())
	s.do("provider", "add", "demo", "--provider", "scripted", "--activate")
	executed := make(chan wire.Command, 4)
	l := join(t, s.enrol("bench"), true, func(l *link.Link) {
		l.Handle(wire.TypeExecute, func(_ context.Context, m *wire.Message) {
			var c wire.Command
			if err := m.Decode(&c); err == nil {
				executed <- c
			}
		})
	})

	task := decode[fleet.Task](t, s.do("task", "submit", "--goal", "open the settings"))
	lease, err := ask[wire.Lease](t, l, wire.KindTask, wire.TypeClaim, wire.Claim{Slot: 1, Phone: "P1", ClaimID: "c1"})
	if err != nil || lease.Task.TaskID != task.TaskID || lease.Attempt != 1 || lease.Task.Goal != "open the settings" {
		t.Fatalf("got %+v, %v", lease, err)
	}
	sync, err := ask[wire.Sync](t, l, wire.KindTask, wire.TypeHeartbeat, wire.Heartbeat{
		Slots: []wire.SlotReport{{Slot: 1, State: "ready"}}, Running: []wire.Running{{TaskID: task.TaskID, Attempt: 1, Slot: 1}},
	})
	if err != nil || len(sync.Leases) != 1 || sync.Leases[0].LeaseMS < 100_000 {
		t.Fatalf("got %+v, %v", sync, err)
	}

	x, err := l.Open(t.Context(), link.Call{Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: wire.PlanRequest{
		RequestID: "r1", HostID: decode[[]fleet.Host](t, s.do("host", "list"))[0].Rack, TaskID: task.TaskID, Attempt: 1, SystemPrompt: "You act.", UserPrompt: "Goal: open the settings",
		Tools: []wire.PlanTool{{Name: "finish", Description: "End.", InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}}}`)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var last *wire.Message
	for last == nil || last.Type == wire.TypePlanAccepted {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		last, err = x.Next(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	if last.Type != wire.TypePlanDecision && last.Type != wire.TypePlanFailure {
		t.Errorf("got %s", last.Type)
	}
	t.Logf("%s %s", last.Type, last.Body)

	command := decode[fleet.Command](t, s.do("command", "send", "ping", lease.Task.Target.Rack+hostOf(t, s)))
	select {
	case c := <-executed:
		if c.CommandID != command.CommandID || c.Name != "ping" || c.Seq != 1 {
			t.Errorf("got %+v", c)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the command was not pushed")
	}
	if _, err := ask[wire.Ack](t, l, wire.KindCommand, wire.TypeCommandStatus, wire.CommandStatus{CommandID: command.CommandID, Version: 1, Status: wire.CommandSucceeded}); err != nil {
		t.Fatal(err)
	}
	if got := decode[fleet.Command](t, s.do("command", "show", command.CommandID)); got.State != wire.CommandSucceeded {
		t.Errorf("the command is %s", got.State)
	}

	if _, err := ask[wire.Ack](t, l, wire.KindTask, wire.TypeResult, wire.Result{TaskID: task.TaskID, Attempt: 1, Outcome: wire.Succeeded, Message: "done", Steps: 3}); err != nil {
		t.Fatal(err)
	}
	got := decode[fleet.Task](t, s.do("task", "show", task.TaskID))
	if got.State != wire.TaskSucceeded || got.Attempts[0].Message != "done" || got.Attempts[0].Steps != 3 {
		t.Errorf("got %+v", got)
	}
}

func hostOf(t *testing.T, s *served) string {
	t.Helper()
	return decode[[]fleet.Host](t, s.do("host", "list"))[0].Rack
}

func TestARackLogsInWithItsBrokerPasswordAndIsShutOutByItsRevocation(t *testing.T) {
	s := serve(t, t.TempDir())
	b := s.enrol("bench")
	l := join(t, b, false, nil)
	if h := decode[fleet.Host](t, s.do("host", "show", b.Rack)); h.Presence != "online" {
		t.Errorf("the rack is %s", h.Presence)
	}
	s.do("host", "revoke", b.Rack)
	for end := time.Now().Add(20 * time.Second); l.Status().State == link.Online; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the revoked rack is still connected")
		}
	}
	if _, err := ask[wire.Sync](t, l, wire.KindTask, wire.TypeHeartbeat, wire.Heartbeat{}); err == nil {
		t.Error("a revoked rack was answered")
	}
}
