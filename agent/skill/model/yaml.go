package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parseYAML reads exactly one YAML document as JSON's types. Scalars are taken
// from their text: 1.10 stays 1.10, and a number is one only as JSON writes it.
// Aliases, merge keys and tags are refused: they let a small file become large,
// or mean another thing than it says.
func parseYAML(raw []byte) (*node, error) {
	if len(raw) > MaxYAMLBytes {
		return nil, tooLarge("YAML", len(raw), MaxYAMLBytes)
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if !utf8.Valid(raw) {
		return nil, &Error{Reason: "it is not valid UTF-8"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &Error{Line: 1, Reason: "it is empty"}
	} else if err != nil {
		return nil, &Error{Reason: "it is not valid YAML: " + yamlReason(err)}
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &Error{Reason: "a second document follows the first"}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &Error{Line: 1, Reason: "it is empty"}
	}
	return fromYAML(doc.Content[0], 0)
}

// yamlReason cuts the parser's words down to one line.
func yamlReason(err error) string {
	reason := strings.Join(strings.Fields(err.Error()), " ")
	reason = strings.TrimPrefix(reason, "yaml: ")
	if len(reason) > 200 {
		reason = strings.ToValidUTF8(reason[:200], "") + "..."
	}
	return reason
}

func fromYAML(y *yaml.Node, depth int) (*node, error) {
	n := &node{line: y.Line}
	switch {
	case depth > MaxDepth:
		return nil, tooDeep(y.Line)
	case y.Kind == yaml.AliasNode:
		return nil, &Error{Line: y.Line, Reason: "an alias is not accepted: write the value out"}
	case y.Style&yaml.TaggedStyle != 0:
		return nil, &Error{Line: y.Line, Reason: "a tag such as " + quoted(y.Tag) + " is not accepted"}
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.shape = objectShape
		return n, mapping(n, y, depth)
	case yaml.SequenceNode:
		n.shape = listShape
		for _, item := range y.Content {
			v, err := fromYAML(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
		return n, nil
	case yaml.ScalarNode:
		return n, scalar(n, y)
	}
	return nil, &Error{Line: y.Line, Reason: "it is not a value"}
}

func mapping(n *node, y *yaml.Node, depth int) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		if k.Kind != yaml.ScalarNode || k.Style&yaml.TaggedStyle != 0 || k.ShortTag() == "!!merge" {
			return &Error{Line: k.Line, Reason: "a key must be a plain text: aliases, merge keys and tags are not accepted"}
		}
		if seen[k.Value] {
			return twice(k.Line, k.Value)
		}
		seen[k.Value] = true
		v, err := fromYAML(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		n.keys, n.items = append(n.keys, k.Value), append(n.items, v)
	}
	return nil
}

func scalar(n *node, y *yaml.Node) error {
	n.text = y.Value
	n.plain = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch tag := y.ShortTag(); tag {
	case "!!null":
		n.shape, n.text = nullShape, ""
	case "!!bool":
		n.shape = boolShape
		switch strings.ToLower(y.Value) {
		case "true", "false":
			n.text = strings.ToLower(y.Value)
		default:
			return &Error{Line: y.Line, Reason: "write true or false, or put " + quoted(y.Value) + " in quotes"}
		}
	case "!!int", "!!float":
		n.shape = numberShape
	case "!!str", "!!timestamp":
		n.shape = textShape
	default:
		return &Error{Line: y.Line, Reason: "a value of type " + quoted(tag) + " is not accepted"}
	}
	return nil
}

// jsonNumber reports whether s is a number as JSON writes it.
func jsonNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

func quoted(s string) string { return fmt.Sprintf("%.60q", s) }
