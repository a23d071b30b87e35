package runner

import (
	"context"
	"errors"
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// doubtful is a stage whose elements may be old ones, whoever asks.
type doubtful struct {
	*stage
	asked int
}

func (d *doubtful) Doubt() bool {
	d.asked++
	return d.asked < 10 // so that one that is asked without end ends
}

func TestElementsAreDoubtedOnceAnAct(t *testing.T) {
	for name, set := range map[string]func(s *stage){
		"the picture changed": func(s *stage) {
			s.paint = square(func() (x, y, side int) { return 0, 0, 800 })
		},
		"another app is in front": func(s *stage) { s.app = "a.home" },
	} {
		bubble(t, name, func(t *testing.T) {
			s := &stage{app: "a.shop", pictures: true}
			s.write = func(string) error { set(s); return nil }
			r, _ := newRunner(s, `press_key {"key":"enter"}`, finishWell)
			d := &doubtful{stage: s}
			r.Controls = d
			var step Step
			r.OnStep = func(now Step) {
				if now.N == 1 {
					step = now
				}
			}
			wantEnd(t, run(t, r, task), Succeeded, "")
			if d.asked != 1 || step.Times.Settle > 3000 {
				t.Errorf("doubted %d times, settled in %d ms", d.asked, step.Times.Settle)
			}
		})
	}
}

func TestAFailedLookIsRepeatedAsOftenAsTheLimitSays(t *testing.T) {
	bubble(t, "three", func(t *testing.T) {
		s := &stage{app: "a.shop", lookErr: func(int) error { return errSilent }}
		r, _ := newRunner(s, finishWell)
		r.Limits.Observations = 3
		wantEnd(t, run(t, r, task), Failed, wire.ObservationFailed)
		if s.looks != 3 {
			t.Errorf("looked %d times", s.looks)
		}
	})
}

func TestAQuestionIsPaidForOnceAndOnlyIfItWasAsked(t *testing.T) {
	cost := func(t *testing.T, tokens int, answers ...any) Result {
		r, _ := newRunner(&stage{app: "a.shop"}, answers...)
		r.Limits.Outage = time.Minute
		bounded := task
		bounded.Tokens = tokens
		return run(t, r, bounded)
	}
	bubble(t, "an answer that comes late", func(t *testing.T) {
		once := cost(t, 0, finishWell).Tokens
		late := wire.Refuse(wire.PlannerTimeout, map[string]any{"timeout_ms": 1})
		if got := cost(t, 0, late, finishWell).Tokens; got != once {
			t.Errorf("%d tokens, asked once %d", got, once)
		}
	})
	bubble(t, "a planner that never got it", func(t *testing.T) {
		gone := wire.Refuse(wire.PlannerUnreachable, nil).After(time.Hour)
		if got := cost(t, 0, gone); got.Tokens != 0 || got.Refusal.Code != wire.PlannerUnreachable {
			t.Errorf("%d tokens, %v", got.Tokens, got.Refusal)
		}
	})
	bubble(t, "all of the budget may be spent", func(t *testing.T) {
		question := cost(t, 0, finishWell).Tokens - perception.Tokens(strings.TrimPrefix(finishWell, "finish "))
		wantEnd(t, cost(t, question, finishWell), Succeeded, "")
		wantEnd(t, cost(t, question-1, finishWell), Failed, wire.TokensSpent)
	})
}

func TestANoteIsToldOnce(t *testing.T) {
	bubble(t, "a loop", func(t *testing.T) {
		r, p := newRunner(&stage{app: "a.shop"}, `press_key {"key":"tab"}`)
		wantEnd(t, run(t, r, task), Failed, wire.LoopDetected)
		told := map[string]int{}
		for _, req := range p.requests {
			for line := range strings.Lines(req.UserPrompt) {
				if strings.HasPrefix(line, "note: ") {
					told[line]++
				}
			}
		}
		for line, n := range told {
			if n != 1 {
				t.Errorf("%d times: %s", n, line)
			}
		}
		if len(told) < 2 {
			t.Errorf("told %v", told)
		}
	})
}

func TestTheScreenIsLookedAtAgainAfterAnAnswer(t *testing.T) {
	bubble(t, "asked", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, askColour, finishWell)
		r.Ask = func(context.Context, tools.Question) (string, error) {
			s.count = 7 // while nobody looked
			return "red", nil
		}
		wantEnd(t, run(t, r, task), Succeeded, "")
		if !strings.Contains(p.requests[1].UserPrompt, "Basket: 7") {
			t.Errorf("decides on\n%s", p.requests[1].UserPrompt)
		}
	})
}

// onStage is an attempt that has looked once.
func onStage(t *testing.T) *attempt {
	t.Helper()
	s := &stage{app: "a.shop"}
	r, _ := newRunner(s, finishWell)
	a := newAttempt(r, task)
	var err error
	if a.scene, err = a.look(t.Context(), perception.Want{}); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWhatMayBeTriedTwice(t *testing.T) {
	a := onStage(t)
	start := planner.Decision{Tool: "launch_app", Arguments: []byte(`{"package":"a.shop"}`)}
	unread := wire.Refuse(wire.ObservationFailed, nil)
	for _, c := range []struct {
		name   string
		out    tools.Outcome
		err    error
		looked bool
		want   bool
	}{
		{"nothing was sent", tools.Outcome{}, unread, false, true},
		{"it may have happened", tools.Outcome{Unknown: true}, unread, false, false},
		{"the elements are out of date", tools.Outcome{}, unread, true, false},
		{"the phone refused", tools.Outcome{}, wire.Refuse(wire.PhoneRejected, nil), false, false},
	} {
		if got := a.again(start, c.out, c.err, c.looked); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhatARefusedActComesTo(t *testing.T) {
	for _, c := range []struct {
		name string
		out  tools.Outcome
		want string
	}{
		{"before anything was sent", tools.Outcome{}, record.Refused},
		{"after a part of it", tools.Outcome{Wrote: true}, record.Partly},
		{"nobody knows", tools.Outcome{Wrote: true, Unknown: true}, record.Unknown},
	} {
		a := onStage(t)
		step := a.begin()
		end := a.refusedAct(t.Context(), step, c.out, wire.Refuse(wire.CannotType, nil))
		if end != nil || step.Outcome != c.want {
			t.Errorf("%s: %s, %+v", c.name, step.Outcome, end)
		}
	}
}

func TestActsThatWereNotDoneAreNoStandstill(t *testing.T) {
	for _, c := range []struct {
		name string
		step Step
		out  tools.Outcome
		want int
	}{
		{"done", Step{Outcome: record.Done}, tools.Outcome{}, 1},
		{"refused", Step{Outcome: record.Refused}, tools.Outcome{}, 0},
		{"read", Step{Outcome: record.Done}, tools.Outcome{Result: "a"}, 0},
		{"a popup", Step{Outcome: record.Done, Kind: record.Popup}, tools.Outcome{}, 0},
	} {
		a := onStage(t)
		if end := a.progress(&c.step, c.out, false); end != nil || a.still != c.want {
			t.Errorf("%s: counts %d, %+v", c.name, a.still, end)
		}
	}
}

func TestAnElementThatIsStillThereIsAsItWas(t *testing.T) {
	was := perception.Element{Role: "button", Key: 7, ID: "a:id/b", Enabled: true, Bounds: image.Rect(0, 0, 10, 10)}
	for name, change := range map[string]func(*perception.Element){
		"disabled":   func(e *perception.Element) { e.Enabled = false },
		"moved":      func(e *perception.Element) { e.Bounds.Max.X++ },
		"another":    func(e *perception.Element) { e.Key++ },
		"of a role":  func(e *perception.Element) { e.Role = "switch" },
		"of another": func(e *perception.Element) { e.ID = "a:id/c" },
	} {
		now := was
		change(&now)
		if stillThere(&was, &perception.Scene{Elements: []perception.Element{now}}) != nil {
			t.Errorf("%s: taken for the same", name)
		}
	}
	if stillThere(&was, &perception.Scene{Elements: []perception.Element{{}, was}}) == nil {
		t.Error("not found")
	}
}

func TestWhatTheRunnerDidOfItsOwnAccordCountsAsWritten(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{fmt.Errorf("stop: %w", phone.ErrUnknownOutcome), true},
		{fmt.Errorf("stop: %w", phone.ErrRejected), true}, // after a part of it
		{errors.New("broken pipe"), false},
		{phone.ErrLocked, false}, // it was not asleep
	} {
		a := onStage(t)
		a.own(t.Context(), record.Calm, "stop_animations", c.err)
		if a.wrote != c.want {
			t.Errorf("%v: wrote %t", c.err, a.wrote)
		}
	}
}

func TestTheLoopDetectorForgets(t *testing.T) {
	for others, want := range map[int]int{loopWindow - 2: 2, loopWindow - 1: 1} {
		var l loopDetector
		scene := &perception.Scene{}
		l.seen(planner.Decision{Tool: "tap"}, scene)
		for i := range others {
			l.seen(planner.Decision{Tool: fmt.Sprint("other", i)}, scene)
		}
		if got := l.seen(planner.Decision{Tool: "tap"}, scene).times; got != want {
			t.Errorf("after %d others: %d times", others, got)
		}
	}
}
