package perception

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// setRoot takes one attribute of the root.
func (p *parser) setRoot(name []byte, v span) {
	value := p.bytes(v)
	switch string(name) {
	case "rotation":
		if len(value) == 1 && value[0] >= '0' && value[0] <= '3' {
			p.rotation = int(value[0] - '0')
		}
	case "width":
		p.size.X = sideOf(value)
	case "height":
		p.size.Y = sideOf(value)
	}
}

// sideOf parses a length in pixels, 0 if it is none.
func sideOf(value []byte) int {
	n, rest, ok := coordinate(value)
	if !ok || len(rest) != 0 || n < 0 {
		return 0
	}
	return int(n)
}

// set takes one attribute; those not known are ignored. Nearly all values of a
// dump are empty or false.
func (p *parser) set(n *node, name []byte, v span) {
	value := p.bytes(v)
	p.hints = p.hints || string(name) == "hint" || string(name) == "showing-hint"
	switch {
	case len(value) == 0:
		return
	case value[0] == 'f' && string(value) == "false":
		switch string(name) {
		case "enabled":
			n.flags |= disabled
			return
		case "visible-to-user", "displayed":
			n.flags |= invisible
			return
		case "showing-hint":
			n.flags |= notHinting
			return
		}
	case value[0] == 't' && string(value) == "true":
		if f := flagOf(name); f != 0 {
			n.flags |= f
			return
		}
	}
	switch string(name) {
	case "text":
		n.text = p.words(v)
	case "content-desc":
		n.desc = p.words(v)
	case "hint":
		n.hint = p.words(v)
	case "resource-id":
		n.id = p.name(p.decoded(v))
	case "class":
		n.class = p.name(p.decoded(v))
	case "package":
		n.pkg = p.pack(v)
	case "bounds":
		n.bounds = boundsOf(value)
	case "drawing-order":
		if order, rest, ok := coordinate(value); ok && len(rest) == 0 && order >= 0 {
			n.order = order
		}
	}
}

// flagOf returns the state that an attribute sets when it is true, 0 if it is no
// state.
func flagOf(name []byte) flags {
	switch string(name) {
	case "checkable":
		return checkable
	case "checked":
		return checked
	case "clickable":
		return clickable
	case "focusable":
		return focusable
	case "focused":
		return focused
	case "scrollable":
		return scrollable
	case "long-clickable":
		return longClickable
	case "password":
		return password
	case "selected":
		return selected
	case "editable":
		return editable
	case "showing-hint":
		return hinting
	}
	return 0
}

// boundsOf parses "[left,top][right,bottom]"; anything else is empty.
func boundsOf(value []byte) box {
	var v [4]int32
	rest := value
	for i, form := range [4][2]byte{{'[', ','}, {0, ']'}, {'[', ','}, {0, ']'}} {
		if form[0] != 0 {
			if len(rest) == 0 || rest[0] != form[0] {
				return box{}
			}
			rest = rest[1:]
		}
		n, after, ok := coordinate(rest)
		if !ok || len(after) == 0 || after[0] != form[1] {
			return box{}
		}
		v[i], rest = n, after[1:]
	}
	if len(rest) != 0 || v[0] > v[2] || v[1] > v[3] {
		return box{}
	}
	return box{v[0], v[1], v[2], v[3]}
}

// coordinate takes a decimal number of at most maxCoord from the front of s.
func coordinate(s []byte) (n int32, rest []byte, ok bool) {
	minus := len(s) > 0 && s[0] == '-'
	if minus {
		s = s[1:]
	}
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if n = n*10 + int32(s[i]-'0'); n > maxCoord {
			return 0, nil, false
		}
		i++
	}
	if minus {
		n = -n
	}
	return n, s[i:], i > 0
}

// words is an attribute that people read; what is only white space is none.
func (p *parser) words(v span) span {
	if v = p.decoded(v); blank(p.bytes(v)) {
		return span{}
	}
	return v
}

// blank reports whether s shows nothing.
func blank(s []byte) bool { return len(s) == 0 || s[0] <= ' ' && len(bytes.TrimSpace(s)) == 0 }

// decoded resolves references in an attribute and cuts it at maxAttr bytes. Two
// references to the halves of a surrogate pair are one character; what is no
// character becomes U+FFFD; NULs are dropped. Most attributes need none of this
// and stay where they are.
func (p *parser) decoded(v span) span {
	value := p.bytes(v)
	if bytes.IndexByte(value, '&') < 0 && bytes.IndexByte(value, 0) < 0 && utf8.Valid(value) {
		v.n = int32(clipped(value, maxAttr))
		return v
	}
	start := len(p.side)
	p.side = decode(p.side, value)
	return span{^int32(start), int32(len(p.side) - start)}
}

// decode appends value with its references resolved.
func decode(to, value []byte) []byte {
	start := len(to)
	var high rune // a first half that waits for the second
	flush := func() {
		if high != 0 {
			to = utf8.AppendRune(to, utf8.RuneError)
			high = 0
		}
	}
	for len(value) > 0 && len(to)-start < maxAttr {
		if value[0] != '&' {
			r, size := utf8.DecodeRune(value)
			value = value[size:]
			if r != 0 {
				flush()
				to = utf8.AppendRune(to, r)
			}
			continue
		}
		r, size := reference(value)
		value = value[size:]
		switch {
		case r >= 0xD800 && r < 0xDC00:
			flush()
			high = r
		case high != 0 && r >= 0xDC00 && r < 0xE000:
			to = utf8.AppendRune(to, utf16.DecodeRune(high, r))
			high = 0
		case r != 0:
			flush()
			to = utf8.AppendRune(to, r) // a lone second half is written as U+FFFD
		}
	}
	flush()
	return to[:start+clipped(to[start:], maxAttr)]
}

// references are the named ones of XML.
var references = []struct {
	name string
	r    rune
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}

// reference decodes the reference at the beginning of s. A '&' that begins none
// stands for itself.
func reference(s []byte) (r rune, size int) {
	for _, ref := range references {
		if len(s) >= len(ref.name) && string(s[:len(ref.name)]) == ref.name {
			return ref.r, len(ref.name)
		}
	}
	end := bytes.IndexByte(s[:min(len(s), 12)], ';')
	if end < 3 || s[1] != '#' {
		return '&', 1
	}
	digits, base := s[2:end], 10
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(string(digits), base, 32)
	if err != nil {
		return '&', 1
	}
	return rune(min(n, utf8.MaxRune+1)), end + 1
}

// clipped returns how many bytes of s are at most limit and end between
// characters.
func clipped(s []byte, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return limit
}
