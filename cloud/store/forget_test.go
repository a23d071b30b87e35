package store_test

import (
	"fmt"
	"testing"
	"time"

	"phonerack/cloud/store"
)

// testForget: what is over goes after its time, with all that hangs on it, and what is open never does.
func testForget(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	given := submit(t, s, store.NewTask{Key: "same"})
	ref := lease(t, s, claim("r1", 1, "c0")).Attempt.Ref
	ok(t, s.Release(ctx, acme, "r1", ref, "1", nil)) // leaves a row of its own
	over := submit(t, s, store.NewTask{})
	ref = lease(t, s, claim("r1", 1, "c1")).Attempt.Ref
	equal(t, "task", ref.Task, over.ID)
	ok(t, second(decide(ctx, s, "r1", "q1", ref)))
	ok(t, second(s.AddProfile(ctx, acme, profile("p"))))
	ok(t, s.Settle(ctx, acme, must(s.Reserve(ctx, acme, "p", 10))(t), store.Spent{Host: "r1", Task: over.ID, TokensIn: 3}))
	ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Failed})))
	ok(t, second(s.CancelTask(ctx, acme, given.ID)))
	open := submit(t, s, store.NewTask{})
	ended := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t)
	_, err := s.SetCommandStatus(ctx, acme, store.CommandStatus{Host: "r1", ID: ended.ID, Version: 1, State: store.CommandSucceeded})
	ok(t, err)
	waits := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t)

	prune := func(o store.PruneOptions) store.Pruned {
		t.Helper()
		got := must(s.System().Prune(ctx, o))(t)
		equal(t, "done", got.Done, true)
		return got
	}
	p.wait(24 * time.Hour)
	later := p.clock().Add(-time.Minute)
	if got := prune(store.PruneOptions{TasksBefore: later}); got.Tasks != 0 {
		t.Errorf("%d tasks went before their decisions", got.Tasks)
	}
	if got := prune(store.PruneOptions{Before: later, TasksBefore: start, CommandsBefore: start, AccountsBefore: start}); got.Tasks+got.Commands != 0 {
		t.Errorf("before its time went %+v", got)
	}
	if got := prune(store.PruneOptions{Before: later}); got.Tasks+got.Commands+got.Accounts != 0 {
		t.Errorf("what is kept for good went: %+v", got)
	}
	got := prune(store.PruneOptions{Before: later, TasksBefore: later, CommandsBefore: later, AccountsBefore: p.clock().Add(24 * time.Hour)})
	if got.Tasks != 2 || got.Commands != 1 || got.Accounts != 1 {
		t.Errorf("pruned %+v", got)
	}
	for _, id := range []string{given.ID, over.ID} {
		wants(t, second(s.Task(ctx, acme, id)), store.ErrNotFound)
	}
	state(t, s, open.ID, store.Queued)
	wants(t, second(s.Command(ctx, acme, ended.ID)), store.ErrNotFound)
	equal(t, "the open command", must(s.Command(ctx, acme, waits.ID))(t).State, store.CommandQueued)
	// A result that comes after all that is refused, and the key is free again.
	wants(t, second(s.SetResult(ctx, acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Failed})), store.ErrNotYourTask)
	if again := submit(t, s, store.NewTask{Key: "same"}); again.ID == given.ID {
		t.Error("the key still finds the old task")
	}
	if next := must(s.QueueCommand(ctx, acme, store.NewCommand{Host: "r1", Name: "ping"}))(t); next.Seq != waits.Seq+1 {
		t.Errorf("command %d follows %d", next.Seq, waits.Seq)
	}
}

func testHelloAudits(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1")
	for n := range int64(20) {
		ok(t, second(s.Hello(t.Context(), acme, store.Hello{Host: "r1", Generation: 5, Session: n})))
	}
	ok(t, second(s.Hello(t.Context(), acme, store.Hello{Host: "r1", Generation: 6, Session: 1})))
	wants(t, second(s.Hello(t.Context(), acme, store.Hello{Host: "r1", Generation: 5, Session: 30})), store.ErrConflict)
	all, _, err := s.Audits(t.Context(), acme, store.Page{})
	ok(t, err)
	var verbs string
	for _, a := range all {
		verbs += fmt.Sprint(a.Verb, " ")
	}
	equal(t, "audit", verbs, "host.refuse host.hello host.hello host.create ")
}
