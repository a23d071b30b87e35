package perception

import (
	"bytes"
	"image"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// set takes one attribute; those not known are ignored.
func (n *node) set(name, value []byte) {
	switch string(name) {
	case "text":
		n.text = textOf(value)
	case "content-desc":
		n.desc = textOf(value)
	case "hint":
		n.hint = textOf(value)
	case "resource-id":
		n.id = textOf(value)
	case "class":
		n.class = textOf(value)
	case "package":
		n.pkg = textOf(value)
	case "bounds":
		n.bounds = boundsOf(value)
	case "drawing-order":
		if order, err := strconv.ParseUint(string(value), 10, 16); err == nil {
			n.order = int(order)
		}
	case "checkable":
		n.turn(checkable, isTrue(value))
	case "checked":
		n.turn(checked, isTrue(value))
	case "clickable":
		n.turn(clickable, isTrue(value))
	case "enabled":
		n.turn(disabled, string(value) == "false")
	case "focused":
		n.turn(focused, isTrue(value))
	case "scrollable":
		n.turn(scrollable, isTrue(value))
	case "long-clickable":
		n.turn(longClickable, isTrue(value))
	case "password":
		n.turn(password, isTrue(value))
	case "selected":
		n.turn(selected, isTrue(value))
	case "editable":
		n.turn(editable, isTrue(value))
	case "visible-to-user":
		n.turn(invisible, string(value) == "false")
	}
}

func (n *node) turn(f bits, on bool) {
	if on {
		n.flags |= f
	} else {
		n.flags &^= f
	}
}

func isTrue(value []byte) bool { return string(value) == "true" }

// boundsOf parses "[left,top][right,bottom]"; anything else is empty.
func boundsOf(value []byte) image.Rectangle {
	var v [4]int
	rest := value
	for i, form := range [4][2]byte{{'[', ','}, {0, ']'}, {'[', ','}, {0, ']'}} {
		if form[0] != 0 {
			if len(rest) == 0 || rest[0] != form[0] {
				return image.Rectangle{}
			}
			rest = rest[1:]
		}
		end := bytes.IndexByte(rest, form[1])
		if end < 0 {
			return image.Rectangle{}
		}
		n, err := strconv.Atoi(string(rest[:end]))
		if err != nil || n < -maxCoord || n > maxCoord {
			return image.Rectangle{}
		}
		v[i], rest = n, rest[end+1:]
	}
	if len(rest) != 0 || v[0] > v[2] || v[1] > v[3] {
		return image.Rectangle{}
	}
	return image.Rect(v[0], v[1], v[2], v[3])
}

// textOf resolves references in an attribute and cuts it at maxAttr bytes. Two
// references to the halves of a surrogate pair are one character; what is no
// character becomes U+FFFD; NULs are dropped.
func textOf(value []byte) string {
	if bytes.IndexByte(value, '&') < 0 && bytes.IndexByte(value, 0) < 0 && utf8.Valid(value) {
		return clip(string(value), maxAttr)
	}
	var b strings.Builder
	var high rune // a first half that waits for the second
	flush := func() {
		if high != 0 {
			b.WriteRune(utf8.RuneError)
			high = 0
		}
	}
	for len(value) > 0 && b.Len() < maxAttr {
		if value[0] != '&' {
			r, size := utf8.DecodeRune(value)
			value = value[size:]
			if r != 0 {
				flush()
				b.WriteRune(r)
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
			b.WriteRune(utf16.DecodeRune(high, r))
			high = 0
		case r != 0:
			flush()
			b.WriteRune(r) // a lone second half is written as U+FFFD
		}
	}
	flush()
	return clip(b.String(), maxAttr)
}

// reference decodes the reference at the beginning of s. A '&' that begins none
// stands for itself.
func reference(s []byte) (r rune, size int) {
	end := bytes.IndexByte(s[:min(len(s), 12)], ';')
	if end < 2 {
		return '&', 1
	}
	switch name := string(s[1:end]); name {
	case "amp":
		return '&', end + 1
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "quot":
		return '"', end + 1
	case "apos":
		return '\'', end + 1
	default:
		if name[0] != '#' {
			return '&', 1
		}
		digits, base := name[1:], 10
		if strings.HasPrefix(digits, "x") {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if err != nil {
			return '&', 1
		}
		return rune(min(n, utf8.MaxRune+1)), end + 1
	}
}
