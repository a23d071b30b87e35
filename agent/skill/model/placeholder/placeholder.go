// Package placeholder reads texts with placeholders: "search {query} now". A
// placeholder is the name of a parameter in braces, without blanks; "{{" and "}}"
// stand for braces. A text is parsed once, into parts; what is put into a part
// later is never looked at again, so that no value becomes a placeholder.
package placeholder

import (
	"fmt"
	"strings"
)

// Part is a piece of a text: a literal, or a placeholder for a parameter.
type Part struct {
	Literal string // braces unescaped
	Param   string // "" for a literal
}

// Text is a parsed text. It has no empty parts, and no two literals in a row.
type Text []Part

// Parse reads a text. Its errors say what to write instead.
func Parse(s string) (Text, error) {
	var t Text
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t = append(t, Part{Literal: literal.String()})
			literal.Reset()
		}
	}
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			literal.WriteString(s)
			break
		}
		literal.WriteString(s[:at])
		s = s[at:]
		if len(s) > 1 && s[1] == s[0] {
			literal.WriteByte(s[0])
			s = s[2:]
			continue
		}
		if s[0] == '}' {
			return nil, fmt.Errorf("a single } belongs to no placeholder; write }} for a brace")
		}
		name, rest, closed := strings.Cut(s[1:], "}")
		if !closed || !ValidName(name) {
			return nil, fmt.Errorf("%.40q is no placeholder; write {name} without blanks, or {{ for a brace", s)
		}
		flush()
		t = append(t, Part{Param: name})
		s = rest
	}
	flush()
	return t, nil
}

// ValidName reports whether s names a parameter: [A-Za-z_][A-Za-z0-9_]{0,63}.
func ValidName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Whole returns the parameter of a text that is one placeholder and nothing else.
func (t Text) Whole() (param string, ok bool) {
	if len(t) == 1 && t[0].Param != "" {
		return t[0].Param, true
	}
	return "", false
}

// String is the text as Parse reads it.
func (t Text) String() string {
	var b strings.Builder
	for _, p := range t {
		if p.Param != "" {
			b.WriteString("{" + p.Param + "}")
		} else {
			b.WriteString(Escape(p.Literal))
		}
	}
	return b.String()
}

// Escape returns the text that Parse reads as the literal s.
func Escape(s string) string {
	return strings.NewReplacer("{", "{{", "}", "}}").Replace(s)
}
