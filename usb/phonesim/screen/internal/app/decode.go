package app

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// maxLength bounds every length of a file, in dp.
const maxLength = 4000

func parseLength(n *yaml.Node) (float64, error) {
	f, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(f >= -maxLength && f <= maxLength) {
		return 0, fmt.Errorf("line %d: %q is not a length in dp", n.Line, n.Value)
	}
	return f, nil
}

// UnmarshalYAML reads "fill", "wrap" or a length.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	switch n.Value {
	case "fill":
		*s = Size{Mode: Fill}
		return nil
	case "wrap":
		*s = Size{Mode: Wrap}
		return nil
	}
	f, err := parseLength(n)
	if err == nil && f < 0 {
		err = fmt.Errorf("line %d: a size is not negative", n.Line)
	}
	*s = Size{Mode: Fixed, DP: f}
	return err
}

// UnmarshalYAML reads one length for all sides, [vertical, horizontal] or [top, end, bottom, start].
func (in *Insets) UnmarshalYAML(n *yaml.Node) error {
	nodes := n.Content
	if n.Kind == yaml.ScalarNode {
		nodes = []*yaml.Node{n}
	}
	var v []float64
	for _, c := range nodes {
		f, err := parseLength(c)
		if err != nil {
			return err
		}
		v = append(v, f)
	}
	switch len(v) {
	case 1:
		*in = Insets{v[0], v[0], v[0], v[0]}
	case 2:
		*in = Insets{v[0], v[1], v[0], v[1]}
	case 4:
		*in = Insets{v[0], v[1], v[2], v[3]}
	default:
		return fmt.Errorf("line %d: want one length, [vertical, horizontal] or [top, end, bottom, start]", n.Line)
	}
	return nil
}

// ParseColor reads "#rrggbb" or "#rrggbbaa".
func ParseColor(s string) (color.NRGBA, bool) {
	hex, ok := strings.CutPrefix(s, "#")
	if ok && len(hex) == 6 {
		hex += "ff"
	}
	v, err := strconv.ParseUint(hex, 16, 32)
	if !ok || len(hex) != 8 || err != nil {
		return color.NRGBA{}, false
	}
	return color.NRGBA{uint8(v >> 24), uint8(v >> 16), uint8(v >> 8), uint8(v)}, true
}

// UnmarshalYAML reads "#rrggbb" or "#rrggbbaa".
func (c *Color) UnmarshalYAML(n *yaml.Node) error {
	v, ok := ParseColor(n.Value)
	if !ok {
		return fmt.Errorf("line %d: colour %q is not #rrggbb or #rrggbbaa", n.Line, n.Value)
	}
	c.NRGBA = v
	return nil
}

// UnmarshalYAML reads one colour or two.
func (p *Paint) UnmarshalYAML(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.ScalarNode:
		*p = Paint{Names: []string{n.Value}}
	case n.Kind == yaml.SequenceNode && len(n.Content) == 2:
		*p = Paint{Names: []string{n.Content[0].Value, n.Content[1].Value}}
	default:
		return fmt.Errorf("line %d: want a colour, or a list of two for a gradient", n.Line)
	}
	return nil
}

// UnmarshalYAML reads Go's notation of durations, up to a minute.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 10*time.Millisecond || v > time.Minute {
		return fmt.Errorf("line %d: %q is not a duration of 10ms to 1m, such as 1500ms", n.Line, n.Value)
	}
	d.Duration = v
	return nil
}

// UnmarshalYAML reads text, a number, true, false or a text per language.
func (v *Value) UnmarshalYAML(n *yaml.Node) error {
	x, err := decodeValue(n, false)
	v.V = x
	return err
}

// UnmarshalYAML reads a sequence of items, or {shuffle: true, items: [...]}.
func (l *List) UnmarshalYAML(n *yaml.Node) error {
	items := n
	if n.Kind == yaml.MappingNode {
		var long struct {
			Shuffle bool      `yaml:"shuffle"`
			Items   yaml.Node `yaml:"items"`
		}
		if err := n.Load(&long, yaml.WithKnownFields()); err != nil {
			return err
		}
		l.Shuffle, items = long.Shuffle, &long.Items
	}
	if items.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: a list is a sequence of items", n.Line)
	}
	for _, c := range items.Content {
		it, err := decodeItem(c)
		if err != nil {
			return err
		}
		l.Items = append(l.Items, it)
	}
	return nil
}

func decodeItem(n *yaml.Node) (*Item, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: an item is a map of fields", n.Line)
	}
	it := &Item{Fields: make(map[string]any)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v, err := decodeValue(n.Content[i+1], true)
		if err != nil {
			return nil, err
		}
		it.Fields[n.Content[i].Value] = v
	}
	return it, nil
}

func decodeValue(n *yaml.Node, lists bool) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!bool":
			return n.Value == "true", nil
		case "!!int", "!!float":
			f, err := strconv.ParseFloat(n.Value, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: bad number %q", n.Line, n.Value)
			}
			return f, nil
		}
		return n.Value, nil
	case yaml.MappingNode:
		t := make(Text)
		for i := 0; i+1 < len(n.Content); i += 2 {
			t[n.Content[i].Value] = n.Content[i+1].Value
		}
		if err := complete(t); err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return t, nil
	case yaml.SequenceNode:
		if lists {
			l := new(List)
			return l, l.UnmarshalYAML(n)
		}
	}
	return nil, fmt.Errorf("line %d: want text, a number, true, false or a text per language", n.Line)
}

// complete checks that a text has every language and no other.
func complete[T any](t map[string]T) error {
	for _, lang := range Languages {
		if _, ok := t[lang]; !ok {
			return fmt.Errorf("text is missing in language %q", lang)
		}
	}
	if len(t) > len(Languages) {
		return fmt.Errorf("text has a language other than %s", strings.Join(Languages, ", "))
	}
	return nil
}
