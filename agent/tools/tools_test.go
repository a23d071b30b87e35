package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ Controls = (*phone.Controls)(nil)

// finger notes the writes; fail is what a write returns, by its first word.
type finger struct {
	Unsupported
	did  []string
	fail map[string]error
}

func (f *finger) do(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	f.did = append(f.did, line)
	word, _, _ := strings.Cut(line, " ")
	return f.fail[word]
}

func (f *finger) Tap(_ context.Context, x, y int) error { return f.do("tap %d,%d", x, y) }

func (f *finger) LongPress(_ context.Context, x, y int, d time.Duration) error {
	return f.do("press %d,%d %s", x, y, d)
}

func (f *finger) Swipe(_ context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	return f.do("swipe %d,%d %d,%d %s", x1, y1, x2, y2, d)
}

func (f *finger) InputText(_ context.Context, text string) error { return f.do("type %s", text) }

func (f *finger) Key(_ context.Context, name string) error { return f.do("key %s", name) }

func (f *finger) Launch(_ context.Context, pkg string) error { return f.do("launch %s", pkg) }

// shop is a screen with a row that holds a button, a field, something greyed
// out, something off the screen and something at the bottom.
func shop(keyboard bool) *perception.Scene {
	s := &perception.Scene{Generation: 7, Width: 1000, Height: 2000, Keyboard: keyboard}
	add := func(e perception.Element, x1, y1, x2, y2 int) {
		e.Index, e.Bounds = len(s.Elements), image.Rect(x1, y1, x2, y2)
		s.Elements = append(s.Elements, e)
	}
	add(perception.Element{Role: "item", Clickable: true, Enabled: true}, 0, 400, 1000, 600)                              // 0
	add(perception.Element{Role: "button", Text: "Add", Clickable: true, Enabled: true}, 400, 440, 600, 560)              // 1
	add(perception.Element{Role: "edit", ID: "a:id/q", Editable: true, Clickable: true, Enabled: true}, 0, 100, 800, 200) // 2
	add(perception.Element{Role: "button", Text: "Buy", Clickable: true}, 0, 700, 200, 800)                               // 3
	add(perception.Element{Role: "button", Text: "Gone", Clickable: true, Enabled: true}, 0, 2100, 200, 2200)             // 4
	add(perception.Element{Role: "button", Text: "Pay", Clickable: true, Enabled: true}, 0, 1800, 1000, 2000)             // 5
	add(perception.Element{Role: "list", Scrollable: true, Enabled: true}, 0, 1000, 1000, 2000)                           // 6
	return s
}

func execute(t *testing.T, f *finger, s *perception.Scene, tool, args string) (Outcome, error) {
	t.Helper()
	look := func(context.Context) (*perception.Scene, error) { return nil, errors.New("no look is expected") }
	return Default().Execute(t.Context(), Env{Controls: f, Scene: s, Look: look, Slot: 3}, planner.Decision{Tool: tool, Arguments: json.RawMessage(args)})
}

func TestTools(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		did        []string
		points     []image.Point
	}{
		{"tap", `{"element":1,"generation":7}`, []string{"tap 500,500"}, []image.Point{{X: 500, Y: 500}}},
		{"tap", `{"element":0,"generation":7}`, []string{"tap 500,420"}, []image.Point{{X: 500, Y: 420}}}, // beside the button
		{"long_press", `{"element":5,"generation":7}`, []string{"press 500,1900 800ms"}, []image.Point{{X: 500, Y: 1900}}},
		{"swipe", `{"direction":"up"}`, []string{"swipe 500,1600 500,400 400ms"}, []image.Point{{X: 500, Y: 1600}, {X: 500, Y: 400}}},
		{"swipe", `{"direction":"left","element":6,"generation":7}`, []string{"swipe 800,1500 200,1500 400ms"}, []image.Point{{X: 800, Y: 1500}, {X: 200, Y: 1500}}},
		{"press_key", `{"key":"back"}`, []string{"key back"}, nil},
		{"launch_app", `{"package":"com.phonerack.shop"}`, []string{"launch com.phonerack.shop"}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &finger{}
			out, err := execute(t, f, shop(false), c.tool, c.args)
			if err != nil || !slices.Equal(f.did, c.did) || !slices.Equal(out.Points, c.points) {
				t.Errorf("%s %s: did %q at %v, %v", c.tool, c.args, f.did, out.Points, err)
			}
			if !out.Wrote || !out.Settle || out.Unknown || out.Finished || out.Tool != c.tool {
				t.Errorf("%s %s: %+v", c.tool, c.args, out)
			}
		})
	}
}

func TestRefusedActsSendNothing(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		keyboard   bool
		code       wire.Code
		want       string
	}{
		{"fly", `{}`, false, wire.UnknownTool, "no tool fly"},
		{"tap", `{"element":1}`, false, wire.BadArguments, "$.generation is missing"},
		{"tap", `{"element":1,"generation":7,"x":5}`, false, wire.BadArguments, "x and y together"},
		{"tap", `{"element":1,"generation":6}`, false, wire.StaleElement, "observe again"},
		{"tap", `{"element":9,"generation":7}`, false, wire.UnknownElement, "observe again"},
		{"tap", `{"element":3,"generation":7}`, false, wire.ElementDisabled, "disabled"},
		{"tap", `{"element":4,"generation":7}`, false, wire.ElementHidden, "outside the screen"},
		{"tap", `{"element":5,"generation":7}`, true, wire.ElementHidden, "keyboard covers it"},
		{"swipe", `{"direction":"up","element":6}`, false, wire.BadArguments, "together"},
		{"swipe", `{"direction":"sideways"}`, false, wire.BadArguments, `one of "up"`},
		{"input_text", `{"text":"x"}`, false, wire.CannotType, "names none"},
		{"input_text", `{"text":"x","element":1,"generation":7}`, false, wire.CannotType, "not a field"},
		{"input_text", `{"text":""}`, false, wire.BadArguments, "at least 1"},
		{"press_key", `{"key":"power"}`, false, wire.BadArguments, "one of"},
		{"launch_app", `{"package":"x; reboot"}`, false, wire.BadArguments, "not a package name"},
		{"wait", `{"ms":99}`, false, wire.BadArguments, "at least 100"},
		{"wait", `{"ms":10001}`, false, wire.BadArguments, "at most 10000"},
		{"finish", `{"success":true}`, false, wire.BadArguments, "$.message"},
	} {
		f := &finger{}
		out, err := execute(t, f, shop(c.keyboard), c.tool, c.args)
		if !wire.Is(err, c.code) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s with %q", c.tool, c.args, err, c.code, c.want)
		}
		if len(f.did) > 0 || out.Wrote || out.Unknown {
			t.Errorf("%s %s: did %q, %+v", c.tool, c.args, f.did, out)
		}
	}
}

func TestKeyboardLeavesTheUpperPartToTouch(t *testing.T) {
	f := &finger{}
	if _, err := execute(t, f, shop(true), "swipe", `{"direction":"down","element":6,"generation":7}`); err != nil {
		t.Fatal(err)
	}
	if want := []string{"swipe 500,1040 500,1160 400ms"}; !slices.Equal(f.did, want) { // 1000 to 1200 is free
		t.Errorf("did %q, want %q", f.did, want)
	}
	s := shop(true) // an app that makes room: its send button stands on the keyboard
	s.Elements = s.Elements[:4]
	s.Elements[1].Bounds = image.Rect(800, 1300, 1000, 1400)
	f = &finger{}
	if _, err := execute(t, f, s, "tap", `{"element":1,"generation":7}`); err != nil || !slices.Equal(f.did, []string{"tap 900,1350"}) {
		t.Errorf("did %q, %v", f.did, err)
	}
}

func TestWriteErrors(t *testing.T) {
	fence := wire.Refuse(wire.NotLeased, map[string]any{"slot": 3})
	for _, c := range []struct {
		err            error
		code           wire.Code
		wrote, unknown bool
	}{
		{fmt.Errorf("tap: %w: %w", phone.ErrUnknownOutcome, context.DeadlineExceeded), wire.OutcomeUnknown, true, true},
		{fence, wire.NotLeased, false, false},
		{fmt.Errorf("type: %w: %w", phone.ErrPartlyTyped, fence), wire.PartlyTyped, true, false},
		{fmt.Errorf("type: %w: %w", phone.ErrPartlyTyped, phone.ErrUnknownOutcome), wire.OutcomeUnknown, true, true},
		{fmt.Errorf("type: %w: %w", phone.ErrPartlyTyped, phone.ErrRejected), wire.PartlyTyped, true, false},
		{phone.ErrCannotType, wire.CannotType, false, false},
		{phone.ErrDeviceSetup, wire.PhoneSetup, false, false},
		{phone.ErrOffScreen, wire.BadArguments, false, false},
		{phone.ErrNoFence, wire.NotLeased, false, false},
		{phone.ErrRejected, wire.PhoneRejected, true, false},
		{errors.New("read display: broken"), wire.ObservationFailed, false, false},
		{fmt.Errorf("read display: %w", context.DeadlineExceeded), wire.ObservationFailed, false, false}, // the inner deadline
	} {
		f := &finger{fail: map[string]error{"tap": c.err}}
		out, err := execute(t, f, shop(false), "tap", `{"element":1,"generation":7}`)
		if !wire.Is(err, c.code) || !errors.Is(err, c.err) || out.Wrote != c.wrote || out.Unknown != c.unknown || out.Settle != c.wrote {
			t.Errorf("%v: got %v, %+v", c.err, err, out)
		}
	}
	f := &finger{fail: map[string]error{"launch": fmt.Errorf("launch: %w", phone.ErrAppMissing)}}
	if _, err := execute(t, f, shop(false), "launch_app", `{"package":"a.b"}`); !wire.Is(err, wire.AppMissing) || wire.From(err).Args["app"] != "a.b" {
		t.Error(err)
	}
	if _, err := Default().Execute(t.Context(), Env{Scene: shop(false)}, planner.Decision{Tool: "press_key", Arguments: json.RawMessage(`{"key":"back"}`)}); !wire.Is(err, wire.NotLeased) {
		t.Error(err)
	}
}

func TestWaitAndFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		out, err := execute(t, &finger{}, shop(false), "wait", `{"ms":2500}`)
		if err != nil || time.Since(begun) != 2500*time.Millisecond || out.Wrote || out.Settle {
			t.Error(out, err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = Default().Execute(ctx, Env{Scene: shop(false)}, planner.Decision{Tool: "wait", Arguments: json.RawMessage(`{"ms":9000}`)})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		out, err = execute(t, &finger{}, shop(false), "finish", `{"success":true,"message":"kettle is in the basket"}`)
		if err != nil || !out.Finished || !out.Success || out.Message != "kettle is in the basket" || out.Wrote {
			t.Error(out, err)
		}
	})
}

func TestEveryToolIsWellFormed(t *testing.T) {
	r := Default()
	if len(r.Offer(Permissions()...)) != 23 || len(r.tools) != 23 {
		t.Errorf("%d tools", len(r.Offer()))
	}
	for _, tool := range r.tools {
		s, err := planner.ParseSchema(tool.Schema)
		if err != nil {
			t.Errorf("%s: %v", tool.Name, err)
			continue
		}
		if s.AdditionalProperties || tool.Description == "" || tool.Role == "" || tool.Annotations.ReadOnly && tool.Annotations.Destructive {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
		if key := s.Properties["key"]; key != nil {
			for _, k := range key.Enum {
				if !slices.Contains(phone.Keys(), k.(string)) {
					t.Errorf("phones have no key %v", k)
				}
			}
		}
	}
}
