package runner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/perception"
)

// slowly is a decision that takes a while, in which something may happen.
func slowly(d time.Duration, happens func(), answer string) any {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		happens()
		return answer, nil
	}
}

// TestReport20_ElementOfAScreenThatChangedIsNotTouched: what came between the
// look and the touch is seen, however long the planner thought.
func TestReport20_ElementOfAScreenThatChangedIsNotTouched(t *testing.T) {
	for _, c := range []struct {
		name    string
		thought time.Duration
		happens func(s *stage)
		answer  string
		did     []string // before the second question
		stale   bool
	}{
		{"a popup came", 20 * time.Second, func(s *stage) { popupOn(s, "Delete the order?", "Keep", "Delete") }, tapAdd, nil, true},
		{"the button moved", 20 * time.Second, func(s *stage) { s.shift = 70 }, tapAdd, nil, true},
		{"the field moved, which is typed into", 20 * time.Second, func(s *stage) { s.shift = 70 }, typeTea, nil, true},
		{"something else changed", 20 * time.Second, func(s *stage) { s.count = 9 }, tapAdd, []string{"tap 1"}, false},
		{"nothing changed", 20 * time.Second, func(*stage) {}, tapAdd, []string{"tap 1"}, false},
		{"quick planners are not second-guessed", 3 * time.Second, func(*stage) {}, tapAdd, []string{"tap 1"}, false},
		{"a key needs no element", 20 * time.Second, func(s *stage) { popupOn(s, "Delete the order?", "Keep", "Delete") }, `press_key {"key":"back"}`, []string{"key back"}, false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, p := newRunner(s, slowly(c.thought, func() { c.happens(s) }, c.answer), finishWell)
			var first Step
			r.OnStep = func(step Step) {
				if step.N == 1 {
					first = step
				}
			}
			looks := s.looks
			wantEnd(t, run(t, r, task), Succeeded, "")
			if !slices.Equal(s.did, c.did) {
				t.Errorf("did %q, want %q", s.did, c.did)
			}
			if stale := first.Code() == "stale_element"; stale != c.stale {
				t.Errorf("step %+v", first)
			}
			if c.stale && (!strings.HasPrefix(first.Effect, "screen changed") || !strings.Contains(p.requests[1].UserPrompt, "-> refused stale_element ") || len(p.requests) != 2) {
				t.Errorf("asked again with:\n%s", p.requests[1].UserPrompt)
			}
			if c.thought < 5*time.Second && s.looks-looks > 4 {
				t.Errorf("looked %d times", s.looks-looks)
			}
		})
	}
	bubble(t, "elements that are there still have new numbers", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		s.more = []perception.Element{{Role: "button", Text: "Pay", Clickable: true}}
		r, p := newRunner(s, slowly(time.Minute/2, func() { s.busy = 1 }, `tap {"element":3,"generation":$gen}`), finishWell)
		// "Loading" comes in above Pay, which keeps its place.
		s.more[0].Bounds = boundsOfRow(3)
		wantEnd(t, run(t, r, task), Succeeded, "")
		if !slices.Equal(s.did, []string{"tap 3"}) {
			t.Errorf("did %q\n%s", s.did, p.requests[1].UserPrompt)
		}
	})
}
