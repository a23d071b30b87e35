package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"phonerack/cloud/bus"
	"phonerack/cloud/catalog"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wireBus is a bus without a broker: what is published is kept for the test.
type wireBus struct {
	mu   sync.Mutex // guards sent
	sent []bus.Frame
}

func (b *wireBus) Publish(_ context.Context, t wire.Topic, frame []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, bus.Frame{Topic: t, Data: frame})
	return nil
}

func (b *wireBus) take() []bus.Frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.sent
	b.sent = nil
	return all
}

func (*wireBus) Serve(ctx context.Context, _ []wire.Kind, _ bus.Handler) error {
	<-ctx.Done()
	return nil
}
func (*wireBus) Observe(ctx context.Context, _ bus.Handler) error { <-ctx.Done(); return nil }
func (*wireBus) Check(context.Context) error                      { return nil }
func (*wireBus) Stats() bus.Stats                                 { return bus.Stats{} }
func (*wireBus) Close() error                                     { return nil }

// site is a whole cloud without a broker and without a provider.
type site struct {
	t      testing.TB
	now    atomic.Int64 // ms
	store  *store.Store
	office *enroll.Office
	fleet  *fleet.Fleet
	skills *catalog.Catalog
	bus    *wireBus
	link   *Link
	server *Server
	asked  atomic.Int64 // calls of the planner
	screen atomic.Pointer[[]byte]
	decide DecideFunc
	router routers.Router
	token  string
}

func newSite(t testing.TB) *site {
	return openSite(t, filepath.Join(t.TempDir(), "cloud.db"), t.TempDir())
}

// openSite opens a cloud on a database and a folder that may be another one's too, as replicas have it.
func openSite(t testing.TB, db, dir string) *site {
	t.Helper()
	s := &site{t: t, bus: new(wireBus), token: "pra_test"}
	s.now.Store(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).UnixMilli())
	var err error
	if s.store, err = store.Open(t.Context(), "sqlite:"+db, store.Options{Clock: s.clock}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	kek := filepath.Join(dir, "kek")
	v, err := vault.Open(kek)
	if err != nil {
		if _, err := vault.Generate(kek); err != nil {
			t.Fatal(err)
		}
		if v, err = vault.Open(kek); err != nil {
			t.Fatal(err)
		}
	}
	ca, err := enroll.OpenAuthority(dir, v, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	s.office = enroll.New(enroll.Options{
		Store: s.store, Vault: v, Authority: ca, Clock: s.clock, Broker: func() string { return "ssl://b:1" },
		SkillKeys: func(ctx context.Context, tenant string) (map[string]ed25519.PublicKey, error) {
			return s.skills.PublicKeys(ctx, tenant)
		},
	})
	pusher := new(latePusher)
	s.fleet = fleet.New(fleet.Options{Store: s.store, Push: pusher, Clock: s.clock, KIDs: func(ctx context.Context, c enroll.Caller) ([]string, error) {
		r, err := s.office.Keys(ctx, c)
		if err != nil {
			return nil, err
		}
		return r.KIDs(), nil
	}})
	s.decide = func(_ context.Context, _ enroll.Caller, req wire.PlanRequest, screen []byte, accepted func(time.Duration)) (wire.PlanDecision, error) {
		s.asked.Add(1)
		s.screen.Store(&screen)
		accepted(time.Minute)
		return wire.PlanDecision{RequestID: req.RequestID, ToolName: "tap", Arguments: json.RawMessage(`{"element":3}`)}, nil
	}
	s.skills = catalog.New(catalog.Options{Store: s.store, Vault: v, Push: pusher, Clock: s.clock})
	calls := NewCalls(s.fleet, s.skills, func(ctx context.Context, c enroll.Caller, req wire.PlanRequest, screen []byte, accepted func(time.Duration)) (wire.PlanDecision, error) {
		return s.decide(ctx, c, req, screen, accepted)
	})
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s.link = NewLink(LinkOptions{Bus: s.bus, Office: s.office, Fleet: s.fleet, Calls: calls, Clock: s.clock, Log: log})
	pusher.to = s.link
	s.server = New(Options{
		Calls: calls, Office: s.office, Fleet: s.fleet, Store: s.store, Providers: Profiles{Store: s.store, Vault: v}, Skills: s.skills, Gatherer: prometheus.NewRegistry(),
		Backup: s.store.System().Backup, Token: TokenHash(s.token), Clock: s.clock, Log: log,
	})
	s.router = description(t)
	return s
}

type latePusher struct{ to *Link }

func (p *latePusher) Push(ctx context.Context, to enroll.Caller, t wire.Type, body any) error {
	return p.to.Push(ctx, to, t, body)
}

func (s *site) clock() time.Time     { return time.UnixMilli(s.now.Load()).UTC() }
func (s *site) wait(d time.Duration) { s.now.Add(d.Milliseconds()) }

// refused is how many frames were refused for a reason.
func (s *site) refused(reason string) int {
	return int(testutil.ToFloat64(s.link.metrics.refused.WithLabelValues(reason)))
}

// rack is a rack with its credentials, over either transport.
type rack struct {
	*site
	bundle  wire.Bundle
	keys    wire.Keys
	session uint64
	nonce   string
}

var acme = fleet.Operator{Tenant: "acme", Name: "local"}

func (s *site) rack(tenant string) *rack {
	s.t.Helper()
	b, err := s.office.Enrol(s.t.Context(), store.Scope{Tenant: tenant, Actor: "admin:test"}, "bench", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.with(b)
}

func (s *site) with(b wire.Bundle) *rack {
	s.t.Helper()
	keys, err := b.Keys()
	if err != nil {
		s.t.Fatal(err)
	}
	return &rack{site: s, bundle: b, keys: keys}
}

func (r *rack) topic(k wire.Kind) wire.Topic {
	return wire.Topic{Tenant: r.bundle.Tenant, Rack: r.bundle.Rack, Direction: wire.Up, Kind: k}
}

// kindOf is the topic of a request.
func kindOf(t wire.Type) wire.Kind {
	word, _, _ := strings.Cut(string(t), ".")
	return wire.Kind(word)
}

func (r *rack) message(t wire.Type, body any) *wire.Message {
	r.t.Helper()
	life := 30 * time.Second
	switch t {
	case wire.TypeResult, wire.TypeCommandStatus, wire.TypeEvent, wire.TypeState:
		life = 0
	}
	m, err := wire.NewMessage(t, r.clock(), life, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rack) seal(k wire.Kind, m *wire.Message) []byte {
	r.t.Helper()
	frame, err := wire.Seal(r.topic(k), r.keys, m)
	if err != nil {
		r.t.Fatal(err)
	}
	return frame
}

// deliver hands a frame to the cloud as the bus does, and gives what the cloud sends to this rack.
func (r *rack) deliver(k wire.Kind, frame []byte) []*wire.Message {
	r.t.Helper()
	r.link.take(r.t.Context(), bus.Frame{Topic: r.topic(k), Data: frame})
	return r.heard()
}

func (r *rack) heard() (all []*wire.Message) {
	r.t.Helper()
	for _, f := range r.bus.take() {
		m, err := wire.Open(f.Topic, func(kid string) (wire.Keys, bool) { return r.keys, kid == r.keys.KID }, f.Data)
		if err != nil {
			r.t.Fatalf("the cloud's frame on %s: %v", f.Topic, err)
		}
		if m.Sess != r.nonce {
			r.t.Errorf("%s carries the session %q where %q is alive", m.Type, m.Sess, r.nonce)
		}
		if f.Topic.Rack != r.bundle.Rack || f.Topic.Tenant != r.bundle.Tenant || f.Topic.Direction != wire.Down {
			r.t.Errorf("sent to %s", f.Topic)
		}
		all = append(all, m)
	}
	return all
}

// hello begins the next session.
func (r *rack) hello() {
	r.t.Helper()
	r.session++
	r.nonce = "nonce-" + wire.NewID(r.clock())
	answers := r.deliver(wire.KindSession, r.seal(wire.KindSession, r.message(wire.TypeHello, wire.Hello{
		Nonce: r.nonce, Generation: 1, Boot: "1-x", Session: r.session, Versions: map[string]string{"rackd": "1"},
	})))
	if len(answers) != 1 || answers[0].Type != wire.TypeWelcome {
		r.t.Fatalf("got %+v", answers)
	}
	var w wire.Welcome
	if err := answers[0].Decode(&w); err != nil || w.Nonce != r.nonce || !slices.Contains(w.Keys, r.keys.KID) || w.Now != r.clock().UnixMilli() {
		r.t.Fatalf("got %+v, %v", w, err)
	}
}

// callMQTT asks over MQTT. No answer at all is errSilence.
func (r *rack) callMQTT(t wire.Type, body any) (*wire.Message, error) {
	r.t.Helper()
	m := r.message(t, body)
	var last *wire.Message
	for _, a := range r.deliver(kindOf(t), r.seal(kindOf(t), m)) {
		if a.Corr == "" { // pushed
			continue
		}
		if a.Corr != m.ID {
			r.t.Errorf("%s answers %q", a.Type, a.Corr)
		}
		last = a
	}
	if last == nil {
		return nil, errSilence
	}
	var refusal wire.Refusal
	var failed wire.PlanFailure
	switch {
	case last.Type == wire.TypeError && last.Decode(&refusal) == nil:
		return last, &refusal
	case last.Type == wire.TypePlanFailure && last.Decode(&failed) == nil:
		return last, failed.Error
	}
	return last, nil
}

var errSilence = errors.New("no answer")

var paths = map[wire.Type]string{
	wire.TypeHello: "hello", wire.TypeHeartbeat: "heartbeat", wire.TypeClaim: "claim", wire.TypeRenew: "renew", wire.TypeRelease: "release",
	wire.TypeResult: "result", wire.TypeQuestion: "questions", wire.TypePending: "commands/pending", wire.TypeCommandStatus: "commands/status",
	wire.TypePlanRequest: "planner-decisions", wire.TypeEvent: "events",
}

// callHTTP asks over HTTP.
func (r *rack) callHTTP(t wire.Type, body any) (json.RawMessage, error) {
	r.t.Helper()
	_, raw, err := r.http(http.MethodPost, "/v1/hosts/"+r.bundle.Rack+"/"+paths[t], r.bundle.Bearer, body)
	return raw, err
}

// http sends a request to the public handler and holds request and answer to the description.
func (s *site) http(method, path, bearer string, body any) (*http.Response, json.RawMessage, error) {
	s.t.Helper()
	return s.send(s.server.Public(), method, path, bearer, body)
}

func (s *site) send(h http.Handler, method, path, bearer string, body any) (*http.Response, json.RawMessage, error) {
	s.t.Helper()
	var raw []byte
	if body != nil {
		switch b := body.(type) {
		case []byte:
			raw = b
		case octets:
			raw = b
		default:
			var err error
			if raw, err = json.Marshal(body); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	request := func() *http.Request {
		q := httptest.NewRequestWithContext(s.t.Context(), method, "http://localhost"+path, bytes.NewReader(raw))
		if _, ok := body.(octets); ok {
			q.Header.Set("Content-Type", "application/octet-stream")
		} else if body != nil {
			q.Header.Set("Content-Type", "application/json")
		}
		if bearer != "" {
			q.Header.Set("Authorization", "Bearer "+bearer)
		}
		return q
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request())
	answer := w.Result()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.described(request(), answer, out)
	if answer.StatusCode < 300 {
		return answer, out, nil
	}
	var f failure
	if err := json.Unmarshal(out, &f); err != nil || f.Error == nil {
		s.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, out)
	}
	return answer, out, f.Error
}

// octets is a body that is no JSON.
type octets []byte

// described holds an exchange to openapi.yaml. A request that was refused as malformed need not fit.
func (s *site) described(q *http.Request, answer *http.Response, out []byte) {
	s.t.Helper()
	route, params, err := s.router.FindRoute(q)
	if err != nil {
		s.t.Errorf("%s %s is not described: %v", q.Method, q.URL.Path, err)
		return
	}
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}
	in := &openapi3filter.RequestValidationInput{Request: q, PathParams: params, Route: route, Options: options}
	if answer.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(q.Context(), in); err != nil {
			s.t.Errorf("the request does not fit the description: %v", err)
		}
	}
	res := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: answer.StatusCode, Header: answer.Header, Options: options}
	if answer.StatusCode != http.StatusNoContent {
		res.SetBodyBytes(out)
	}
	if answer.Header.Get("Content-Type") == "image/jpeg" {
		return
	}
	if err := openapi3filter.ValidateResponse(q.Context(), res); err != nil {
		s.t.Errorf("%s %s: the answer does not fit the description: %v", q.Method, q.URL.Path, err)
	}
}

var describe = sync.OnceValues(func() (routers.Router, error) {
	raw, err := openAPI()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

func description(t testing.TB) routers.Router {
	t.Helper()
	r, err := describe()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// must gives a value to a test, or ends it.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
