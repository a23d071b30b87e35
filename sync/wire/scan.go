package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner goes over JSON once, and takes nothing that is not exactly it.
type scanner struct {
	raw []byte
	at  int
}

// next gives the next byte that is no white space; 0 at the end.
func (p *scanner) next() byte {
	for ; p.at < len(p.raw); p.at++ {
		switch c := p.raw[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// byte passes c if it is next.
func (p *scanner) byte(c byte) bool {
	if p.next() != c {
		return false
	}
	p.at++
	return true
}

func (p *scanner) word(w string) bool {
	p.next()
	if !bytes.HasPrefix(p.raw[p.at:], []byte(w)) {
		return false
	}
	p.at += len(w)
	return true
}

// number passes a number and gives it; nil if there is none.
func (p *scanner) number() []byte {
	p.next()
	start := p.at
	p.one("-")
	if !p.one("0") && !p.digits() {
		return nil
	}
	if p.one(".") && !p.digits() {
		return nil
	}
	if p.one("eE") {
		p.one("+-")
		if !p.digits() {
			return nil
		}
	}
	return p.raw[start:p.at]
}

// one passes one byte of set, if it is next.
func (p *scanner) one(set string) bool {
	if p.at < len(p.raw) && strings.IndexByte(set, p.raw[p.at]) >= 0 {
		p.at++
		return true
	}
	return false
}

func (p *scanner) digits() bool {
	start := p.at
	for p.at < len(p.raw) && p.raw[p.at] >= '0' && p.raw[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

// object passes an object; each reads the value of a key.
func (p *scanner) object(each func(key []byte) bool) bool {
	if !p.byte('{') {
		return false
	}
	var seen keys
	for first := true; !p.byte('}'); first = false {
		if !first && !p.byte(',') {
			return false
		}
		key, ok := p.text()
		if !ok || !seen.add(key) || !p.byte(':') || !each(key) {
			return false
		}
	}
	return true
}

// skip passes a value that nobody reads here.
func (p *scanner) skip(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch p.next() {
	case '{':
		return p.object(func([]byte) bool { return p.skip(depth + 1) })
	case '[':
		p.at++
		for first := true; !p.byte(']'); first = false {
			if !first && !p.byte(',') || !p.skip(depth+1) {
				return false
			}
		}
		return true
	case '"':
		_, ok := p.quoted()
		return ok
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	return p.number() != nil
}

// text passes a string and gives what it says: a part of the input, if nothing in it is escaped.
func (p *scanner) text() ([]byte, bool) {
	start := p.at
	if p.next() == '"' {
		start = p.at
	}
	escaped, ok := p.quoted()
	if !ok {
		return nil, false
	}
	s := p.raw[start+1 : p.at-1]
	if escaped {
		s = unescape(s)
	}
	return s, true
}

// quoted passes a string that is valid UTF-8, and tells whether there is a backslash in it.
func (p *scanner) quoted() (escaped, ok bool) {
	if p.next() != '"' {
		return false, false
	}
	p.at++
	start, wide := p.at, false
	for {
		p.at += plainRun(p.raw[p.at:])
		if p.at == len(p.raw) {
			return false, false
		}
		switch c := p.raw[p.at]; {
		case c == '"':
			ok := !wide || utf8.Valid(p.raw[start:p.at])
			p.at++
			return escaped, ok
		case c == '\\':
			escaped = true
			if !p.escape() {
				return false, false
			}
		case c < ' ':
			return false, false
		default:
			wide = true
			p.at++
		}
	}
}

// escape passes a backslash and what it escapes, with both halves of a surrogate pair.
func (p *scanner) escape() bool {
	if p.at++; p.at == len(p.raw) {
		return false
	}
	if p.raw[p.at] != 'u' {
		return p.one(`"\/bfnrt`)
	}
	n, ok := hex4(p.raw, p.at)
	p.at += 5
	if !ok || !utf16.IsSurrogate(rune(n)) {
		return ok
	}
	if n > 0xdbff || p.at >= len(p.raw) || p.raw[p.at] != '\\' {
		return false
	}
	low, ok := hex4(p.raw, p.at+1)
	p.at += 6
	return ok && low >= 0xdc00 && low <= 0xdfff
}

// plainRun is how many bytes stand for themselves before the first that may not: a quote, a backslash, a control
// character, or one of a longer character. Eight are looked at together.
func plainRun(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	zero := func(x uint64) uint64 { return (x - ones) & ^x & tops } // exact up to the first byte that is 0
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		hit := w&tops | zero(w^ones*'"') | zero(w^ones*'\\') | (w-ones*' ')&^w&tops
		if hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] < utf8.RuneSelf && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// unescape gives what a string says whose escapes are known to be right.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			return append(out, s...)
		}
		out = append(out, s[:n]...)
		c, rest := s[n+1], s[n+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			half, _ := hex4(s, n+1)
			r := rune(half)
			rest = rest[4:]
			if utf16.IsSurrogate(r) {
				half, _ = hex4(rest, 1)
				r = utf16.DecodeRune(r, rune(half))
				rest = rest[6:]
			}
			out, s = utf8.AppendRune(out, r), rest
			continue
		}
		out, s = append(out, c), rest
	}
}

// keys are those of one object. Most have few.
type keys struct {
	few  [16][]byte
	n    int // of few
	many map[string]bool
}

// add tells whether the key is new. It keeps the key's bytes.
func (k *keys) add(key []byte) bool {
	if k.many != nil {
		if k.many[string(key)] {
			return false
		}
		k.many[string(key)] = true
		return true
	}
	if slices.ContainsFunc(k.few[:k.n], func(old []byte) bool { return bytes.Equal(old, key) }) {
		return false
	}
	k.few[k.n] = key
	if k.n++; k.n == len(k.few) {
		k.many = make(map[string]bool, 2*k.n)
		for _, key := range k.few {
			k.many[string(key)] = true
		}
	}
	return true
}
