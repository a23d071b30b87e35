package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Bounds of nested values.
const (
	maxNodes = 10_000 // of one file, each alias counted with all that it stands for
	maxDepth = 64
)

// walk counts the nodes that one file has been asked for.
type walk struct{ nodes int }

// value is what stands behind a key.
type value struct {
	node *yaml.Node
	walk *walk
	key  string
	line int
}

func (v value) resolved() *yaml.Node { return resolve(v.node) }

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// scalar is the text of a plain value as it was written; nothing for null.
func (v value) scalar() (string, bool) {
	n := v.resolved()
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", false
	case n.ShortTag() == "!!null":
		return "", true
	}
	return n.Value, slices.Contains(plainTags, n.ShortTag())
}

var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp"}

// json is the value as JSON, with the keys in order of the alphabet.
func (v value) json() ([]byte, error) {
	plain, err := v.walk.plain(v.node, 0)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}

// plain is a node as encoding/json knows values.
func (w *walk) plain(n *yaml.Node, depth int) (any, error) {
	n = resolve(n)
	if w.nodes++; w.nodes > maxNodes {
		return nil, errors.New("it has too many parts")
	}
	if depth > maxDepth {
		return nil, errors.New("it is nested too deep")
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return plainScalar(n)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, e := range n.Content {
			v, err := w.plain(e, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return w.mapping(n, depth)
	}
	return nil, errors.New("it has a part of an unknown kind")
}

func (w *walk) mapping(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		_, twice := m[key.Value]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || twice {
			return nil, fmt.Errorf("the key %.40q is there twice, or no word", key.Value)
		}
		v, err := w.plain(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		m[key.Value] = v
	}
	return m, nil
}

func plainScalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!bool":
		var b bool
		return b, n.Load(&b)
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil // as it was written, however long
		}
		var f float64
		if err := n.Load(&f); err != nil {
			return nil, err
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("%s is no number that JSON has", n.Value)
		}
		return f, nil
	}
	return nil, fmt.Errorf("the tag %.40s is not taken", n.Tag)
}

// schema is the value as a JSON Schema whose root is an object and that can be
// read without fetching anything.
func (v value) schema() ([]byte, error) {
	plain, err := v.walk.plain(v.node, 0)
	if err != nil {
		return nil, err
	}
	root := plain.(map[string]any) // as the caller has checked
	switch t := root["type"]; t {
	case nil:
		root["type"] = "object"
	case "object":
	default:
		return nil, fmt.Errorf("its type is %v, but arguments are an object", t)
	}
	if err := noFarReference(root); err != nil {
		return nil, err
	}
	return json.Marshal(root)
}

func noFarReference(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := noFarReference(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, e := range v {
			if to, ok := e.(string); ok && (key == "$ref" || key == "$dynamicRef") && !strings.HasPrefix(to, "#") {
				return fmt.Errorf("it refers to %.80q, which would have to be fetched", to)
			}
			if err := noFarReference(e); err != nil {
				return err
			}
		}
	}
	return nil
}
