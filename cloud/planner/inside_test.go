package planner

import (
	"bytes"
	"context"
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
