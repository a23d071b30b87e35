package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// How long a value must be, in characters, to be looked for within a longer
// text: as a word of its own, and anywhere. Shorter ones would be found where
// they are not meant; they are masked where they are the whole of a text.
const (
	wordLength     = 3
	anywhereLength = 6
)

// Mask hides values: "(param colour)" stands where the value of the parameter
// colour stood. The zero Mask hides nothing.
type Mask struct {
	values []masked // the longest first
}

type masked struct {
	name, value string
	whole       bool // only where it is the whole of a text
}

// NewMask hides the values of parameters.
func NewMask(params map[string]string) Mask {
	var m Mask
	for name, value := range params {
		m = m.and(masked{"param " + name, value, false})
	}
	return m
}

// Whole returns a mask that also hides value where it is the whole of a text, and
// calls it name.
func (m Mask) Whole(name, value string) Mask { return m.and(masked{name, value, true}) }

func (m Mask) and(v masked) Mask {
	if v.value == "" {
		return m
	}
	values := append(slices.Clone(m.values), v)
	slices.SortFunc(values, func(a, b masked) int {
		return cmp.Or(len(b.value)-len(a.value), strings.Compare(a.name, b.name))
	})
	return Mask{values}
}

func (v masked) stand() string { return "(" + v.name + ")" }

// Text masks a text of any kind.
func (m Mask) Text(s string) string {
	for _, v := range m.values {
		if s == v.value {
			return v.stand()
		}
	}
	return m.within(s, func(value string) string { return value })
}

// within masks the values that stand within s, written as form gives them.
func (m Mask) within(s string, form func(string) string) string {
	for _, v := range m.values {
		if !v.whole && strings.Contains(s, form(v.value)) {
			return m.scan(s, form)
		}
	}
	return s
}

// scan goes through s once, so that what stands for one value is not taken for
// another.
func (m Mask) scan(s string, form func(string) string) string {
	var b strings.Builder
	for at := 0; at < len(s); {
		size := 1
		text := s[at : at+1]
		for _, v := range m.values {
			n, value := utf8.RuneCountInString(v.value), form(v.value)
			if v.whole || n < wordLength || !strings.HasPrefix(s[at:], value) || n < anywhereLength && joins(s[:at], value, s[at+len(value):]) {
				continue
			}
			size, text = len(value), v.stand()
			break
		}
		b.WriteString(text)
		at += size
	}
	return b.String()
}

// joins tells whether value is a part of a longer word. In scripts that have no
// spaces between words it never is.
func joins(before, value, after string) bool {
	left, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	right, _ := utf8.DecodeRuneInString(after)
	return before != "" && letter(left) && letter(first) || after != "" && letter(last) && letter(right)
}

func letter(r rune) bool {
	return (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// Line masks a line in which texts stand as JSON strings, each by itself.
func (m Mask) Line(s string) string {
	if len(m.values) == 0 {
		return s
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, `"`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		end := closing(rest)
		var text string
		if end < 0 || json.Unmarshal([]byte(`"`+rest[:end]+`"`), &text) != nil {
			b.WriteString(`"` + m.within(rest, quoted)) // no JSON string
			return b.String()
		}
		if masked := m.Text(text); masked != text {
			rest, end = quoted(masked)+rest[end:], len(quoted(masked))
		}
		b.WriteString(`"` + rest[:end] + `"`)
		s = rest[end+1:]
	}
}

// closing finds the quotation mark that ends a JSON string, -1 if there is none.
func closing(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// Lines masks each line.
func (m Mask) Lines(list []string) []string {
	out := slices.Clone(list)
	for i, s := range out {
		out[i] = m.Line(s)
	}
	return out
}

// JSON masks the strings in a JSON value, those of keys excepted.
func (m Mask) JSON(raw json.RawMessage) json.RawMessage {
	hidden := false
	out := mapStrings(raw, func(s string) string {
		masked := m.Text(s)
		hidden = hidden || masked != s
		return masked
	})
	if !hidden {
		return raw
	}
	return out
}

// Refusal masks the strings among the arguments.
func (m Mask) Refusal(r *wire.Refusal) *wire.Refusal {
	if r == nil || len(m.values) == 0 {
		return r
	}
	c := *r
	c.Args = maps.Clone(r.Args)
	for k, v := range c.Args {
		if s, ok := v.(string); ok {
			c.Args[k] = m.Text(s)
		}
	}
	return &c
}

// Scene returns the scene's lines with values masked and without what password
// fields hold.
func (m Mask) Scene(s *perception.Scene) string {
	secret := func(e perception.Element) bool { return e.Password && e.Text != "" }
	if len(m.values) == 0 && !slices.ContainsFunc(s.Elements, secret) {
		return s.Prompt()
	}
	c := *s
	c.Elements = slices.Clone(s.Elements)
	for i := range c.Elements {
		e := &c.Elements[i]
		if secret(*e) {
			e.Text = ""
		}
		e.Text, e.Description, e.Hint = m.Text(e.Text), m.Text(e.Description), m.Text(e.Hint) // before they are cut
	}
	screen, elements, _ := strings.Cut(c.Prompt(), "\n")
	return m.Line(screen) + "\n" + elements // a dialog's title is no element
}

// quoted is how a value stands within a JSON string.
func quoted(value string) string {
	b, err := json.Marshal(value)
	if err != nil {
		return value
	}
	return string(b[1 : len(b)-1])
}

// Reveal puts values back where a mask has put names: what a replay types. It
// fails if a name has no value here.
func Reveal(raw json.RawMessage, params map[string]string) (json.RawMessage, error) {
	missing := ""
	out := mapStrings(raw, func(s string) string {
		for name, value := range params {
			s = strings.ReplaceAll(s, masked{name: "param " + name}.stand(), value)
		}
		if _, rest, ok := strings.Cut(s, "(param "); ok {
			if name, _, ok := strings.Cut(rest, ")"); ok {
				missing = name
			}
		}
		return s
	})
	if missing != "" {
		return nil, fmt.Errorf("the value of the parameter %.40q is not in the record: give it", missing)
	}
	return out, nil
}

// mapStrings changes the strings of a JSON value. Numbers stay as they are
// written. What is no JSON becomes an empty object.
func mapStrings(raw json.RawMessage, change func(string) string) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return json.RawMessage(`{}`)
	}
	b, err := json.Marshal(mapValue(v, change))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return b
}

func mapValue(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = mapValue(v[i], change)
		}
	case map[string]any:
		for k := range v {
			v[k] = mapValue(v[k], change)
		}
	}
	return v
}
