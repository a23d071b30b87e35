package app

import (
	"fmt"
	"strings"
)

// Strings yields everything the app can show of its own in a language, with where it stands: texts, what
// widgets say literally, and values of variables and items.
func (a *App) Strings(lang string) func(yield func(where, s string) bool) {
	return func(yield func(where, s string) bool) {
		w := &walker{lang: lang, yield: yield}
		w.template("label", &a.Label)
		for k, t := range sorted(a.Texts) {
			w.template("text "+k, t[lang])
		}
		for k, v := range sorted(a.Variables) {
			w.value("variable "+k, v.V)
		}
		for k, l := range sorted(a.Lists) {
			w.value("list "+k, l)
		}
		for k, s := range sorted(a.Screens) {
			w.screen("screen "+k, s)
		}
		for k, s := range sorted(a.Dialogs) {
			w.screen("dialog "+k, s)
		}
		for k, p := range sorted(a.Parts) {
			w.widget("part "+k, p)
		}
	}
}

type walker struct {
	lang  string
	yield func(where, s string) bool
	done  bool
}

func (w *walker) emit(where, s string) {
	if !w.done && strings.TrimSpace(s) != "" {
		w.done = !w.yield(where, s)
	}
}

func (w *walker) template(where string, t *Template) {
	if t == nil {
		return
	}
	for _, p := range t.parts {
		w.emit(where, p.literal)
		p.expr.walk(func(n *node) {
			if n.op == opConst {
				w.value(where, n.value)
			}
		})
	}
}

func (w *walker) expr(where string, e *Expr) {
	e.root.walk(func(n *node) {
		if n.op == opConst {
			w.value(where, n.value)
		}
	})
}

func (w *walker) value(where string, v any) {
	switch v := v.(type) {
	case *List:
		for i, it := range v.Items {
			for k, f := range sorted(it.Fields) {
				w.value(fmt.Sprintf("%s item %d: %s", where, i, k), f)
			}
		}
	default:
		w.emit(where, String(v, w.lang))
	}
}

func (w *walker) screen(where string, s *Screen) {
	for k, v := range sorted(s.Variables) {
		w.value(where+": variable "+k, v.V)
	}
	w.steps(where, s.Enter)
	w.widget(where, s.Root)
}

func (w *walker) widget(where string, v *Widget) {
	if v == nil {
		return
	}
	for _, t := range []*Template{&v.Text, &v.Desc, &v.Hint} {
		w.template(where, t)
	}
	for _, x := range sorted(v.With) {
		w.expr(where, &x)
	}
	for _, steps := range [][]*Step{v.Tap, v.Long, v.Submit, v.Change} {
		w.steps(where, steps)
	}
	for _, c := range v.Children {
		w.widget(where, c)
	}
	w.widget(where, v.Item)
	w.widget(where, v.None)
}

func (w *walker) steps(where string, steps []*Step) {
	for _, s := range steps {
		if s == nil {
			continue
		}
		for i := range s.Assignments {
			w.expr(where, &s.Assignments[i].Value)
		}
		for _, x := range sorted(s.With) {
			w.expr(where, &x)
		}
		if s.Add != nil {
			for _, x := range sorted(s.Add.Item) {
				w.expr(where, &x)
			}
		}
		w.steps(where, s.Then)
		w.steps(where, s.Else)
	}
}
