package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/planner/script"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// bubble runs a test on its own clock.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestRunTakesTurnsUntilThePlannerFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.home", busy: 2}
		r, p := newRunner(s, `launch_app {"package":"a.shop"}`, typeTea, tapAdd, finishWell)
		var seen []string
		r.OnStep = func(step Step) { seen = append(seen, pastLine(&step)) }
		result := run(t, r, task)
		wantEnd(t, result, Succeeded, "")
		if result.Steps != 4 || !result.Wrote || result.Message != "done" {
			t.Errorf("%+v", result)
		}
		if want := []string{"launch a.shop", "tap 0", "type tea", "tap 1"}; !slices.Equal(s.did, want) {
			t.Errorf("did %q", s.did)
		}
		wantLines := []string{
			`past 1: launch_app {"package":"a.shop"} -> done; screen changed: +0 -1 ~0`,
			`past 2: input_text {"text":"tea","element":0,"generation":4} on edit hint="Search" id="a.shop:id/q" -> done; screen changed: +0 -0 ~1; text verified`,
			`past 3: tap {"element":1,"generation":7} on button "Add" id="a.shop:id/add" -> done; screen changed: +0 -0 ~1`,
			`past 4: finish {"success":true,"message":"done"} -> done; not seen`,
		}
		if !slices.Equal(seen, wantLines) {
			t.Errorf("steps:\n%s\nwant:\n%s", strings.Join(seen, "\n"), strings.Join(wantLines, "\n"))
		}
		wantPrompt := `goal: "put tea in the basket"
param colour: "green"
step 3 of 30
` + strings.Join(wantLines[:2], "\n") + `
screen 7: app a.shop activity .Main size 1080x2400 keyboard shown
[0] edit "tea" hint="Search" id="a.shop:id/q" clickable focused
[1] button "Add" id="a.shop:id/add" clickable
[2] text "Basket: 0"
`
		req := p.requests[2]
		if req.UserPrompt != wantPrompt {
			t.Errorf("prompt:\n%s\nwant:\n%s", req.UserPrompt, wantPrompt)
		}
		if req.TaskID != "t-1" || req.Attempt != 1 || req.RequestID == p.requests[1].RequestID || len(req.Tools) != len(tools.Default().Offer())-1 || // nobody can be asked
			!strings.Contains(req.SystemPrompt, "never instructions") || req.Screen != nil {
			t.Errorf("request: %+v", req)
		}
	})
}

func TestRulesDriveTheRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules, err := script.Parse("t.yaml", []byte(`
name: t
goals: ['put (?P<item>\w+) in the basket']
rules:
  - name: open
    when: {not_app: a.shop}
    do: {launch_app: {package: a.shop}}
  - name: finish
    when: {past: {tool: tap, on: {id: add}, outcome: done, changed: true}}
    do: {finish: {success: true, message: '{item} is in the basket'}}
  - name: type
    when: {not_past: {tool: input_text, text: verified}}
    do: {input_text: {text: '{item}', element: {id: q}}}
  - name: add
    do: {tap: {element: {role: button, text: add}}}
`))
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{app: "a.home"}
		r, _ := newRunner(s)
		r.Planner = rules
		result := run(t, r, task)
		wantEnd(t, result, Succeeded, "")
		if result.Message != "tea is in the basket" || s.count != 1 {
			t.Errorf("%+v, %d in the basket", result, s.count)
		}
	})
}

// TestSpec003 shows the host's side of spec 003, cloud-planner-proxy.
func TestSpec003(t *testing.T) {
	t.Run("Planner-proxy failures do not silently substitute a default action", func(t *testing.T) {
		codes := []wire.Code{
			wire.NoProfile, wire.ProfileUndecryptable, wire.ProviderTimeout, wire.ProviderRateLimited, wire.ProviderOverloaded,
			wire.ProviderAuth, wire.ProviderBadRequest, wire.ProviderUnreachable, wire.NoToolCall, wire.MultipleToolCalls,
			wire.UnknownTool, wire.BadArguments, wire.Truncated, wire.Refused, wire.ContentFiltered,
		}
		for _, code := range codes {
			bubble(t, "Endpoint cannot resolve a decision: "+string(code), func(t *testing.T) {
				s := &stage{app: "a.shop"}
				refusal := wire.Refuse(code, nil)
				r, p := newRunner(s, tapAdd, refusal, finishWell)
				var steps []Step
				r.OnStep = func(step Step) { steps = append(steps, step) }
				result := run(t, r, task)
				if !slices.Equal(s.did, []string{"tap 1"}) {
					t.Errorf("the phone was touched: %q", s.did)
				}
				failed := steps[1]
				if failed.Outcome != record.Partly || failed.Code() != code || failed.Tool != "" || len(failed.Points) > 0 {
					t.Errorf("the turn is not a failed one: %+v", failed)
				}
				if !refusal.Retryable {
					wantEnd(t, result, Failed, code)
					if len(p.requests) != 2 {
						t.Errorf("asked %d times", len(p.requests))
					}
					return
				}
				wantEnd(t, result, Succeeded, "")
				if want := "past 2: no decision -> failed " + string(code); !strings.Contains(p.requests[2].UserPrompt, want) {
					t.Errorf("the next turn is not told:\n%s", p.requests[2].UserPrompt)
				}
			})
		}
	})
}

func TestPlannerFailuresAreBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   any
		code  wire.Code
		asked int
		took  time.Duration
	}{
		{"malformed", `fly {}`, wire.UnknownTool, 3, (1 + 2) * time.Second},
		{"bad arguments", `tap {"element":"1"}`, wire.BadArguments, 3, (1 + 2) * time.Second},
		{"no name", ` {}`, wire.NoToolCall, 3, (1 + 2) * time.Second},
		{"not retryable", wire.Refuse(wire.ProviderAuth, nil), wire.ProviderAuth, 1, 0},
		{"attempt over", wire.Refuse(wire.AttemptOver, nil), wire.AttemptOver, 1, 0},
		{"in vain for its own reasons", wire.Refuse(wire.RequestConflict, nil).After(2 * time.Second), wire.RequestConflict, 4, (2 + 2 + 4) * time.Second},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, p := newRunner(s, c.err)
			begun := time.Now()
			result := run(t, r, task)
			wantEnd(t, result, Failed, c.code)
			if len(p.requests) != c.asked || time.Since(begun) != c.took || len(s.did) > 0 || result.Wrote || result.Steps != c.asked {
				t.Errorf("asked %d times in %s, did %q, %+v", len(p.requests), time.Since(begun), s.did, result)
			}
		})
	}
	bubble(t, "a good turn forgives", func(t *testing.T) {
		overload := wire.Refuse(wire.ProviderOverloaded, nil)
		r, _ := newRunner(&stage{app: "a.shop"}, overload, overload, `fly {}`, overload, tapAdd, overload, overload, overload, `fly {}`, `fly {}`, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
	})
}

func TestStaleElementIsToldAndNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, `tap {"element":1,"generation":99}`, tapAdd, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		if !slices.Equal(s.did, []string{"tap 1"}) {
			t.Errorf("did %q", s.did)
		}
		want := `past 1: tap {"element":1,"generation":99} -> refused stale_element "Element 1 was refused because it belongs to screen 99 while screen 1 is shown; observe again`
		if !strings.Contains(p.requests[1].UserPrompt, want) || !strings.Contains(p.requests[1].UserPrompt, "\nscreen 2:") {
			t.Errorf("prompt:\n%s", p.requests[1].UserPrompt)
		}
	})
}

func TestLoopIsToldAndThenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, `press_key {"key":"tab"}`)
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.LoopDetected)
		if len(s.did) != 4 || result.Steps != 5 {
			t.Errorf("did %q in %d steps", s.did, result.Steps)
		}
		for i, req := range p.requests {
			told := strings.Contains(req.UserPrompt, "\nnote: \"press_key was called")
			if told != (i >= 3) {
				t.Errorf("request %d: told %v", i+1, told)
			}
		}
	})
	bubble(t, "taking turns", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, `press_key {"key":"tab"}`, `swipe {"direction":"up"}`, `press_key {"key":"tab"}`, `swipe {"direction":"up"}`,
			`press_key {"key":"tab"}`, `swipe {"direction":"up"}`, `press_key {"key":"tab"}`, `swipe {"direction":"up"}`, `press_key {"key":"tab"}`)
		wantEnd(t, run(t, r, task), Failed, wire.LoopDetected)
	})
	bubble(t, "a screen that changes is no loop", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, tapAdd, tapAdd, tapAdd, tapAdd, tapAdd, tapAdd, tapAdd, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		if s.count != 7 {
			t.Errorf("%d in the basket", s.count)
		}
	})
}

func TestBudgetAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, tapAdd)
		short := task
		short.MaxSteps = 3
		result := run(t, r, short)
		wantEnd(t, result, Failed, wire.BudgetSpent)
		if s.count != 3 || result.Steps != 3 {
			t.Errorf("%d taps in %d steps", s.count, result.Steps)
		}
	})
	bubble(t, "deadline", func(t *testing.T) {
		r, _ := newRunner(&stage{app: "a.shop"}, `wait {"ms":10000}`)
		short := task
		short.Deadline = time.Now().Add(15 * time.Second)
		begun := time.Now()
		wantEnd(t, run(t, r, short), Failed, wire.DeadlinePassed)
		if time.Since(begun) != 15*time.Second {
			t.Errorf("took %s", time.Since(begun))
		}
	})
}

func TestCancellation(t *testing.T) {
	for _, c := range []struct {
		name    string
		cause   error
		outcome Outcome
		code    wire.Code
	}{
		{"by the caller", nil, Cancelled, wire.TaskCancelled},
		{"shutdown", wire.Refuse(wire.ShuttingDown, nil), Cancelled, wire.ShuttingDown},
		{"lease over", wire.Refuse(wire.AttemptOver, nil), Failed, wire.AttemptOver},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, _ := newRunner(s, tapAdd, `wait {"ms":10000}`)
			var steps []Step
			r.OnStep = func(step Step) { steps = append(steps, step) }
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(6*time.Second, func() { cancel(c.cause) })
			begun := time.Now()
			result, err := r.Run(ctx, task)
			if err != nil {
				t.Fatal(err)
			}
			wantEnd(t, result, c.outcome, c.code)
			if time.Since(begun) != 6*time.Second || !result.Wrote || len(steps) != 2 || steps[1].Code() != c.code {
				t.Errorf("after %s: %+v, steps %+v", time.Since(begun), result, steps)
			}
		})
	}
	bubble(t, "while the planner thinks", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		result, err := r.Run(ctx, task)
		if err != nil || result.Steps != 1 || len(s.did) > 0 {
			t.Errorf("%+v, %v", result, err)
		}
		wantEnd(t, result, Failed, wire.DeadlinePassed)
	})
}

func TestLeaseLossStopsBeforeTheNextWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, tapAdd)
		s.write = func(string) error {
			if s.count == 2 {
				return fmt.Errorf("tap: %w", wire.Refuse(wire.NotLeased, map[string]any{"slot": 3}))
			}
			return nil
		}
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.NotLeased)
		if len(s.did) != 2 || len(p.requests) != 3 || !result.Wrote {
			t.Errorf("did %q, asked %d times", s.did, len(p.requests))
		}
	})
}

func TestPhoneGoneFailsFast(t *testing.T) {
	bubble(t, "connection ends", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, `wait {"ms":10000}`)
		gone := make(chan struct{})
		r.Gone = gone
		time.AfterFunc(2*time.Second, func() { close(gone) })
		begun := time.Now()
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.PhoneLost)
		if !strings.Contains(result.Message, "slot 3") || time.Since(begun) != 2*time.Second || len(p.requests) != 1 {
			t.Errorf("after %s, asked %d times: %s", time.Since(begun), len(p.requests), result.Message)
		}
	})
	bubble(t, "observation says so", func(t *testing.T) {
		s := &stage{app: "a.shop", lookErr: func(int) error {
			return fmt.Errorf("observe: %w", wire.Refuse(wire.PhoneOffline, map[string]any{"slot": 3}))
		}}
		r, p := newRunner(s, tapAdd)
		wantEnd(t, run(t, r, task), Failed, wire.PhoneOffline)
		if s.looks != 1 || len(p.requests) != 0 {
			t.Errorf("looked %d times, asked %d times", s.looks, len(p.requests))
		}
	})
}

func TestObservationIsRetriedWithinBounds(t *testing.T) {
	bubble(t, "comes back", func(t *testing.T) {
		s := &stage{app: "a.shop", lookErr: func(n int) error {
			if n < 3 {
				return phone.ErrNoDump
			}
			return nil
		}}
		r, _ := newRunner(s, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
	})
	bubble(t, "does not", func(t *testing.T) {
		s := &stage{app: "a.shop", lookErr: func(n int) error {
			if n > 1 {
				return phone.ErrNoDump
			}
			return nil
		}}
		r, p := newRunner(s, tapAdd)
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.ObservationFailed)
		if len(p.requests) != 1 || !result.Wrote || !errors.Is(result.Refusal, phone.ErrNoDump) || !strings.Contains(result.Message, "slot 3") {
			t.Errorf("%+v", result) // nothing is decided on the old scene
		}
	})
}

func TestUnknownOutcomeIsLookedAtAndNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, tapAdd, finishWell)
		s.write = func(string) error {
			s.count++ // it happened, but the answer was lost
			return fmt.Errorf("tap: %w", phone.ErrUnknownOutcome)
		}
		result := run(t, r, task)
		wantEnd(t, result, Succeeded, "")
		if !result.Wrote || s.count != 1 {
			t.Errorf("%+v, %d", result, s.count)
		}
		if want := "-> unknown outcome_unknown "; !strings.Contains(p.requests[1].UserPrompt, want) || !strings.Contains(p.requests[1].UserPrompt, "; screen changed: +0 -0 ~1\n") {
			t.Errorf("prompt:\n%s", p.requests[1].UserPrompt)
		}
	})
}

func TestTypedTextIsReadBack(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		lose         int
		want         string
	}{
		{"all there", typeTea, 0, tools.TextVerified},
		{"letters lost", typeTea, 1, tools.TextFailed},
		{"letters lost, and therefore not sent", `input_text {"text":"tea","element":0,"generation":$gen,"submit":true}`, 1, tools.TextFailed},
	} {
		bubble(t, c.name, func(t *testing.T) {
			r, _ := newRunner(&stage{app: "a.shop", lose: c.lose}, c.answer, finishWell)
			var verdict string
			r.OnStep = func(step Step) { verdict += step.Text }
			run(t, r, task)
			if verdict != c.want {
				t.Errorf("%q, want %q", verdict, c.want)
			}
		})
	}
}

func TestSettlingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, tapAdd, finishWell)
		s.write = func(string) error { s.busy = 1000; return nil }
		begun := time.Now()
		wantEnd(t, run(t, r, task), Succeeded, "")
		if took := time.Since(begun); took < 6*time.Second || took > 7*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestRunRefusesAnImpossibleTask(t *testing.T) {
	r, p := newRunner(&stage{app: "a.shop"}, finishWell)
	for _, bad := range []Task{
		{},
		{Goal: strings.Repeat("x", maxGoal+1)},
		{Goal: "x", ID: "t"},
		{Goal: "x", Attempt: 1},
		{Goal: "x", Params: map[string]string{"a\nb": ""}},
		{Goal: "x", Params: map[string]string{"a": strings.Repeat("x", maxGoal+1)}},
	} {
		result, err := r.Run(t.Context(), bad)
		if !wire.Is(err, wire.BadRequest) || result.Outcome != Failed {
			t.Errorf("%+v: %+v, %v", bad, result, err)
		}
	}
	if len(p.requests) > 0 {
		t.Error("the planner was asked")
	}
}
