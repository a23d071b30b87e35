package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"phonerack/agent/skill/model"
)

// encode is the answer's object as JSON, made visible.
func encode(a answer) (json.RawMessage, error) {
	raw, err := compact(a.object)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return visible(raw, a.literal), nil
}

// compact is JSON without the escapes that are for HTML.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// visible frees JSON, or a text, of what a person does not see and a model reads,
// and of control characters other than those of lines. If literal is set, they are
// escaped instead, and mean the same as before. Structure is not touched: such
// characters stand in texts only.
func visible(raw []byte, literal bool) []byte {
	out := make([]byte, 0, len(raw))
	drop := hidden(string(raw))
	for i := 0; i < len(raw); {
		if raw[i] == '\\' {
			c, size := escape(raw[i:])
			if literal || !control(c) && model.FindHidden(string(c)) == nil {
				out = append(out, raw[i:i+size]...)
			}
			i += size
			continue
		}
		c, size := utf8.DecodeRune(raw[i:])
		switch gone := drop[i] || control(c); {
		case !gone:
			out = append(out, raw[i:i+size]...)
		case literal:
			out = appendEscape(out, c)
		}
		i += size
	}
	return out
}

func hidden(s string) map[int]bool {
	found := map[int]bool{}
	for _, h := range model.FindHidden(s) {
		found[h.Offset] = true
	}
	return found
}

// control tells whether c rules a terminal instead of standing for something.
func control(c rune) bool {
	return c < 0x20 && c != '\n' && c != '\t' && c != '\r' || c >= 0x7f && c < 0xa0
}

// escape reads the escape that raw begins with; what it stands for is a backslash
// where that does not matter.
func escape(raw []byte) (c rune, size int) {
	if len(raw) < 2 {
		return '\\', len(raw)
	}
	if raw[1] != 'u' {
		letters := map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
		if c, ok := letters[raw[1]]; ok {
			return c, 2
		}
		_, n := utf8.DecodeRune(raw[1:]) // outside of JSON anything may follow
		return '\\', 1 + n
	}
	high, ok := unit(raw)
	if !ok {
		return '\\', 2
	}
	if utf16.IsSurrogate(high) {
		if low, ok := unit(raw[6:]); ok {
			if both := utf16.DecodeRune(high, low); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return high, 6
}

// unit reads the escape that raw begins with: a backslash, u and four hexadecimal digits.
func unit(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

func appendEscape(out []byte, c rune) []byte {
	if high, low := utf16.EncodeRune(c); high != utf8.RuneError {
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, c)
}
