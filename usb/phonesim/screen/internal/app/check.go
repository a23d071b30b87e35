package app

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxWidgets bounds the widgets of one app, parts counted at each use.
const maxWidgets = 20000

// checker walks one app, parses what is parsed late and knows where it is when something is wrong.
type checker struct {
	app     *App
	screen  *Screen
	where   string // "screen results"
	node    string
	names   []string // what an expression may name here
	widgets int
	depth   int
}

func check(a *App) error {
	c := &checker{app: a}
	if err := c.run(); err != nil {
		if located := new(Error); errors.As(err, &located) {
			return err
		}
		kind, name, _ := strings.Cut(c.where, " ")
		file := cmp.Or(a.file[kind+" "+name], a.Package+"/app.yaml")
		return &Error{File: file, Screen: c.where, Node: c.node, Err: err}
	}
	return nil
}

func (c *checker) run() error {
	a := c.app
	c.names = slices.Concat([]string{"phone"}, keys(a.Variables), keys(a.Lists))
	if a.Activity == "" || a.Version == "" || a.Label.Empty() {
		return errors.New("package, activity, version and label are required")
	}
	if a.Screens[a.Start] == nil {
		return fmt.Errorf("start: unknown screen %q", a.Start)
	}
	for k, p := range sorted(a.Pictures) {
		c.where = "picture " + k
		if err := c.picture(p); err != nil {
			return err
		}
	}
	c.where = ""
	if a.FindPicture(a.Icon) == nil {
		return fmt.Errorf("icon: unknown picture %q", a.Icon)
	}
	for k, w := range sorted(a.Texts) {
		c.where = "text " + k
		if err := c.words(w); err != nil {
			return err
		}
	}
	c.where = ""
	if err := c.template(&a.Label); err != nil {
		return fmt.Errorf("label: %w", err)
	}
	for k, l := range sorted(a.Lists) {
		c.where = "list " + k
		if err := c.list(l); err != nil {
			return err
		}
	}
	for k, s := range sorted(a.Screens) {
		c.where = "screen " + k
		if err := c.screenTree(s); err != nil {
			return err
		}
	}
	for k, s := range sorted(a.Dialogs) {
		c.where = "dialog " + k
		if err := c.screenTree(s); err != nil {
			return err
		}
	}
	return nil
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sorted ranges over a map in the order of its keys, so that the same file gives the same error.
func sorted[V any](m map[string]V) func(func(string, V) bool) {
	return func(yield func(string, V) bool) {
		for _, k := range keys(m) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func (c *checker) words(w Words) error {
	if err := complete(w); err != nil {
		return err
	}
	for lang, t := range w {
		if t == nil {
			return fmt.Errorf("text is empty in language %q", lang)
		}
		if err := t.parse(); err != nil {
			return err
		}
		for _, p := range t.parts {
			nested := false
			p.expr.walk(func(n *node) { nested = nested || n.op == opText })
			if nested {
				return errors.New("a text does not refer to other texts")
			}
		}
	}
	return nil
}

// list checks the fields that have a meaning of their own: picture and color.
func (c *checker) list(l *List) error {
	if l == nil {
		return errors.New("a list is a sequence of items")
	}
	for i, it := range l.Items {
		for k, v := range sorted(it.Fields) {
			var err error
			switch x := v.(type) {
			case *List:
				err = c.list(x)
			case string:
				if k == "picture" && c.app.FindPicture(x) == nil {
					err = fmt.Errorf("unknown picture %q", x)
				}
				if _, ok := c.app.FindColor(x); k == "color" && !ok {
					err = fmt.Errorf("unknown colour %q", x)
				}
			}
			if err != nil {
				return fmt.Errorf("item %d: %s: %w", i, k, err)
			}
		}
	}
	return nil
}

func (c *checker) screenTree(s *Screen) error {
	if s == nil || s.Root == nil {
		return errors.New("root is required")
	}
	c.screen, c.node = s, ""
	s.Activity = cmp.Or(s.Activity, c.app.Activity)
	s.Keyboard = cmp.Or(s.Keyboard, "cover")
	if s.Keyboard != "cover" && s.Keyboard != "resize" && s.Keyboard != "none" {
		return fmt.Errorf("keyboard is cover, resize or none, not %q", s.Keyboard)
	}
	for p, def := range map[*Paint]string{&s.Background: "background", &s.StatusBar: "status_bar"} {
		if p.Names == nil {
			p.Names = []string{def}
		}
		if err := c.app.resolvePaint(p); err != nil {
			return err
		}
	}
	saved := c.names
	defer func() { c.names = saved }()
	c.names = slices.Concat(c.names, s.Args, keys(s.Variables))
	if s.Package != "" && (c.app.Package != System || !s.Dialog) {
		return errors.New("package belongs to a dialog of the system")
	}
	if err := c.template(&s.Title); err != nil {
		return fmt.Errorf("title: %w", err)
	}
	if err := c.steps(s.Enter); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	if err := c.steps(s.SwipeUp); err != nil {
		return fmt.Errorf("swipe_up: %w", err)
	}
	if s.Focus != "" && !hasEdit(s.Root, s.Focus) {
		return fmt.Errorf("focus: the screen has no edit %q", s.Focus)
	}
	return c.widget(s.Root, "root")
}

func hasEdit(w *Widget, id string) bool {
	return w != nil && (w.Kind == "edit" && w.ID == id || slices.ContainsFunc(w.Children, func(k *Widget) bool { return hasEdit(k, id) }))
}

func (c *checker) widget(w *Widget, at string) error {
	if c.node = at; w == nil {
		return errors.New("empty node")
	}
	if w.ID != "" {
		c.node += " (id " + w.ID + ")"
	}
	if c.widgets++; c.widgets > maxWidgets {
		return errors.New("the app has too many widgets")
	}
	if c.depth++; c.depth > maxDepth {
		return errors.New("nested too deeply (does a part contain itself?)")
	}
	defer func() { c.depth-- }()
	if w.Kind == "toolbar" {
		w.expandToolbar()
	}
	if err := c.attributes(w); err != nil {
		return err
	}
	if w.Kind == "part" {
		return c.part(w, at)
	}
	for i, k := range w.Children {
		if err := c.widget(k, at+"/"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	if w.None != nil {
		if err := c.widget(w.None, at+"/none"); err != nil {
			return err
		}
	}
	if w.Kind != "list" {
		return nil
	}
	saved := c.names
	c.names = append(slices.Clip(c.names), w.As)
	defer func() { c.names = saved }()
	if err := c.expr(&w.Where); err != nil {
		return fmt.Errorf("where: %w", err)
	}
	return c.widget(w.Item, at+"/item")
}

func (c *checker) part(w *Widget, at string) error {
	p := c.app.FindPart(w.Part)
	if p == nil {
		return fmt.Errorf("unknown part %q", w.Part)
	}
	saved := c.names
	defer func() { c.names = saved }()
	for k, e := range sorted(w.With) {
		if err := c.expr(&e); err != nil {
			return fmt.Errorf("with %s: %w", k, err)
		}
		w.With[k] = e
	}
	c.names = append(slices.Clip(c.names), keys(w.With)...)
	return c.widget(p, at+"/"+w.Part)
}

func (c *checker) attributes(w *Widget) error {
	if _, ok := kinds[w.Kind]; !ok {
		return fmt.Errorf("unknown widget %q, want one of %s", w.Kind, strings.Join(keys(kinds), " "))
	}
	if err := c.app.resolveLook(w); err != nil {
		return err
	}
	for name, e := range sorted(map[string]*Expr{"when": &w.When, "enabled": &w.Enabled, "checked": &w.Checked, "selected": &w.Selected, "value": &w.Value, "list": &w.List}) {
		if err := c.expr(e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, t := range sorted(map[string]*Template{"text": &w.Text, "desc": &w.Desc, "hint": &w.Hint, "picture": &w.Picture, "tint": &w.Tint}) {
		if err := c.template(t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s, ok := w.Picture.literal(); ok && s != "" && c.app.FindPicture(s) == nil {
		return fmt.Errorf("unknown picture %q", s)
	}
	if s, ok := w.Tint.literal(); ok && s != "" {
		if _, known := c.app.FindColor(s); !known {
			return fmt.Errorf("tint: unknown colour %q", s)
		}
	}
	if err := c.fits(w); err != nil {
		return err
	}
	for name, steps := range sorted(map[string][]*Step{"tap": w.Tap, "long_press": w.Long, "double_tap": w.Double, "submit": w.Submit, "change": w.Change}) {
		if err := c.steps(steps); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// fits checks that the widget has what its kind needs and nothing that its kind ignores.
func (c *checker) fits(w *Widget) error {
	holder := w.Kind == "edit" || w.Kind == "checkbox" || w.Kind == "switch"
	container := w.Kind == "column" || w.Kind == "row" || w.Kind == "frame" || w.Kind == "scroll" || w.Kind == "toolbar"
	switch {
	case w.Kind == "edit" && w.Value.Empty():
		return errors.New("an edit needs value")
	case !w.Value.Empty() && !holder:
		return errors.New("value belongs to an edit, checkbox or switch")
	case !w.Value.Empty() && !w.Value.assignable():
		return errors.New("value is a variable or a field")
	case (len(w.Submit) > 0 || w.Password || w.IME != "") && w.Kind != "edit":
		return errors.New("submit, password and ime belong to an edit")
	case len(w.Change) > 0 && !holder:
		return errors.New("change belongs to an edit, checkbox or switch")
	case w.Kind == "list" && (w.List.Empty() || w.Item == nil):
		return errors.New("a list needs list and item")
	case w.Kind != "list" && (!w.List.Empty() || w.Item != nil || w.None != nil || !w.Where.Empty() || w.As != "" || w.Bottom):
		return errors.New("list, item, none, where, as and bottom belong to a list")
	case len(w.Children) > 0 && !container:
		return fmt.Errorf("a %s has no children", w.Kind)
	case w.Up && w.Kind != "toolbar":
		return errors.New("up belongs to a toolbar")
	case (w.Part != "" || len(w.With) > 0) != (w.Kind == "part"):
		return errors.New("part and with belong to the widget part, which needs part")
	}
	if w.Kind == "list" {
		w.As = cmp.Or(w.As, "item")
	}
	return nil
}

func (e *Expr) assignable() bool {
	return e.root != nil && (e.root.op == opName || e.root.op == opField)
}

func (c *checker) expr(e *Expr) error {
	if err := e.parse(); err != nil {
		return err
	}
	return c.nodeNames(e.root, c.names)
}

func (c *checker) template(t *Template) error {
	if err := t.parse(); err != nil {
		return err
	}
	for _, p := range t.parts {
		if err := c.nodeNames(p.expr, c.names); err != nil {
			return fmt.Errorf("text %q: %w", t.src, err)
		}
	}
	return nil
}

// nodeNames checks every name and text key of an expression; the texts are checked where they are used,
// because only there it is known what they may name.
func (c *checker) nodeNames(n *node, names []string) (err error) {
	if n == nil {
		return nil
	}
	switch n.op {
	case opName:
		if !slices.Contains(names, n.text) {
			return fmt.Errorf("unknown name %q", n.text)
		}
	case opText:
		if c.app.text(n.text, Languages[0]) == nil {
			return fmt.Errorf("unknown text %q", n.text)
		}
		for _, lang := range Languages {
			t := c.app.text(n.text, lang)
			if t == nil {
				return fmt.Errorf("text %q is missing in language %q", n.text, lang)
			}
			if err := t.parse(); err != nil {
				return err
			}
			for _, p := range t.parts {
				if p.expr != nil && p.expr.op != opText {
					if err := c.nodeNames(p.expr, names); err != nil {
						return fmt.Errorf("text %q: %w", n.text, err)
					}
				}
			}
		}
	}
	for i, a := range n.args {
		scope := names
		if n.op == opCall && i == 1 && (n.text == "sum" || n.text == "count" || n.text == "join") {
			scope = append(slices.Clip(names), "item")
		}
		if err := c.nodeNames(a, scope); err != nil {
			return err
		}
	}
	return nil
}
