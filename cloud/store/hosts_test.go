package store_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

func testHosts(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	for i := range 5 {
		addHost(t, s, fmt.Sprintf("r%d", i), "lab", "north")
	}
	h := must(s.Host(ctx, acme, "r3"))(t)
	if h.ID != "r3" || h.Tenant != "acme" || h.Name != "rack r3" || !slices.Equal(h.Tags, []string{"lab", "north"}) ||
		h.Presence != store.Offline || !h.Created.Equal(start) || !h.LastSeen.IsZero() || !h.Revoked.IsZero() {
		t.Errorf("host is %+v", h)
	}
	var ids []string
	for page := (store.Page{Limit: 2}); ; {
		all, next, err := s.Hosts(ctx, acme, page)
		ok(t, err)
		for _, h := range all {
			ids = append(ids, h.ID)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if !slices.Equal(ids, []string{"r0", "r1", "r2", "r3", "r4"}) {
		t.Errorf("pages gave %v", ids)
	}
	for _, bad := range []string{"", "R1", "a/b", "a.b", "a b", "+", "ä", string(make([]byte, 64))} {
		_, err := s.CreateHost(ctx, acme, store.NewHost{ID: bad}, identity("bad"))
		wants(t, err, store.ErrInvalid)
	}
	_, err := s.CreateHost(ctx, acme, store.NewHost{ID: "r3"}, identity("another"))
	wants(t, err, store.ErrConflict)
	_, err = s.CreateHost(ctx, acme, store.NewHost{ID: "r9"}, identity("r3"))
	wants(t, err, store.ErrConflict) // the bearer
	_, err = s.Host(ctx, acme, "r9")
	wants(t, err, store.ErrNotFound) // and nothing of it stayed

	cmd := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r3", Name: "ping"}))(t)
	ok(t, s.RevokeHost(ctx, acme, "r3"))
	ok(t, s.RevokeHost(ctx, acme, "r3"))
	equal(t, "command", must(s.Command(ctx, acme, cmd.ID))(t).State, store.CommandUnknown)
	equal(t, "live sets", len(must(s.Identities(ctx, acme, "r3"))(t)), 0)
	_, err = s.System().IdentityByBearer(ctx, identity("r3").BearerHash)
	wants(t, err, store.ErrNotFound)
	for what, err := range map[string]error{
		"issue": second(s.IssueIdentity(ctx, acme, "r3", identity("new"))),
		"hello": second(s.Hello(ctx, acme, store.Hello{Host: "r3", Generation: 1})),
		"queue": second(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r3", Name: "ping"})),
	} {
		t.Run(what+" of a revoked rack", func(t *testing.T) { wants(t, err, store.ErrConflict) })
	}
	_, _, err = s.Claim(ctx, acme, claim("r3", 1, "c"))
	wants(t, err, store.ErrConflict)
}

func second[T any](_ T, err error) error { return err }

func testIdentities(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	find := func(seed string) error {
		return second(s.System().IdentityByBearer(ctx, sha256.Sum256([]byte(seed))))
	}
	first, err := s.System().IdentityByBearer(ctx, sha256.Sum256([]byte("r1")))
	ok(t, err)
	if first.Tenant != "acme" || first.Host != "r1" || first.Number != 1 || string(first.MACSecret) != "sealed r1" || first.Kid != "kid-r1" ||
		first.KEK != "k1" || first.CertPEM != "cert" || !first.Issued.Equal(start) || !first.Used.IsZero() {
		t.Errorf("identity is %+v", first)
	}
	ok(t, s.UseIdentity(ctx, acme, "r1", 1))
	wants(t, s.UseIdentity(ctx, acme, "r1", 7), store.ErrNotFound)

	// Rotation: both sets hold until the new one is used.
	equal(t, "number", must(s.RotateIdentity(ctx, acme, "r1", identity("two"), time.Hour))(t).Number, 2)
	ok(t, find("r1"))
	ok(t, find("two"))
	equal(t, "live sets", len(must(s.Identities(ctx, acme, "r1"))(t)), 2)
	ok(t, s.UseIdentity(ctx, acme, "r1", 1)) // the old one being used again ends nothing
	ok(t, find("two"))
	ok(t, s.UseIdentity(ctx, acme, "r1", 2))
	wants(t, find("r1"), store.ErrNotFound)

	// Or until the grace time is over.
	_, err = s.RotateIdentity(ctx, acme, "r1", identity("three"), time.Hour)
	ok(t, err)
	p.wait(time.Hour - time.Millisecond)
	ok(t, find("two"))
	p.wait(time.Millisecond)
	wants(t, find("two"), store.ErrNotFound)
	ok(t, find("three"))

	// Enrolment ends all others at once.
	_, err = s.IssueIdentity(ctx, acme, "r1", identity("four"))
	ok(t, err)
	wants(t, find("three"), store.ErrNotFound)
	live := must(s.Identities(ctx, acme, "r1"))(t)
	if len(live) != 1 || live[0].Number != 4 {
		t.Errorf("live sets are %+v", live)
	}
	// A set that cannot be issued leaves the old one whole.
	_, err = s.IssueIdentity(ctx, acme, "r1", identity("two"))
	wants(t, err, store.ErrConflict)
	ok(t, find("four"))
	short := identity("five")
	short.Expires = p.clock().Add(time.Minute)
	_, err = s.IssueIdentity(ctx, acme, "r1", short)
	ok(t, err)
	p.wait(time.Minute)
	wants(t, find("five"), store.ErrNotFound)
}

func testHello(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	hello := func(generation, session int64) (store.Welcome, error) {
		return s.Hello(ctx, acme, store.Hello{Host: "r1", Generation: generation, Session: session, Boot: "3-ab", Versions: json.RawMessage(`{"rackd":"1"}`)})
	}
	early := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "identify"}))(t)
	w := must(hello(100, 1))(t)
	if !w.NewGeneration || w.CommandSeq != 0 || len(w.EndedCommands) != 0 {
		t.Errorf("first welcome is %+v", w)
	}
	h := must(s.Host(ctx, acme, "r1"))(t)
	if h.Generation != 100 || h.Session != 1 || h.Boot != "3-ab" || string(h.Versions) != `{"rackd":"1"}` || h.Presence != store.Online || !h.LastSeen.Equal(start) {
		t.Errorf("host is %+v", h)
	}
	equal(t, "pending", len(must(s.PendingCommands(ctx, acme, "r1", 0))(t)), 1)
	w = must(hello(100, 2))(t)
	if w.NewGeneration {
		t.Error("a known generation is new")
	}
	wants(t, second(hello(100, 1)), store.ErrConflict) // a replay

	submit(t, s, store.NewTask{Priority: 2})
	submit(t, s, store.NewTask{Priority: 1, Repeatable: true})
	sharp, blunt := lease(t, s, claim("r1", 1, "c1")), lease(t, s, claim("r1", 2, "c2"))
	submit(t, s, store.NewTask{})
	theirs := lease(t, s, claim("r2", 1, "c1"))

	w = must(hello(50, 1))(t) // a number is new by never having been there, not by its size
	if !w.NewGeneration || w.CommandSeq != 1 || !slices.Equal(w.EndedCommands, []string{early.ID}) ||
		!slices.Equal(w.EndedAttempts, []store.Ref{sharp.Attempt.Ref, blunt.Attempt.Ref}) {
		t.Errorf("welcome is %+v", w)
	}
	state(t, s, sharp.Task.ID, store.Lost)
	state(t, s, blunt.Task.ID, store.Queued)
	state(t, s, theirs.Task.ID, store.Leased)
	equal(t, "pending", len(must(s.PendingCommands(ctx, acme, "r1", 0))(t)), 0)
	if w = must(hello(50, 1))(t); w.NewGeneration || len(w.EndedAttempts)+len(w.EndedCommands) > 0 {
		t.Errorf("the same hello again: %+v", w)
	}
	wants(t, second(hello(100, 9)), store.ErrConflict) // its time is over
	equal(t, "sequence", must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t).Seq, 2)
	wants(t, second(hello(0, 1)), store.ErrInvalid)
}

func testPresence(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	_, err := s.Hello(ctx, acme, store.Hello{Host: "r1", Generation: 5, Session: 5})
	ok(t, err)
	for _, c := range []struct {
		generation, session int64
		state               wire.Presence
		applied             bool
		now                 wire.Presence
	}{
		{5, 4, store.Offline, false, store.Online}, // the will of the session before, delivered late
		{4, 9, store.Offline, false, store.Online},
		{5, 5, store.Draining, true, store.Draining},
		{5, 5, store.Offline, true, store.Offline},
		{5, 6, store.Online, true, store.Online},
		{5, 5, store.Offline, false, store.Online},
		{6, 1, store.Offline, true, store.Offline},
	} {
		applied, err := s.SetPresence(ctx, acme, store.StateReport{Host: "r1", Generation: c.generation, Session: c.session, State: c.state})
		ok(t, err)
		equal(t, fmt.Sprintf("applied %+v", c), applied, c.applied)
		equal(t, fmt.Sprintf("presence after %+v", c), must(s.Host(ctx, acme, "r1"))(t).Presence, c.now)
	}
	_, err = s.SetPresence(ctx, acme, store.StateReport{Host: "r1", Generation: 9, State: "gone"})
	wants(t, err, store.ErrInvalid)
	wrote := audits(t, s)
	_, err = s.SetPresence(ctx, acme, store.StateReport{Host: "r1", Generation: 6, Session: 1, State: store.Offline})
	ok(t, err)
	equal(t, "newest audit after the same state again", audits(t, s), wrote)
}
