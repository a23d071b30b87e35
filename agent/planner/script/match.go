package script

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// scope is what the parts of a rule are held against.
type scope struct {
	prompt *prompt
	values map[string]string // captures of the goal and parameters
}

// placeholder is a {name} in a template.
var placeholder = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)

// expand replaces each {name} once, or fails if one has no value.
func (s *scope) expand(template string) (string, error) {
	return s.expandWith(template, func(v string) string { return v })
}

func (s *scope) expandWith(template string, show func(string) string) (string, error) {
	var err error
	out := placeholder.ReplaceAllStringFunc(template, func(p string) string {
		v, ok := s.values[p[1:len(p)-1]]
		if !ok {
			err = errUnknown
		}
		return show(v)
	})
	return out, err
}

// fold makes strings comparable that a person would call the same.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == 0x200E, r == 0x200F, r == 0x061C, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// textMatcher matches a string by one of its alternatives.
type textMatcher struct {
	is, contains, matches []string // templates
}

// text reads a TEXT.
func (l *loader) text(n *yaml.Node) *textMatcher {
	m := &textMatcher{}
	templates := func(to *[]string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			l.each(n, func(e *yaml.Node) { *to = append(*to, l.template(e)) })
		}
	}
	plain := n
	for plain.Kind == yaml.AliasNode {
		plain = plain.Alias
	}
	if plain.Kind != yaml.MappingNode {
		templates(&m.is)(n)
		return m
	}
	l.fields(n, "a text", map[string]func(*yaml.Node){
		"is":       templates(&m.is),
		"contains": templates(&m.contains),
		"matches": func(n *yaml.Node) {
			templates(&m.matches)(n)
			for _, t := range m.matches {
				if _, err := regexp.Compile(placeholder.ReplaceAllString(t, "x")); err != nil {
					l.fail(n, "%v", err)
				}
			}
		},
	})
	if l.err == nil && len(m.is)+len(m.contains)+len(m.matches) == 0 {
		l.fail(n, "a text needs is, contains or matches")
	}
	return m
}

// match tells whether any of the texts fits an alternative. A template whose
// value is not known fits nothing.
func (m *textMatcher) match(s *scope, texts ...string) bool {
	for _, text := range texts {
		folded := fold(text)
		for _, t := range m.is {
			if want, err := s.expand(t); err == nil && folded == fold(want) {
				return true
			}
		}
		for _, t := range m.contains {
			if want, err := s.expand(t); err == nil && strings.Contains(folded, fold(want)) {
				return true
			}
		}
		for _, t := range m.matches {
			want, err := s.expandWith(t, regexp.QuoteMeta)
			if err != nil {
				continue
			}
			if re, err := regexp.Compile("(?i)" + want); err == nil && re.MatchString(text) {
				return true
			}
		}
	}
	return false
}

// selector names elements.
type selector struct {
	role, id                []string
	text, desc, hint, label *textMatcher
	states, without         []string
	after                   *selector
	nth                     int // 1 is the first, -1 the last; 0 is 1
}

// selector reads a SELECTOR.
func (l *loader) selector(n *yaml.Node) *selector {
	s := &selector{}
	texts := func(to **textMatcher) func(*yaml.Node) {
		return func(n *yaml.Node) { *to = l.text(n) }
	}
	l.fields(n, "a selector", map[string]func(*yaml.Node){
		"role":    func(n *yaml.Node) { s.role = l.words(n) },
		"id":      func(n *yaml.Node) { s.id = l.words(n) },
		"text":    texts(&s.text),
		"desc":    texts(&s.desc),
		"hint":    texts(&s.hint),
		"label":   texts(&s.label),
		"states":  func(n *yaml.Node) { s.states = l.words(n) },
		"without": func(n *yaml.Node) { s.without = l.words(n) },
		"after":   func(n *yaml.Node) { s.after = l.selector(n) },
		"nth":     func(n *yaml.Node) { s.nth = l.number(n) },
	})
	if len(s.role)+len(s.id)+len(s.states) == 0 && s.text == nil && s.desc == nil && s.hint == nil && s.label == nil {
		l.fail(n, "a selector needs a role, an id, a text or a state")
	}
	return s
}

// find returns the element of the screen that s names, or nil.
func (s *selector) find(sc *scope) *element {
	elements := sc.prompt.elements
	if s.after != nil {
		first := s.after.find(sc)
		if first == nil {
			return nil
		}
		i := slices.IndexFunc(elements, func(e element) bool { return e.index == first.index })
		elements = elements[i+1:]
	}
	var found []*element
	for i := range elements {
		if s.match(sc, &elements[i]) {
			found = append(found, &elements[i])
		}
	}
	i := max(s.nth, 1) - 1
	if s.nth < 0 {
		i = len(found) + s.nth
	}
	if i < 0 || i >= len(found) {
		return nil
	}
	return found[i]
}

// match tells whether e itself fits, wherever it stands.
func (s *selector) match(sc *scope, e *element) bool {
	if len(s.role) > 0 && !slices.Contains(s.role, e.role) {
		return false
	}
	if len(s.id) > 0 && !slices.ContainsFunc(s.id, func(id string) bool {
		_, short, _ := strings.Cut(e.id, "/")
		return id == e.id || id == short
	}) {
		return false
	}
	for _, t := range []struct {
		m    *textMatcher
		text string
	}{{s.text, e.text}, {s.desc, e.desc}, {s.hint, e.hint}} {
		if t.m != nil && !t.m.match(sc, t.text) {
			return false
		}
	}
	if s.label != nil && !s.label.match(sc, e.text, e.desc, e.hint) {
		return false
	}
	for _, w := range s.states {
		if !slices.Contains(e.states, w) {
			return false
		}
	}
	for _, w := range s.without {
		if slices.Contains(e.states, w) {
			return false
		}
	}
	return true
}

// callMatcher names past lines.
type callMatcher struct {
	tool, outcome, code, verdict []string
	args, line                   *textMatcher
	on                           *selector
	changed                      *bool
	within, times                int
}

// call reads a CALL.
func (l *loader) call(n *yaml.Node) *callMatcher {
	m := &callMatcher{times: 1}
	l.fields(n, "a call", map[string]func(*yaml.Node){
		"tool":    func(n *yaml.Node) { m.tool = l.words(n) },
		"args":    func(n *yaml.Node) { m.args = l.text(n) },
		"line":    func(n *yaml.Node) { m.line = l.text(n) },
		"on":      func(n *yaml.Node) { m.on = l.selector(n) },
		"outcome": func(n *yaml.Node) { m.outcome = l.oneOf(n, "done", "refused", "failed", "unknown") },
		"code":    func(n *yaml.Node) { m.code = l.words(n) },
		"text":    func(n *yaml.Node) { m.verdict = l.oneOf(n, "verified", "unverified", "failed") },
		"changed": func(n *yaml.Node) { m.changed = new(l.boolean(n)) },
		"within":  func(n *yaml.Node) { m.within = l.number(n) },
		"times":   func(n *yaml.Node) { m.times = l.number(n) },
	})
	if m.on != nil && (m.on.after != nil || m.on.nth != 0 || len(m.on.states)+len(m.on.without) > 0) {
		l.fail(n, "on cannot use after, nth or states: a past line does not tell them")
	}
	return m
}

// among tells whether enough of the lines fit.
func (m *callMatcher) among(s *scope, past []call) bool {
	if m.within > 0 {
		past = past[max(0, len(past)-m.within):]
	}
	n := 0
	for i := range past {
		if m.match(s, &past[i]) {
			n++
		}
	}
	return n >= max(m.times, 1)
}

func (m *callMatcher) match(s *scope, c *call) bool {
	for _, w := range []struct {
		want []string
		got  string
	}{{m.tool, c.tool}, {m.outcome, c.outcome}, {m.code, c.code}, {m.verdict, c.text}} {
		if len(w.want) > 0 && !slices.Contains(w.want, w.got) {
			return false
		}
	}
	switch {
	case m.args != nil && !m.args.match(s, c.args):
		return false
	case m.line != nil && !m.line.match(s, c.line):
		return false
	case m.changed != nil && *m.changed != c.hasChanged():
		return false
	case m.on != nil && (c.on == nil || !m.on.match(s, c.on)):
		return false
	}
	return true
}

// hasChanged tells whether the act changed something that was seen.
func (c *call) hasChanged() bool {
	return strings.HasPrefix(c.effect, "screen changed") || strings.HasPrefix(c.effect, "picture changed")
}

// hold tells whether every condition that is set does.
func (c *condition) hold(s *scope) bool {
	p := s.prompt
	last := p.past[max(0, len(p.past)-1):]
	switch {
	case c.goal != nil && !c.goal.MatchString(p.goal),
		!c.screen.hold(s),
		c.answer != nil && !c.answer.match(s, p.answers...),
		c.result != nil && !c.result.match(s, p.results...),
		p.step < c.step,
		c.last != nil && !c.last.among(s, last),
		c.notLast != nil && c.notLast.among(s, last):
		return false
	}
	exists := func(sel *selector) bool { return sel.find(s) != nil }
	happened := func(m *callMatcher) bool { return m.among(s, p.past) }
	return !slices.ContainsFunc(c.exists, func(sel *selector) bool { return !exists(sel) }) &&
		!slices.ContainsFunc(c.missing, exists) &&
		!slices.ContainsFunc(c.past, func(m *callMatcher) bool { return !happened(m) }) &&
		!slices.ContainsFunc(c.notPast, happened)
}

// hold tells whether the screen line fits.
func (c *screenCondition) hold(s *scope) bool {
	p := &s.prompt.screen
	is := func(want *bool, got bool) bool { return want == nil || *want == got }
	oneOf := func(want []string, got string) bool { return len(want) == 0 || slices.Contains(want, got) }
	return oneOf(c.app, p.app) && !slices.Contains(c.notApp, p.app) && oneOf(c.activity, p.activity) &&
		oneOf(c.keyboard, p.keyboard) && oneOf(c.noTree, p.noTree) && is(c.locked, p.locked) && is(c.secure, p.secure) &&
		(c.dialog == nil || p.inDialog && c.dialog.match(s, p.dialog))
}
