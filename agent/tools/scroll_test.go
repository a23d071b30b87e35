package tools_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

// rows is a list of which each page shows some rows, between a title and a bar
// at the bottom.
func rows(pages ...[]string) []*perception.Scene {
	var scenes []*perception.Scene
	for _, page := range pages {
		s := sceneOf(
			at{0, 0, 1000, 200}, perception.Element{Role: "text", Text: "Settings", Enabled: true},
			at{0, 200, 1000, 1800}, perception.Element{Role: "list", ID: "a:id/list", Scrollable: true, Enabled: true, Key: 7},
		)
		for i, text := range page {
			s.Elements = append(s.Elements, perception.Element{Role: "item", Text: text, ID: "a:id/row", Clickable: true, Enabled: true})
			s.Elements[i+2].Bounds.Min.Y = 200 + 400*i
			s.Elements[i+2].Bounds.Max.X, s.Elements[i+2].Bounds.Max.Y = 1000, 600+400*i
		}
		scenes = append(scenes, s)
	}
	return scenes
}

// scrolls turns the pages with the finger.
func scrolls(p *toolstest.Phone, pages int) {
	p.On = func(act string) {
		var x1, y1, x2, y2 int
		if n, _ := fmt.Sscanf(act, "swipe %d,%d %d,%d", &x1, &y1, &x2, &y2); n != 4 {
			return
		}
		switch {
		case y2 < y1:
			p.Show(min(p.Showing()+1, pages-1))
		case y2 > y1:
			p.Show(max(p.Showing()-1, 0))
		}
	}
}

func TestScrollingEndsWhereTheElementIs(t *testing.T) {
	pages := [][]string{{"Network", "Sound"}, {"Battery", "Display, Dark theme"}, {"Privacy", "About phone"}}
	for _, c := range []struct {
		args   string
		from   int
		swipes int
		target string
	}{
		{`{"text":"sound","direction":"down"}`, 0, 0, "Sound"},
		{`{"text":"display","direction":"down"}`, 0, 1, "Display, Dark theme"},
		{`{"text":"About  Phone","direction":"down"}`, 0, 2, "About phone"},
		{`{"text":"Network","direction":"up"}`, 2, 2, "Network"},
		{`{"id":"row","text":"privacy","direction":"down","element":1,"generation":1}`, 0, 2, "Privacy"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(rows(pages...)...)
			scrolls(p, len(pages))
			p.Show(c.from)
			out, err := do(t, p.Env(), "scroll_to", c.args)
			if err != nil || out.Target == nil || out.Target.Text != c.target || len(p.Acts()) != c.swipes {
				t.Fatalf("%s: %+v after %q, %v", c.args, out.Target, p.Acts(), err)
			}
			if out.Scene == nil || out.Settle || out.Wrote != (c.swipes > 0) {
				t.Errorf("%s: %+v", c.args, out)
			}
			if e, err := out.Scene.Find(out.Scene.Generation, out.Target.Index); err != nil || e.Text != c.target {
				t.Errorf("the target is not of the newest scene: %v", err)
			}
			for _, act := range p.Acts() { // six tenths of the list, not of the screen
				if act != "swipe 500,1480 500,520 700ms" && act != "swipe 500,520 500,1480 700ms" {
					t.Errorf("%s: %s", c.args, act)
				}
			}
		})
	}
}

func TestScrollingIsHonestAboutBothEnds(t *testing.T) {
	pages := [][]string{{"Network", "Sound"}, {"Battery", "Display"}}
	for _, c := range []struct {
		args   string
		from   int
		swipes int
		want   string
	}{
		{`{"text":"Kettle","direction":"down"}`, 0, 2, `text "Kettle" up to the end of the list`},
		{`{"text":"Kettle","direction":"up"}`, 1, 2, "up to the end of the list"},
		{`{"description":"Kettle","id":"x","direction":"up"}`, 0, 1, `description "Kettle" and id "x", where nothing scrolls that way`},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(rows(pages...)...)
			scrolls(p, len(pages))
			p.Show(c.from)
			out, err := do(t, p.Env(), "scroll_to", c.args)
			wantRefusal(t, err, wire.ElementMissing, c.want)
			if len(p.Acts()) != c.swipes || out.Scene == nil || out.Settle || !out.Wrote || out.Target != nil {
				t.Errorf("%s: %q, %+v", c.args, p.Acts(), out)
			}
		})
	}
}

func TestScrollingAnEndlessListIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(rows([]string{"news 0", "more"})...)
		n := 0
		p.On = func(string) {
			n++
			p.Change(func(s *perception.Scene) { s.Elements[2].Text = fmt.Sprintf("news %d", n) })
		}
		out, err := do(t, p.Env(), "scroll_to", `{"text":"olds","direction":"down"}`)
		wantRefusal(t, err, wire.ElementMissing, "within 20 swipes, where the list goes on")
		if len(p.Acts()) != 20 || out.Scene == nil {
			t.Errorf("%d swipes", len(p.Acts()))
		}
		slow := toolstest.New(rows([]string{"news 0", "more"})...)
		slow.On = func(string) {
			n++
			slow.Change(func(s *perception.Scene) { s.Elements[2].Text = fmt.Sprintf("news %d", n) })
		}
		slow.Looks = func(int) error { time.Sleep(9 * time.Second); return nil }
		env := slow.Env()
		begun := time.Now()
		_, err = do(t, env, "scroll_to", `{"text":"olds","direction":"down"}`)
		wantRefusal(t, err, wire.ElementMissing, "within 10 swipes")
		if took := time.Since(begun); took > 100*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestScrollingWaitsUntilTheListRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(rows([]string{"a", "b"}, []string{"c", "Kettle"})...)
		scrolls(p, 2)
		p.Looks = func(n int) error { // it runs on for a while
			if n > 1 && n < 5 {
				p.Change(func(s *perception.Scene) {
					for i := range s.Elements[2:] {
						s.Elements[i+2].Bounds.Min.Y -= 10
						s.Elements[i+2].Bounds.Max.Y -= 10
					}
				})
			}
			return nil
		}
		out, err := do(t, p.Env(), "scroll_to", `{"text":"kettle","direction":"down"}`)
		if err != nil || out.Target.Bounds.Min.Y != 570 || len(p.Acts()) != 1 {
			t.Errorf("%+v, %q, %v", out.Target, p.Acts(), err)
		}
	})
}

func TestScrollingRefusesWhatCannotBeScrolled(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       wire.Code
	}{
		{`{"direction":"down"}`, "text, description or id", wire.BadArguments},
		{`{"text":"x","direction":"down","element":0,"generation":1}`, "no element that scrolls", wire.BadArguments},
		{`{"text":"x","direction":"down","element":1,"generation":9}`, "screen 9", wire.StaleElement},
		{`{"text":"x"}`, "$.direction is missing", wire.BadArguments},
	} {
		p := toolstest.New(rows([]string{"a"})...)
		out, err := do(t, p.Env(), "scroll_to", c.args)
		wantRefusal(t, err, c.code, c.want)
		wantNothing(t, p, out)
	}
	p := toolstest.New(rows([]string{"a"})...)
	env := p.Env()
	env.Look = nil
	out, err := do(t, env, "scroll_to", `{"text":"x","direction":"down"}`)
	wantRefusal(t, err, wire.Unsupported, "looks")
	wantNothing(t, p, out)
}

func TestScrollingStopsAtTheFence(t *testing.T) {
	for closes := range 3 { // before the nth swipe
		synctest.Test(t, func(t *testing.T) {
			p := toolstest.New(rows([]string{"a"}, []string{"b"}, []string{"c"}, []string{"d"})...)
			scrolls(p, 4)
			p.Refuse = func(string) error {
				if len(p.Acts()) == closes {
					return wire.Refuse(wire.NotLeased, map[string]any{"slot": 3})
				}
				return nil
			}
			out, err := do(t, p.Env(), "scroll_to", `{"text":"d","direction":"down"}`)
			wantRefusal(t, err, wire.NotLeased, "")
			if len(p.Acts()) != closes || out.Wrote != (closes > 0) || out.Unknown {
				t.Errorf("%q, %+v", p.Acts(), out)
			}
		})
	}
}

func TestAnUnknownSwipeIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(rows([]string{"a"}, []string{"b"})...)
		asked := 0
		p.Refuse = func(string) error {
			asked++
			return fmt.Errorf("swipe: %w", phone.ErrUnknownOutcome)
		}
		out, err := do(t, p.Env(), "scroll_to", `{"text":"b","direction":"down"}`)
		wantRefusal(t, err, wire.OutcomeUnknown, "swipe")
		if asked != 1 || !out.Wrote || !out.Unknown || !out.Settle || out.Scene != nil {
			t.Errorf("asked %d times, %+v", asked, out)
		}
	})
}

func TestScrollingIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := toolstest.New(rows([]string{"a"}, []string{"b"}, []string{"c"})...)
		ctx, cancel := context.WithCancel(t.Context())
		p.On = func(string) { p.Show(p.Showing() + 1); cancel() }
		out, err := executeIn(ctx, p.Env(), "scroll_to", `{"text":"c","direction":"down"}`)
		if err != context.Canceled || len(p.Acts()) != 1 || !out.Wrote {
			t.Errorf("%v, %q, %+v", err, p.Acts(), out)
		}
	})
}

func TestWantedElements(t *testing.T) {
	s := rows([]string{"Display over other apps", "Display", "display"})[0]
	p := toolstest.New(s)
	out, err := do(t, p.Env(), "scroll_to", `{"text":" DISPLAY ","direction":"down"}`)
	if err != nil || out.Target.Index != 3 { // the whole text goes before a part, the first before the second
		t.Errorf("%+v, %v", out.Target, err)
	}
	under := withKeyboard(rows([]string{"a", "b", "c", "Hidden"})[0]) // what the keyboard covers is not found
	under.KeyboardArea.Min.Y, under.KeyboardArea.Max.X, under.KeyboardArea.Max.Y = 1300, 1000, 2000
	p = toolstest.New(under)
	synctest.Test(t, func(t *testing.T) {
		out, err = do(t, p.Env(), "scroll_to", `{"text":"hidden","direction":"down"}`)
		wantRefusal(t, err, wire.ElementMissing, "hidden")
		if !slices.ContainsFunc(p.Acts(), func(a string) bool { return strings.HasPrefix(a, "swipe 500,1080 ") }) {
			t.Errorf("%q", p.Acts()) // above the keyboard
		}
	})
}
