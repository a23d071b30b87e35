package tools_test

import (
	"encoding/json"
	"image"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ tools.Controls = (*phone.Controls)(nil)
	_ tools.Reads    = (*phone.Phone)(nil)
)

// scene places elements by the corners that stand before each.
type at struct{ x1, y1, x2, y2 int }

func sceneOf(elements ...any) *perception.Scene {
	s := &perception.Scene{Package: "a.shop", Activity: ".Main", Width: 1000, Height: 2000}
	for i := 0; i < len(elements); i += 2 {
		p, e := elements[i].(at), elements[i+1].(perception.Element)
		e.Bounds = image.Rect(p.x1, p.y1, p.x2, p.y2)
		s.Elements = append(s.Elements, e)
	}
	return s
}

// shop is a screen with a row that holds a button, a field, something greyed
// out, something off the screen and something at the bottom. It becomes screen 1.
func shop() *perception.Scene {
	return sceneOf(
		at{0, 400, 1000, 600}, perception.Element{Role: "item", Clickable: true, Enabled: true}, // 0
		at{400, 440, 600, 560}, perception.Element{Role: "button", Text: "Add", Clickable: true, Enabled: true}, // 1
		at{0, 100, 800, 200}, edit("a:id/q"), // 2
		at{0, 700, 200, 800}, perception.Element{Role: "button", Text: "Buy", Clickable: true}, // 3
		at{0, 2100, 200, 2200}, perception.Element{Role: "button", Text: "Gone", Clickable: true, Enabled: true}, // 4
		at{0, 1800, 1000, 2000}, perception.Element{Role: "button", Text: "Pay", Clickable: true, Enabled: true}, // 5
		at{0, 1000, 1000, 1800}, perception.Element{Role: "list", Scrollable: true, Enabled: true}, // 6
	)
}

func edit(id string) perception.Element {
	return perception.Element{Role: "edit", ID: id, Class: "android.widget.EditText", Editable: true, Clickable: true, Enabled: true}
}

// withKeyboard opens the keyboard, whose place is not known.
func withKeyboard(s *perception.Scene) *perception.Scene {
	s.Keyboard = true
	return s
}

// game is a screen that its app draws itself. Its picture is half as large.
func game() *perception.Scene {
	s := sceneOf(at{0, 0, 1000, 2000}, perception.Element{Role: "view", Class: "android.view.SurfaceView", Enabled: true})
	s.NoTree, s.Picture = perception.NoTreeDrawn, picture(500, 1000)
	return s
}

func do(t *testing.T, env tools.Env, tool, args string) (tools.Outcome, error) {
	t.Helper()
	return tools.Default().Execute(t.Context(), env, planner.Decision{Tool: tool, Arguments: json.RawMessage(args)})
}

func everything(env tools.Env) tools.Env {
	env.Permissions = tools.Permissions()
	return env
}

// wantRefusal holds an error to a code and a part of its sentence.
func wantRefusal(t *testing.T, err error, code wire.Code, part string) {
	t.Helper()
	if !wire.Is(err, code) || !strings.Contains(err.Error(), part) {
		t.Errorf("%v, want %s with %q", err, code, part)
	}
	if err != nil {
		if s := err.Error(); strings.Contains(s, "{") && strings.Contains(s, "}") && !strings.Contains(part, "{") {
			t.Errorf("an argument is missing: %s", s)
		}
	}
}

// wantNothing holds an outcome to an act that was refused before anything was sent.
func wantNothing(t *testing.T, p *toolstest.Phone, out tools.Outcome) {
	t.Helper()
	if acts := p.Acts(); len(acts) > 0 || out.Wrote || out.Unknown || out.Settle {
		t.Errorf("did %q, %+v", acts, out)
	}
}
