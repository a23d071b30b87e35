package android

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/usb/phonesim/screen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeScreen is a Display with two apps that keeps what was done to it.
type fakeScreen struct {
	mu       sync.Mutex // guards all
	did      []string
	front    string
	running  []string
	keyboard bool
	restless bool
	moving   bool
	on       bool
	tree     *screen.Node
	geometry screen.Display
	typing   screen.Typing
}

func newFakeScreen() *fakeScreen {
	return &fakeScreen{
		on: true, front: "com.phonerack.home", running: []string{"com.phonerack.home"}, tree: sampleTree(),
		geometry: screen.Display{Physical: image.Pt(108, 240), PhysicalDensity: 42, Density: 42, Width: 108, Height: 240},
	}
}

func sampleTree() *screen.Node {
	node := func(class, id, text string, r image.Rectangle, children ...*screen.Node) *screen.Node {
		if id != "" {
			id = "com.phonerack.shop:id/" + id
		}
		return &screen.Node{
			Class: "android." + class, ResourceID: id, Text: text, Package: "com.phonerack.shop", Enabled: true, Bounds: r, Children: children,
		}
	}
	search := node("widget.EditText", "search", "", image.Rect(0, 10, 108, 30))
	search.Hint, search.Clickable, search.Focusable, search.Focused, search.LongClickable = "Search", true, true, true, true
	pin := node("widget.EditText", "pin", "12345", image.Rect(0, 30, 108, 50))
	pin.Password, pin.Focusable, pin.Clickable = true, true, true
	icon := node("widget.ImageButton", "cart", "", image.Rect(80, 50, 108, 70))
	icon.Clickable, icon.Focusable = true, true
	box := node("widget.CheckBox", "agree", `I "agree" & it's <ok>`, image.Rect(0, 70, 108, 90))
	box.Checkable, box.Checked, box.Clickable = true, true, true
	odd := node("widget.TextView", "odd", "caf\u00e9 \u4e2d\U0001F600\nnew\x01", image.Rect(0, 90, 108, 110))
	gone := node("widget.TextView", "gone", "not seen", image.Rectangle{})
	row := node("widget.LinearLayout", "", "", image.Rect(0, 50, 108, 110), icon, gone, box, odd)
	return node("widget.FrameLayout", "", "", image.Rect(0, 0, 108, 240), search, pin, row)
}

func (f *fakeScreen) do(format string, a ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf(format, a...))
}

// take returns what was done since the last time.
func (f *fakeScreen) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.did, "; ")
	f.did = nil
	return s
}

func (f *fakeScreen) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fakeScreen) Tap(x, y int) { f.do("tap %d %d", x, y) }
func (f *fakeScreen) StartSwipe(x1, y1, x2, y2 int, d, lasts time.Duration) {
	f.do("swipe %d %d %d %d %v", x1, y1, x2, y2, d)
}

func (f *fakeScreen) Touch(a screen.TouchAction, x, y int) {
	f.do("%s %d %d", [...]string{"down", "move", "up", "cancel"}[a], x, y)
}
func (f *fakeScreen) SetKeyguard(screen.Keyguard) {}
func (f *fakeScreen) DismissKeyguard()            {}
func (f *fakeScreen) Locked() bool                { return false }

func (f *fakeScreen) Windows() []screen.Window {
	bar := image.Rect(0, 0, 108, 10)
	list := []screen.Window{{Kind: screen.StatusBarWindow, Package: "com.android.systemui", Frame: bar, Touchable: bar, Visible: true}}
	keys := screen.Window{Kind: screen.KeyboardWindow, Frame: image.Rect(0, 10, 108, 240)}
	if f.Keyboard() {
		keys.Visible, keys.Touchable = true, image.Rect(0, 150, 108, 240)
	}
	pkg, activity := f.Focus()
	app := screen.Window{Kind: screen.AppWindow, Package: pkg, Activity: activity, Frame: image.Rect(0, 0, 108, 240), Visible: true, Focused: true}
	return append(list, keys, app)
}

func (f *fakeScreen) Shortcut(code int)         { f.do("ctrl %d", code) }
func (f *fakeScreen) SetTyping(t screen.Typing) { f.set(func() { f.typing = t }) }
func (f *fakeScreen) Type(text string) error    { f.do("type %q", text); return nil }
func (f *fakeScreen) Key(code int)              { f.do("key %d", code) }

func (f *fakeScreen) Launch(pkg string) error {
	f.do("launch %s", pkg)
	f.set(func() {
		f.front = pkg
		f.running = append([]string{pkg}, slices.DeleteFunc(f.running, func(s string) bool { return s == pkg })...)
	})
	return nil
}

func (f *fakeScreen) Stop(pkg string) {
	f.do("stop %s", pkg)
	f.set(func() {
		f.running = slices.DeleteFunc(f.running, func(s string) bool { return s == pkg })
		if f.front == pkg {
			f.front = "com.phonerack.home"
		}
	})
}
func (f *fakeScreen) Clear(pkg string) error { f.do("clear %s", pkg); return nil }

func (f *fakeScreen) Install(p screen.Package) error     { f.do("install %s", p.Name); return nil }
func (f *fakeScreen) Uninstall(pkg string, _ bool) error { f.do("uninstall %s", pkg); return nil }

func (f *fakeScreen) Packages() []screen.Package {
	return []screen.Package{
		{Name: "com.android.settings", Label: "Settings", Activity: ".Settings", Version: "1.0"},
		{Name: "com.phonerack.home", Label: "Launcher", Activity: "com.phonerack.home.Home", Version: "1.0", System: true},
		{Name: "com.phonerack.shop", Label: "Shop", Activity: ".MainActivity", Version: "2.1.3"},
	}
}

func (f *fakeScreen) Running() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.running)
}

func (f *fakeScreen) Focus() (string, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moving {
		return "", ""
	}
	for _, p := range f.Packages() {
		if p.Name == f.front {
			return p.Name, p.Activity
		}
	}
	return "", ""
}

func (f *fakeScreen) Keyboard() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keyboard
}

func (f *fakeScreen) Idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.restless
}

func (f *fakeScreen) Display() screen.Display {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.geometry
	g.On = f.on
	return g
}

func (f *fakeScreen) SetSize(w, h int) error {
	f.set(func() {
		f.geometry.Override = image.Pt(w, h)
		f.geometry.Width, f.geometry.Height = max(w, 108), max(h, 240)
	})
	return nil
}

func (f *fakeScreen) SetDensity(d int) error {
	f.set(func() { f.geometry.OverrideDensity, f.geometry.Density = d, max(d, 42) })
	return nil
}

func (f *fakeScreen) SetRotation(q int)             { f.set(func() { f.geometry.Rotation = q }) }
func (f *fakeScreen) SetScreenOn(on bool)           { f.set(func() { f.on = on }) }
func (f *fakeScreen) SetBattery(level int, on bool) { f.do("battery %d %t", level, on) }
func (f *fakeScreen) SetAnimationScale(s float64)   { f.do("animation %g", s) }

func (f *fakeScreen) ScreenOn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.on
}

func (f *fakeScreen) Tree() *screen.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on {
		return nil
	}
	return f.tree
}

func (f *fakeScreen) TakeGrants() []screen.Grant  { return nil }
func (f *fakeScreen) Typing() bool                { return f.Keyboard() }
func (f *fakeScreen) Commit(text string) error    { f.do("commit %q", text); return nil }
func (f *fakeScreen) Trees() []*screen.Node       { return []*screen.Node{f.Tree()} }
func (f *fakeScreen) Clipboard() string           { return "" }
func (f *fakeScreen) SetClipboard(s string) error { f.do("clipboard %q", s); return nil }

func (f *fakeScreen) Render() *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, 108, 240))
	for y := range 240 {
		for x := range 108 {
			img.SetRGBA(x, y, color.RGBA{uint8(x), uint8(y), 7, 255})
		}
	}
	return img
}

// clock is a time that passes by sleeping only.
type clock struct {
	mu sync.Mutex // guards t
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.t = c.t.Add(d)
	c.mu.Unlock()
	return ctx.Err()
}

// phone is a Device on a fake screen and a clock of its own.
type phone struct {
	*Device
	t      testing.TB
	screen *fakeScreen
	clock  *clock
}

func newPhone(t testing.TB, version int, change func(*Config)) *phone {
	t.Helper()
	p := &phone{t: t, screen: newFakeScreen(), clock: newClock()}
	c := Config{
		Version: version, Serial: "SIM42", Model: "Rack One", Manufacturer: "phonerack", Name: "rackone",
		Screen: p.screen, Clock: p.clock.Now, Sleep: p.clock.Sleep, Storage: 64 << 20, Seed: 7,
	}
	if change != nil {
		change(&c)
	}
	var err error
	if p.Device, err = New(c); err != nil {
		t.Fatal(err)
	}
	p.screen.take()
	return p
}

// sh runs a command line.
func (p *phone) sh(cmd string) (stdout, stderr string, status int) {
	p.t.Helper()
	var out, errOut bytes.Buffer
	status = p.Run(p.t.Context(), cmd, nil, &out, &errOut)
	return out.String(), errOut.String(), status
}

// ok runs a command line that must succeed without a word on standard error.
func (p *phone) ok(cmd string) string {
	p.t.Helper()
	out, errOut, status := p.sh(cmd)
	if status != 0 || errOut != "" {
		p.t.Errorf("%s: status %d, %q", cmd, status, errOut)
	}
	return out
}

func (p *phone) fault(fn func(*Faults)) { p.ChangeFaults(fn) }

func wantContains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is missing in\n%s", what, part, text)
		}
	}
}
