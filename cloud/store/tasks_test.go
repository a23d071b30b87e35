package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"phonerack/cloud/store"
)

func testSubmit(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	full := store.NewTask{
		Key: "k", Body: json.RawMessage(`{"goal":"ä \u0000"}`), Target: store.Target{Rack: "r1", Slot: 3, Phone: "p", Tag: "t", App: "a"},
		NotBefore: start.Add(time.Hour), Deadline: start.Add(2 * time.Hour), Priority: -4, Repeatable: true,
	}
	task, created, err := s.Submit(ctx, acme, full)
	ok(t, err)
	got, _ := json.Marshal(must(s.Task(ctx, acme, task.ID))(t))
	want, _ := json.Marshal(store.Task{NewTask: full, ID: task.ID, Tenant: "acme", State: store.Queued, Created: start})
	same(t, "task", got, want)
	p.wait(time.Minute)
	again, createdAgain, err := s.Submit(ctx, acme, full)
	ok(t, err)
	if !created || createdAgain || again.ID != task.ID {
		t.Error("the same key gave another task")
	}
	full.Priority++
	_, _, err = s.Submit(ctx, acme, full)
	wants(t, err, store.ErrRequestConflict)
	for _, body := range []string{"", "[]", "{", "null", string(make([]byte, 300<<10))} {
		_, _, err = s.Submit(ctx, acme, store.NewTask{Body: json.RawMessage(body)})
		wants(t, err, store.ErrInvalid)
	}
	for range 4 {
		submit(t, s, store.NewTask{})
	}
	var ids []string
	for page := (store.Page{Limit: 2}); ; {
		all, next, err := s.Tasks(ctx, acme, store.TaskFilter{States: []store.TaskState{store.Queued, store.Lost}}, page)
		ok(t, err)
		for _, k := range all {
			ids = append(ids, k.ID)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if len(ids) != 5 || ids[4] != task.ID || !slices.IsSortedFunc(ids, func(a, b string) int { return -compare(a, b) }) {
		t.Errorf("pages gave %v", ids)
	}
	all, _, err := s.Tasks(ctx, acme, store.TaskFilter{States: []store.TaskState{store.Failed}}, store.Page{})
	ok(t, err)
	equal(t, "failed tasks", len(all), 0)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func testClaimPicks(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1", "lab")
	addHost(t, s, "r2")
	id := map[string]string{}
	for _, c := range []struct {
		name string
		task store.NewTask
	}{
		{"for r2", store.NewTask{Target: store.Target{Rack: "r2"}, Priority: 9}},
		{"slot 2", store.NewTask{Target: store.Target{Slot: 2}, Priority: 8}},
		{"phone", store.NewTask{Target: store.Target{Phone: "phone4"}, Priority: 8}},
		{"app", store.NewTask{Target: store.Target{App: "org.maps"}, Priority: 8}},
		{"tag of rack", store.NewTask{Target: store.Target{Tag: "lab", Slot: 5}, Priority: 8}},
		{"tag of phone", store.NewTask{Target: store.Target{Tag: "dual-sim"}, Priority: 8}},
		{"late", store.NewTask{NotBefore: start.Add(time.Hour), Priority: 9}},
		{"overdue", store.NewTask{Deadline: start, Priority: 9}},
		{"old", store.NewTask{Priority: 1}},
		{"older but lower", store.NewTask{}},
		{"young", store.NewTask{Priority: 1}},
	} {
		id[submit(t, s, c.task).ID] = c.name
		p.wait(time.Millisecond)
	}
	got := func(c store.Claim) string { return id[lease(t, s, c).Task.ID] }
	equal(t, "slot 2", got(claim("r1", 2, "a")), "slot 2")
	equal(t, "phone 4", got(claim("r1", 4, "b")), "phone")
	c := claim("r1", 6, "c")
	c.Apps = []string{"org.mail", "org.maps"}
	equal(t, "with the app", got(c), "app")
	equal(t, "slot 5", got(claim("r1", 5, "d")), "tag of rack")
	c = claim("r1", 7, "e")
	c.Tags = []string{"dual-sim"}
	equal(t, "with the tag", got(c), "tag of phone")
	equal(t, "r2", got(claim("r2", 1, "a")), "for r2")
	for i, want := range []string{"old", "young", "older but lower"} {
		equal(t, "in order", got(claim("r1", 10+i, fmt.Sprint("f", i))), want)
	}
	none(t, s, claim("r1", 20, "g"))
	p.wait(time.Hour)
	equal(t, "later", got(claim("r1", 21, "h")), "late")
}

func testClaimAgain(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	submit(t, s, store.NewTask{})
	submit(t, s, store.NewTask{})
	first := lease(t, s, claim("r1", 1, "a"))
	if a := first.Attempt; a.Attempt != 1 || a.State != store.Leased || !a.Until.Equal(start.Add(leaseTime)) || first.Task.State != store.Leased || first.Task.Tries != 1 {
		t.Errorf("lease is %+v", first)
	}
	p.wait(time.Minute)
	for _, id := range []string{"a", "b"} { // the same claim; another one of the same slot, which has lost its claim id
		l := lease(t, s, claim("r1", 1, id))
		if l.Attempt.Ref != first.Attempt.Ref || !l.Attempt.Until.Equal(p.clock().Add(leaseTime)) || l.Attempt.ClaimID != "a" {
			t.Errorf("claim %s got %+v", id, l.Attempt)
		}
	}
	_, _, err := s.Claim(ctx, acme, claim("r1", 2, "a"))
	wants(t, err, store.ErrRequestConflict)
	// A claim id whose lease is over gets no other task, whether the sweep has been there or not.
	p.wait(leaseTime + store.Grace)
	_, _, err = s.Claim(ctx, acme, claim("r1", 1, "a"))
	wants(t, err, store.ErrAttemptOver)
	next := lease(t, s, claim("r1", 1, "c"))
	if next.Task.ID == first.Task.ID {
		t.Error("a lost task was given again")
	}
	state(t, s, first.Task.ID, store.Lost)
	_, _, err = s.Claim(ctx, acme, claim("r1", 1, "a"))
	wants(t, err, store.ErrAttemptOver)
}

func testRelease(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	task := submit(t, s, store.NewTask{})
	first := lease(t, s, claim("r1", 1, "a"))
	ok(t, s.Release(ctx, acme, "r1", first.Attempt.Ref, "1", json.RawMessage(`{"code":"skill_invalid"}`)))
	ok(t, s.Release(ctx, acme, "r1", first.Attempt.Ref, "1", nil)) // delivered twice
	k := state(t, s, task.ID, store.Queued)
	equal(t, "tries", k.Tries, 0)
	none(t, s, claim("r1", 1, "b"))
	none(t, s, claim("r1", 2, "c"))
	_, err := s.Renew(ctx, acme, "r1", first.Attempt.Ref, leaseTime)
	wants(t, err, store.ErrAttemptOver)

	second := lease(t, s, claim("r2", 1, "a"))
	equal(t, "attempt", second.Attempt.Attempt, 2) // a number is never used twice: it fences what was written
	equal(t, "tries", second.Task.Tries, 1)
	wants(t, s.Release(ctx, acme, "r1", second.Attempt.Ref, "1", nil), store.ErrNotYourTask)
	ok(t, s.Release(ctx, acme, "r2", second.Attempt.Ref, "1", nil))

	c := claim("r1", 1, "d")
	c.SkillsVersion = "2"
	third := lease(t, s, c)
	ok(t, s.ReleaseForNow(ctx, acme, "r1", third.Attempt.Ref, json.RawMessage(`{"code":"slot_busy"}`)))
	c.ID = "e"
	third = lease(t, s, c) // what passes excludes nobody
	equal(t, "tries", third.Task.Tries, 1)
	_, err = s.Heartbeat(ctx, acme, store.Heartbeat{Host: "r1", Running: []store.RunningAttempt{{Ref: third.Attempt.Ref, Wrote: true}}})
	ok(t, err)
	wants(t, s.Release(ctx, acme, "r1", third.Attempt.Ref, "2", nil), store.ErrConflict)
	all := must(s.Attempts(ctx, acme, task.ID))(t)
	if len(all) != 4 || all[0].State != store.Released || string(all[0].Error) != `{"code":"skill_invalid"}` || all[2].State != store.Released || all[3].State != store.Running {
		t.Errorf("attempts are %+v", all)
	}
}

func testHeartbeat(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	for range 4 {
		submit(t, s, store.NewTask{})
	}
	a, b, gone := lease(t, s, claim("r1", 1, "a")), lease(t, s, claim("r1", 2, "b")), lease(t, s, claim("r1", 3, "c"))
	theirs := lease(t, s, claim("r2", 1, "a"))
	ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: gone.Attempt.Ref, Host: "r1", Outcome: store.Succeeded})))
	ok(t, second(s.CancelTask(ctx, acme, b.Task.ID)))
	strange := store.Ref{Task: "nosuch", Attempt: 1}
	p.wait(time.Minute)
	sync := must(s.Heartbeat(ctx, acme, store.Heartbeat{
		Host: "r1", Slots: json.RawMessage(`[{"slot":1}]`), SkillsVersion: "7",
		Running: []store.RunningAttempt{{Ref: a.Attempt.Ref}, {Ref: gone.Attempt.Ref}, {Ref: theirs.Attempt.Ref}, {Ref: strange}},
	}))(t)
	if len(sync.Leases) != 2 || sync.Leases[0].Attempt.Ref != a.Attempt.Ref || sync.Leases[1].Attempt.Ref != b.Attempt.Ref ||
		!sync.Leases[0].Attempt.Until.Equal(start.Add(leaseTime)) || sync.Leases[0].Task.State != store.Running {
		t.Errorf("leases are %+v", sync.Leases)
	}
	if !slices.Equal(sync.Cancel, []store.Ref{b.Attempt.Ref}) {
		t.Errorf("cancel is %v", sync.Cancel)
	}
	if !slices.Equal(sync.Unknown, []store.Ref{gone.Attempt.Ref, theirs.Attempt.Ref, strange}) {
		t.Errorf("unknown is %v", sync.Unknown)
	}
	h := must(s.Host(ctx, acme, "r1"))(t)
	if string(h.Slots) != `[{"slot":1}]` || h.SkillsVersion != "7" || !h.LastSeen.Equal(p.clock()) {
		t.Errorf("host is %+v", h)
	}
	until := must(s.Renew(ctx, acme, "r1", a.Attempt.Ref, leaseTime))(t)
	equal(t, "end of the lease", until, p.clock().Add(leaseTime))
	p.wait(leaseTime + store.Grace - time.Millisecond)
	ok(t, second(s.Renew(ctx, acme, "r1", a.Attempt.Ref, leaseTime))) // not freed yet
	wants(t, second(s.Renew(ctx, acme, "r1", b.Attempt.Ref, leaseTime)), store.ErrAttemptOver)
	wants(t, second(s.Renew(ctx, acme, "r2", a.Attempt.Ref, leaseTime)), store.ErrNotYourTask)
	wants(t, second(s.Renew(ctx, acme, "r1", strange, leaseTime)), store.ErrNotYourTask)
	equal(t, "leases", len(must(s.Heartbeat(ctx, acme, store.Heartbeat{Host: "r1"}))(t).Leases), 1)
}

func testQuestions(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	task := submit(t, s, store.NewTask{})
	ref := lease(t, s, claim("r1", 1, "a")).Attempt.Ref
	yes := json.RawMessage(`{"text":"yes"}`)
	wants(t, second(s.Answer(ctx, acme, task.ID, "", yes)), store.ErrConflict)
	q := store.Question{ID: "q1", Body: json.RawMessage(`{"text":"which?"}`)}
	ok(t, s.Ask(ctx, acme, "r1", ref, q))
	ok(t, s.Ask(ctx, acme, "r1", ref, q))
	state(t, s, task.ID, store.Waiting)
	ok(t, second(s.Renew(ctx, acme, "r1", ref, leaseTime))) // goes on while waiting
	state(t, s, task.ID, store.Waiting)
	wants(t, second(s.Answer(ctx, acme, task.ID, "q0", yes)), store.ErrConflict) // an answer to an earlier question
	state(t, s, task.ID, store.Waiting)
	a := must(s.Answer(ctx, acme, task.ID, "q1", yes))(t)
	if a.Host != "r1" || a.Ref != ref || a.QuestionID != "q1" || string(a.Answer) != string(yes) {
		t.Errorf("answered %+v", a)
	}
	wants(t, second(s.Answer(ctx, acme, task.ID, "", yes)), store.ErrConflict)
	state(t, s, task.ID, store.Running)
	ok(t, s.Ask(ctx, acme, "r1", ref, q)) // delivered again after the answer: nothing waits
	state(t, s, task.ID, store.Running)
	sync := must(s.Heartbeat(ctx, acme, store.Heartbeat{Host: "r1"}))(t)
	same(t, "answer in the heartbeat", sync.Leases[0].Attempt.Answer, yes)
	ok(t, s.Ask(ctx, acme, "r1", ref, store.Question{ID: "q2"}))
	a = must(s.Attempts(ctx, acme, task.ID))(t)[0]
	if a.State != store.Waiting || a.QuestionID != "q2" || a.Answer != nil {
		t.Errorf("attempt is %+v", a)
	}
	p.wait(leaseTime + store.Grace)
	wants(t, s.Ask(ctx, acme, "r1", ref, store.Question{ID: "q3"}), store.ErrAttemptOver)
	ok(t, second(s.System().Expire(ctx)))
	state(t, s, task.ID, store.Lost)
}

func testResults(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	for i, c := range []struct {
		outcome    store.TaskState
		wrote      bool
		repeatable bool
		cancel     bool
		want       store.TaskState
	}{
		{store.Succeeded, true, false, false, store.Succeeded},
		{store.Failed, false, true, false, store.Failed},
		{store.Cancelled, true, false, true, store.Cancelled},
		{store.Succeeded, true, false, true, store.Succeeded}, // it was faster than the wish
		{store.Lost, true, false, false, store.Lost},
		{store.Lost, false, false, false, store.Queued},
		{store.Lost, true, true, false, store.Queued},
		{store.Lost, true, true, true, store.Cancelled},
	} {
		task := submit(t, s, store.NewTask{Repeatable: c.repeatable})
		l := lease(t, s, claim("r1", i+1, fmt.Sprint("c", i)))
		if c.cancel {
			ok(t, second(s.CancelTask(ctx, acme, task.ID)))
		}
		r := store.Result{
			Ref: l.Attempt.Ref, Host: "r1", Outcome: c.outcome, Wrote: c.wrote, Steps: 4,
			Result: json.RawMessage(`{"x":1}`), Error: json.RawMessage(`{"code":"refused"}`),
		}
		equal(t, fmt.Sprintf("ack of %+v", c), must(s.SetResult(ctx, acme, r))(t), store.Ack{Applied: true, State: c.want})
		k := state(t, s, task.ID, c.want)
		before := audits(t, s)
		again := r
		again.Outcome = store.Succeeded
		equal(t, fmt.Sprintf("late ack of %+v", c), must(s.SetResult(ctx, acme, again))(t), store.Ack{State: c.want})
		equal(t, "newest audit", audits(t, s), before)
		after := must(s.Task(ctx, acme, task.ID))(t)
		equal(t, "state", after.State, k.State)
		a := must(s.Attempts(ctx, acme, task.ID))(t)[0]
		if a.Outcome != string(c.outcome) || *a.Wrote != c.wrote || a.Steps != 4 || string(a.Result) != `{"x":1}` || string(a.Error) != `{"code":"refused"}` {
			t.Errorf("attempt is %+v", a)
		}
		if c.want == store.Queued {
			equal(t, "next attempt", lease(t, s, claim("r1", i+1, fmt.Sprint("d", i))).Attempt.Attempt, 2)
		}
	}
	wants(t, second(s.SetResult(ctx, acme, store.Result{Ref: store.Ref{Task: "x", Attempt: 1}, Host: "r1", Outcome: store.Lost})), store.ErrNotYourTask)
	wants(t, second(s.SetResult(ctx, acme, store.Result{Host: "r1", Outcome: store.Queued})), store.ErrInvalid)
}

func testLost(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	type run struct {
		repeatable  bool
		wrote       bool
		ended       bool
		want        store.TaskState
		lateWrote   bool // and after a late result
		wantAfterIt store.TaskState
	}
	runs := []run{
		{false, false, false, store.Lost, false, store.Queued}, // it might have written after the heartbeat; then we learn it did not
		{false, false, false, store.Lost, true, store.Lost},
		{false, true, false, store.Lost, false, store.Lost}, // it said before that it wrote
		{false, false, true, store.Queued, true, store.Queued},
		{true, true, false, store.Queued, true, store.Queued},
	}
	var refs []store.Ref
	var beat []store.RunningAttempt
	for i, r := range runs {
		submit(t, s, store.NewTask{Repeatable: r.repeatable})
		ref := lease(t, s, claim("r1", i+1, fmt.Sprint("c", i))).Attempt.Ref
		refs = append(refs, ref)
		beat = append(beat, store.RunningAttempt{Ref: ref, Wrote: r.wrote, Ended: r.ended})
	}
	ok(t, second(s.Heartbeat(ctx, acme, store.Heartbeat{Host: "r1", Running: beat})))
	// What was written stays written, whatever is said later.
	beat[2].Wrote, beat[2].Ended = false, true
	ok(t, second(s.Heartbeat(ctx, acme, store.Heartbeat{Host: "r1", Running: beat[2:3]})))
	p.wait(leaseTime + store.Grace - time.Millisecond)
	if e := must(s.System().Expire(ctx))(t); len(e.Lost) != 0 {
		t.Fatalf("expired too early: %+v", e)
	}
	p.wait(time.Millisecond)
	e := must(s.System().Expire(ctx))(t)
	equal(t, "lost", len(e.Lost), len(runs))
	equal(t, "queued again", len(e.Requeued), 2)
	if e.Lost[0].Tenant != "acme" || e.Lost[0].Host != "r1" {
		t.Errorf("lost %+v", e.Lost[0])
	}
	if e = must(s.System().Expire(ctx))(t); len(e.Lost) != 0 {
		t.Errorf("expired twice: %+v", e)
	}
	for i, r := range runs {
		state(t, s, refs[i].Task, r.want)
		late := store.Result{Ref: refs[i], Host: "r1", Outcome: store.Failed, Wrote: r.lateWrote}
		for range 2 {
			equal(t, fmt.Sprintf("ack %d", i), must(s.SetResult(ctx, acme, late))(t), store.Ack{State: r.wantAfterIt})
		}
		state(t, s, refs[i].Task, r.wantAfterIt)
		equal(t, "attempt", must(s.Attempts(ctx, acme, refs[i].Task))(t)[0].State, store.Lost)
	}
	// A person decides about the others.
	equal(t, "requeued", must(s.RequeueTask(ctx, acme, refs[1].Task))(t).State, store.Queued)
	wants(t, second(s.RequeueTask(ctx, acme, refs[1].Task)), store.ErrConflict)
	for i := range 4 {
		l := lease(t, s, claim("r1", i+1, fmt.Sprint("d", i)))
		equal(t, "attempt", l.Attempt.Attempt, 2)
	}
	none(t, s, claim("r1", 9, "e"))
	// The late word about an attempt that is no longer in force moves nothing.
	equal(t, "ack", must(s.SetResult(ctx, acme, store.Result{Ref: refs[1], Host: "r1", Outcome: store.Failed}))(t), store.Ack{State: store.Leased})
}

func testCancel(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	queued := submit(t, s, store.NewTask{})
	equal(t, "queued", must(s.CancelTask(ctx, acme, queued.ID))(t).State, store.Cancelled)
	none(t, s, claim("r1", 1, "a"))
	before := audits(t, s)
	equal(t, "again", must(s.CancelTask(ctx, acme, queued.ID))(t).State, store.Cancelled)
	equal(t, "newest audit", audits(t, s), before)

	task := submit(t, s, store.NewTask{Repeatable: true})
	ref := lease(t, s, claim("r1", 1, "b")).Attempt.Ref
	k := must(s.CancelTask(ctx, acme, task.ID))(t)
	if k.State != store.Leased || !k.Cancel {
		t.Errorf("task is %+v", k)
	}
	ok(t, s.Release(ctx, acme, "r1", ref, "1", nil)) // given back: nothing is left to end
	state(t, s, task.ID, store.Cancelled)

	task = submit(t, s, store.NewTask{Repeatable: true})
	lease(t, s, claim("r1", 1, "c"))
	ok(t, second(s.CancelTask(ctx, acme, task.ID)))
	p.wait(leaseTime + store.Grace)
	e := must(s.System().Expire(ctx))(t)
	equal(t, "requeued", len(e.Requeued), 0)
	state(t, s, task.ID, store.Cancelled)

	task = submit(t, s, store.NewTask{})
	lease(t, s, claim("r1", 1, "d"))
	p.wait(leaseTime + store.Grace)
	ok(t, second(s.System().Expire(ctx)))
	state(t, s, task.ID, store.Lost)
	equal(t, "lost", must(s.CancelTask(ctx, acme, task.ID))(t).State, store.Cancelled)
}

func testDeadline(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	late := submit(t, s, store.NewTask{Deadline: start.Add(time.Minute)})
	going := submit(t, s, store.NewTask{Deadline: start.Add(time.Minute), Priority: 1})
	equal(t, "leased", lease(t, s, claim("r1", 1, "a")).Task.ID, going.ID)
	p.wait(time.Minute)
	e := must(s.System().Expire(ctx))(t)
	if len(e.Late) != 1 || e.Late[0].Task != late.ID || e.Late[0].Tenant != "acme" {
		t.Errorf("late are %+v", e.Late)
	}
	same(t, "error", state(t, s, late.ID, store.Failed).Error, json.RawMessage(`{"code":"expired","retryable":false}`))
	state(t, s, going.ID, store.Leased) // the rack watches its own
}
