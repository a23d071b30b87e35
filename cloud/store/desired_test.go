package store_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/store"
)

func settings(host, set string, unset ...string) store.Settings {
	n := store.Settings{Host: host, Unset: unset}
	if err := json.Unmarshal([]byte(set), &n.Set); err != nil {
		panic(err)
	}
	return n
}

func testConfigurations(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	none := must(s.Desired(ctx, acme, "r1"))(t)
	if none.Version != 0 || string(none.Config) != "{}" || !none.At.IsZero() {
		t.Errorf("before any change: %+v", none)
	}
	first := must(s.Configure(ctx, acme, settings("r1", `{"b":true,"a":{"deep":[1]}}`)))(t)
	if first.Version < 1 || string(first.Config) != `{"a":{"deep":[1]},"b":true}` || !first.At.Equal(start) || first.Applied != 0 {
		t.Errorf("the first one is %+v", first)
	}
	next := must(s.Configure(ctx, acme, settings("r1", `{"c":"x"}`, "b", "unknown")))(t)
	equal(t, "version", next.Version, first.Version+1) // the clock stands still
	equal(t, "config", string(next.Config), `{"a":{"deep":[1]},"c":"x"}`)
	before := audits(t, s)
	same := must(s.Configure(ctx, acme, settings("r1", `{"c":"x"}`)))(t)
	equal(t, "version of what changes nothing", same.Version, next.Version)
	equal(t, "newest audit", audits(t, s), before)
	equal(t, "the other rack's version", must(s.Desired(ctx, acme, "r2"))(t).Version, 0)

	// What a rack has applied, by its state; the will knows nothing of it, and old news change nothing.
	report := func(session int64, state store.StateReport) {
		t.Helper()
		state.Host, state.Generation, state.Session = "r1", 1, session
		ok(t, second(s.SetPresence(ctx, acme, state)))
	}
	report(2, store.StateReport{State: store.Online, Desired: next.Version})
	report(1, store.StateReport{State: store.Online, Desired: first.Version})
	report(2, store.StateReport{State: store.Offline})
	equal(t, "applied", must(s.Desired(ctx, acme, "r1"))(t).Applied, next.Version)
	wants(t, second(s.SetPresence(ctx, acme, store.StateReport{Host: "r1", Generation: 1, Session: 3, State: store.Online, Desired: -1})), store.ErrInvalid)

	for what, n := range map[string]store.Settings{
		"no value":    {Host: "r1", Set: map[string]json.RawMessage{"a": nil}},
		"no JSON":     {Host: "r1", Set: map[string]json.RawMessage{"a": json.RawMessage(`{`)}},
		"no key":      settings("r1", `{"":1}`),
		"no text":     {Host: "r1", Unset: []string{"a\x00"}},
		"too large":   settings("r1", `{"a":"`+strings.Repeat("x", 9<<10)+`"}`),
		"a long name": settings("r1", `{"`+strings.Repeat("x", 300)+`":1}`),
	} {
		t.Run(what, func(t *testing.T) { wants(t, second(s.Configure(ctx, acme, n)), store.ErrInvalid) })
	}

	// Changes at once are all there, each with a version of its own.
	var at sync.WaitGroup
	var mu sync.Mutex
	versions := map[int64]bool{}
	for _, set := range []string{`{"p":1}`, `{"q":1}`, `{"r":1}`, `{"s":1}`} {
		at.Go(func() {
			d, err := s.Configure(ctx, acme, settings("r2", set))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			versions[d.Version] = true
		})
	}
	at.Wait()
	equal(t, "versions", len(versions), 4)
	equal(t, "config", string(must(s.Desired(ctx, acme, "r2"))(t).Config), `{"p":1,"q":1,"r":1,"s":1}`)

	// A restored database gives no version that a rack may have seen since the copy was made.
	p.wait(time.Hour)
	seen := must(s.Desired(ctx, acme, "r1"))(t).Version + 3000
	ok(t, second(s.System().Restored(ctx)))
	if again := must(s.Desired(ctx, acme, "r1"))(t); again.Version <= seen || string(again.Config) != string(next.Config) {
		t.Errorf("after a restore: %+v, where a rack has seen %d", again, seen)
	}

	ok(t, s.RevokeHost(ctx, acme, "r1"))
	equal(t, "version of a revoked rack", must(s.Desired(ctx, acme, "r1"))(t).Version, 0)
	wants(t, second(s.Configure(ctx, acme, settings("r1", `{"a":1}`))), store.ErrConflict)
	equal(t, "the other rack's config", string(must(s.Desired(ctx, acme, "r2"))(t).Config), `{"p":1,"q":1,"r":1,"s":1}`)
}
