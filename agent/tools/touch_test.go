package tools_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"testing"

	"phonerack/agent/frame"
	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

func picture(w, h int) *frame.Picture {
	return &frame.Picture{Size: image.Pt(w, h), Source: image.Pt(2*w, 2*h)}
}

func TestActsOfOneWrite(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		did        string
		points     []image.Point
	}{
		{"tap", `{"element":1,"generation":1}`, "tap 500,500", []image.Point{{X: 500, Y: 500}}},
		{"tap", `{"element":0,"generation":1}`, "tap 500,420", []image.Point{{X: 500, Y: 420}}}, // beside the button
		{"double_tap", `{"element":1,"generation":1}`, "double tap 500,500", []image.Point{{X: 500, Y: 500}}},
		{"long_press", `{"element":5,"generation":1}`, "long press 500,1900 800ms", []image.Point{{X: 500, Y: 1900}}},
		{"swipe", `{"direction":"up"}`, "swipe 500,1600 500,400 400ms", []image.Point{{X: 500, Y: 1600}, {X: 500, Y: 400}}},
		{"swipe", `{"direction":"left","element":6,"generation":1}`, "swipe 800,1400 200,1400 400ms", []image.Point{{X: 800, Y: 1400}, {X: 200, Y: 1400}}},
		{"press_key", `{"key":"back"}`, "key back", nil},
		{"launch_app", `{"package":"com.phonerack.shop"}`, "launch com.phonerack.shop", nil},
		{"stop_app", `{"package":"com.phonerack.shop"}`, "stop com.phonerack.shop", nil},
		{"set_clipboard", `{"text":"5 kg"}`, "clipboard 5 kg", nil},
		{"open_url", `{"url":"https://example.org/a?b=c#d"}`, "open https://example.org/a?b=c#d", nil},
		{"open_url", `{"url":"tel:+4930123","package":"com.a.dialer"}`, "open tel:+4930123 in com.a.dialer", nil},
	} {
		p := toolstest.New(shop())
		out, err := do(t, everything(p.Env()), c.tool, c.args)
		if err != nil || !slices.Equal(p.Acts(), []string{c.did}) || !slices.Equal(out.Points, c.points) {
			t.Errorf("%s %s: did %q at %v, %v", c.tool, c.args, p.Acts(), out.Points, err)
		}
		if !out.Wrote || !out.Settle || out.Unknown || out.Finished || out.Scene != nil || out.Tool != c.tool {
			t.Errorf("%s %s: %+v", c.tool, c.args, out)
		}
	}
}

func TestRefusedActsSendNothing(t *testing.T) {
	shut := func() *perception.Scene { return withKeyboard(shop()) }
	for _, c := range []struct {
		tool, args string
		scene      func() *perception.Scene
		code       wire.Code
		want       string
	}{
		{"fly", `{}`, shop, wire.UnknownTool, "no tool fly"},
		{"tap", `{"element":1}`, shop, wire.BadArguments, "$.generation is missing"},
		{"tap", `{"generation":1}`, shop, wire.BadArguments, "$.element is missing"},
		{"tap", `{"element":1,"generation":1,"force":5}`, shop, wire.BadArguments, "$.force"},
		{"tap", `{"element":1,"generation":7}`, shop, wire.StaleElement, "observe again"},
		{"tap", `{"element":9,"generation":1}`, shop, wire.UnknownElement, "observe again"},
		{"tap", `{"element":3,"generation":1}`, shop, wire.ElementDisabled, "disabled"},
		{"double_tap", `{"element":3,"generation":1}`, shop, wire.ElementDisabled, "disabled"},
		{"long_press", `{"element":4,"generation":1}`, shop, wire.ElementHidden, "outside the screen"},
		{"tap", `{"element":5,"generation":1}`, shut, wire.ElementHidden, "keyboard covers it"},
		{"swipe", `{"direction":"up","element":6}`, shop, wire.BadArguments, "together"},
		{"swipe", `{"direction":"sideways"}`, shop, wire.BadArguments, `one of "up"`},
		{"swipe", `{"direction":"up"}`, func() *perception.Scene { return &perception.Scene{Width: -1} }, wire.ObservationFailed, "size of the display"},
		{"press_key", `{"key":"power"}`, shop, wire.BadArguments, "one of"},
		{"launch_app", `{"package":"x; reboot"}`, shop, wire.BadArguments, "not a package name"},
		{"stop_app", `{"package":"com.shop' '"}`, shop, wire.BadArguments, "not a package name"},
		{"open_url", `{"url":"https://a.example","package":"-n a/b"}`, shop, wire.BadArguments, "not a package name"},

		// Points, where the screen has elements to name, and elsewhere.
		{"tap", `{"x":10,"y":10,"generation":1}`, shop, wire.PointRefused, "has elements to name"},
		{"double_tap", `{"x":10,"y":10,"generation":1}`, shop, wire.PointRefused, "has elements to name"},
		{"long_press", `{"x":10,"y":10,"generation":1}`, shop, wire.PointRefused, "has elements to name"},
		{"swipe", `{"direction":"up","x":10,"y":10,"generation":1}`, shop, wire.PointRefused, "has elements to name"},
		{"tap", `{"x":500,"y":10,"generation":1}`, game, wire.PointRefused, "outside the picture"},
		{"tap", `{"x":10,"y":10,"generation":2}`, game, wire.PointRefused, "screen 2 while screen 1"},
		{"tap", `{"x":10,"generation":1}`, game, wire.BadArguments, "x and y together"},
		{"tap", `{"x":10,"y":10}`, game, wire.BadArguments, "$.generation"},
		{"tap", `{"x":10,"y":10,"element":0,"generation":1}`, game, wire.BadArguments, "either element or x and y"},
		{"swipe", `{"direction":"up","x":10,"y":10}`, game, wire.BadArguments, "$.generation"},
		{"swipe", `{"direction":"up","x":250,"y":20,"generation":1}`, game, wire.PointRefused, "at the edge"},
	} {
		p := toolstest.New(c.scene())
		out, err := do(t, everything(p.Env()), c.tool, c.args)
		t.Run(c.tool+c.args, func(t *testing.T) {
			wantRefusal(t, err, c.code, c.want)
			wantNothing(t, p, out)
		})
	}
}

func TestPointsOfAScreenWithoutATree(t *testing.T) {
	for _, c := range []struct{ tool, args, did string }{
		{"tap", `{"x":250,"y":100,"generation":1}`, "tap 501,201"}, // the middle of the pixel
		{"double_tap", `{"x":0,"y":999,"generation":1}`, "double tap 1,1999"},
		{"long_press", `{"x":499,"y":0,"generation":1}`, "long press 999,1 800ms"},
		{"swipe", `{"direction":"up","x":250,"y":800,"generation":1}`, "swipe 501,1601 501,1001 400ms"},
		{"swipe", `{"direction":"down","x":250,"y":800,"generation":1}`, "swipe 501,1601 501,1900 400ms"}, // ends before the edge
		{"swipe", `{"direction":"right","x":100,"y":500,"generation":1}`, "swipe 201,1001 501,1001 400ms"},
	} {
		p := toolstest.New(game())
		out, err := do(t, p.Env(), c.tool, c.args)
		if err != nil || !slices.Equal(p.Acts(), []string{c.did}) || out.Target != nil {
			t.Errorf("%s %s: %q, %v", c.tool, c.args, p.Acts(), err)
		}
	}
}

func TestKeyboardLeavesTheRestToTouch(t *testing.T) {
	tap := func(s *perception.Scene, element int) (string, error) {
		p := toolstest.New(s)
		_, err := do(t, p.Env(), "tap", fmt.Sprintf(`{"element":%d,"generation":1}`, element))
		return fmt.Sprint(p.Acts()), err
	}
	guessed := withKeyboard(shop()) // two fifths of the display
	p := toolstest.New(guessed)
	if _, err := do(t, p.Env(), "swipe", `{"direction":"down","element":6,"generation":1}`); err != nil || p.Acts()[0] != "swipe 500,1040 500,1160 400ms" {
		t.Errorf("did %q, %v", p.Acts(), err) // 1000 to 1200 is free
	}

	room := withKeyboard(shop()) // an app that makes room: its send button stands on the keyboard
	room.Elements = room.Elements[:4]
	room.Elements[1].Bounds = image.Rect(800, 1300, 1000, 1400)
	if did, err := tap(room, 1); did != "[tap 900,1350]" {
		t.Errorf("did %s, %v", did, err)
	}

	known := withKeyboard(shop())
	known.KeyboardArea = image.Rect(0, 1900, 1000, 2000) // a low one: half of Pay is free
	if did, err := tap(known, 5); did != "[tap 500,1850]" {
		t.Errorf("did %s, %v", did, err)
	}
	known.KeyboardArea = image.Rect(0, 1700, 1000, 2000)
	_, err := tap(known, 5)
	wantRefusal(t, err, wire.ElementHidden, "keyboard covers it")
	known.KeyboardArea = image.Rect(0, 1000, 1000, 1500) // one that floats
	if did, err := tap(known, 5); did != "[tap 500,1900]" {
		t.Errorf("did %s, %v", did, err)
	}
}

// An element's own child is no cover of it, mobilerun#199.
func TestReport07_OwnChildIsNoCover(t *testing.T) {
	row := perception.Element{Role: "item", Clickable: true, Enabled: true}
	part := perception.Element{Role: "button", Clickable: true, Enabled: true}
	halves := sceneOf(at{0, 400, 1000, 600}, row, at{0, 400, 500, 600}, part, at{500, 400, 1000, 600}, part)
	p := toolstest.New(halves)
	if _, err := do(t, p.Env(), "tap", `{"element":0,"generation":1}`); err != nil || len(p.Acts()) != 1 {
		t.Errorf("did %q, %v", p.Acts(), err)
	}
}

func TestWhatLiesOverAnElementIsNotTouched(t *testing.T) {
	button := perception.Element{Role: "button", Text: "Pay", Clickable: true, Enabled: true}
	words := perception.Element{Role: "text", Text: "Pay", Enabled: true}
	sheet := perception.Element{Role: "view", Clickable: true, Enabled: true}
	half := sceneOf(at{0, 400, 1000, 600}, button, at{0, 300, 700, 2000}, sheet)
	p := toolstest.New(half)
	if _, err := do(t, p.Env(), "tap", `{"element":0,"generation":1}`); err != nil || p.Acts()[0] != "tap 700,500" {
		t.Errorf("did %q, %v", p.Acts(), err) // the corner that is free
	}
	covered := sceneOf(at{0, 400, 600, 600}, button, at{0, 300, 700, 2000}, sheet)
	p = toolstest.New(covered)
	out, err := do(t, p.Env(), "tap", `{"element":0,"generation":1}`)
	wantRefusal(t, err, wire.ElementHidden, "something else lies over it")
	wantNothing(t, p, out)

	card := sceneOf(at{100, 400, 600, 600}, words, at{0, 300, 700, 2000}, sheet) // words on a card that is touched as a whole
	p = toolstest.New(card)
	if _, err := do(t, p.Env(), "tap", `{"element":0,"generation":1}`); err != nil {
		t.Error(err)
	}

	chat := sceneOf(at{0, 400, 600, 600}, button) // another app's bubble, and one that only tints the display
	chat.Windows = []phone.Window{
		{Package: "a.tint", Kind: phone.DialogWindow, Bounds: image.Rect(0, 0, 1000, 2000)},
		{Package: "a.chat", Kind: phone.DialogWindow, Bounds: image.Rect(0, 300, 400, 900)},
		{Package: "a.shop", Kind: phone.AppWindow, Focused: true, Bounds: image.Rect(0, 0, 1000, 2000)},
		{Package: "a.below", Kind: phone.DialogWindow, Bounds: image.Rect(0, 300, 600, 900)},
	}
	p = toolstest.New(chat)
	if _, err := do(t, p.Env(), "tap", `{"element":0,"generation":1}`); err != nil || p.Acts()[0] != "tap 420,500" {
		t.Errorf("did %q, %v", p.Acts(), err)
	}
}

func TestReport20_StaleElementIsRefusedAndSaysWhatToDo(t *testing.T) {
	p := toolstest.New(shop())
	env := p.Env()
	env.Scene, _ = p.Look(t.Context()) // screen 2
	out, err := do(t, env, "tap", `{"element":1,"generation":1}`)
	wantRefusal(t, err, wire.StaleElement, "observe again and use an index of that screen")
	if !errors.Is(err, perception.ErrStale) {
		t.Error(err)
	}
	wantNothing(t, p, out)
}

// TestWriteErrors: what a failed write means.
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
		{phone.ErrLocked, wire.PhoneLocked, false, false},
		{phone.ErrRejected, wire.PhoneRejected, true, false},
		{wire.Refuse(wire.HelperFailed, map[string]any{"reason": "it died"}).Because(phone.ErrRejected), wire.HelperFailed, true, false},
		{fmt.Errorf("no way: %w", errors.ErrUnsupported), wire.Unsupported, false, false},
		{errors.New("read display: broken"), wire.ObservationFailed, false, false},
		{fmt.Errorf("read display: %w", context.DeadlineExceeded), wire.ObservationFailed, false, false}, // the inner deadline
	} {
		p := toolstest.New(shop())
		p.Refuse = func(string) error { return c.err }
		out, err := do(t, p.Env(), "tap", `{"element":1,"generation":1}`)
		wantRefusal(t, err, c.code, "")
		if !errors.Is(err, c.err) || out.Wrote != c.wrote || out.Unknown != c.unknown || out.Settle != c.wrote {
			t.Errorf("%v: got %v, %+v", c.err, err, out)
		}
	}
	p := toolstest.New(shop())
	p.Refuse = func(string) error { return fmt.Errorf("start: %w", phone.ErrAppMissing) }
	_, err := do(t, p.Env(), "launch_app", `{"package":"a.b"}`)
	wantRefusal(t, err, wire.AppMissing, "The app a.b")
	_, err = do(t, p.Env(), "open_url", `{"url":"geo:52.5,13.4"}`)
	wantRefusal(t, err, wire.AppMissing, "for such links")
	env := p.Env()
	env.Controls = nil
	_, err = do(t, env, "press_key", `{"key":"back"}`)
	wantRefusal(t, err, wire.NotLeased, "slot 3")
}

func TestAnActThatIsCancelledBeforeItIsSent(t *testing.T) {
	p := toolstest.New(shop())
	ctx, cancel := context.WithCancel(t.Context())
	p.Refuse = func(string) error {
		cancel()
		return fmt.Errorf("read display: %w", ctx.Err())
	}
	out, err := executeIn(ctx, p.Env(), "tap", `{"element":1,"generation":1}`)
	if _, refused := errors.AsType[*wire.Refusal](err); refused || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantNothing(t, p, out)
	ctx, cancel = context.WithCancel(t.Context()) // and one that may have been sent
	env := p.Env()
	p.Refuse = func(string) error { cancel(); return fmt.Errorf("tap: %w: %w", phone.ErrUnknownOutcome, ctx.Err()) }
	out, err = executeIn(ctx, env, "tap", `{"element":1,"generation":2}`)
	wantRefusal(t, err, wire.OutcomeUnknown, "")
	if !out.Wrote || !out.Unknown {
		t.Errorf("%+v", out)
	}
}

func TestUnsupportedControlsRefuse(t *testing.T) {
	p := toolstest.New(shop())
	env := everything(p.Env())
	env.Controls = tools.Unsupported{}
	for tool, args := range map[string]string{
		"tap": `{"element":1,"generation":1}`, "double_tap": `{"element":1,"generation":1}`, "long_press": `{"element":1,"generation":1}`,
		"swipe": `{"direction":"up"}`, "press_key": `{"key":"back"}`, "launch_app": `{"package":"a.b"}`, "stop_app": `{"package":"a.b"}`,
		"open_url": `{"url":"https://example.org"}`, "set_clipboard": `{"text":"x"}`, "input_text": `{"text":"x","element":2,"generation":1}`,
		"scroll_to": `{"text":"nowhere","direction":"down"}`,
	} {
		out, err := do(t, env, tool, args)
		wantRefusal(t, err, wire.Unsupported, "")
		wantNothing(t, p, out)
	}
}
