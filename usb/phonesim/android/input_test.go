package android

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/phonesim/screen"
)

// realPhone is a phone with a real display whose search field has the focus.
func realPhone(t *testing.T, version int) (*phone, *screen.Engine) {
	t.Helper()
	var engine *screen.Engine
	p := newPhone(t, version, func(c *Config) {
		var err error
		if engine, err = screen.New(screen.Config{Width: 720, Height: 1600, Density: 320, Clock: c.Clock}); err != nil {
			t.Fatal(err)
		}
		c.Screen = engine
	})
	return p, engine
}

// find returns the first node of the active window with an id.
func find(n *screen.Node, id string) *screen.Node {
	if n == nil || n.ResourceID == id {
		return n
	}
	for _, c := range n.Children {
		if found := find(c, id); found != nil {
			return found
		}
	}
	return nil
}

const searchField = "com.phonerack.shop:id/search"

// focusSearch opens the shop and taps its search field.
func focusSearch(p *phone, engine *screen.Engine) {
	p.t.Helper()
	p.ok("am start -n com.phonerack.shop/.MainActivity; sleep 1")
	b := find(engine.Tree(), searchField).Bounds
	engine.Tap(b.Min.X+5, b.Min.Y+5)
}

// What the phone makes of text is seen in the field only: the command says nothing and succeeds.
func TestReport16_TextThatDoesNotArriveAsTyped(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults Faults
		typed  string
		want   string
	}{
		{"first lost", Faults{DropFirst: true}, "input text kettle", "ettle"},
		{"first lost of each", Faults{DropFirst: true}, "input text ket; input text tle", "etle"},
		{"first two swapped", Faults{SwapFirst: true}, "input text kettle", "ekttle"},
		{"composing", Faults{Composing: true}, "input text kettle5", "5"},
		{"composing, committed", Faults{Composing: true}, "input text 'kettle '", "kettle"},
		{"capitalized", Faults{Capitalize: true}, "input text kettle", "Kettle"},
		{"corrected", Faults{Autocorrect: true}, "input text 'teh%skettle'", "the kettle"},
		{"late", Faults{TextDelay: time.Second}, "input text kettle; sleep 0.5", "ket"},
		{"late, waited for", Faults{TextDelay: time.Second}, "input text kettle; sleep 1", "kettle"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, engine := realPhone(t, 14)
			focusSearch(p, engine)
			p.fault(func(f *Faults) { *f = test.faults })
			p.ok(test.typed)
			if got := find(engine.Tree(), searchField).Text; got != test.want {
				t.Errorf("field holds %q, want %q", got, test.want)
			}
		})
	}
}

func TestPinyinKeyboardHoldsLetters(t *testing.T) {
	p, engine := realPhone(t, 11)
	focusSearch(p, engine)
	p.ok("ime enable " + pinyinIME + "; ime set " + pinyinIME + "; input text nihao5")
	if got := find(engine.Tree(), searchField).Text; got != "5" {
		t.Errorf("field holds %q", got)
	}
	p.ok("ime reset; input text ok")
	if got := find(engine.Tree(), searchField).Text; got != "5ok" {
		t.Errorf("field holds %q", got)
	}
}

func TestFingerOfAKilledSwipe(t *testing.T) {
	for version, stays := range map[int]bool{9: true, 10: true, 11: false, 14: false} {
		synctest.Test(t, func(t *testing.T) {
			engine, err := screen.New(screen.Config{Width: 720, Height: 1600, Density: 320})
			if err != nil {
				t.Fatal(err)
			}
			p := newPhone(t, version, func(c *Config) { c.Latency, c.Clock, c.Sleep, c.Screen = 1, nil, nil, engine })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if status := p.Run(ctx, "input swipe 300 900 300 500 3000", nil, io.Discard, io.Discard); status != exitKilled {
				t.Errorf("status %d", status)
			}
			if !engine.FingerDown() {
				t.Errorf("Android %d: no finger in the middle of a swipe", version)
			}
			time.Sleep(3 * time.Second)
			if engine.FingerDown() != stays {
				t.Errorf("Android %d: finger down %t, want %t", version, engine.FingerDown(), stays)
			}
			if stays {
				return
			}
			p.ok("input motionevent DOWN 300 900; input motionevent MOVE 300 800")
			if !engine.FingerDown() {
				t.Error("no finger after DOWN and MOVE")
			}
			p.ok("input motionevent CANCEL")
			if engine.FingerDown() {
				t.Error("a finger after CANCEL")
			}
		})
	}
}

func TestSelectAllByKeyCombination(t *testing.T) {
	p, engine := realPhone(t, 14)
	focusSearch(p, engine)
	p.ok("input text old; input keycombination CTRL_LEFT A; input text new")
	if got := find(engine.Tree(), searchField).Text; got != "new" {
		t.Errorf("field holds %q", got)
	}
	q, engine := realPhone(t, 12)
	focusSearch(q, engine)
	q.ok("input text old; input keycombination CTRL_LEFT A; input text new")
	if got := find(engine.Tree(), searchField).Text; got != "oldanew" {
		t.Errorf("Android 12 tells the key what is held: %q", got)
	}
}

func TestRotationFollowsSettingsAndWindowManager(t *testing.T) {
	p, engine := realPhone(t, 14)
	for _, step := range []struct {
		cmd  string
		want int
	}{
		{"settings put system user_rotation 1", 1},
		{"settings put system accelerometer_rotation 1", 0},
		{"settings put system accelerometer_rotation 0", 1},
		{"wm user-rotation lock 3", 3},
		{"wm user-rotation free", 0},
		{"content insert --uri content://settings/system --bind name:s:accelerometer_rotation --bind value:i:0", 3},
	} {
		p.ok(step.cmd)
		if got := engine.Rotation(); got != step.want {
			t.Errorf("%s: rotation %d, want %d", step.cmd, got, step.want)
		}
	}
	if out := p.ok("wm user-rotation"); out != "lock 3\n" {
		t.Errorf("told %q", out)
	}
	q, engine := realPhone(t, 11)
	q.ok("wm set-user-rotation lock 1")
	if engine.Rotation() != 1 {
		t.Error("Android 11 did not turn")
	}
	if _, errOut, _ := q.sh("wm user-rotation lock 0"); errOut != "Unknown command: user-rotation\n" {
		t.Errorf("%q", errOut)
	}
}

func TestReport15_SizeIsToldUnrotated(t *testing.T) {
	p, engine := realPhone(t, 14)
	p.ok("settings put system user_rotation 1; sleep 1")
	if out := p.ok("wm size"); out != "Physical size: 720x1600\n" {
		t.Errorf("%q", out)
	}
	if size := engine.Render().Rect.Size(); size.X != 1600 || size.Y != 720 {
		t.Errorf("picture of %v", size)
	}
	wantContains(t, "dump", p.ok("uiautomator dump /dev/tty"), `<hierarchy rotation="1">`, "][1600,720]")
	wantContains(t, "displays", p.ok("dumpsys window displays"), "mCurrentRotation=ROTATION_90", "cur=1600x720")
}

func TestReport05_TextThatTheVirtualKeyboardHasNot(t *testing.T) {
	for version := range releases {
		p, engine := realPhone(t, version)
		focusSearch(p, engine)
		for _, text := range []string{"你好", "kettle😀", "é"} {
			out, errOut, status := p.sh("input text '" + text + "'")
			if out != "" || !strings.Contains(errOut, "NullPointerException: Attempt to get length of null array") || status == 0 {
				t.Errorf("Android %d: %s: %q %q %d", version, text, out, errOut, status)
			}
		}
		if got := find(engine.Tree(), searchField).Text; got != "" {
			t.Errorf("field holds %q", got)
		}
	}
}
