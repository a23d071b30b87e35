package pdffont

import (
	"bytes"
	"strconv"
)

// Values of a PDF: dict, []any, name, ref, int, and str for all that is neither of interest nor nothing.
type (
	dict map[name]any
	name string
	ref  int // number of an object
	str  struct{}
)

// Bounds of one value.
const (
	maxDepth    = 32
	maxElements = 100_000
)

// parser reads values from text; it never fails, it makes nil of what it cannot read.
type parser struct {
	text []byte
	at   int
	made int // elements so far
}

func space(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func delimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

// skip passes white space and comments.
func (p *parser) skip() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case space(c):
			p.at++
		case c == '%':
			for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
				p.at++
			}
		default:
			return
		}
	}
}

// word reads up to white space or a delimiter.
func (p *parser) word() string {
	from := p.at
	for p.at < len(p.text) && !space(p.text[p.at]) && !delimiter(p.text[p.at]) {
		p.at++
	}
	return string(p.text[from:p.at])
}

func (p *parser) has(s string) bool { return bytes.HasPrefix(p.text[p.at:], []byte(s)) }

// value reads one value; nil at the end, for null, and for what makes no sense, of which it passes at least a byte.
func (p *parser) value(depth int) any {
	p.skip()
	if p.made++; p.at >= len(p.text) || depth > maxDepth || p.made > maxElements {
		p.at = len(p.text)
		return nil
	}
	switch c := p.text[p.at]; {
	case p.has("<<"):
		return p.dict(depth)
	case c == '[':
		return p.array(depth)
	case c == '/':
		p.at++
		return unescape(p.word())
	case c == '(':
		p.literal()
		return str{}
	case c == '<':
		if i := bytes.IndexByte(p.text[p.at:], '>'); i >= 0 {
			p.at += i + 1
		} else {
			p.at = len(p.text)
		}
		return str{}
	case delimiter(c):
		p.at++
		return nil
	}
	return p.number(p.word())
}

func (p *parser) dict(depth int) dict {
	p.at += len("<<")
	d := dict{}
	for {
		p.skip()
		if p.at >= len(p.text) {
			return d
		}
		if p.has(">>") {
			p.at += len(">>")
			return d
		}
		key, ok := p.value(depth + 1).(name)
		if !ok {
			continue
		}
		p.skip()
		if p.at < len(p.text) && !p.has(">>") {
			d[key] = p.value(depth + 1)
		}
	}
}

func (p *parser) array(depth int) []any {
	p.at++
	list := []any{}
	for {
		p.skip()
		if p.at >= len(p.text) {
			return list
		}
		if p.text[p.at] == ']' {
			p.at++
			return list
		}
		list = append(list, p.value(depth+1))
	}
}

// literal passes a string in parentheses, which may be nested.
func (p *parser) literal() {
	for open := 0; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\\':
			p.at++
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.at++
				return
			}
		}
	}
	p.at = min(p.at, len(p.text))
}

// number makes an integer of a word, or a reference if "0 R" follows.
func (p *parser) number(word string) any {
	n, err := strconv.Atoi(word)
	if err != nil {
		if word == "null" {
			return nil
		}
		return str{}
	}
	back := p.at
	p.skip()
	if _, err := strconv.Atoi(p.word()); err == nil {
		p.skip()
		if p.word() == "R" {
			return ref(n)
		}
	}
	p.at = back
	return n
}

// stream returns the bytes behind a dictionary. Their end is not searched for: what is packed knows its own.
func (p *parser) stream() ([]byte, bool) {
	p.skip()
	if !p.has("stream") {
		return nil, false
	}
	p.at += len("stream")
	if p.has("\r\n") {
		p.at += 2
	} else if p.has("\n") {
		p.at++
	}
	return p.text[p.at:], true
}

// unescape replaces #20 and the like.
func unescape(s string) name {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '#' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(c))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return name(b)
}
