package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"phonerack/agent/skill/model"
	"phonerack/agent/skill/model/placeholder"
)

// ErrKnowledge tells that a skill has no steps.
var ErrKnowledge = errors.New("the skill is knowledge: it has text to read, and no steps")

// Template is a flow template whose steps are parsed. It does not change.
type Template struct {
	parameters []model.Parameter
	steps      []step
}

type step struct {
	tool string
	args value
}

// Call is a tool call with its arguments.
type Call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"` // an object, canonical
}

// value is a value of a template: a list, an object, a text with placeholders,
// or a literal, which holds none at any depth.
type value struct {
	literal json.RawMessage // canonical
	text    placeholder.Text
	keys    []string // of an object, sorted
	items   []value  // of a list or an object
	list    bool
}

// Parse takes a valid flow template apart.
func Parse(s *model.Skill) (*Template, error) {
	if s.Kind != model.FlowTemplate {
		return nil, ErrKnowledge
	}
	t := &Template{parameters: s.Parameters}
	for i, st := range s.Steps {
		var v any
		dec := json.NewDecoder(bytes.NewReader(st.ArgsTemplate))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		args, err := compile(v)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		t.steps = append(t.steps, step{st.Tool, args})
	}
	return t, nil
}

// compile parses the texts in v.
func compile(v any) (value, error) {
	switch v := v.(type) {
	case string:
		text, err := placeholder.Parse(v)
		if err != nil {
			return value{}, err
		}
		if len(text) == 0 || len(text) == 1 && text[0].Param == "" {
			return literal(unescaped(text))
		}
		return value{text: text}, nil
	case []any:
		c := value{list: true}
		return c.settle(v, nil)
	case map[string]any:
		c := value{}
		for key := range v {
			c.keys = append(c.keys, key)
		}
		slices.Sort(c.keys)
		var items []any
		for _, key := range c.keys {
			items = append(items, v[key])
		}
		return c.settle(items, c.keys)
	}
	return literal(v)
}

// settle compiles the items, and makes a literal of a value without placeholders.
func (c value) settle(items []any, keys []string) (value, error) {
	plain := true
	for _, item := range items {
		inner, err := compile(item)
		if err != nil {
			return value{}, err
		}
		plain = plain && inner.literal != nil
		c.items = append(c.items, inner)
	}
	if !plain {
		return c, nil
	}
	var b bytes.Buffer
	c.keys = keys
	c.write(&b, nil)
	return value{literal: b.Bytes()}, nil
}

func unescaped(t placeholder.Text) string {
	if len(t) == 0 {
		return ""
	}
	return t[0].Literal
}

func literal(v any) (value, error) {
	raw, err := encode(v)
	return value{literal: raw}, err
}

// encode is the canonical JSON of a text, number, boolean or null.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// write puts the values of given in, by parameter. A parameter that is not in it
// is left out with its key.
func (c value) write(b *bytes.Buffer, given map[string]json.RawMessage) {
	if c.literal != nil {
		b.Write(c.literal)
		return
	}
	if c.text != nil {
		c.writeText(b, given)
		return
	}
	first := true
	comma := func() {
		if !first {
			b.WriteByte(',')
		}
		first = false
	}
	if c.list {
		b.WriteByte('[')
		for _, item := range c.items {
			comma()
			item.write(b, given)
		}
		b.WriteByte(']')
		return
	}
	b.WriteByte('{')
	for i, key := range c.keys {
		if param, whole := c.items[i].text.Whole(); whole && given[param] == nil {
			continue
		}
		comma()
		raw, err := encode(key)
		if err != nil {
			panic(err) // a string always has a JSON form
		}
		b.Write(raw)
		b.WriteByte(':')
		c.items[i].write(b, given)
	}
	b.WriteByte('}')
}

func (c value) writeText(b *bytes.Buffer, given map[string]json.RawMessage) {
	if param, whole := c.text.Whole(); whole {
		b.Write(given[param])
		return
	}
	var text []byte
	for _, part := range c.text {
		switch raw := given[part.Param]; {
		case part.Param == "":
			text = append(text, part.Literal...)
		case len(raw) > 0 && raw[0] == '"':
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				panic(err) // it was read as a text before
			}
			text = append(text, s...)
		default:
			text = append(text, raw...) // a number as it is written, true or false
		}
	}
	raw, err := encode(string(text))
	if err != nil {
		panic(err)
	}
	b.Write(raw)
}
