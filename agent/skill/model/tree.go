package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// shape is the JSON type of a node.
type shape int

const (
	nullShape shape = iota
	boolShape
	numberShape
	textShape
	listShape
	objectShape
)

var shapeNames = [...]string{"null", "true or false", "a number", "a text", "a list", "an object"}

func (s shape) String() string { return shapeNames[s] }

// node is a value of a JSON or YAML document, with the line that it begins on.
type node struct {
	shape shape
	line  int
	text  string // of a text; a number as JSON writes it; "true" or "false"
	plain bool   // a scalar of YAML without quotes: its text may be meant as such
	items []*node
	keys  []string // of an object, in order; items has the values
}

// field returns the value of a key, nil without it.
func (n *node) field(key string) *node {
	if i := slices.Index(n.keys, key); i >= 0 {
		return n.items[i]
	}
	return nil
}

// canonical is the node as JSON: no blanks, keys sorted, numbers as written.
func (n *node) canonical() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.shape {
	case nullShape:
		b.WriteString("null")
	case boolShape, numberShape:
		b.WriteString(n.text)
	case textShape:
		writeText(b, n.text)
	case listShape:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case objectShape:
		order := make([]int, len(n.keys))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return strings.Compare(n.keys[i], n.keys[j]) })
		b.WriteByte('{')
		for i, at := range order {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, n.keys[at])
			b.WriteByte(':')
			n.items[at].write(b)
		}
		b.WriteByte('}')
	}
}

func writeText(b *bytes.Buffer, s string) {
	raw, err := compact(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	b.Write(raw)
}

// Canonical reads one JSON value strictly and returns its canonical form: no
// blanks, keys sorted by their bytes, numbers as they were written.
func Canonical(raw []byte) (json.RawMessage, error) {
	n, err := parseJSON(raw)
	if err != nil {
		return nil, err
	}
	return n.canonical(), nil
}

// Fields takes one JSON object apart, strictly: the values are canonical.
func Fields(raw []byte) (map[string]json.RawMessage, error) {
	n, err := parseJSON(raw)
	if err != nil {
		return nil, err
	}
	if n.shape != objectShape {
		return nil, &Error{Line: n.line, Reason: "must be an object, and is " + n.shape.String()}
	}
	fields := make(map[string]json.RawMessage, len(n.keys))
	for i, key := range n.keys {
		fields[key] = n.items[i].canonical()
	}
	return fields, nil
}
