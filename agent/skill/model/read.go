package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reader takes values out of a tree of nodes. It keeps the first fault; after
// it, everything reads as empty.
type reader struct {
	source string
	err    *Error
}

// read runs take on a parsed document and returns its fault, or the parser's.
func read(source string, n *node, err error, take func(*reader, *node)) error {
	if err != nil {
		if e, ok := err.(*Error); ok {
			e.Source = source
		}
		return err
	}
	r := &reader{source: source}
	take(r, n)
	if r.err != nil {
		return r.err
	}
	return nil
}

func (r *reader) fail(n *node, path, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Source: r.source, Line: n.line, Path: path, Reason: fmt.Sprintf(format, args...)}
	}
}

// object is an object whose keys are being read.
type object struct {
	r    *reader
	n    *node
	path string
}

// object refuses what is none, and keys that nobody reads.
func (r *reader) object(n *node, path string, known ...string) object {
	o := object{r, n, path}
	if n.shape != objectShape {
		r.fail(n, path, "must be an object, and is %s", n.shape)
		o.n = &node{shape: objectShape, line: n.line}
		return o
	}
	for i, key := range n.keys {
		if !slices.Contains(known, key) {
			r.fail(&node{line: n.items[i].line}, path, "the key %.60q is not known here; there are %s", key, strings.Join(known, ", "))
		}
	}
	return o
}

// at is the path of a key.
func (o object) at(key string) string { return join(o.path, key) }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// need returns a key's value, and refuses its absence.
func (o object) need(key string) *node {
	n := o.n.field(key)
	if n == nil {
		o.r.fail(o.n, o.at(key), "is missing")
	}
	return n
}

// refuse fails if any of the keys is there.
func (o object) refuse(why string, keys ...string) {
	for _, key := range keys {
		if n := o.n.field(key); n != nil {
			o.r.fail(n, o.at(key), "%s", why)
		}
	}
}

// words are the rules for a text. The zero value is one line of any length.
type words struct {
	max    int  // code points
	lines  bool // may have line breaks
	chosen func(string) bool
	form   string // what chosen wants: "must be ..."
}

// text reads a text that must be there and not be empty.
func (o object) text(key string, w words) string {
	n := o.need(key)
	if n == nil {
		return ""
	}
	return o.r.text(n, o.at(key), w)
}

// maybe reads a text that may be absent, but not be empty.
func (o object) maybe(key string, w words) string {
	if o.n.field(key) == nil {
		return ""
	}
	return o.text(key, w)
}

func (r *reader) text(n *node, path string, w words) string {
	switch {
	case n.shape == numberShape && n.plain: // such as version: 1.10
	case n.shape == boolShape && n.plain:
		r.fail(n, path, "must be a text, and is %s: put it in quotes", n.shape)
	case n.shape != textShape:
		r.fail(n, path, "must be a text, and is %s", n.shape)
		return ""
	}
	s := n.text
	if bad, ok := control(s, w.lines); ok {
		r.fail(n, path, "has the control character %U", bad)
	}
	switch length := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "":
		r.fail(n, path, "must not be empty")
	case w.max > 0 && length > w.max:
		r.fail(n, path, "has %d characters, at most %d are accepted", length, w.max)
	case w.chosen != nil && !w.chosen(s):
		r.fail(n, path, "%s, and is %s", w.form, quoted(s))
	}
	return s
}

// control finds a character that no text may have.
func control(s string, lines bool) (rune, bool) {
	for _, c := range s {
		if c == '\t' || lines && (c == '\n' || c == '\r') {
			continue
		}
		if c < ' ' || c >= 0x7f && c <= 0x9f || !lines && (c == '\u2028' || c == '\u2029') {
			return c, true
		}
	}
	return 0, false
}

// oneOf reads a text out of a list.
func (o object) oneOf(key string, choice ...string) string {
	return o.text(key, words{chosen: func(s string) bool { return slices.Contains(choice, s) }, form: "must be one of " + strings.Join(choice, ", ")})
}

func (o object) flag(key string) bool {
	n := o.n.field(key)
	if n == nil {
		return false
	}
	if n.shape != boolShape {
		o.r.fail(n, o.at(key), "must be true or false, and is %s", n.shape)
	}
	return n.text == "true"
}

// whole reads an integer from low to high.
func (o object) whole(key string, low, high int64) int64 {
	n := o.need(key)
	if n == nil {
		return 0
	}
	if n.shape != numberShape {
		o.r.fail(n, o.at(key), "must be a whole number, and is %s", n.shape)
		return 0
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || v < low || v > high {
		o.r.fail(n, o.at(key), "must be a whole number from %d to %d, and is %.40s", low, high, n.text)
	}
	return v
}

// list reads a list of low to high values; absent is empty.
func (o object) list(key string, low, high int, take func(n *node, path string)) {
	n := o.n.field(key)
	switch {
	case n == nil && low == 0:
		return
	case n == nil:
		o.need(key)
		return
	case n.shape != listShape:
		o.r.fail(n, o.at(key), "must be a list, and is %s", n.shape)
		return
	case len(n.items) < low:
		o.r.fail(n, o.at(key), "needs at least %d entries", low)
	case len(n.items) > high:
		o.r.fail(n, o.at(key), "has %d entries, at most %d are accepted", len(n.items), high)
		return
	}
	for i, item := range n.items {
		take(item, fmt.Sprintf("%s[%d]", o.at(key), i))
	}
}

// texts reads a list of distinct texts.
func (o object) texts(key string, high int, w words) []string {
	var all []string
	seen := map[string]bool{}
	o.list(key, 0, high, func(n *node, path string) {
		s := o.r.text(n, path, w)
		if seen[s] {
			o.r.fail(n, path, "%s is there twice", quoted(s))
		}
		seen[s] = true
		all = append(all, s)
	})
	return all
}

// value reads any value of at most max bytes as canonical JSON.
func (r *reader) value(n *node, path string, limit int) json.RawMessage {
	r.numbers(n, path)
	raw := n.canonical()
	if len(raw) > limit {
		r.fail(n, path, "has %d bytes, at most %d are accepted", len(raw), limit)
	}
	return raw
}

// numbers refuses numbers of YAML that JSON writes otherwise.
func (r *reader) numbers(n *node, path string) {
	switch n.shape {
	case numberShape:
		if !jsonNumber(n.text) {
			r.fail(n, path, "must be written as a number like 12 or 1.5, or in quotes, and is %.40s", n.text)
		} else if err := checkNumber(n); err != nil {
			r.fail(n, path, "the number is too large or too long")
		}
	case listShape:
		for i, item := range n.items {
			r.numbers(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case objectShape:
		for i, item := range n.items {
			r.numbers(item, join(path, n.keys[i]))
		}
	}
}

// anObject reads an object of any keys as canonical JSON; nil without it.
func (o object) anObject(key string, limit int) json.RawMessage {
	n := o.n.field(key)
	if n == nil {
		return nil
	}
	if n.shape != objectShape {
		o.r.fail(n, o.at(key), "must be an object, and is %s", n.shape)
		return nil
	}
	return o.r.value(n, o.at(key), limit)
}
