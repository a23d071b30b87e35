package runner

import (
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

var errSilent = errors.New("the phone says nothing")

// popupOn shows a popup at its touchable rows 4 (decline) and 5 (accept).
func popupOn(s *stage, says, decline, accept string) {
	at := func(row int) image.Rectangle { return image.Rect(100, 200*row, 900, 200*row+150) }
	s.dialog = []perception.Element{
		{Role: "text", Text: says, Bounds: at(3), Package: s.app},
		{Role: "button", Text: decline, Clickable: true, Bounds: at(4), Package: s.app},
		{Role: "button", Text: accept, Clickable: true, Bounds: at(5), Package: s.app},
	}
}

func TestWatchersClosePopupsWithoutThePlanner(t *testing.T) {
	bubble(t, "in a step of its own", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		popupOn(s, "Rate this app?", "Not now", "Rate")
		s.onTap = func(int) { s.dialog, s.onTap = nil, nil }
		r, p := newRunner(s, tapAdd, finishWell)
		var steps []Step
		r.OnStep = func(step Step) { steps = append(steps, step) }
		result := run(t, r, task)
		wantEnd(t, result, Succeeded, "")
		if !slices.Equal(s.did, []string{"tap 4", "tap 1"}) || result.Steps != 2 || len(steps) != 3 || steps[0].Kind != "popup" {
			t.Errorf("did %q in %d turns and %d steps", s.did, result.Steps, len(steps))
		}
		want := `past 1: popup {"watcher":"rating asked for"} on button "Not now" -> done; screen changed: +2 -2 ~1`
		if got := p.requests[0].UserPrompt; !strings.Contains(got, want) || !strings.Contains(got, "\nstep 1 of 30\n") {
			t.Errorf("prompt:\n%s", got)
		}
	})
	bubble(t, "the same popup three times, then it is the planner's", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		popupOn(s, "Rate this app?", "Not now", "Rate")
		s.onTap = func(int) {}
		r, p := newRunner(s, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		if len(s.did) != 3 || len(p.requests) != 1 || !strings.Contains(p.requests[0].UserPrompt, `text "Rate this app?"`) {
			t.Errorf("did %q", s.did)
		}
	})
	bubble(t, "ten in an attempt", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		popups := 0
		next := func(int) {
			popups++
			popupOn(s, "Update available", "Later", "Update")
			s.app = "a.shop" + strings.Repeat("x", popups/2) // popups of different apps
		}
		next(0)
		s.onTap = next
		r, _ := newRunner(s, finishWell)
		run(t, r, task)
		if len(s.did) != 10 {
			t.Errorf("%d presses", len(s.did))
		}
	})
	bubble(t, "switched off", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		popupOn(s, "Rate this app?", "Not now", "Rate")
		r, _ := newRunner(s, finishWell)
		kept := task
		kept.KeepPopups = true
		wantEnd(t, run(t, r, kept), Succeeded, "")
		if len(s.did) > 0 {
			t.Errorf("did %q", s.did)
		}
	})
	bubble(t, "a press that the fence refuses", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		popupOn(s, "Rate this app?", "Not now", "Rate")
		s.write = func(string) error { return wire.Refuse(wire.NotLeased, map[string]any{"slot": 3}) }
		r, p := newRunner(s, finishWell)
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.NotLeased)
		if len(p.requests) > 0 || result.Wrote || result.Steps != 0 {
			t.Errorf("%+v", result)
		}
	})
	bubble(t, "without the tool tap", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		popupOn(s, "Rate this app?", "Not now", "Rate")
		r, _ := newRunner(s, finishWell)
		r.Registry = tools.Default().Where(func(t tools.Tool) bool { return t.Name != "tap" })
		wantEnd(t, run(t, r, task), Succeeded, "")
		if len(s.did) > 0 {
			t.Errorf("did %q", s.did)
		}
	})
}

func TestNothingIsConsentedToUnlessTheTaskMay(t *testing.T) {
	for _, c := range []struct {
		permissions []string
		press       string
	}{{nil, "tap 4"}, {[]string{tools.PermitInstall}, "tap 4"}, {[]string{tools.PermitConsent}, "tap 5"}} {
		bubble(t, strings.Join(c.permissions, " "), func(t *testing.T) {
			s := &stage{app: "com.android.permissioncontroller"}
			popupOn(s, "Allow Shop to record audio?", "Don't allow", "While using the app")
			s.onTap = func(int) { s.dialog = nil }
			r, _ := newRunner(s, finishWell)
			permitted := task
			permitted.Permissions = c.permissions
			run(t, r, permitted)
			if !slices.Equal(s.did, []string{c.press}) {
				t.Errorf("did %q, want %q", s.did, c.press)
			}
		})
	}
}

// stiller is a stage whose animations can be stopped.
type stiller struct {
	*stage
	stops int
	err   error
}

func (s *stiller) StopAnimations(context.Context) error {
	s.stops++
	return s.err
}

func TestAnimationsAreStoppedOnceWhereAScreenNeverRests(t *testing.T) {
	notIdle := []perception.Part{{Name: perception.PartElements, Err: phone.ErrNotIdle}}
	for _, c := range []struct {
		name  string
		parts []perception.Part
		err   error
		stops int
		code  wire.Code
	}{
		{"it helps", notIdle, nil, 1, ""},
		{"the phone allows it not", notIdle, phone.ErrRejected, 1, ""},
		{"the lease is gone", notIdle, wire.Refuse(wire.NotLeased, nil), 1, wire.NotLeased},
		{"the tree is missing for another reason", []perception.Part{{Name: perception.PartElements, Err: phone.ErrNoRoot}}, nil, 0, ""},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.game", pictures: true, noTree: perception.NoTreeUnreadable, parts: c.parts}
			still := &stiller{stage: s, err: c.err}
			r, p := newRunner(s, `wait {"ms":100}`, finishWell)
			r.Controls = still
			result := run(t, r, task)
			if still.stops != c.stops {
				t.Errorf("stopped %d times", still.stops)
			}
			if c.code != "" {
				wantEnd(t, result, Failed, c.code)
				return
			}
			wantEnd(t, result, Succeeded, "")
			if said := strings.Contains(p.requests[0].UserPrompt, "past 1: stop_animations {} -> "); said != (c.stops > 0) {
				t.Errorf("prompt:\n%s", p.requests[0].UserPrompt)
			}
			if p.requests[0].Screen == nil {
				t.Error("a screen without elements goes without its picture")
			}
		})
	}
}

func TestActsThatDoTheSameASecondTimeAreTriedTwice(t *testing.T) {
	unread := errors.New("read the launcher: broken pipe") // before anything was sent
	for _, c := range []struct {
		name, answer string
		err          error
		writes       int
	}{
		{"starting an app", `launch_app {"package":"a.shop"}`, unread, 2},
		{"the key home", `press_key {"key":"home"}`, unread, 2},
		{"another key", `press_key {"key":"back"}`, unread, 1},
		{"a touch", tapAdd, unread, 1},
		{"a start of which nobody knows", `launch_app {"package":"a.shop"}`, phone.ErrUnknownOutcome, 1},
		{"a start that the phone refuses", `launch_app {"package":"a.shop"}`, phone.ErrAppMissing, 1},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			writes := 0
			s.write = func(string) error { writes++; return c.err }
			r, _ := newRunner(s, c.answer, finishWell)
			var first Step
			r.OnStep = func(step Step) {
				if step.N == 1 {
					first = step
				}
			}
			wantEnd(t, run(t, r, task), Succeeded, "")
			if writes != c.writes || first.Retried != (c.writes == 2) || first.Outcome == "done" {
				t.Errorf("%d writes, %+v", writes, first)
			}
		})
	}
	bubble(t, "the second time it works", func(t *testing.T) {
		s := &stage{app: "a.home"}
		failed := false
		s.write = func(string) error {
			if failed {
				return nil
			}
			failed = true
			return unread
		}
		r, _ := newRunner(s, `launch_app {"package":"a.shop"}`, finishWell)
		begun := time.Now()
		wantEnd(t, run(t, r, task), Succeeded, "")
		if s.app != "a.shop" || time.Since(begun) > 5*time.Second {
			t.Errorf("%s after %s", s.app, time.Since(begun))
		}
	})
}
