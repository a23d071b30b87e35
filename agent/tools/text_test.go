package tools_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

// form is a screen with a search field, a password field and a button; holds is
// what the search field holds.
func form(holds string) *perception.Scene {
	search, password := edit("a:id/q"), edit("a:id/pin")
	search.Text, password.Password = holds, true
	return sceneOf(
		at{0, 100, 800, 200}, search,
		at{0, 300, 800, 400}, password,
		at{0, 500, 800, 600}, perception.Element{Role: "button", Text: "Go", Clickable: true, Enabled: true},
	)
}

const typeKettle = `{"text":"kettle","element":0,"generation":1}`

func TestTypingPutsTheCursorIntoTheField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(form("red "))
		out, err := do(t, p.Env(), "input_text", typeKettle)
		if err != nil || !slices.Equal(p.Acts(), []string{"tap 400,150", "type kettle"}) || out.Text != tools.TextVerified {
			t.Errorf("%q, %+v, %v", p.Acts(), out, err)
		}
		if out.Scene == nil || !out.Settle || !out.Wrote || out.Target.ID != "a:id/q" || len(out.Points) != 1 {
			t.Errorf("%+v", out)
		}
		// The cursor is there now: no touch, and none of the element.
		env := p.Env()
		out, err = do(t, env, "input_text", `{"text":"s","submit":true}`)
		if err != nil || !slices.Equal(p.Acts()[2:], []string{"type s", "key enter"}) || out.Text != tools.TextVerified {
			t.Errorf("%q, %+v, %v", p.Acts(), out, err)
		}
		if out.Scene != nil || !out.Settle { // enter came after the look
			t.Errorf("%+v", out)
		}
	})
}

func TestTypingWaitsForTheCursorAndTheKeyboard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(form(""))
		ready, begun := 0, time.Now()
		p.On = func(act string) {
			if strings.HasPrefix(act, "tap") { // the cursor comes with the 3rd look from here, the keyboard with the 5th
				p.Change(func(s *perception.Scene) { s.Keyboard, s.Elements[0].Focused = false, false })
				ready = p.Looked()
			}
		}
		p.Looks = func(n int) error {
			p.Change(func(s *perception.Scene) {
				s.Elements[0].Focused = ready > 0 && n >= ready+3
				s.Keyboard = ready > 0 && n >= ready+5
			})
			return nil
		}
		out, err := do(t, p.Env(), "input_text", typeKettle)
		if err != nil || out.Text != tools.TextVerified || p.Looked() < 6 {
			t.Errorf("%+v, %d looks, %v", out, p.Looked(), err)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestTypingWithoutAKeyboardOnTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(form("")) // an input method that shows nothing, or keys that are real
		p.On = func(string) { p.Change(func(s *perception.Scene) { s.Keyboard = false }) }
		begun := time.Now()
		out, err := do(t, p.Env(), "input_text", typeKettle)
		if err != nil || out.Text != tools.TextVerified || time.Since(begun) > 3*time.Second {
			t.Errorf("%+v after %s, %v", out, time.Since(begun), err)
		}
	})
}

func TestTypingNeedsTheCursorInTheField(t *testing.T) {
	for name, react := range map[string]func(*perception.Scene){
		"nowhere":          func(s *perception.Scene) { s.Elements[1].Focused, s.Keyboard = false, false },
		"in another field": func(s *perception.Scene) { s.Elements[0].Focused, s.Elements[1].Focused = true, false },
		"on another page":  func(s *perception.Scene) { s.Elements = s.Elements[2:] },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(form(""))
			p.On = func(string) { p.Change(react) }
			begun := time.Now()
			out, err := do(t, p.Env(), "input_text", `{"text":"hunter2","element":1,"generation":1}`)
			wantRefusal(t, err, wire.CannotType, "cursor did not go into the field")
			if len(p.Acts()) != 1 || !out.Wrote || out.Scene == nil || out.Text != "" {
				t.Errorf("%s: %q, %+v", name, p.Acts(), out)
			}
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("%s: took %s", name, took)
			}
		})
	}
}

func TestTypingRefusesBeforeItTouches(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		scene      *perception.Scene
		code       wire.Code
		want       string
	}{
		{"input_text", `{"text":"x"}`, form(""), wire.CannotType, "names none"},
		{"input_text", `{"text":"x","element":2,"generation":1}`, form(""), wire.CannotType, "not a field"},
		{"input_text", `{"text":"x","element":0}`, form(""), wire.BadArguments, "together"},
		{"input_text", `{"text":"x","element":0,"generation":4}`, form(""), wire.StaleElement, "observe again"},
		{"input_text", `{"text":""}`, form(""), wire.BadArguments, "at least 1"},
		{"input_text", `{"text":"` + strings.Repeat("x", 2001) + `"}`, form(""), wire.BadArguments, "at most 2000"},
		{"clear_text", `{}`, form("x"), wire.CannotType, "names none"},
		{"clear_text", `{}`, withKeyboard(form("x")), wire.CannotType, "does not tell which field"},
		{"clear_text", `{"element":2,"generation":1}`, form("x"), wire.CannotType, "not a field"},
	} {
		p := toolstest.New(c.scene)
		out, err := do(t, p.Env(), c.tool, c.args)
		wantRefusal(t, err, c.code, c.want)
		wantNothing(t, p, out)
	}
	off := form("x")
	off.Elements[0].Enabled = false
	for tool, args := range map[string]string{"input_text": typeKettle, "clear_text": `{"element":0,"generation":1}`} {
		p := toolstest.New(off)
		env := p.Env()
		out, err := do(t, env, tool, args)
		wantRefusal(t, err, wire.ElementDisabled, "disabled")
		wantNothing(t, p, out)
		env.Look = nil
		_, err = do(t, env, tool, args)
		wantRefusal(t, err, wire.Unsupported, "looks")
	}
}

// What arrives otherwise is never called verified, and never sent: argent#562,
// midscene#2056, Maestro#395.
func TestReport16_LostCharactersAreNoSuccess(t *testing.T) {
	for name, typing := range map[string]func(before, text string) string{
		"the first is lost":  func(before, text string) string { return before + text[1:] },
		"two are swapped":    func(before, text string) string { return before + "ekttle" },
		"a capital":          func(before, text string) string { return before + "Kettle" },
		"a correction":       func(before, text string) string { return before + "cattle" },
		"held by the method": func(before, _ string) string { return before },
		"the last is lost":   func(before, text string) string { return before + text[:5] },
	} {
		for _, holds := range []string{"", "red ", "k", "kettl"} {
			synctest.Test(t, func(t *testing.T) {
				p := toolstest.New(form(holds))
				p.Typing = typing
				out, err := do(t, p.Env(), "input_text", `{"text":"kettle","element":0,"generation":1,"submit":true}`)
				if out.Text == tools.TextVerified {
					t.Errorf("%s into %q is verified", name, holds)
				}
				if out.Text == tools.TextFailed {
					wantRefusal(t, err, wire.TextDiffers, "correct it")
					if len(p.Acts()) != 2 || !out.Wrote || out.Scene == nil {
						t.Errorf("%s: %q, %+v", name, p.Acts(), out)
					}
				}
			})
		}
	}
}

func TestTextThatComesLateIsWaitedFor(t *testing.T) {
	for late, want := range map[int]string{3: tools.TextVerified, 100: tools.TextFailed} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(form(""))
			p.Typing = func(before, _ string) string { return before }
			p.Looks = func(n int) error {
				if n == 2+late {
					p.Change(func(s *perception.Scene) { s.Elements[0].Text = "kettle" })
				}
				return nil
			}
			begun := time.Now()
			out, err := do(t, p.Env(), "input_text", typeKettle)
			if out.Text != want || (err == nil) != (want == tools.TextVerified) || time.Since(begun) > 4*time.Second {
				t.Errorf("%s after %s, %v", out.Text, time.Since(begun), err)
			}
		})
	}
}

// TestReport09_TextIsNotCondemnedByAnOldScreen: what the controls say may be an
// old screen is looked at anew before anything is said against the phone.
func TestReport09_TextIsNotCondemnedByAnOldScreen(t *testing.T) {
	const element = `{"element":0,"generation":1}`
	for _, c := range []struct {
		name, tool, args string
		holds            string
		froze            string // the act before which the screen stands still
		acts             []string
	}{
		{"typing", "input_text", typeKettle, "", "type", []string{"tap 400,150", "type kettle"}},
		{"the cursor", "input_text", typeKettle, "", "tap", []string{"tap 400,150", "type kettle"}},
		{"clearing", "clear_text", element, "red", "clear", []string{"tap 400,150", "clear 3"}},
		{"empty", "clear_text", element, "", "now", []string{"tap 400,150", "clear 6"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			scene := form(c.holds)
			scene.Hints = true
			p := toolstest.New(scene)
			doubts, proofs := 0, 0
			env := p.Env()
			old, stopped := env.Scene, c.froze == "now"
			if stopped {
				p.Change(func(s *perception.Scene) { s.Elements[0].Text = "kettle" })
			}
			p.Refuse = func(act string) error {
				if strings.HasPrefix(act, c.froze) {
					stopped = true
					old, _ = p.Look(t.Context())
				}
				return nil
			}
			p.Prove = func() bool { doubts++; return stopped }
			env.Look = func(ctx context.Context) (*perception.Scene, error) {
				s, err := p.Look(ctx)
				switch {
				case err != nil || !stopped:
					return s, err
				case doubts > proofs:
					proofs, stopped = doubts, false
					return s, nil
				}
				was := *old
				was.Generation, was.Keyboard = s.Generation, s.Keyboard
				return &was, nil
			}
			out, err := do(t, env, c.tool, c.args)
			if out.Text != tools.TextVerified || err != nil || !slices.Equal(p.Acts(), c.acts) || doubts == 0 {
				t.Errorf("%s: %s after %q and %d doubts, %v", c.name, out.Text, p.Acts(), doubts, err)
			}
		})
	}
}

// TestReport09_TextGoesIntoNoOtherField: an old screen does not tell that the touch
// has put the cursor somewhere else.
func TestReport09_TextGoesIntoNoOtherField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(form(""))
		p.On = func(string) {
			p.Change(func(s *perception.Scene) { s.Elements[0].Focused, s.Elements[1].Focused = false, true })
		}
		env := p.Env()
		old, proved := env.Scene, false
		p.Prove = func() bool { proved = true; return true }
		env.Look = func(ctx context.Context) (*perception.Scene, error) {
			s, err := p.Look(ctx)
			if !proved {
				s.Elements = old.Elements
			}
			return s, err
		}
		_, err := do(t, env, "input_text", typeKettle)
		wantRefusal(t, err, wire.CannotType, "cursor did not go into the field")
		if len(p.Acts()) != 1 {
			t.Errorf("%q", p.Acts())
		}
	})
}

func TestWhatTypingDidIsTrustedNoMore(t *testing.T) {
	for shown, want := range map[string]int{"ettle": 1, "ekttle": 1, "": 1, "kett": 0, "Kettle": 0, "(kettle)": 0, "kettle": 0} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(form("")) // fields that change what they take, or take only so much, are not the phone's fault
			p.Typing = func(string, string) string { return shown }
			_, _ = do(t, p.Env(), "input_text", typeKettle)
			if got := p.Distrusted(); len(got) != want || want == 1 && got[0] != phone.Typing {
				t.Errorf("%q: %q", shown, got)
			}
		})
	}
}

func TestEnterWaitsForTheField(t *testing.T) {
	submit := `{"text":"kettle","element":0,"generation":1,"submit":true}`
	synctest.Test(t, func(t *testing.T) { // a field that closes as soon as it is full
		p := toolstest.New(form(""))
		p.On = func(act string) {
			if strings.HasPrefix(act, "type") {
				p.Change(func(s *perception.Scene) { s.Elements = s.Elements[1:] })
			}
		}
		out, err := do(t, p.Env(), "input_text", submit)
		wantRefusal(t, err, wire.ObservationFailed, "enter was not pressed")
		if len(p.Acts()) != 2 || out.Text != tools.TextUnverified {
			t.Errorf("%q, %+v", p.Acts(), out)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a password of the right length
		p := toolstest.New(form(""))
		p.Typing = func(before, text string) string { return before + strings.Repeat("•", len(text)) }
		out, err := do(t, p.Env(), "input_text", `{"text":"hunter2","element":1,"generation":1,"submit":true}`)
		if err != nil || out.Text != tools.TextUnverified || !slices.Equal(p.Acts(), []string{"tap 400,350", "type hunter2", "key enter"}) {
			t.Errorf("%q, %+v, %v", p.Acts(), out, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a screen that says nothing but that the keyboard is shown
		p := toolstest.New(withKeyboard(game()))
		out, err := do(t, p.Env(), "input_text", `{"text":"anna","submit":true}`)
		if err != nil || out.Text != tools.TextUnverified || !slices.Equal(p.Acts(), []string{"type anna", "key enter"}) || out.Target != nil {
			t.Errorf("%q, %+v, %v", p.Acts(), out, err)
		}
	})
}

func TestFieldsAreEmptied(t *testing.T) {
	empty := `{"element":0,"generation":1}`
	for _, c := range []struct {
		name, holds, left string
		hints             bool // the tree tells hints from texts
		acts              []string
		want              string
	}{
		{"emptied", "red kettle", "", true, []string{"tap 400,150", "clear 10"}, tools.TextVerified},
		{"empty before", "", "", true, nil, tools.TextVerified},
		{"a rest", "red kettle", "red", true, []string{"tap 400,150", "clear 10"}, tools.TextFailed},
		{"a rest on an old Android", "red kettle", "red", false, []string{"tap 400,150", "clear 10"}, tools.TextFailed},
		{"nothing happened", "red kettle", "red kettle", true, []string{"tap 400,150", "clear 10"}, tools.TextFailed},
		{"nothing happened, or it was the hint", "Search", "Search", false, []string{"tap 400,150", "clear 6"}, tools.TextUnverified},
		{"the hint of an old Android", "tea", "Search", false, []string{"tap 400,150", "clear 3"}, tools.TextUnverified},
		{"Chinese", "水壶", "", true, []string{"tap 400,150", "clear 2"}, tools.TextVerified},
	} {
		synctest.Test(t, func(t *testing.T) {
			scene := form(c.holds)
			scene.Hints = c.hints
			p := toolstest.New(scene)
			p.On = func(act string) {
				if strings.HasPrefix(act, "clear") {
					p.Change(func(s *perception.Scene) { s.Elements[0].Text = c.left })
				}
			}
			out, err := do(t, p.Env(), "clear_text", empty)
			if out.Text != c.want || !slices.Equal(p.Acts(), c.acts) || (err != nil) != (c.want == tools.TextFailed) {
				t.Errorf("%s: %s after %q, %v", c.name, out.Text, p.Acts(), err)
			}
			if (len(p.Distrusted()) > 0) != (c.want == tools.TextFailed) {
				t.Errorf("%s: distrusted %q", c.name, p.Distrusted())
			}
			if err != nil {
				wantRefusal(t, err, wire.TextDiffers, "")
			}
		})
	}
}

// TestTypingStopsAtTheFence closes the fence before each write of the tools that
// make several.
func TestTypingStopsAtTheFence(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		acts       []string
	}{
		{"input_text", `{"text":"kettle","element":0,"generation":1,"submit":true}`, []string{"tap 400,150", "type kettle", "key enter"}},
		{"clear_text", `{"element":0,"generation":1}`, []string{"tap 400,150", "clear 4"}},
	} {
		for closed := range len(c.acts) + 1 {
			for _, cause := range []error{wire.Refuse(wire.NotLeased, map[string]any{"slot": 3}), phone.ErrNoFence} {
				synctest.Test(t, func(t *testing.T) {
					p := toolstest.New(form("red "))
					asked := 0
					p.Refuse = func(string) error {
						if asked++; asked > closed {
							return cause
						}
						return nil
					}
					out, err := do(t, p.Env(), c.tool, c.args)
					if !slices.Equal(p.Acts(), c.acts[:closed]) || out.Wrote != (closed > 0) {
						t.Errorf("%s: %q, %+v", c.tool, p.Acts(), out)
					}
					if closed < len(c.acts) {
						wantRefusal(t, err, wire.NotLeased, "")
						if asked != closed+1 {
							t.Errorf("%s went on: asked %d times", c.tool, asked)
						}
					} else if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestTypingIsCancelledAnywhere ends the context at each look and each write.
func TestTypingIsCancelledAnywhere(t *testing.T) {
	full := []string{"tap 400,150", "type kettle", "key enter"}
	for _, when := range []string{"act 1", "act 2", "act 3", "look 2", "look 3"} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(form(""))
			ctx, cancel := context.WithCancel(t.Context())
			p.On = func(string) {
				if when == fmt.Sprintf("act %d", len(p.Acts())) {
					cancel()
				}
			}
			p.Looks = func(n int) error {
				if when == fmt.Sprintf("look %d", n) {
					cancel()
				}
				return nil
			}
			out, err := executeIn(ctx, p.Env(), "input_text", `{"text":"kettle","element":0,"generation":1,"submit":true}`)
			done := map[string]int{"act 1": 1, "act 2": 2, "act 3": 3, "look 2": 1, "look 3": 2}[when]
			if !slices.Equal(p.Acts(), full[:done]) || !out.Wrote || (err != nil) != (done < 3) || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %q, %+v, %v", when, p.Acts(), out, err)
			}
		})
	}
}

func TestUnknownTypingIsNotSent(t *testing.T) {
	for _, c := range []struct {
		err     error
		code    wire.Code
		unknown bool
	}{
		{fmt.Errorf("type: %w: %w", phone.ErrUnknownOutcome, context.DeadlineExceeded), wire.OutcomeUnknown, true},
		{fmt.Errorf("type: %w: %w", phone.ErrPartlyTyped, phone.ErrRejected), wire.PartlyTyped, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(form(""))
			p.Refuse = func(act string) error {
				if strings.HasPrefix(act, "type") {
					return c.err
				}
				return nil
			}
			out, err := do(t, p.Env(), "input_text", `{"text":"kettle","element":0,"generation":1,"submit":true}`)
			wantRefusal(t, err, c.code, "")
			if len(p.Acts()) != 1 || out.Unknown != c.unknown || out.Text != "" || out.Scene != nil || !out.Settle {
				t.Errorf("%q, %+v", p.Acts(), out)
			}
		})
	}
}

func TestLooksThatFailWhileTyping(t *testing.T) {
	failed := wire.Refuse(wire.ObservationFailed, map[string]any{"detail": "it moves"})
	for _, c := range []struct {
		name string
		look func(n int) error
		code wire.Code // "" is success
		acts int
	}{
		{"one of them", func(n int) error {
			if n%2 == 0 {
				return failed
			}
			return nil
		}, "", 2},
		{"all for the cursor", func(n int) error {
			if n > 1 {
				return failed
			}
			return nil
		}, wire.ObservationFailed, 1},
		{"all for the text", func(n int) error {
			if n > 2 {
				return failed
			}
			return nil
		}, wire.ObservationFailed, 2},
		{"the phone is lost", func(n int) error {
			if n > 2 {
				return wire.Refuse(wire.PhoneLost, nil)
			}
			return nil
		}, wire.PhoneLost, 2},
		{"without a refusal", func(n int) error {
			if n > 2 {
				return errors.New("it burns")
			}
			return nil
		}, wire.ObservationFailed, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(form(""))
			p.Looks = c.look
			out, err := do(t, p.Env(), "input_text", typeKettle)
			if len(p.Acts()) != c.acts || !out.Wrote {
				t.Errorf("%s: %q, %+v", c.name, p.Acts(), out)
			}
			if c.code == "" {
				if err != nil || out.Text != tools.TextVerified {
					t.Errorf("%s: %+v, %v", c.name, out, err)
				}
				return
			}
			wantRefusal(t, err, c.code, "")
			if out.Text == tools.TextVerified {
				t.Errorf("%s: %+v", c.name, out)
			}
		})
	}
}
