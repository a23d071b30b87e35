package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/sync/wire"
)

// states keeps what OnState tells.
func states(r *Runner) *[]State {
	var told []State
	r.OnState = func(s State) { told = append(told, s) }
	return &told
}

func TestAnOutagePausesTheAttemptUntilThePlannerIsBack(t *testing.T) {
	for _, c := range []struct {
		name string
		err  any
	}{
		{"unreachable", wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": "no route"})},
		{"a plain error", errors.New("broken pipe")},
		{"provider overloaded", wire.Refuse(wire.ProviderOverloaded, nil)},
		{"provider limits", wire.Refuse(wire.ProviderRateLimited, nil).After(3 * time.Second)},
		{"provider unreachable", wire.Refuse(wire.ProviderUnreachable, nil)},
		{"no answer", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, p := newRunner(s, tapAdd, c.err, c.err, c.err, c.err, c.err, c.err, tapAdd, finishWell)
			told := states(r)
			var steps []Step
			r.OnStep = func(step Step) { steps = append(steps, step) }
			wantEnd(t, run(t, r, task), Succeeded, "")
			if !slices.Equal(*told, []State{Paused, Running}) {
				t.Errorf("told %q", *told)
			}
			// One failed turn, however long it lasts, and nothing sent twice.
			if !slices.Equal(s.did, []string{"tap 1", "tap 1"}) || len(steps) != 4 || steps[1].Kind != "failed" {
				t.Errorf("did %q in %d steps", s.did, len(steps))
			}
			if steps[2].Times.Paused < 3000 || steps[1].Times.Paused != 0 {
				t.Errorf("paused for %d ms", steps[2].Times.Paused)
			}
			last := p.requests[len(p.requests)-2]
			if !strings.Contains(last.UserPrompt, "past 2: no decision -> failed ") || !strings.Contains(last.UserPrompt, "\nstep 3 of 30\n") {
				t.Errorf("prompt after it:\n%s", last.UserPrompt)
			}
		})
	}
}

func TestEachQuestionHasItsOwnIDUnlessItIsTheSameTurn(t *testing.T) {
	lost := wire.Refuse(wire.PlannerUnreachable, nil)
	bubble(t, "the same turn, while its screen is fresh", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, lost, lost, lost, lost, lost, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		ids, prompts := map[string]string{}, map[string]bool{}
		for i, req := range p.requests {
			if was, ok := ids[req.RequestID]; ok && was != req.UserPrompt {
				t.Errorf("request %d: the id stands for two questions", i+1)
			}
			ids[req.RequestID] = req.UserPrompt
			if i > 0 && req.RequestID == p.requests[i-1].RequestID {
				continue
			}
			if i > 0 && prompts[req.UserPrompt] {
				t.Errorf("request %d: the screen was not looked at again", i+1)
			}
			prompts[req.UserPrompt] = true
		}
		if p.requests[0].RequestID != p.requests[1].RequestID || len(ids) < 2 || len(ids) == len(p.requests) {
			t.Errorf("%d ids for %d questions", len(ids), len(p.requests))
		}
	})
	bubble(t, "an answered question is never asked again", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		busy := wire.Refuse(wire.ProviderOverloaded, nil) // the log would answer the same again
		r, p := newRunner(s, busy, busy, `fly {}`, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		for i, req := range p.requests[1:] {
			if req.RequestID == p.requests[i].RequestID || req.UserPrompt == p.requests[i].UserPrompt {
				t.Errorf("request %d is the one before", i+2)
			}
		}
		if s.looks != len(p.requests) {
			t.Errorf("looked %d times for %d questions", s.looks, len(p.requests))
		}
	})
}

func TestOutagesAreBounded(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      any
		code     wire.Code
		deadline time.Duration // 0: none
		from, to time.Duration
	}{
		{"by the limit", wire.Refuse(wire.ProviderOverloaded, nil), wire.ProviderOverloaded, 0, 9 * time.Minute, 10 * time.Minute},
		{"by the limit, without answers", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, wire.PlannerTimeout, 0, 9 * time.Minute, 12 * time.Minute},
		{"by the deadline", wire.Refuse(wire.PlannerUnreachable, nil), wire.DeadlinePassed, time.Minute, time.Minute, time.Minute},
		{"at once if the provider wants more time than there is", wire.Refuse(wire.ProviderRateLimited, nil).After(time.Hour), wire.ProviderRateLimited, 0, 0, 0},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, p := newRunner(s, c.err)
			r.Limits.Outage = 10 * time.Minute
			bound := task
			if c.deadline > 0 {
				bound.Deadline = time.Now().Add(c.deadline)
			}
			begun := time.Now()
			result := run(t, r, bound)
			wantEnd(t, result, Failed, c.code)
			if took := time.Since(begun); took < c.from || took > c.to || len(s.did) > 0 || result.Wrote || result.Steps != 1 {
				t.Errorf("took %s, did %q, %+v", took, s.did, result)
			}
			if len(p.requests) > 60 {
				t.Errorf("asked %d times", len(p.requests))
			}
		})
	}
}

func TestCancelledWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newRunner(&stage{app: "a.shop"}, wire.Refuse(wire.PlannerUnreachable, nil))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Minute, cancel)
		begun := time.Now()
		result, err := r.Run(ctx, task)
		if err != nil || time.Since(begun) != 3*time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		wantEnd(t, result, Cancelled, wire.TaskCancelled)
	})
}

func TestJitterSpreads(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		d := jitter(10 * time.Second)
		if d < 5*time.Second || d > 10*time.Second {
			t.Fatalf("%s", d)
		}
		seen[d] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different ones of 100", len(seen))
	}
}
