package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNumber bounds the digits of a number as it is written.
const maxNumber = 64

// parseJSON reads exactly one JSON value. The caller bounds the size.
func parseJSON(raw []byte) (*node, error) {
	if at := invalidText(raw); at >= 0 {
		return nil, &Error{Line: 1 + bytes.Count(raw[:at], []byte("\n")), Reason: "it is not valid UTF-8, or half of a surrogate pair is escaped"}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	p := &jsonParser{dec: dec, raw: raw, line: 1}
	n, err := p.value(0)
	if err != nil {
		return nil, p.located(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Line: p.here(), Reason: "something follows the value"}
	}
	return n, nil
}

type jsonParser struct {
	dec  *json.Decoder
	raw  []byte
	at   int // bytes whose lines are counted
	line int // of raw[at]
}

// here is the line on which the last token ended.
func (p *jsonParser) here() int {
	now := min(int(p.dec.InputOffset()), len(p.raw))
	p.line += bytes.Count(p.raw[p.at:now], []byte("\n"))
	p.at = now
	return p.line
}

// located makes an [Error] of what the decoder complains about.
func (p *jsonParser) located(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Line: p.here(), Reason: "the JSON ends too early"}
	}
	return &Error{Line: p.here(), Reason: "it is not valid JSON"}
}

func (p *jsonParser) value(depth int) (*node, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.here()}
	if depth > MaxDepth {
		return nil, tooDeep(n.line)
	}
	switch token := token.(type) {
	case nil:
	case bool:
		n.shape, n.text = boolShape, strconv.FormatBool(token)
	case json.Number:
		n.shape, n.text = numberShape, token.String()
		return n, checkNumber(n)
	case string:
		n.shape, n.text = textShape, token
	case json.Delim:
		return n, p.inner(n, token, depth)
	}
	return n, nil
}

// inner reads what follows an opening bracket, and its closing one.
func (p *jsonParser) inner(n *node, open json.Delim, depth int) error {
	n.shape = listShape
	var seen map[string]bool
	if open == '{' {
		n.shape, seen = objectShape, map[string]bool{}
	}
	for p.dec.More() {
		if n.shape == objectShape {
			token, err := p.dec.Token()
			if err != nil {
				return err
			}
			key, ok := token.(string)
			if !ok {
				return &Error{Line: p.here(), Reason: "an object's key is not a text"}
			}
			if seen[key] {
				return twice(p.here(), key)
			}
			seen[key] = true
			n.keys = append(n.keys, key)
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.dec.Token()
	return err
}

func tooDeep(line int) error {
	return &Error{Line: line, Reason: fmt.Sprintf("it is nested deeper than %d levels", MaxDepth)}
}

func twice(line int, key string) error {
	return &Error{Line: line, Reason: fmt.Sprintf("the key %.80q is there twice", key)}
}

// checkNumber refuses what would not survive being computed with: 1e-999999999
// is close to 0, and takes a gigabyte as a fraction.
func checkNumber(n *node) error {
	f, err := strconv.ParseFloat(n.text, 64)
	_, exponent, _ := strings.Cut(strings.ToLower(n.text), "e")
	if err != nil || math.IsInf(f, 0) || len(n.text) > maxNumber || len(exponent) > 4 {
		return &Error{Line: n.line, Reason: fmt.Sprintf("the number %.80s is too large or too long", n.text)}
	}
	return nil
}

// invalidText returns the offset of what is not UTF-8, or of \ud800 and the like
// without its other half, which the decoder would turn into another character;
// -1 if all is well.
func invalidText(raw []byte) int {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size <= 1 {
				return i
			}
			i += size
			continue
		}
		high, ok := escaped(raw[i:])
		if !ok {
			i += 2
			continue
		}
		if high < 0xd800 || high > 0xdfff {
			i += 6
			continue
		}
		low, ok := escaped(raw[min(i+6, len(raw)):])
		if high > 0xdbff || !ok || low < 0xdc00 || low > 0xdfff {
			return i
		}
		i += 12
	}
	return -1
}

// escaped reads the escape that raw begins with: a backslash, u and four hexadecimal digits.
func escaped(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
