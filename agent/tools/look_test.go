package tools_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

func TestObserveLooks(t *testing.T) {
	p := toolstest.New(shop())
	out, err := do(t, p.Env(), "observe", `{}`)
	if err != nil || out.Scene == nil || out.Scene.Generation != 2 || out.Settle || out.Wrote {
		t.Errorf("%+v, %v", out, err)
	}
	p.Looks = func(int) error { return errors.New("it burns") }
	env := p.Env()
	env.Scene = shop()
	_, err = do(t, env, "observe", `{}`)
	wantRefusal(t, err, wire.ObservationFailed, "it burns")
	env.Look = nil
	_, err = do(t, env, "observe", `{}`)
	wantRefusal(t, err, wire.Unsupported, "observe")

	ctx, cancel := context.WithCancel(t.Context())
	env.Look = func(context.Context) (*perception.Scene, error) { cancel(); return shop(), nil }
	if _, err := executeIn(ctx, env, "observe", `{}`); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if out, err := do(t, toolstest.New(shop()).Env(), "take_screenshot", `{}`); err != nil || !out.Screenshot || out.Wrote {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestWaitLastsAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(shop())
		begun := time.Now()
		out, err := do(t, p.Env(), "wait", `{"ms":2500}`)
		if err != nil || time.Since(begun) != 2500*time.Millisecond || p.Looked() != 1 {
			t.Error(out, err, time.Since(begun))
		}
		wantNothing(t, p, out)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = executeIn(ctx, p.Env(), "wait", `{"ms":9000}`); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for args, want := range map[string]string{`{"ms":99}`: "at least 100", `{"ms":10001}`: "at most 10000", `{}`: "$.ms is missing"} {
			_, err := do(t, p.Env(), "wait", args)
			wantRefusal(t, err, wire.BadArguments, want)
		}
	})
}

func TestWaitingForWhatIsThereLater(t *testing.T) {
	for _, c := range []struct {
		name, args string
		change     func(*perception.Scene) // after three seconds; nil: never
		code       wire.Code               // "" is success
		want       string
		atLeast    time.Duration
		atMost     time.Duration
	}{
		{"there already", `{"text":"add"}`, nil, "", "", 0, 0},
		{"a text", `{"text":"thank you"}`, func(s *perception.Scene) { s.Elements[3].Text = "Thank you!" }, "", "", 3 * time.Second, 4 * time.Second},
		{"an id and a description", `{"id":"q","description":"Search"}`, func(s *perception.Scene) { s.Elements[2].Description = "Search" }, "", "", 3 * time.Second, 4 * time.Second},
		{"gone", `{"text":"Add","gone":true}`, func(s *perception.Scene) { s.Elements = s.Elements[2:] }, "", "", 3 * time.Second, 4 * time.Second},
		{"an app", `{"package":"a.bank"}`, func(s *perception.Scene) { s.Package = "a.bank" }, "", "", 3 * time.Second, 4 * time.Second},
		{"a text in vain", `{"text":"thank you","timeout_ms":2000}`, nil, wire.ElementMissing, `text "thank you" within 2s`, 2 * time.Second, 3 * time.Second},
		{"by default ten seconds", `{"text":"thank you"}`, nil, wire.ElementMissing, "within 10s", 10 * time.Second, 11 * time.Second},
		{"gone in vain", `{"text":"Add","gone":true,"timeout_ms":600}`, nil, wire.PhoneTimeout, `text "Add" is still there) within 600 ms`, 600 * time.Millisecond, time.Second},
		{"an app in vain", `{"package":"a.bank","timeout_ms":600}`, nil, wire.PhoneTimeout, "a.bank is not in front) within 600 ms", 600 * time.Millisecond, time.Second},
		{"not gone but unreadable", `{"text":"Add","gone":true,"timeout_ms":5000}`, func(s *perception.Scene) {
			s.Elements, s.NoTree = nil, perception.NoTreeUnreadable
		}, wire.PhoneTimeout, "still there", 5 * time.Second, 6 * time.Second},
		{"not gone but beyond what was read", `{"text":"Add","gone":true,"timeout_ms":5000}`, func(s *perception.Scene) {
			s.Elements, s.Missing = s.Elements[2:], []string{perception.PartMore}
		}, wire.PhoneTimeout, "still there", 5 * time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(shop())
			begun, changed := time.Now(), c.change == nil
			p.Looks = func(int) error {
				if !changed && time.Since(begun) >= 3*time.Second {
					changed = true
					p.Change(c.change)
				}
				return nil
			}
			out, err := do(t, p.Env(), "wait_for", c.args)
			took := time.Since(begun)
			if took < c.atLeast || took > c.atMost || out.Scene == nil {
				t.Errorf("%s: took %s, %+v", c.name, took, out)
			}
			wantNothing(t, p, out)
			if c.code != "" {
				wantRefusal(t, err, c.code, c.want)
			} else if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

func TestWaitingHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(shop())
		env := p.Env()
		env.Look = func(ctx context.Context) (*perception.Scene, error) { <-ctx.Done(); return nil, ctx.Err() } // a look that never ends
		begun := time.Now()
		_, err := do(t, env, "wait_for", `{"text":"x","timeout_ms":5000}`)
		wantRefusal(t, err, wire.ObservationFailed, "a look took too long")
		env.Look = func(ctx context.Context) (*perception.Scene, error) { // one that tells the task's end by what ended it
			<-ctx.Done()
			if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
			return nil, wire.Refuse(wire.DeadlinePassed, nil)
		}
		_, err = do(t, env, "wait_for", `{"text":"x","timeout_ms":5000}`)
		wantRefusal(t, err, wire.ObservationFailed, "a look took too long")
		env.Look = func(ctx context.Context) (*perception.Scene, error) {
			<-ctx.Done()
			return nil, wire.Refuse(wire.DeadlinePassed, nil)
		}
		_, err = do(t, env, "wait_for", `{"text":"x","timeout_ms":5000}`)
		wantRefusal(t, err, wire.ObservationFailed, "a look took too long")
		if took := time.Since(begun); took != 45*time.Second { // three times
			t.Errorf("took %s", took)
		}
		failed := wire.Refuse(wire.ObservationFailed, map[string]any{"detail": "it moves"})
		p.Looks = func(int) error { return failed }
		env.Look = p.Look
		begun = time.Now()
		_, err = do(t, env, "wait_for", `{"text":"x","timeout_ms":5000}`)
		wantRefusal(t, err, wire.ObservationFailed, "it moves")
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := executeIn(ctx, env, "wait_for", `{"text":"x","timeout_ms":5000}`); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestAFailedLookLeavesNoScene(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(shop())
		p.Looks = func(n int) error {
			if n > 3 {
				return wire.Refuse(wire.PhoneLost, nil)
			}
			return nil
		}
		out, err := do(t, p.Env(), "wait_for", `{"text":"x"}`)
		wantRefusal(t, err, wire.PhoneLost, "")
		if out.Scene != nil { // that of look 3 is out of date
			t.Errorf("%+v", out)
		}
	})
}

func TestWaitingNeedsOneThingToWaitFor(t *testing.T) {
	p := toolstest.New(shop())
	for _, args := range []string{`{}`, `{"gone":true}`, `{"package":"a.bank","text":"x"}`, `{"package":"a.bank","gone":true}`} {
		_, err := do(t, p.Env(), "wait_for", args)
		wantRefusal(t, err, wire.BadArguments, "either")
	}
}
