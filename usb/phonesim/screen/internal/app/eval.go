package app

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Scope resolves names while an expression is evaluated: the innermost binding wins.
type Scope struct {
	app    *App
	lang   string
	parent *Scope
	vars   map[string]any
}

// NewScope returns the outermost scope of an app: vars (usually its State and the phone's own values).
func NewScope(a *App, lang string, vars map[string]any) *Scope {
	return &Scope{app: a, lang: lang, vars: vars}
}

// With returns a scope in which vars hide what s says.
func (s *Scope) With(vars map[string]any) *Scope {
	return &Scope{app: s.app, lang: s.lang, parent: s, vars: vars}
}

// Lookup returns the value of a name, or the empty string.
func (s *Scope) Lookup(name string) any {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return ""
}

// Assign sets the name where it is bound. It returns false if it is bound nowhere.
func (s *Scope) Assign(name string, v any) bool {
	for ; s != nil; s = s.parent {
		if _, ok := s.vars[name]; ok {
			s.vars[name] = v
			return true
		}
	}
	return false
}

// Language is the language in which texts are shown.
func (s *Scope) Language() string { return s.lang }

// Eval returns the expression's value in the scope.
func (e *Expr) Eval(s *Scope) any {
	if e.root == nil {
		return ""
	}
	return e.root.eval(s)
}

// True evaluates a condition; an empty one is the given default.
func (e *Expr) True(s *Scope, def bool) bool {
	if e.root == nil {
		return def
	}
	return Truth(e.Eval(s))
}

// Assign sets the variable or field that the expression names.
func (e *Expr) Assign(s *Scope, v any) {
	switch n := e.root; {
	case n == nil:
	case n.op == opName:
		s.Assign(n.text, v)
	case n.op == opField:
		if it, ok := n.args[0].eval(s).(*Item); ok && it != nil {
			it.Fields[n.text] = v
		}
	}
}

// Filter returns the items of the list for which the condition holds with the item bound to name.
func Filter(l *List, cond *Expr, s *Scope, name string) []*Item {
	if cond.Empty() {
		return l.Items
	}
	var out []*Item
	for _, it := range l.Items {
		if Truth(cond.Eval(s.With(map[string]any{name: it}))) {
			out = append(out, it)
		}
	}
	return out
}

func (n *node) eval(s *Scope) any {
	switch n.op {
	case opConst:
		return n.value
	case opText:
		if t := s.app.text(n.text, s.lang); t != nil {
			return t.Eval(s)
		}
	case opName:
		return s.Lookup(n.text)
	case opField:
		if it, ok := n.args[0].eval(s).(*Item); ok && it != nil {
			return it.Get(n.text)
		}
	case opNot:
		return !Truth(n.args[0].eval(s))
	case opNeg:
		return -number(n.args[0].eval(s))
	case opBinary:
		return n.binary(s)
	case opCall:
		return n.call(s)
	}
	return ""
}

func (n *node) binary(s *Scope) any {
	a := n.args[0].eval(s)
	switch n.text {
	case "or":
		return Truth(a) || Truth(n.args[1].eval(s))
	case "and":
		return Truth(a) && Truth(n.args[1].eval(s))
	}
	b := n.args[1].eval(s)
	switch n.text {
	case "==":
		return equal(a, b, s.lang)
	case "!=":
		return !equal(a, b, s.lang)
	case "+":
		_, x := a.(float64)
		_, y := b.(float64)
		if !x || !y {
			return String(a, s.lang) + String(b, s.lang)
		}
	}
	x, y := number(a), number(b)
	switch n.text {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		if y == 0 {
			return 0.0
		}
		return x / y
	case "%":
		if y == 0 {
			return 0.0
		}
		return math.Mod(x, y)
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y // ">="
}

func equal(a, b any, lang string) bool {
	switch x := a.(type) {
	case *Item:
		y, ok := b.(*Item)
		return ok && x == y
	case *List:
		y, ok := b.(*List)
		return ok && x == y
	}
	return String(a, lang) == String(b, lang)
}

func (n *node) call(s *Scope) any {
	switch n.text {
	case "if":
		if Truth(n.args[0].eval(s)) {
			return n.args[1].eval(s)
		}
		return n.args[2].eval(s)
	case "count", "sum":
		l, _ := n.args[0].eval(s).(*List)
		if l == nil {
			return 0.0
		}
		if len(n.args) == 1 {
			return float64(len(l.Items))
		}
		total := 0.0
		for _, it := range l.Items {
			v := n.args[1].eval(s.With(map[string]any{"item": it}))
			if n.text == "count" {
				v = Truth(v)
			}
			total += number(v)
		}
		return total
	case "join":
		l, _ := n.args[0].eval(s).(*List)
		if l == nil {
			return ""
		}
		var out []string
		for _, it := range l.Items {
			out = append(out, String(n.args[1].eval(s.With(map[string]any{"item": it})), s.lang))
		}
		return strings.Join(out, ", ")
	case "contains":
		return containsFold(n.args[0].eval(s), String(n.args[1].eval(s), s.lang), s.lang)
	case "en":
		return String(n.args[0].eval(s), "en")
	case "money":
		return strconv.FormatFloat(number(n.args[0].eval(s)), 'f', 2, 64)
	case "length":
		return float64(utf8.RuneCountInString(String(n.args[0].eval(s), s.lang)))
	case "trim":
		return strings.TrimSpace(String(n.args[0].eval(s), s.lang))
	}
	// initial: the first character, as avatars show it.
	v := String(n.args[0].eval(s), s.lang)
	_, size := utf8.DecodeRuneInString(v)
	return strings.ToUpper(v[:size])
}

// containsFold looks in every language of a Text, so that a phone whose keyboard writes Latin letters
// only still finds what its shop shows in another script.
func containsFold(v any, part, lang string) bool {
	part = strings.ToLower(strings.TrimSpace(part))
	if t, ok := v.(Text); ok {
		for _, sentence := range t {
			if strings.Contains(strings.ToLower(sentence), part) {
				return true
			}
		}
		return part == ""
	}
	return strings.Contains(strings.ToLower(String(v, lang)), part)
}
