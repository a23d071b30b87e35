package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"phonerack/cloud/store"
)

// world is one record of each kind, all of them acme's.
type world struct {
	task, waiting store.Lease
	command       store.Command
	profile       store.Profile
	reservation   store.Reservation
	skill         store.NewSkill
	file          store.File // of a task that r1 has the lease of
}

func newWorld(t *testing.T, s *store.Store) world {
	t.Helper()
	ctx := t.Context()
	addHost(t, s, "r1")
	var w world
	w.file = must(s.PutFile(ctx, acme, []byte("a file")))(t)
	submit(t, s, store.NewTask{Key: "k", Files: []string{w.file.SHA256}})
	submit(t, s, store.NewTask{})
	submit(t, s, store.NewTask{}) // for the method Claim
	w.task = lease(t, s, claim("r1", 1, "c1"))
	w.waiting = lease(t, s, claim("r1", 2, "c2"))
	ok(t, s.Ask(ctx, acme, "r1", w.waiting.Attempt.Ref, store.Question{ID: "q", Body: json.RawMessage(`{"text":"?"}`)}))
	w.command = must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t)
	w.profile = must(s.AddProfile(ctx, acme, profile("p1")))(t)
	ok(t, s.ActivateProfile(ctx, acme, "p1"))
	w.reservation = must(s.Reserve(ctx, acme, "p1", 10))(t)
	_, err := s.Begin(ctx, acme, plan("r1", "open", w.task.Attempt.Ref, "o1"))
	ok(t, err)
	ok(t, second(s.CreateSubscription(ctx, acme, "social", "")))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Rack: "r1"})))
	w.skill = newSkill("tips", "social", "1")
	publish(t, s, w.skill)
	publish(t, s, newSkill("more", "social", "1"))
	ok(t, second(s.AddCatalogKey(ctx, acme, catalogKey("k1", 1))))
	ok(t, second(s.AddCatalogKey(ctx, acme, catalogKey("k2", 2))))
	return w
}

// call is one method, called with records of world. A list gives how many records it has.
type call func(ctx context.Context, s *store.Store, sc store.Scope, w world) (records int, err error)

func only(f func(ctx context.Context, s *store.Store, sc store.Scope, w world) error) call {
	return func(ctx context.Context, s *store.Store, sc store.Scope, w world) (int, error) {
		return 0, f(ctx, s, sc, w)
	}
}

type (
	c  = context.Context
	st = *store.Store
	sc = store.Scope
)

// lists answer a foreign tenant with an empty page: there is nothing they could be asked for.
var lists = map[string]call{
	"Hosts": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Hosts(c, sc, store.Page{})
		return len(l), err
	},
	"Profiles": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Profiles(c, sc, store.Page{})
		return len(l), err
	},
	"Tasks": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Tasks(c, sc, store.TaskFilter{Host: "r1"}, store.Page{})
		return len(l), err
	},
	"Commands": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Commands(c, sc, store.CommandFilter{Host: "r1"}, store.Page{})
		return len(l), err
	},
	"Audits": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Audits(c, sc, store.Page{})
		return len(l), err
	},
	"Events": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Events(c, sc, "r1", store.Page{})
		return len(l), err
	},
	"Usage": func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Usage(c, sc, store.UsageQuery{}, store.Page{})
		return len(l), err
	},
}

func init() {
	lists["Subscriptions"] = func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Subscriptions(c, sc, store.Page{})
		return len(l), err
	}
	lists["Skills"] = func(c c, s st, sc sc, w world) (int, error) {
		l, _, err := s.Skills(c, sc, "", store.Page{})
		return len(l), err
	}
	lists["CatalogKeys"] = func(c c, s st, sc sc, w world) (int, error) {
		l, err := s.CatalogKeys(c, sc)
		return len(l), err
	}
}

// methods name a record that the foreign tenant must not find. They are in an order in which acme can call them all.
var methods = []struct {
	name   string
	silent bool // writes nothing down: it only reads, or is one of those that the package's documentation excepts
	call   call
}{
	{"RackFile", true, only(func(c c, s st, sc sc, w world) error {
		_, _, err := s.RackFile(c, sc, "r1", w.file.SHA256, 0, 10)
		return err
	})},
	{"Host", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Host(c, sc, "r1"); return err })},
	{"LabelHost", false, only(func(c c, s st, sc sc, w world) error { return s.LabelHost(c, sc, "r1", "n", nil) })},
	{"Identities", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Identities(c, sc, "r1"); return err })},
	{"Hello", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Hello(c, sc, store.Hello{Host: "r1", Generation: 1, Session: 1})
		return err
	})},
	{"SetSession", true, only(func(c c, s st, sc sc, w world) error {
		return s.SetSession(c, sc, store.Hello{Host: "r1", Generation: 1, Session: 1}, "nonce")
	})},
	{"Session", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Session(c, sc, "r1"); return err })},
	{"AddEvent", true, only(func(c c, s st, sc sc, w world) error {
		return s.AddEvent(c, sc, store.NewEvent{Host: "r1", ID: "e1", Kind: "hub", At: time.UnixMilli(1)})
	})},
	{"SetPresence", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.SetPresence(c, sc, store.StateReport{Host: "r1", Generation: 1, Session: 2, State: store.Draining})
		return err
	})},
	{"Configure", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Configure(c, sc, store.Settings{Host: "r1", Set: map[string]json.RawMessage{"a": json.RawMessage(`1`)}})
		return err
	})},
	{"Desired", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Desired(c, sc, "r1"); return err })},
	{"UseIdentity", false, only(func(c c, s st, sc sc, w world) error { return s.UseIdentity(c, sc, "r1", 1) })},
	{"RotateIdentity", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.RotateIdentity(c, sc, "r1", identity("rotated"), time.Hour)
		return err
	})},
	{"IssueIdentity", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.IssueIdentity(c, sc, "r1", identity("issued"))
		return err
	})},
	{"Profile", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Profile(c, sc, "p1"); return err })},
	{"ActiveProfile", true, only(func(c c, s st, sc sc, w world) error { _, err := s.ActiveProfile(c, sc); return err })},
	{"ActivateProfile", false, only(func(c c, s st, sc sc, w world) error { return s.ActivateProfile(c, sc, "p1") })},
	{"RotateCredential", false, only(func(c c, s st, sc sc, w world) error {
		return s.RotateCredential(c, sc, "p1", []byte("new"), "k1", 2)
	})},
	{"Reserve", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Reserve(c, sc, "p1", 1); return err })},
	{"Settle", true, only(func(c c, s st, sc sc, w world) error {
		return s.Settle(c, sc, w.reservation, store.Spent{Host: "r1", Task: w.task.Task.ID, TokensIn: 1})
	})},
	{"DeactivateProfile", false, only(func(c c, s st, sc sc, w world) error { return s.DeactivateProfile(c, sc, "p1") })},
	{"Task", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Task(c, sc, w.task.Task.ID); return err })},
	{"Attempts", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Attempts(c, sc, w.task.Task.ID); return err })},
	{"Decisions", true, only(func(c c, s st, sc sc, w world) error {
		_, _, err := s.Decisions(c, sc, w.task.Task.ID, 0, store.Page{})
		return err
	})},
	{"Claim", false, only(func(c c, s st, sc sc, w world) error {
		_, _, err := s.Claim(c, sc, claim("r1", 3, "c3"))
		return err
	})},
	{"Renew", true, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Renew(c, sc, "r1", w.task.Attempt.Ref, leaseTime)
		return err
	})},
	{"Heartbeat", true, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Heartbeat(c, sc, store.Heartbeat{Host: "r1"})
		return err
	})},
	{"Begin", true, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Begin(c, sc, plan("r1", "second", w.task.Attempt.Ref, "o1"))
		return err
	})},
	{"Finish", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Finish(c, sc, finish("r1", "open", "o1"))
		return err
	})},
	{"Fail", false, only(func(c c, s st, sc sc, w world) error {
		return s.Fail(c, sc, store.Failure{Host: "r1", RequestID: "second", Owner: "o1", Refusal: json.RawMessage(`{"code":"refused"}`)})
	})},
	{"Answer", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Answer(c, sc, w.waiting.Task.ID, "", json.RawMessage(`{"text":"yes"}`))
		return err
	})},
	{"Ask", false, only(func(c c, s st, sc sc, w world) error {
		return s.Ask(c, sc, "r1", w.task.Attempt.Ref, store.Question{ID: "q2"})
	})},
	{"CancelTask", false, only(func(c c, s st, sc sc, w world) error { _, err := s.CancelTask(c, sc, w.waiting.Task.ID); return err })},
	{"SetResult", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.SetResult(c, sc, store.Result{Ref: w.task.Attempt.Ref, Host: "r1", Outcome: store.Failed, Wrote: true})
		return err
	})},
	{"RequeueTask", false, only(func(c c, s st, sc sc, w world) error { _, err := s.RequeueTask(c, sc, w.task.Task.ID); return err })},
	{"Release", false, only(func(c c, s st, sc sc, w world) error {
		return s.Release(c, sc, "r1", w.waiting.Attempt.Ref, "1", nil)
	})},
	{"ReleaseForNow", false, only(func(c c, s st, sc sc, w world) error {
		l, found, err := s.Claim(c, sc, claim("r1", 9, "once more")) // the one that was queued again
		if err != nil || !found {
			return err
		}
		return s.ReleaseForNow(c, sc, "r1", l.Attempt.Ref, nil)
	})},
	{"QueueCommand", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.QueueCommand(c, sc, store.NewCommand{Host: "r1", Name: "ping"})
		return err
	})},
	{"PendingCommands", false, only(func(c c, s st, sc sc, w world) error { _, err := s.PendingCommands(c, sc, "r1", 0); return err })},
	{"Command", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Command(c, sc, w.command.ID); return err })},
	{"SetCommandStatus", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.SetCommandStatus(c, sc, store.CommandStatus{Host: "r1", ID: w.command.ID, Version: 1, State: store.CommandRunning})
		return err
	})},
	{"Subscription", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Subscription(c, sc, "social"); return err })},
	{"Grants", true, only(func(c c, s st, sc sc, w world) error { _, err := s.Grants(c, sc, "social"); return err })},
	{"Grant", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.Grant(c, sc, store.Grant{Subscription: "social", Agent: "a"})
		return err
	})},
	{"Skill", true, only(func(c c, s st, sc sc, w world) error { _, _, err := s.Skill(c, sc, "tips"); return err })},
	{"RackSkills", true, only(func(c c, s st, sc sc, w world) error { _, err := s.RackSkills(c, sc, "r1", 0, 0); return err })},
	{"RackSubscriptions", true, only(func(c c, s st, sc sc, w world) error { _, err := s.RackSubscriptions(c, sc, "r1"); return err })},
	{"File", true, only(func(c c, s st, sc sc, w world) error { _, err := s.File(c, sc, w.file.SHA256); return err })},
	{"RackBlob", true, only(func(c c, s st, sc sc, w world) error { _, err := s.RackBlob(c, sc, "r1", w.skill.SHA256); return err })},
	{"EndGrant", false, only(func(c c, s st, sc sc, w world) error {
		return s.EndGrant(c, sc, store.Grant{Subscription: "social", Rack: "r1"})
	})},
	{"PublishSkill", false, only(func(c c, s st, sc sc, w world) error {
		n := newSkill("tips", "social", "2")
		n.Before = w.skill.SHA256
		_, _, err := s.PublishSkill(c, sc, n)
		return err
	})},
	{"RemoveSkill", false, only(func(c c, s st, sc sc, w world) error { _, err := s.RemoveSkill(c, sc, "tips"); return err })},
	{"SetSubscription", false, only(func(c c, s st, sc sc, w world) error {
		_, err := s.SetSubscription(c, sc, "social", false)
		return err
	})},
	{"ActivateCatalogKey", false, only(func(c c, s st, sc sc, w world) error { return s.ActivateCatalogKey(c, sc, "k2") })},
	{"DropCatalogKey", false, only(func(c c, s st, sc sc, w world) error { return s.DropCatalogKey(c, sc, "k1") })},
	{"RevokeHost", false, only(func(c c, s st, sc sc, w world) error { return s.RevokeHost(c, sc, "r1") })},
}

// creators have no record to look for. Taking an id of another tenant is a conflict, which tells no more than that ids
// are unique; Submit's keys are each tenant's own.
var creators = []string{"PutFile", "CreateHost", "AddProfile", "Submit", "CreateSubscription", "AddCatalogKey"}

// without have no scope.
var without = []string{"Close", "System"}

func testForeignTenants(t *testing.T, p place) {
	s := p.open(t)
	w := newWorld(t, s)
	known := append(slices.Clone(creators), without...)
	for name := range lists {
		known = append(known, name)
	}
	for _, m := range methods {
		known = append(known, m.name)
	}
	typ := reflect.TypeFor[*store.Store]()
	for i := range typ.NumMethod() {
		if name := typ.Method(i).Name; !slices.Contains(known, name) {
			t.Errorf("method %s is not tried with a foreign tenant: add it to methods or lists", name)
		}
	}
	nobody := store.Scope{Tenant: "nobody", Actor: "x"}
	_, err := s.Host(t.Context(), nobody, "r1")
	unknown := err.Error()
	for _, m := range methods {
		if _, err := m.call(t.Context(), s, other, w); !errors.Is(err, store.ErrNotFound) || err.Error() != unknown {
			t.Errorf("%s with a foreign tenant: %v", m.name, err)
		}
		if _, err := m.call(t.Context(), s, store.Scope{}, w); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s without a tenant: %v", m.name, err)
		}
		if _, err := m.call(t.Context(), s, store.Scope{Tenant: "acme"}, w); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s without an actor: %v", m.name, err)
		}
	}
	for name, list := range lists {
		if n, err := list(t.Context(), s, other, w); n != 0 || err != nil {
			t.Errorf("%s with a foreign tenant: %d records, %v", name, n, err)
		}
		if _, err := list(t.Context(), s, store.Scope{}, w); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s without a tenant: %v", name, err)
		}
	}
	_, err = s.CreateHost(t.Context(), other, store.NewHost{ID: "r1"}, identity("x"))
	wants(t, err, store.ErrConflict)
	_, err = s.AddProfile(t.Context(), other, profile("p1"))
	wants(t, err, store.ErrConflict)
	_, err = s.AddCatalogKey(t.Context(), other, catalogKey("k1", 1))
	wants(t, err, store.ErrConflict)
	if _, err := s.CreateSubscription(t.Context(), other, "social", "another one"); err != nil {
		t.Errorf("subscriptions are each tenant's own: %v", err)
	}
	_, _, err = s.Submit(t.Context(), other, store.NewTask{Body: json.RawMessage(`{}`), Files: []string{w.file.SHA256}})
	wants(t, err, store.ErrInvalid)
	task, created, err := s.Submit(t.Context(), other, store.NewTask{Key: "k", Body: json.RawMessage(`{}`)})
	ok(t, err)
	if !created || task.ID == w.task.Task.ID {
		t.Error("a key of another tenant was found")
	}
	// Nothing of all this has changed anything: each method still works for its owner.
	testEachWorks(t, s, w)
}

// testEachWorks calls everything as acme, so that the refusals above are about the tenant and nothing else.
func testEachWorks(t *testing.T, s *store.Store, w world) {
	for _, m := range methods {
		before := audits(t, s)
		if _, err := m.call(t.Context(), s, acme, w); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if wrote := audits(t, s) > before; wrote == m.silent {
			t.Errorf("%s: written down is %v", m.name, wrote)
		}
	}
	for name, list := range lists {
		if n, err := list(t.Context(), s, acme, w); n == 0 || err != nil {
			t.Errorf("%s: %d records, %v", name, n, err)
		}
	}
}

func audits(t *testing.T, s *store.Store) int64 {
	t.Helper()
	all, _, err := s.Audits(t.Context(), acme, store.Page{Limit: 1})
	ok(t, err)
	if len(all) == 0 {
		return 0
	}
	return all[0].ID
}

func testAudits(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1", "lab")
	all, next, err := s.Audits(t.Context(), acme, store.Page{})
	ok(t, err)
	equal(t, "records", len(all), 1)
	equal(t, "next", next, "")
	a := all[0]
	if a.Verb != "host.create" || a.Object != "r1" || a.Actor != acme.Actor || !a.At.Equal(start) {
		t.Errorf("audit is %+v", a)
	}
	for range 4 {
		ok(t, s.LabelHost(t.Context(), acme, "r1", "n", nil))
	}
	var ids []int64
	for page := (store.Page{Limit: 2}); ; page.After = next {
		all, next, err = s.Audits(t.Context(), acme, page)
		ok(t, err)
		for _, a := range all {
			ids = append(ids, a.ID)
		}
		if next == "" {
			break
		}
	}
	if len(ids) != 5 || !slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("pages gave %v", ids)
	}
	// A change that fails leaves no trace.
	before := audits(t, s)
	wants(t, s.LabelHost(t.Context(), acme, "r9", "n", nil), store.ErrNotFound)
	equal(t, "newest audit", audits(t, s), before)
}

func testTenants(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1")
	_, _, err := s.Submit(t.Context(), other, store.NewTask{Body: json.RawMessage(`{}`)})
	ok(t, err)
	if all := must(s.System().Tenants(t.Context()))(t); !slices.Equal(all, []string{"acme", "other"}) {
		t.Errorf("tenants are %v", all)
	}
	equal(t, "tenant of a rack", must(s.System().TenantOf(t.Context(), "r1"))(t), "acme")
	_, err = s.System().TenantOf(t.Context(), "r2")
	wants(t, err, store.ErrNotFound)
}

func testLookups(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1")
	for _, id := range []string{"a\x00b", "\xff", ""} {
		_, err := s.Task(t.Context(), acme, id)
		wants(t, err, store.ErrNotFound)
		_, err = s.CancelTask(t.Context(), acme, id)
		wants(t, err, store.ErrNotFound)
		_, err = s.Host(t.Context(), acme, id)
		wants(t, err, store.ErrNotFound)
		if _, err = s.Renew(t.Context(), acme, "r1", store.Ref{Task: id, Attempt: 1}, time.Minute); !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrNotYourTask) {
			t.Errorf("renew of %q: %v", id, err)
		}
	}
}
