package runner_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/frame"
	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner/script"
	"phonerack/agent/runner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim/screen"
)

// handset is a simulated screen as perception and tools see a phone.
type handset struct {
	tools.Unsupported
	engine *screen.Engine
}

// Tree waits until the screen rests, as the phone's own dumper does.
func (h handset) Tree(ctx context.Context) ([]byte, error) {
	for range 100 {
		if h.engine.Idle() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !h.engine.Idle() {
		return nil, phone.ErrNotIdle
	}
	root := h.engine.Tree()
	if root == nil {
		return nil, phone.ErrNoRoot
	}
	var b strings.Builder
	b.WriteString(`<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation="0">`)
	writeNode(&b, root, 0)
	b.WriteString(`</hierarchy>`)
	return []byte(b.String()), ctx.Err()
}

func writeNode(b *strings.Builder, n *screen.Node, index int) {
	escape := func(s string) string {
		var e strings.Builder
		if err := xml.EscapeText(&e, []byte(s)); err != nil {
			panic(err)
		}
		return e.String()
	}
	fmt.Fprintf(b, `<node index="%d" text="%s" resource-id="%s" class="%s" package="%s" content-desc="%s" hint="%s"`,
		index, escape(n.Text), escape(n.ResourceID), escape(n.Class), escape(n.Package), escape(n.Desc), escape(n.Hint))
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"checkable", n.Checkable},
		{"checked", n.Checked},
		{"clickable", n.Clickable},
		{"enabled", n.Enabled},
		{"focusable", n.Focusable},
		{"focused", n.Focused},
		{"scrollable", n.Scrollable},
		{"long-clickable", n.LongClickable},
		{"password", n.Password},
		{"selected", n.Selected},
	} {
		fmt.Fprintf(b, ` %s="%t"`, f.name, f.on)
	}
	fmt.Fprintf(b, ` bounds="[%d,%d][%d,%d]">`, n.Bounds.Min.X, n.Bounds.Min.Y, n.Bounds.Max.X, n.Bounds.Max.Y)
	for i, c := range n.Children {
		writeNode(b, c, i)
	}
	b.WriteString(`</node>`)
}

// Screenshot is not what these tests are about.
func (h handset) Screenshot(context.Context) (*frame.Picture, error) {
	return &frame.Picture{Size: image.Pt(9, 20), Source: image.Pt(9, 20)}, nil
}

func (h handset) State(context.Context) phone.State {
	s := phone.State{
		Display:  phone.Display{Width: 1080, Height: 2400, Density: 420},
		Keyboard: phone.Keyboard{Shown: h.engine.Keyboard()},
		LockErr:  errors.ErrUnsupported, WindowsErr: errors.ErrUnsupported,
	}
	pkg, activity := h.engine.Focus()
	if pkg == "" {
		s.FocusErr = phone.ErrInTransition
		return s
	}
	s.Focus = phone.Focus{Package: pkg, Activity: activity}
	return s
}

func (h handset) Tap(_ context.Context, x, y int) error {
	h.engine.Tap(x, y)
	return nil
}

func (h handset) LongPress(_ context.Context, x, y int, _ time.Duration) error {
	h.engine.LongPress(x, y)
	return nil
}

func (h handset) Swipe(_ context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	h.engine.Swipe(x1, y1, x2, y2, d)
	return nil
}

// InputText takes ASCII alone, like the input command of a phone.
func (h handset) InputText(_ context.Context, text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return phone.ErrCannotType
	}
	return h.engine.Type(text)
}

func (h handset) Key(_ context.Context, name string) error {
	h.engine.Key(map[string]int{"home": 3, "back": 4, "enter": 66, "delete": 67}[name])
	return nil
}

func (h handset) Launch(_ context.Context, pkg string) error { return h.engine.Launch(pkg) }

var _ perception.Source = handset{}

// TestShippedRulesReachTheirGoals runs the loop with the shipped rules against
// the simulated apps and asks the apps what happened.
func TestShippedRulesReachTheirGoals(t *testing.T) {
	rules, err := script.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		language, goal, journal string
		seeds                   int64 // 0: the goal cannot be reached
	}{
		{"en", "search the shop for a kettle and put it in the basket", "basket: Kettle x1", 6},
		{"en", "Search the shop for the desk lamp and add it to my cart", "basket: Desk lamp x1", 3},
		{"ar", "ابحث في المتجر عن غلاية وضعها في السلة", "basket: Kettle x1", 3},
		{"zh", "在商店搜索水壶并放入购物车", "basket: Kettle x1", 3},
		{"en", "search the shop for a submarine and put it in the basket", "", 0},
		{"en", "send the message 'hi' to Nobody", "", 0},
		{"en", "turn on the coffee machine", "", 0},
		{"ar", "أرسل الرسالة «مرحبا» إلى بافل", "", 0},
		{"en", "Send the message 'hello, I am late' to Mei Lin", "message sent to Mei Lin: hello, I am late", 1},
		{"en", "send the message 'it is 100% ready' to Wang Fang.", "message sent to Wang Fang: it is 100% ready", 1},
		{"ar", "أرسل الرسالة «hello» إلى بافل", "message sent to Pavel: hello", 1},
		{"zh", "给王芳发消息“see you at 7”", "message sent to Wang Fang: see you at 7", 1},
		{"en", "turn on Bluetooth", "bluetooth: on", 1},
		{"en", "Turn Wi-Fi off in the settings.", "wifi: off", 1},
		{"en", "switch on the dark theme", "dark theme: on", 1},
		{"en", "turn off location", "location: off", 1},
		{"ar", "شغّل البلوتوث", "bluetooth: on", 1},
		{"zh", "打开飞行模式", "airplane mode: on", 1},
	} {
		outcome := runner.Succeeded
		if c.seeds == 0 {
			outcome = runner.Failed
		}
		for seed := range max(c.seeds, 1) {
			t.Run(fmt.Sprintf("%s seed %d", c.goal, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine, err := screen.New(screen.Config{Language: c.language, Seed: seed})
					if err != nil {
						t.Fatal(err)
					}
					h := handset{engine: engine}
					var steps strings.Builder
					r := &runner.Runner{
						Observer: perception.NewObserver(h, perception.Options{}), Controls: h, Planner: rules, Slot: 1,
						OnStep: func(s runner.Step) {
							fmt.Fprintf(&steps, "%d %s %s on %s: %s, %s\n", s.N, s.Tool, s.Arguments, s.Target, s.Outcome, s.Effect)
						},
					}
					result, err := r.Run(t.Context(), runner.Task{Goal: c.goal})
					if err != nil {
						t.Fatal(err)
					}
					journal := strings.Join(engine.Journal(), "; ")
					if result.Outcome != outcome || outcome == runner.Failed && result.Refusal.Code != wire.TaskFailed || journal != c.journal {
						t.Errorf("%s: %s; the apps say %q, want %q\n%s", result.Outcome, result.Message, journal, c.journal, steps.String())
					}
				})
			})
		}
	}
}
