package store_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"phonerack/cloud/store"
)

func testPlannerLog(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	task := submit(t, s, store.NewTask{})
	ref := lease(t, s, claim("r1", 1, "a")).Attempt.Ref
	begin := func(r store.PlanRequest) store.Begun { t.Helper(); return must(s.Begin(ctx, acme, r))(t) }

	equal(t, "first", begin(plan("r1", "q0", ref, "o1")).Standing, store.Fresh)
	state(t, s, task.ID, store.Running)
	for _, owner := range []string{"o1", "o2"} { // redelivered to anybody while the call is under way
		b := begin(plan("r1", "q0", ref, owner))
		if b.Standing != store.InFlight || !b.Until.Equal(start.Add(time.Minute)) {
			t.Errorf("second begin is %+v", b)
		}
	}
	d := must(s.Finish(ctx, acme, finish("r1", "q0", "o1")))(t)
	if d.Step != 0 || d.Ref != ref || d.SystemPrompt != "system of q0" || !d.At.Equal(start) {
		t.Errorf("decision is %+v", d)
	}
	b := begin(plan("r1", "q0", ref, "o2"))
	if b.Standing != store.Answered || b.Failure != nil || b.Decision == nil {
		t.Fatalf("answered begin is %+v", b)
	}
	got, _ := json.Marshal(b.Decision)
	want, _ := json.Marshal(d)
	same(t, "decision", got, want)
	wants(t, second(s.Finish(ctx, acme, finish("r1", "q0", "o1"))), store.ErrNotOwner)

	other := plan("r1", "q0", ref, "o1")
	other.BodyHash[0]++
	wants(t, second(s.Begin(ctx, acme, other)), store.ErrRequestConflict)
	wants(t, second(s.Begin(ctx, acme, plan("r1", "q0", store.Ref{}, "o1"))), store.ErrRequestConflict)
	equal(t, "the same id of another rack", begin(plan("r2", "q0", store.Ref{}, "o1")).Standing, store.Fresh)

	// A failure answers too, and takes no step.
	begin(plan("r1", "q1", ref, "o1"))
	ok(t, s.Fail(ctx, acme, store.Failure{Host: "r1", RequestID: "q1", Owner: "o1", Refusal: json.RawMessage(`{"code":"refused"}`)}))
	b = begin(plan("r1", "q1", ref, "o1"))
	if b.Standing != store.Answered || string(b.Failure) != `{"code":"refused"}` || b.Decision != nil {
		t.Errorf("failed begin is %+v", b)
	}
	wants(t, second(s.Finish(ctx, acme, finish("r1", "q1", "o1"))), store.ErrNotOwner)
	wants(t, s.Fail(ctx, acme, store.Failure{Host: "r1", RequestID: "q1", Owner: "o1", Refusal: json.RawMessage(`{}`)}), store.ErrNotOwner)
	wants(t, s.Fail(ctx, acme, store.Failure{Host: "r1", RequestID: "nosuch", Owner: "o1", Refusal: json.RawMessage(`{}`)}), store.ErrNotFound)

	// The owner dies: another one takes over, and the dead one's late answer counts for nothing.
	begin(plan("r1", "q2", ref, "o1"))
	p.wait(time.Minute)
	equal(t, "taken over", begin(plan("r1", "q2", ref, "o2")).Standing, store.TakenOver)
	equal(t, "and owned", begin(plan("r1", "q2", ref, "o1")).Standing, store.InFlight)
	wants(t, second(s.Finish(ctx, acme, finish("r1", "q2", "o1"))), store.ErrNotOwner)
	equal(t, "step", must(s.Finish(ctx, acme, finish("r1", "q2", "o2")))(t).Step, 1)

	// Only the rack that has the live lease may plan.
	for _, c := range []struct {
		host string
		ref  store.Ref
		want error
	}{
		{"r2", ref, store.ErrNotYourTask},
		{"r1", store.Ref{Task: task.ID, Attempt: 2}, store.ErrNotYourTask},
		{"r1", store.Ref{Task: "nosuch", Attempt: 1}, store.ErrNotYourTask},
		{"r1", store.Ref{Task: task.ID}, store.ErrInvalid},
		{"r1", store.Ref{Attempt: 1}, store.ErrInvalid},
	} {
		wants(t, second(s.Begin(ctx, acme, plan(c.host, "q3", c.ref, "o1"))), c.want)
	}
	equal(t, "a refused id left no row", begin(plan("r1", "q3", ref, "o1")).Standing, store.Fresh)
	begin(plan("r1", "q4", ref, "o1"))
	ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Failed, Wrote: true})))
	wants(t, second(s.Finish(ctx, acme, finish("r1", "q3", "o1"))), store.ErrAttemptOver)
	ok(t, s.Fail(ctx, acme, store.Failure{Host: "r1", RequestID: "q3", Owner: "o1", Refusal: json.RawMessage(`{"code":"attempt_over"}`)}))
	wants(t, second(s.Begin(ctx, acme, plan("r1", "q5", ref, "o1"))), store.ErrAttemptOver)
	equal(t, "answered although it is over", begin(plan("r1", "q2", ref, "o1")).Standing, store.Answered)
	p.wait(time.Minute)
	wants(t, second(s.Begin(ctx, acme, plan("r1", "q4", ref, "o2"))), store.ErrAttemptOver) // no take-over either
}

func testPlannerProfile(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	r := plan("r1", "q0", store.Ref{}, "o1")
	var told []*store.Profile
	r.Lease, r.Active = 0, func(p *store.Profile) time.Duration {
		told = append(told, p)
		return 2 * time.Minute
	}
	must(s.Begin(ctx, acme, r))(t)
	p1 := must(s.AddProfile(ctx, acme, profile("p1")))(t)
	ok(t, s.ActivateProfile(ctx, acme, p1.ID))
	r.Owner = "o2"
	b := must(s.Begin(ctx, acme, r))(t)
	if b.Standing != store.InFlight || !b.Until.Equal(start.Add(2*time.Minute)) {
		t.Errorf("begin is %+v", b)
	}
	want := must(s.ActiveProfile(ctx, acme))(t)
	if len(told) != 2 || told[0] != nil || told[1] == nil || !reflect.DeepEqual(*told[1], want) {
		t.Errorf("told %+v, the active one is %+v", told, want)
	}
	r.ID, r.Active = "q1", func(*store.Profile) time.Duration { return 0 }
	wants(t, second(s.Begin(ctx, acme, r)), store.ErrInvalid)
	r.Active = func(*store.Profile) time.Duration { return time.Minute }
	equal(t, "a refused lease left no row", must(s.Begin(ctx, acme, r))(t).Standing, store.Fresh)
}

func testPlannerLoose(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	d := must(decide(ctx, s, "r1", "q0", store.Ref{}))(t)
	if d.SystemPrompt != "" || d.UserPrompt != "" || d.Tool != "tap" {
		t.Errorf("decision is %+v", d)
	}
	b := must(s.Begin(ctx, acme, plan("r1", "q0", store.Ref{}, "o2")))(t)
	if b.Standing != store.Answered || b.Decision.Tool != "tap" || string(b.Decision.Arguments) != `{"element":3}` {
		t.Errorf("answered begin is %+v", b)
	}
	p.wait(time.Hour)
	equal(t, "pruned", must(s.System().Prune(ctx, store.PruneOptions{}))(t).Requests, 0)
	p.wait(time.Millisecond)
	equal(t, "pruned", must(s.System().Prune(ctx, store.PruneOptions{}))(t).Requests, 1)
	equal(t, "forgotten", must(s.Begin(ctx, acme, plan("r1", "q0", store.Ref{}, "o2")))(t).Standing, store.Fresh)
}

func testDecisionPages(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	task := submit(t, s, store.NewTask{Repeatable: true})
	for a := range 2 {
		ref := lease(t, s, claim("r1", 1, fmt.Sprint("c", a))).Attempt.Ref
		for i := range 3 {
			ok(t, second(decide(ctx, s, "r1", fmt.Sprintf("q%d.%d", a, i), ref)))
		}
		ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Lost, Wrote: true})))
	}
	pages := func(attempt, limit int) (all string) {
		for page := (store.Page{Limit: limit}); ; {
			list, next, err := s.Decisions(ctx, acme, task.ID, attempt, page)
			ok(t, err)
			for _, d := range list {
				all += fmt.Sprintf(" %d.%d %s", d.Attempt, d.Step, d.RequestID)
			}
			if page.After = next; next == "" {
				return all
			}
		}
	}
	equal(t, "all", pages(0, 4), " 1.0 q0.0 1.1 q0.1 1.2 q0.2 2.0 q1.0 2.1 q1.1 2.2 q1.2")
	equal(t, "second", pages(2, 1), " 2.0 q1.0 2.1 q1.1 2.2 q1.2")
	for _, bad := range []store.Page{{After: "x"}, {Limit: -1}, {Limit: 1001}} {
		_, _, err := s.Decisions(ctx, acme, task.ID, 0, bad)
		wants(t, err, store.ErrInvalid)
	}
}

func testPrune(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	const steps = 120
	run := func(slot int, end bool) store.Ref {
		submit(t, s, store.NewTask{})
		ref := lease(t, s, claim("r1", slot, fmt.Sprint("c", slot))).Attempt.Ref
		for i := range steps {
			id := fmt.Sprintf("q%d.%d", slot, i)
			ok(t, second(s.Begin(ctx, acme, plan("r1", id, ref, "o1"))))
			f := finish("r1", id, "o1")
			f.SystemPrompt = fmt.Sprintf("%0*d", 20_000, i)
			ok(t, second(s.Finish(ctx, acme, f)))
		}
		if end {
			ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Succeeded})))
		}
		return ref
	}
	old := run(1, true)
	p.wait(time.Hour)
	young, open := run(2, true), run(3, false)
	count := func(r store.Ref) (n int) {
		list, _, err := s.Decisions(ctx, acme, r.Task, 0, store.Page{Limit: 1000})
		ok(t, err)
		return len(list)
	}
	path, lite := p.sqlite()
	var before int64
	if lite {
		ok(t, second(s.System().Prune(ctx, store.PruneOptions{}))) // nothing; it empties the log, which is no part of the comparison
		before = sqliteSize(t, path)
	}
	window := store.PruneOptions{Before: start.Add(time.Minute), Batch: 50}
	window.Budget = time.Nanosecond
	if got := must(s.System().Prune(ctx, window))(t); got.Done || got.Decisions != 0 || got.Left != steps {
		t.Errorf("without a budget pruned %+v", got)
	}
	window.Budget = 0
	got := must(s.System().Prune(ctx, window))(t)
	if !got.Done || got.Decisions != steps || got.Requests != steps || got.Left != 0 {
		t.Errorf("pruned %+v", got)
	}
	equal(t, "old", count(old), 0)
	equal(t, "young", count(young), steps)
	equal(t, "open", count(open), steps)
	if lite { // PostgreSQL keeps its files for later rows
		if after := sqliteSize(t, path); after > before*3/4 {
			t.Errorf("the file had %d bytes, and has %d after a third was removed", before, after)
		}
	}
	wants(t, second(s.Begin(ctx, acme, plan("r1", "q1.0", old, "o1"))), store.ErrAttemptOver)
	equal(t, "audits", must(s.System().Prune(ctx, store.PruneOptions{AuditBefore: p.clock()}))(t).Audits > 100, true)
	ok(t, s.LabelHost(ctx, acme, "r1", "still works", nil))
}

// sqliteSize is that of an SQLite database with its log.
func sqliteSize(t *testing.T, path string) (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		ok(t, err)
		n += info.Size()
	}
	return n
}
