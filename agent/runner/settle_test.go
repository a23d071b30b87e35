package runner

import (
	"image"
	"image/color"
	"image/draw"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/perception"
)

// square paints a white square at a place, in pixels of the display, that may
// change with each look.
func square(where func() (x, y, side int)) func(*image.RGBA) {
	return func(img *image.RGBA) {
		x, y, side := where()
		draw.Draw(img, image.Rect(x/8, y/8, (x+side)/8, (y+side)/8), image.NewUniform(color.White), image.Point{}, draw.Src)
	}
}

func TestSettling(t *testing.T) {
	text := func(s *stage) { s.more = []perception.Element{{Role: "text", Text: time.Now().Format("15:04:05.000")}} }
	for _, c := range []struct {
		name   string
		set    func(s *stage) // after the touch
		look   func(s *stage) // at each look
		noTree string
		from   time.Duration // that settling takes
		to     time.Duration
		moving bool
		effect string
	}{
		{"a screen that changes at once", func(s *stage) { s.count++ }, nil, "", 300 * time.Millisecond, 300 * time.Millisecond, false, "screen changed: +0 -0 ~1"},
		{"a screen that does not change gets time to react", nil, nil, "", 1200 * time.Millisecond, 1500 * time.Millisecond, false, "no change"},
		{"a page that loads", func(s *stage) { s.busy, s.pictures = 6, false }, nil, "", 1800 * time.Millisecond, 2400 * time.Millisecond, false, "no change"},
		{"a clock that ticks, seen in the picture as still", nil, text, "", 900 * time.Millisecond, 900 * time.Millisecond, false, "screen changed: +1 -0 ~0"},
		{"a caret that blinks", nil, func(s *stage) {
			s.paint = square(func() (x, y, side int) { return 200, 600, int(time.Now().UnixMilli()/300%2) * 16 })
		}, perception.NoTreeDrawn, 1200 * time.Millisecond, 1500 * time.Millisecond, false, "no change"},
		{"a video", nil, func(s *stage) {
			s.paint = square(func() (x, y, side int) { return int(time.Now().UnixMilli() / 2 % 800), 600, 280 })
		}, perception.NoTreeDrawn, 6 * time.Second, 6300 * time.Millisecond, true, "picture changed"},
		{"a video in an app with elements", func(s *stage) { s.count++ }, func(s *stage) {
			s.paint = square(func() (x, y, side int) { return int(time.Now().UnixMilli() / 2 % 800), 600, 280 })
		}, "", 300 * time.Millisecond, 300 * time.Millisecond, false, "screen changed: +0 -0 ~1"},
		{"elements and picture that never rest", nil, func(s *stage) {
			text(s)
			s.paint = square(func() (x, y, side int) { return int(time.Now().UnixMilli() / 2 % 800), 600, 280 })
		}, "", 6 * time.Second, 6300 * time.Millisecond, true, "screen changed: +1 -0 ~0"},
		{"a game that answers", func(s *stage) {
			s.paint = square(func() (x, y, side int) { return 400, 1200, 400 })
		}, nil, perception.NoTreeDrawn, 300 * time.Millisecond, 300 * time.Millisecond, false, "picture changed"},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop", pictures: true, noTree: c.noTree}
			touched := false
			s.lookErr = func(int) error {
				if touched && c.look != nil {
					c.look(s)
				}
				return nil
			}
			s.write = func(string) error {
				touched = true
				if c.set != nil {
					c.set(s)
				}
				return nil
			}
			r, p := newRunner(s, `press_key {"key":"enter"}`, finishWell)
			var step Step
			r.OnStep = func(now Step) {
				if now.N == 1 {
					step = now
				}
			}
			run(t, r, task)
			took := time.Duration(step.Times.Settle) * time.Millisecond
			if took < c.from || took > c.to || step.Moving != c.moving || step.Effect != c.effect {
				t.Errorf("took %s, moving %t, %s", took, step.Moving, step.Effect)
			}
			if said := strings.Contains(p.requests[1].UserPrompt, "; still moving\n"); said != c.moving {
				t.Errorf("the planner is told %t:\n%s", said, p.requests[1].UserPrompt)
			}
		})
	}
}

func TestEffectsAreHonest(t *testing.T) {
	bubble(t, "without tree and pictures nothing is known", func(t *testing.T) {
		s := &stage{app: "a.game", noTree: perception.NoTreeDrawn}
		r, p := newRunner(s, `press_key {"key":"enter"}`, finishWell)
		run(t, r, task)
		if !strings.Contains(p.requests[1].UserPrompt, "-> done; not seen\n") {
			t.Error(p.requests[1].UserPrompt)
		}
	})
	bubble(t, "elements stay, the picture does not", func(t *testing.T) {
		s := &stage{app: "a.shop", pictures: true}
		s.write = func(string) error {
			s.paint = square(func() (x, y, side int) { return 0, 0, 800 })
			return nil
		}
		r, p := newRunner(s, `press_key {"key":"enter"}`, finishWell)
		run(t, r, task)
		if !strings.Contains(p.requests[1].UserPrompt, "-> done; picture changed\n") {
			t.Error(p.requests[1].UserPrompt)
		}
	})
	bubble(t, "another app", func(t *testing.T) {
		s := &stage{app: "a.home"}
		r, _ := newRunner(s, `launch_app {"package":"a.shop"}`, finishWell)
		var step Step
		r.OnStep = func(now Step) {
			if now.N == 1 {
				step = now
			}
		}
		result := run(t, r, task)
		if len(step.Changes) == 0 || !strings.HasPrefix(step.Changes[0], "~ screen app a.shop activity .Main ") || strings.Join(result.Apps, " ") != "a.home a.shop" {
			t.Errorf("%q, %q", step.Changes, result.Apps)
		}
	})
}

func TestAllTriesToLookHaveOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		s.lookErr = func(int) error { time.Sleep(30 * time.Second); return errSilent }
		r, _ := newRunner(s, finishWell)
		r.Limits.Observations = 100
		begun := time.Now()
		result := run(t, r, task)
		wantEnd(t, result, Failed, "observation_failed")
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}
