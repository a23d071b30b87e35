package planner_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) {
	if asReplica() {
		return
	}
	goleak.VerifyTestMain(m)
}

var (
	acme  = store.Scope{Tenant: "acme", Actor: "admin:anna"}
	rack1 = planner.Caller{Tenant: "acme", Host: "r1"}
	start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
)

// bench is a proxy with all that it stands on: a database, a vault, a fake provider.
type bench struct {
	t     *testing.T
	dir   string
	now   *atomic.Int64 // ms; the records' clock
	store *store.Store
	vault *vault.Vault
	fake  *pt.Server
	logs  *syncBuffer
	reg   *prometheus.Registry
	o     planner.Options
	hooks map[planner.Point]func() // set before the requests that meet them
	*planner.Proxy
}

// newBench has the rack r1 of acme, and no profile.
func newBench(t *testing.T, change ...func(*planner.Options)) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), now: new(atomic.Int64), logs: new(syncBuffer), reg: prometheus.NewRegistry(), hooks: map[planner.Point]func(){}}
	b.now.Store(start.UnixMilli())
	var err error
	b.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(b.dir, "cloud.db"), store.Options{Clock: b.clock})
	ok(t, err)
	t.Cleanup(func() { ok(t, b.store.Close()) })
	b.vault = newVault(t, filepath.Join(b.dir, "keys"))
	b.fake, err = pt.Start(pt.Config{Default: func(*pt.Seen) pt.Reply { return good }})
	ok(t, err)
	pool := &provider.Pool{}
	t.Cleanup(func() { pool.CloseIdle(); b.fake.Close() })
	b.o = planner.Options{
		Store: b.store, Vault: b.vault, Owner: "test", Clock: b.clock, Pool: pool, Metrics: planner.NewMetrics(b.reg),
		Failpoint: func(p planner.Point) {
			if f := b.hooks[p]; f != nil {
				f()
			}
		},
		Logger: slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&b.o)
	}
	b.Proxy, err = planner.New(b.o)
	ok(t, err)
	addHost(t, b.store, acme, "r1")
	return b
}

func (b *bench) clock() time.Time     { return time.UnixMilli(b.now.Load()).UTC() }
func (b *bench) wait(d time.Duration) { b.now.Add(d.Milliseconds()) }

func newVault(t testing.TB, path string) *vault.Vault {
	t.Helper()
	_, err := vault.Generate(path)
	ok(t, err)
	v, err := vault.Open(path)
	ok(t, err)
	return v
}

func addHost(t testing.TB, s *store.Store, sc store.Scope, id string) {
	t.Helper()
	_, err := s.CreateHost(t.Context(), sc, store.NewHost{ID: id, Name: id}, store.NewIdentity{
		BearerHash: sha256.Sum256([]byte(id)), MACSecret: []byte("sealed"), KEK: "k1", Kid: "kid", Fingerprint: "ab", CertPEM: "cert",
	})
	ok(t, err)
}

// profile is one that works against the fake provider.
func (b *bench) profile(kind string) store.Profile {
	p := store.Profile{
		ID: store.NewID(), Name: kind + "-profile", Provider: kind, Model: "model-a", BaseURL: b.fake.URL, Timeout: 10 * time.Second, KeyVersion: 1,
	}
	switch kind {
	case store.Scripted:
		p.Model, p.BaseURL = "", ""
	case store.OpenAI, store.OpenAIResponses:
		p.BaseURL += "/v1"
	}
	return p
}

// activate adds a profile with its key, sealed, and makes it the active one.
func (b *bench) activate(p store.Profile, key string) store.Profile {
	b.t.Helper()
	ok(b.t, planner.CheckProfile(p, vault.NewSecret([]byte(key))))
	return activate(b.t, b.store, b.vault, p, key)
}

func activate(t testing.TB, s *store.Store, v *vault.Vault, p store.Profile, key string) store.Profile {
	t.Helper()
	if key != "" {
		sealed, err := v.Seal(planner.CredentialBinding("acme", p.ID, p.KeyVersion), vault.NewSecret([]byte(key)))
		ok(t, err)
		p.Credential, p.KEK = sealed, vault.KeyID(sealed)
	}
	p, err := s.AddProfile(t.Context(), acme, p)
	ok(t, err)
	ok(t, s.ActivateProfile(t.Context(), acme, p.ID))
	return p
}

// lease gives r1 a task.
func (b *bench) lease() store.Ref { b.t.Helper(); return lease(b.t, b.store, "r1", 1) }

func (b *bench) lease2() store.Ref { b.t.Helper(); return lease(b.t, b.store, "r1", 2) }

func lease(t testing.TB, s *store.Store, host string, slot int) store.Ref {
	t.Helper()
	_, _, err := s.Submit(t.Context(), acme, store.NewTask{Body: json.RawMessage(`{"goal":"look"}`), Target: store.Target{Rack: host}})
	ok(t, err)
	l, found, err := s.Claim(t.Context(), acme, store.Claim{Host: host, Slot: slot, Phone: fmt.Sprint("p", slot), ID: store.NewID(), SkillsVersion: "1", Lease: 2 * time.Minute})
	ok(t, err)
	if !found {
		t.Fatal("the claim got nothing")
	}
	return l.Attempt.Ref
}

// scriptedPrompt is one that the shipped rules know, with scriptedTools.
const scriptedPrompt = "goal: \"search the shop for a kettle and put it in the basket\"\nstep 1 of 30\nscreen 7: app com.android.launcher size 1080x2400 keyboard hidden\n[0] button \"Search\" clickable"

var scriptedTools = []wire.PlanTool{{
	Name: "launch_app", Description: "Starts an app.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{"package":{"type":"string"}},"required":["package"]}`),
}}

const (
	systemPrompt = "You work a phone. Text that only the system prompt holds."
	userPrompt   = "goal: \"buy a kettle\"\nstep 1 of 30\nscreen 7: app com.example.shop size 1080x2400 keyboard hidden\n[0] button \"Search\" clickable"
)

var tools = []wire.PlanTool{
	{Name: "tap", Description: "Taps.", InputSchema: json.RawMessage(`{"type":"object","properties":{"element":{"type":"integer"}},"required":["element"],"additionalProperties":false}`)},
	{Name: "mcp:shop/buy", Description: "Buys.", InputSchema: json.RawMessage(`{"type":"object"}`)},
}

func ask(id string, ref store.Ref) wire.PlanRequest {
	return wire.PlanRequest{
		RequestID: id, HostID: "r1", TaskID: ref.Task, Attempt: ref.Attempt, SystemPrompt: systemPrompt, UserPrompt: userPrompt, Tools: tools,
	}
}

// good is a usable answer.
var good = pt.Call("tap", `{"element":3}`)

func (b *bench) decide(req wire.PlanRequest) (wire.PlanDecision, error) {
	return b.Decide(b.t.Context(), rack1, req, nil, nil)
}

func (b *bench) decisions(ref store.Ref) []store.Decision {
	b.t.Helper()
	list, _, err := b.store.Decisions(b.t.Context(), acme, ref.Task, ref.Attempt, store.Page{})
	ok(b.t, err)
	return list
}

// screenshot is a JPEG of noise, so that no other bytes are like it.
func screenshot(t testing.TB) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 120, 160))
	for i := range img.Pix {
		img.Pix[i] = byte(rand.Uint32())
	}
	var out bytes.Buffer
	ok(t, jpeg.Encode(&out, img, nil))
	return out.Bytes()
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused wants a refusal with the code.
func refused(t testing.TB, err error, code wire.Code) *wire.Refusal {
	t.Helper()
	if !wire.Is(err, code) {
		t.Fatalf("error is %v, want the code %s", err, code)
	}
	return wire.From(err)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// counter reads a figure; labels are pairs.
func (b *bench) counter(name string, labels ...string) float64 {
	b.t.Helper()
	families, err := b.reg.Gather()
	ok(b.t, err)
	total := 0.0
	for _, f := range families {
		if f.GetName() != "phonerack_planner_"+name {
			continue
		}
	metric:
		for _, m := range f.GetMetric() {
			for i := 0; i < len(labels); i += 2 {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				}
				if !found {
					continue metric
				}
			}
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return total
}

// faulty is a store whose calls a test may break.
type faulty struct {
	*store.Store
	finish func(context.Context, store.Scope, store.Finish) (store.Decision, error)
	settle func(context.Context, store.Scope, store.Reservation, store.Spent) error
	begin  func(context.Context, store.Scope, store.PlanRequest) (store.Begun, error)
}

func (f *faulty) Finish(ctx context.Context, sc store.Scope, x store.Finish) (store.Decision, error) {
	if f.finish != nil {
		return f.finish(ctx, sc, x)
	}
	return f.Store.Finish(ctx, sc, x)
}

func (f *faulty) Settle(ctx context.Context, sc store.Scope, r store.Reservation, x store.Spent) error {
	if f.settle != nil {
		return f.settle(ctx, sc, r, x)
	}
	return f.Store.Settle(ctx, sc, r, x)
}

func (f *faulty) Begin(ctx context.Context, sc store.Scope, r store.PlanRequest) (store.Begun, error) {
	if f.begin != nil {
		return f.begin(ctx, sc, r)
	}
	return f.Store.Begin(ctx, sc, r)
}

// write makes a file below the bench's folder.
func (b *bench) write(name, text string) {
	b.t.Helper()
	ok(b.t, os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o700))
	ok(b.t, os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600))
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
