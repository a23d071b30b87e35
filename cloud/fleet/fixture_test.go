package fleet_test

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme  = fleet.Operator{Tenant: "acme", Name: "anna"}
	other = fleet.Operator{Tenant: "other", Name: "otto"}
)

// bench is a fleet on a database of its own, whose clock stands still, and whose pushes are noted.
type bench struct {
	*fleet.Fleet
	t     *testing.T
	store *store.Store

	mu     sync.Mutex // guards what follows
	now    time.Time
	pushed []string // "task.cancel r1"
	bodies []any
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	var err error
	b.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "cloud.db"), store.Options{Clock: b.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Fleet = fleet.New(fleet.Options{Store: b.store, Push: b, Clock: b.clock})
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) wait(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// Push implements fleet.Pusher.
func (b *bench) Push(_ context.Context, to enroll.Caller, t wire.Type, body any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pushed, b.bodies = append(b.pushed, string(t)+" "+to.Rack), append(b.bodies, body)
	return nil
}

// heard gives what was pushed since the last time.
func (b *bench) heard() (types string, bodies []any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	types, bodies = strings.Join(b.pushed, ", "), b.bodies
	b.pushed, b.bodies = nil, nil
	return types, bodies
}

// rack enrols a rack of acme and says its hello.
func (b *bench) rack(id string) enroll.Caller {
	b.t.Helper()
	_, err := b.store.CreateHost(b.t.Context(), acme.Scope(), store.NewHost{ID: id}, store.NewIdentity{
		BearerHash: sha256.Sum256([]byte(id)), MACSecret: []byte("sealed"), KEK: "k1", Kid: "kid-" + id, Fingerprint: "ab", CertPEM: "cert",
	})
	b.ok(err)
	c := enroll.Caller{Tenant: acme.Tenant, Rack: id}
	b.hello(c, 1, 1)
	return c
}

func (b *bench) hello(c enroll.Caller, generation, session uint64) wire.Welcome {
	b.t.Helper()
	w, err := b.Hello(b.t.Context(), c, wire.Hello{Nonce: strings.Repeat("n", 16), Generation: generation, Session: session, Boot: "1-a"})
	b.ok(err)
	return w
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// wants wants a refusal whose sentence has every argument it needs.
func (b *bench) wants(err error, code wire.Code) {
	b.t.Helper()
	if !wire.Is(err, code) {
		b.t.Fatalf("got %v, want %s", err, code)
	}
	if said := wire.From(err).Sentence("en"); strings.Contains(said, "unknown)") || strings.Contains(said, "Go value") {
		b.t.Errorf("an argument is missing: %s", said)
	}
}

// submit queues a task and returns its id.
func (b *bench) submit(t wire.Task) string {
	b.t.Helper()
	if t.Goal == "" {
		t.Goal = "look around"
	}
	v, created, err := b.Submit(b.t.Context(), acme, fleet.NewTask{Task: t})
	b.ok(err)
	if !created {
		b.t.Fatal("it was there already")
	}
	return v.TaskID
}

// lease claims for slot 1 and wants a lease.
func (b *bench) lease(c enroll.Caller, claim string) wire.Lease {
	b.t.Helper()
	l, none, err := b.Claim(b.t.Context(), c, wire.Claim{Slot: 1, Phone: "P1", ClaimID: claim, SkillsVersion: "1"})
	b.ok(err)
	if l == nil {
		b.t.Fatalf("no task: %+v", none)
	}
	return *l
}

func (b *bench) state(id string, want wire.TaskState) fleet.Task {
	b.t.Helper()
	v, err := b.Task(b.t.Context(), acme, id)
	b.ok(err)
	if v.State != want {
		b.t.Fatalf("the task is %s, not %s", v.State, want)
	}
	return v
}
