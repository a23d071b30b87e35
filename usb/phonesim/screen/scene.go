package screen

import (
	"image"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"phonerack/usb/phonesim/screen/internal/app"
	"phonerack/usb/phonesim/screen/internal/glyph"
)

// scene is what the display shows at one version of the state: laid out, not yet drawn.
type scene struct {
	version  uint64
	size     image.Point
	layers   []*layer // the screen in front and the dialogs above it; the last one is active
	keyboard *keyboard
	spinners int
}

// layer is one window of a scene.
type layer struct {
	window *window
	root   *view // nil: the window shows nothing
	rect   image.Rectangle
}

// view is a widget with everything that its app's state decides filled in.
type view struct {
	widget *app.Widget
	app    *app.App
	scope  *app.Scope
	key    string // names the view from one scene to the next

	class, text, desc, hint, ime string
	picture                      *app.Picture
	tint                         color.NRGBA
	checked, selected, enabled   bool
	focused                      bool
	cursor                       int // in a focused edit

	children []*view
	look     *app.Look
	para     *glyph.Paragraph
	// textWidth and textStyle are what para was laid out with.
	textWidth int
	textStyle glyph.Style
	size      image.Point     // measured
	rect      image.Rectangle // on the display
	clip      image.Rectangle // what of rect could be seen
	content   int             // length of what scrolls
	offset    int             // how far it is scrolled
}

// clickable reports that a tap does something here.
func (v *view) clickable() bool {
	w := v.widget
	return len(w.Tap) > 0 || len(w.Double) > 0 || w.Kind == "edit" || w.Kind == "button" || w.Kind == "tab" || !w.Value.Empty()
}

func (v *view) longClickable() bool { return len(v.widget.Long) > 0 || v.widget.Kind == "edit" }

func (v *view) scrollable() bool {
	return v.widget.Kind == "list" || v.widget.Kind == "scroll"
}

// viewport is the length of what is seen of a scrolling view along its axis.
func (v *view) viewport() int {
	if v.look.Horizontal {
		return v.rect.Dx()
	}
	return v.rect.Dy()
}

func (v *view) visible() image.Rectangle { return v.rect.Intersect(v.clip) }

// walk visits v and what is in it, parents first.
func (v *view) walk(visit func(*view)) {
	if v == nil {
		return
	}
	visit(v)
	for _, c := range v.children {
		c.walk(visit)
	}
}

// find returns the first view for which ok holds.
func (v *view) find(ok func(*view) bool) (found *view) {
	v.walk(func(c *view) {
		if found == nil && ok(c) {
			found = c
		}
	})
	return found
}

func (s *scene) active() *layer { return s.layers[len(s.layers)-1] }

// current returns the scene of the present state, building it if the state changed since the last one.
func (e *Engine) current() *scene {
	if e.scene != nil && e.scene.version == e.version {
		return e.scene
	}
	s := &scene{version: e.version, size: e.size()}
	e.scene = s
	windows := e.front.windows
	if sys := e.processes[app.System]; sys != nil {
		windows = slices.Concat(windows, sys.windows)
	}
	if e.isLocked() {
		windows = e.processes[app.SystemUI].windows
	}
	base := 0
	for i, w := range windows {
		if !w.screen.Dialog {
			base = i
		}
	}
	for _, w := range windows[base:] {
		b := &builder{engine: e, window: w}
		s.layers = append(s.layers, &layer{window: w, root: b.view(w.screen.Root, e.scope(w), "r")})
		s.spinners += b.spinners
	}
	s.keyboard = e.keyboardFor(s)
	for _, l := range s.layers {
		e.layout(s, l)
	}
	return s
}

// maxViews bounds a window's views, should an app show an endless list.
const maxViews = 5000

type builder struct {
	engine   *Engine
	window   *window
	views    int
	spinners int
}

func (b *builder) view(w *app.Widget, scope *app.Scope, key string) *view {
	if b.views++; b.views > maxViews || !w.When.True(scope, true) {
		return nil
	}
	a := b.window.process.app
	if w.Kind == "part" {
		vars := make(map[string]any, len(w.With))
		for k, x := range w.With {
			vars[k] = x.Eval(scope)
		}
		return b.view(a.FindPart(w.Part), scope.With(vars), key+"p")
	}
	v := &view{
		widget: w, app: a, scope: scope, key: key, look: &w.Look, class: w.AndroidClass(),
		text: w.Text.Eval(scope), desc: w.Desc.Eval(scope), hint: w.Hint.Eval(scope),
		checked: w.Checked.True(scope, false), selected: w.Selected.True(scope, false), enabled: w.Enabled.True(scope, true),
	}
	if len(w.Look.Color.Colors) > 0 {
		v.tint = w.Look.Color.Colors[0]
	}
	if c, ok := a.FindColor(w.Tint.Eval(scope)); ok {
		v.tint = c.NRGBA
	}
	v.picture = b.engine.findPicture(a, w.Picture.Eval(scope))
	switch w.Kind {
	case "spinner":
		b.spinners++
	case "edit":
		v.text = app.String(w.Value.Eval(scope), b.engine.language)
		if v.focused = b.window.focus == key && v.enabled; v.focused {
			b.window.cursor = min(b.window.cursor, len([]rune(v.text)))
			v.cursor = b.window.cursor
		}
		v.ime = w.IME
	case "checkbox", "switch":
		if !w.Value.Empty() {
			v.checked = app.Truth(w.Value.Eval(scope))
		}
	case "list":
		b.items(v)
	}
	for i, c := range w.Children {
		if cv := b.view(c, scope, key+"."+strconv.Itoa(i)); cv != nil {
			v.children = append(v.children, cv)
		}
	}
	return v
}

func (b *builder) items(v *view) {
	l, _ := v.widget.List.Eval(v.scope).(*app.List)
	if l == nil {
		l = new(app.List)
	}
	for i, it := range app.Filter(l, &v.widget.Where, v.scope, v.widget.As) {
		row := b.view(v.widget.Item, v.scope.With(map[string]any{v.widget.As: it}), v.key+"#"+strconv.Itoa(i))
		if row != nil {
			v.children = append(v.children, row)
		}
	}
	if len(v.children) == 0 && v.widget.None != nil {
		if none := b.view(v.widget.None, v.scope, v.key+"n"); none != nil {
			v.children = append(v.children, none)
		}
	}
}

// findPicture resolves "name" in an app, or "package/name" in another one.
func (e *Engine) findPicture(a *app.App, name string) *app.Picture {
	if pkg, rest, ok := strings.Cut(name, "/"); ok && e.bundle.Apps[pkg] != nil {
		a, name = e.bundle.Apps[pkg], rest
	}
	if name == "" {
		return nil
	}
	return a.FindPicture(name)
}
