package app

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Template is a line of text with expressions in braces: "Total: {money(total)}". A template that is
// "@key" alone stands for that text. "{{" is a brace.
type Template struct {
	src    string
	parts  []part
	parsed bool
}

type part struct {
	literal string
	expr    *node // nil: a literal
}

// Empty reports that nothing was written where the template could stand.
func (t *Template) Empty() bool { return t.src == "" }

// UnmarshalYAML keeps the source; it is parsed when the app is checked.
func (t *Template) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: a text is one string", n.Line)
	}
	t.src = n.Value
	return nil
}

func (t *Template) parse() error {
	if t.parsed {
		return nil
	}
	t.parsed = true
	rest := t.src
	if strings.HasPrefix(rest, "@") {
		rest = "{" + rest + "}"
	}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for rest != "" {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			literal.WriteString(rest)
			break
		}
		literal.WriteString(rest[:i])
		rest = rest[i+1:]
		if strings.HasPrefix(rest, "{") {
			literal.WriteByte('{')
			rest = rest[1:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return fmt.Errorf("text %q: missing }", t.src)
		}
		n, err := parseExpr(rest[:end])
		if err != nil {
			return fmt.Errorf("text %q: %w", t.src, err)
		}
		flush()
		t.parts = append(t.parts, part{expr: n})
		rest = rest[end+1:]
	}
	flush()
	return nil
}

// Eval fills the template in.
func (t *Template) Eval(s *Scope) string {
	switch len(t.parts) {
	case 0:
		return ""
	case 1:
		return t.parts[0].eval(s)
	}
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.eval(s))
	}
	return b.String()
}

func (p part) eval(s *Scope) string {
	if p.expr == nil {
		return p.literal
	}
	return String(p.expr.eval(s), s.lang)
}

// literal returns the whole text of a template without expressions.
func (t *Template) literal() (string, bool) {
	if len(t.parts) == 1 && t.parts[0].expr == nil {
		return t.parts[0].literal, true
	}
	return "", len(t.parts) == 0
}
