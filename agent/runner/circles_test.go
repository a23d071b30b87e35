package runner

import (
	"strings"
	"testing"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// round repeats answers n times.
func round(n int, answers ...any) []any {
	var all []any
	for range n {
		all = append(all, answers...)
	}
	return all
}

func TestReport08_SameActForeverEnds(t *testing.T) {
	const (
		press = `press_key {"key":"tab"}`
		swipe = `swipe {"direction":"up"}`
		wait  = `wait {"ms":1000}`
	)
	for _, c := range []struct {
		name    string
		answers []any
		code    wire.Code
		steps   int
		told    int // the request that is told first
		note    string
	}{
		{"one act", round(9, press), wire.LoopDetected, 5, 4, "press_key was called 3 times"},
		{"two by turns", round(9, press, swipe), wire.LoopDetected, 8, 5, "round in a circle 2 times: press_key, swipe"},
		{"three by turns", round(9, press, swipe, wait), wire.NoProgress, 8, 5, "the last 4 acts changed nothing"},
		{"others in between", []any{press, swipe, press, wait, press, `wait {"ms":2000}`, press, swipe, press}, wire.NoProgress, 8, 5, "changed nothing"},
		{"always another act", []any{
			press, swipe, wait, `swipe {"direction":"down"}`, `swipe {"direction":"left"}`, `wait {"ms":2000}`, `press_key {"key":"enter"}`, `press_key {"key":"search"}`, press,
		}, wire.NoProgress, 8, 5, "the last 4 acts changed nothing"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, p := newRunner(s, c.answers...)
			result := run(t, r, task)
			wantEnd(t, result, Failed, c.code)
			if result.Steps != c.steps {
				t.Errorf("%d steps, %s", result.Steps, result.Message)
			}
			for i, req := range p.requests {
				if told := strings.Contains(req.UserPrompt, "\nnote: "); told != (i+1 >= c.told) {
					t.Errorf("request %d: told %t\n%s", i+1, told, req.UserPrompt)
				}
			}
			if got := p.requests[c.told-1].UserPrompt; !strings.Contains(got, c.note) {
				t.Errorf("the note does not say %q:\n%s", c.note, got)
			}
		})
	}
	bubble(t, "a circle whose screens change ends too", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		s.onTap = func(int) { s.count = 1 - s.count } // there and back again
		r, _ := newRunner(s, tapAdd)
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.LoopDetected)
		if result.Steps != 8 || !strings.Contains(result.Message, "tap, tap") {
			t.Errorf("%+v", result)
		}
	})
	bubble(t, "three screens in a circle", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		s.onTap = func(int) { s.count = (s.count + 1) % 3 }
		r, p := newRunner(s, tapAdd)
		result := run(t, r, task)
		wantEnd(t, result, Failed, wire.LoopDetected)
		if result.Steps != 12 || !strings.Contains(p.requests[6].UserPrompt, "circle 2 times: tap, tap, tap") {
			t.Errorf("%+v\n%s", result, p.requests[6].UserPrompt)
		}
	})
	bubble(t, "what changes the screen is progress", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, append(round(5, wait, tapAdd, swipe), finishWell)...)
		wantEnd(t, run(t, r, task), Succeeded, "")
	})
}

// TestLoopsAreSeenOnScreensWithoutATree: pictures that hardly differ are the same screen.
func TestLoopsAreSeenOnScreensWithoutATree(t *testing.T) {
	for _, c := range []struct {
		name  string
		moves bool
		want  Outcome
	}{{"a game that stands still", false, Failed}, {"a game that goes on", true, Succeeded}} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.game", noTree: perception.NoTreeDrawn, pictures: true}
			n := 0
			s.paint = square(func() (x, y, side int) {
				if c.moves && len(s.did) > n {
					n = len(s.did)
				}
				return 40 * n, 100 * n, 240
			})
			answers := make([]any, 12)
			for i := range answers {
				answers[i] = `press_key {"key":"enter"}`
			}
			r, _ := newRunner(s, append(answers, finishWell)...)
			result := run(t, r, task)
			if result.Outcome != c.want {
				t.Errorf("%+v", result)
			}
		})
	}
}

func TestRounds(t *testing.T) {
	for acts, want := range map[string]struct{ size, rounds int }{
		"ab":         {2, 0},
		"abab":       {2, 2},
		"ababa":      {2, 2},
		"ababab":     {2, 3},
		"xyabab":     {2, 2},
		"abcabc":     {3, 2},
		"abcabcabc":  {3, 3},
		"aaaa":       {2, 0}, // one act again and again
		"aabaab":     {3, 2},
		"abcdabcd":   {3, 0},
		"abcdabcdcd": {2, 2},
	} {
		var l loopDetector
		for _, c := range acts {
			l.acts = append(l.acts, act{tool: string(c)})
		}
		got := l.rounds(want.size)
		if got < 2 {
			got = 0
		}
		if got != want.rounds {
			t.Errorf("%s: %d rounds of %d, want %d", acts, got, want.size, want.rounds)
		}
	}
	if note := (loop{tools: "tap, swipe", rounds: 2}).note(); note != "the last steps went round in a circle 2 times: tap, swipe; do something else" {
		t.Error(note)
	}
}
