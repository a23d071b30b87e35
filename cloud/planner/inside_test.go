package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner/provider"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// HashOf and Scope let tests play another replica.
var HashOf = hashOf

func (c Caller) Scope() store.Scope { return c.scope() }

// panicking is a vault with a fault in it.
type panicking struct{}

func (panicking) Open(vault.Binding, []byte) (vault.Secret, error) { panic("secret prompt") }

func TestAPanicInTheProviderPathIsAFailureOfItsRequest(t *testing.T) {
	var logs bytes.Buffer
	turn := &turn{
		Proxy: &Proxy{o: Options{Metrics: NewMetrics(nil), Vault: panicking{}}}, req: &wire.PlanRequest{UserPrompt: "secret prompt"},
		log:     slog.New(slog.NewTextHandler(&logs, nil)),
		profile: store.Profile{Provider: store.Anthropic, Timeout: time.Second, Credential: []byte("sealed")}, prepared: make(chan struct{}),
	}
	var none *wire.PlanRequest
	for _, value := range []any{"secret prompt", none} {
		turn.provider = func(context.Context) (provider.Outcome, error) { panic(value) }
		out, r := turn.call(t.Context())
		if r == nil || r.Code != wire.Internal || out.Decision.Tool != "" {
			t.Errorf("got %+v, %v", out, r)
		}
	}
	turn.prepare()
	if _, r := turn.ask(t.Context()); r == nil || r.Code != wire.Internal {
		t.Errorf("got %v", r)
	}
	if strings.Contains(logs.String(), "secret prompt") || strings.Count(logs.String(), "panic in a provider call") != 3 {
		t.Errorf("log is %s", logs.String())
	}
}

func TestEstimatesAreHigh(t *testing.T) {
	req := &wire.PlanRequest{SystemPrompt: strings.Repeat("a", 300), UserPrompt: strings.Repeat("a", 600), Tools: []wire.PlanTool{{InputSchema: bytes.Repeat([]byte("a"), 300)}}}
	m := model{answer: 1000}
	if plain, seen := m.estimate(req, false), m.estimate(req, true); plain != 1400 || seen != 6400 {
		t.Errorf("estimates are %d and %d", plain, seen)
	}
	if n := (scripted{}).estimate(req, true); n != 0 {
		t.Errorf("rules use %d tokens", n)
	}
}

func TestRacksThatAreStillAreForgotten(t *testing.T) {
	l := looseLimit{perMinute: 2}
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for i := range 100 {
		if !l.allow(Caller{"acme", string(rune('a' + i))}, now) {
			t.Fatal("a rack's first request was refused")
		}
	}
	busy := Caller{"acme", "busy"}
	now = now.Add(90 * time.Second)
	if !l.allow(busy, now) || len(l.racks) != 1 {
		t.Errorf("%d racks are remembered, want the busy one", len(l.racks))
	}
	if !l.allow(busy, now) || l.allow(busy, now) {
		t.Error("the bound is not 2")
	}
}

func TestAHashIsOfWhatIsAsked(t *testing.T) {
	ask := func(change func(*wire.PlanRequest)) [32]byte {
		req := wire.PlanRequest{
			RequestID: "q1", HostID: "r1", TaskID: "t1", Attempt: 1, SystemPrompt: "ab", UserPrompt: "c",
			Tools: []wire.PlanTool{{Name: "tap", Description: "Taps.", InputSchema: json.RawMessage(`{"a":"x \" y","b":[1,2]}`)}},
		}
		change(&req)
		return hashOf(&req, []byte("screen"))
	}
	same := ask(func(*wire.PlanRequest) {})
	if got := ask(func(r *wire.PlanRequest) {
		r.Tools[0].InputSchema = json.RawMessage("{ \"a\" :\t\"x \\\" y\",\r\n\"b\": [1, 2] }")
	}); got != same {
		t.Error("white space counts")
	}
	seen := map[[32]byte]string{same: "the request"}
	for name, change := range map[string]func(*wire.PlanRequest){
		"id": func(r *wire.PlanRequest) { r.RequestID = "q2" }, "host": func(r *wire.PlanRequest) { r.HostID = "r2" },
		"task": func(r *wire.PlanRequest) { r.TaskID = "t2" }, "attempt": func(r *wire.PlanRequest) { r.Attempt = 2 },
		"where a prompt ends": func(r *wire.PlanRequest) { r.SystemPrompt, r.UserPrompt = "a", "bc" },
		"name":                func(r *wire.PlanRequest) { r.Tools[0].Name = "swipe" },
		"description":         func(r *wire.PlanRequest) { r.Tools[0].Description = "Taps" },
		"schema":              func(r *wire.PlanRequest) { r.Tools[0].InputSchema = json.RawMessage(`{"a":"x \"y","b":[1,2]}`) },
		"number of tools":     func(r *wire.PlanRequest) { r.Tools = append(r.Tools, r.Tools[0]) },
	} {
		h := ask(change)
		if other, twice := seen[h]; twice {
			t.Errorf("another %s has the hash of another %s", name, other)
		}
		seen[h] = name
	}
	req := wire.PlanRequest{RequestID: "q1"}
	if hashOf(&req, nil) == hashOf(&req, []byte("screen")) {
		t.Error("the screen does not count")
	}
}
