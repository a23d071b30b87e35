package store_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/store"
)

func profile(id string) store.Profile {
	return store.Profile{
		ID: id, Name: "name " + id, Provider: store.Anthropic, Model: "m", BaseURL: "https://example.org", Timeout: 30 * time.Second,
		Options: json.RawMessage(`{"max_tokens":500}`), Credential: []byte("sealed"), KEK: "k1", KeyVersion: 1,
	}
}

func testProfiles(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	_, err := s.ActiveProfile(ctx, acme)
	wants(t, err, store.ErrNotFound)
	full := profile("p1")
	full.Limits, full.Prices = store.Limits{RequestsPerMinute: 3, TokensPerDay: 4}, store.Prices{In: 5, Out: 6}
	added := must(s.AddProfile(ctx, acme, full))(t)
	full.Created = start
	wantJSON, _ := json.Marshal(full)
	gotJSON, _ := json.Marshal(added)
	same(t, "profile", gotJSON, wantJSON)
	p2 := profile("p2")
	p2.Provider, p2.Credential, p2.KEK = store.Scripted, nil, ""
	_, err = s.AddProfile(ctx, acme, p2)
	ok(t, err)
	taken := profile("p3")
	taken.Name = p2.Name
	wants(t, second(s.AddProfile(ctx, acme, taken)), store.ErrConflict)
	for what, change := range map[string]func(*store.Profile){
		"provider": func(p *store.Profile) { p.Provider = "oracle" },
		"timeout":  func(p *store.Profile) { p.Timeout = 0 },
		"version":  func(p *store.Profile) { p.KeyVersion = 2 },
		"kek":      func(p *store.Profile) { p.KEK = "" },
		"options":  func(p *store.Profile) { p.Options = json.RawMessage(`{`) },
		"limits":   func(p *store.Profile) { p.Limits.RequestsPerMinute = -1 },
	} {
		bad := profile("p4")
		change(&bad)
		if _, err := s.AddProfile(ctx, acme, bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("bad %s: %v", what, err)
		}
	}

	ok(t, s.ActivateProfile(ctx, acme, "p1"))
	ok(t, s.ActivateProfile(ctx, acme, "p2"))
	equal(t, "active", must(s.ActiveProfile(ctx, acme))(t).ID, "p2")
	ok(t, s.DeactivateProfile(ctx, acme, "p1")) // not the active one
	equal(t, "active", must(s.ActiveProfile(ctx, acme))(t).ID, "p2")
	ok(t, s.DeactivateProfile(ctx, acme, "p2"))
	wants(t, second(s.ActiveProfile(ctx, acme)), store.ErrNotFound)

	// Whatever happens at once, one is active at each moment.
	ok(t, s.ActivateProfile(ctx, acme, "p1"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if err := s.ActivateProfile(ctx, acme, []string{"p1", "p2"}[i%2]); err != nil {
					t.Error(err)
				}
				all, _, err := s.Profiles(ctx, acme, store.Page{})
				if n := len(slices.DeleteFunc(all, func(p store.Profile) bool { return !p.Active })); err != nil || n != 1 {
					t.Errorf("%d are active, %v", n, err)
				}
			}
		})
	}
	wg.Wait()

	ok(t, s.RotateCredential(ctx, acme, "p1", []byte("new"), "k2", 2))
	wants(t, s.RotateCredential(ctx, acme, "p1", []byte("late"), "k2", 2), store.ErrConflict)
	got := must(s.Profile(ctx, acme, "p1"))(t)
	if string(got.Credential) != "new" || got.KEK != "k2" || got.KeyVersion != 2 {
		t.Errorf("profile is %+v", got)
	}
}

func testLimits(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	limited := profile("p1")
	limited.Limits = store.Limits{RequestsPerMinute: 3, TokensPerDay: 1000}
	limited.Prices = store.Prices{In: 3_000_000, Out: 15_000_001}
	_, err := s.AddProfile(ctx, acme, limited)
	ok(t, err)
	_, err = s.AddProfile(ctx, acme, profile("free"))
	ok(t, err)
	refused := func(tokens int64, limit string, at time.Time) {
		t.Helper()
		_, err := s.Reserve(ctx, acme, "p1", tokens)
		var l *store.LimitError
		if !errors.As(err, &l) || l.Limit != limit || !l.RetryAt.Equal(at) {
			t.Fatalf("error is %v, want %s until %s", err, limit, at)
		}
	}
	p.wait(20 * time.Second)
	var r []store.Reservation
	for range 3 {
		r = append(r, must(s.Reserve(ctx, acme, "p1", 300))(t))
	}
	refused(10, "requests", start.Add(time.Minute))
	p.wait(40 * time.Second)
	midnight := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	refused(101, "tokens", midnight)
	// A refusal takes nothing, not of the minute either.
	r = append(r, must(s.Reserve(ctx, acme, "p1", 100))(t))
	refused(1, "tokens", midnight)
	ok(t, s.Settle(ctx, acme, r[0], store.Spent{Host: "r1", TokensIn: 90, TokensOut: 10})) // 200 less than estimated
	_, err = s.Reserve(ctx, acme, "p1", 200)
	ok(t, err)
	refused(1, "tokens", midnight)
	ok(t, s.Settle(ctx, acme, r[1], store.Spent{Host: "r1", TokensIn: 1, TokensOut: 1}))
	ok(t, s.Settle(ctx, acme, r[2], store.Spent{Host: "r1"})) // a call that failed
	p.wait(15 * time.Hour)
	_, err = s.Reserve(ctx, acme, "p1", 5000) // more than a day's, on an untouched day
	ok(t, err)
	refused(1, "tokens", midnight.Add(24*time.Hour))
	for range 10 {
		_, err = s.Reserve(ctx, acme, "free", 1<<30)
		ok(t, err)
	}
	all, next, err := s.Usage(ctx, acme, store.UsageQuery{From: "2026-11-30", To: "2026-11-30", Host: "r1", Profile: "p1"}, store.Page{})
	ok(t, err)
	// 90*3 + 10*15.000001 -> 420.00001, rounded up; 1*3 + 1*15.000001 -> 18.000001, rounded up
	want := store.Usage{Day: "2026-11-30", Host: "r1", Profile: "p1", Requests: 3, TokensIn: 91, TokensOut: 11, Cost: 421 + 19}
	if len(all) != 1 || all[0] != want || next != "" {
		t.Errorf("accounts are %+v, want %+v", all, want)
	}
	task := submit(t, s, store.NewTask{})
	ok(t, s.Settle(ctx, acme, store.Reservation{Profile: "free", Day: "2026-11-30"}, store.Spent{Host: "r1", Task: task.ID, TokensIn: 5}))
	var days []string
	for page := (store.Page{Limit: 1}); ; {
		all, next, err = s.Usage(ctx, acme, store.UsageQuery{}, page)
		ok(t, err)
		for _, u := range all {
			days = append(days, u.Task+u.Profile)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if !slices.Equal(days, []string{"p1", task.ID + "free"}) {
		t.Errorf("pages gave %v", days)
	}
}
