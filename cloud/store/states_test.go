package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"phonerack/cloud/store"
)

// testTaskStates does anything in any order to a few tasks of two racks, and looks after each step whether the records
// still make sense.
func testTaskStates(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		w := &lives{T: t, s: s, p: p, round: round}
		for range 3 {
			// A target of its own for each round: the tasks of former ones are out of the way.
			task := submit(t, s, store.NewTask{Repeatable: rapid.Bool().Draw(r, "repeatable"), Target: store.Target{Tag: fmt.Sprint("t", round)}})
			w.tasks = append(w.tasks, task.ID)
			w.were = append(w.were, task)
		}
		r.Repeat(map[string]func(*rapid.T){
			"":        w.check,
			"claim":   w.claim,
			"renew":   w.onAttempt(func(host string, a store.Ref) error { return second(s.Renew(t.Context(), acme, host, a, leaseTime)) }),
			"release": w.onAttempt(func(host string, a store.Ref) error { return s.Release(t.Context(), acme, host, a, "1", nil) }),
			"ask": w.onAttempt(func(host string, a store.Ref) error {
				return s.Ask(t.Context(), acme, host, a, store.Question{ID: "q"})
			}),
			"succeed":   w.result(store.Succeeded),
			"fail":      w.result(store.Failed),
			"lose":      w.result(store.Lost),
			"cancel":    w.onTask(func(id string) error { return second(s.CancelTask(t.Context(), acme, id)) }),
			"answer":    w.onTask(func(id string) error { return second(s.Answer(t.Context(), acme, id, "", []byte(`{}`))) }),
			"requeue":   w.onTask(func(id string) error { return second(s.RequeueTask(t.Context(), acme, id)) }),
			"expire":    func(*rapid.T) { ok(t, second(s.System().Expire(t.Context()))) },
			"wait":      func(r *rapid.T) { p.wait(time.Duration(rapid.IntRange(1, 100).Draw(r, "seconds")) * time.Second) },
			"heartbeat": w.heartbeat,
		})
	})
}

type lives struct {
	*testing.T
	s      *store.Store
	p      place
	round  int
	claims int
	tasks  []string
	were   []store.Task
}

func host(r *rapid.T) string { return rapid.SampledFrom([]string{"r1", "r2"}).Draw(r, "host") }

func (w *lives) claim(r *rapid.T) {
	w.claims++
	c := claim(host(r), rapid.IntRange(1, 2).Draw(r, "slot"), fmt.Sprintf("c%d.%d", w.round, w.claims))
	c.Tags = []string{fmt.Sprint("t", w.round)}
	_, _, err := w.s.Claim(w.Context(), acme, c)
	ok(w, err)
}

// allowed are the refusals that a wrong moment may bring.
func (w *lives) allowed(err error) {
	w.Helper()
	if err != nil && !errors.Is(err, store.ErrAttemptOver) && !errors.Is(err, store.ErrNotYourTask) && !errors.Is(err, store.ErrConflict) {
		w.Fatal(err)
	}
}

func (w *lives) onTask(f func(string) error) func(*rapid.T) {
	return func(r *rapid.T) { w.allowed(f(rapid.SampledFrom(w.tasks).Draw(r, "task"))) }
}

func (w *lives) onAttempt(f func(string, store.Ref) error) func(*rapid.T) {
	return func(r *rapid.T) { w.allowed(f(host(r), w.ref(r))) }
}

func (w *lives) ref(r *rapid.T) store.Ref {
	return store.Ref{Task: rapid.SampledFrom(w.tasks).Draw(r, "task"), Attempt: rapid.IntRange(1, 4).Draw(r, "attempt")}
}

func (w *lives) result(outcome store.TaskState) func(*rapid.T) {
	return func(r *rapid.T) {
		res := store.Result{Ref: w.ref(r), Host: host(r), Outcome: outcome, Wrote: rapid.Bool().Draw(r, "wrote")}
		w.allowed(second(w.s.SetResult(w.Context(), acme, res)))
	}
}

func (w *lives) heartbeat(r *rapid.T) {
	h := host(r)
	run := store.RunningAttempt{Ref: w.ref(r), Wrote: rapid.Bool().Draw(r, "wrote"), Ended: rapid.Bool().Draw(r, "ended")}
	sync, err := w.s.Heartbeat(w.Context(), acme, store.Heartbeat{Host: h, Running: []store.RunningAttempt{run}})
	ok(w, err)
	for _, l := range sync.Leases {
		if l.Attempt.Host != h || l.Attempt.State.Terminal() {
			w.Fatalf("%s leases %+v", h, l.Attempt)
		}
	}
}

// check looks at everything: the task's state is its attempt's, one attempt at most is live, a slot has one at most, ended
// attempts never change, and a task that may have been written to is never queued again unless it is repeatable or a
// person said so.
func (w *lives) check(*rapid.T) {
	slots := map[string]bool{}
	for i, id := range w.tasks {
		k := must(w.s.Task(w.Context(), acme, id))(w)
		all := must(w.s.Attempts(w.Context(), acme, id))(w)
		if k.State.Terminal() == k.Ended.IsZero() {
			w.Fatalf("%s: state %s, ended %v", id, k.State, k.Ended)
		}
		if k.Attempt != len(all) || k.Attempt < w.were[i].Attempt {
			w.Fatalf("%s: attempt %d of %d", id, k.Attempt, len(all))
		}
		live, tries := 0, 0
		for n, a := range all {
			if a.Attempt != n+1 {
				w.Fatalf("%s: attempt %d is numbered %d", id, n+1, a.Attempt)
			}
			if a.State != store.Released {
				tries++
			}
			if a.State.Terminal() {
				continue
			}
			live++
			if slot := fmt.Sprint(a.Host, a.Slot); slots[slot] {
				w.Fatalf("slot %s has two leases", slot)
			} else {
				slots[slot] = true
			}
			if a.Attempt != k.Attempt || a.State != k.State {
				w.Fatalf("%s: task %+v, attempt %+v", id, k, a)
			}
		}
		if live > 1 || tries != k.Tries || live == 0 && !k.State.Terminal() && k.State != store.Queued {
			w.Fatalf("%s: %d live, %d tries: %+v", id, live, tries, k)
		}
		w.were[i] = k
	}
}
