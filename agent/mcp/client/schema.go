package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/planner"
	"phonerack/agent/skill/model"
)

const (
	maxName        = 64   // bytes of a tool's name
	maxDescription = 1024 // characters
	maxSchema      = 16 << 10
	maxDepth       = 12 // of a schema
)

// fit takes what planners can be offered out of a server's list.
func fit(all []*sdk.Tool) Listing {
	var l Listing
	seen := map[string]bool{}
	for _, t := range all {
		tool, err := offered(t)
		if err == nil && seen[t.Name] {
			err = errors.New("it is listed twice")
		}
		if err != nil {
			l.LeftOut = append(l.LeftOut, LeftOut{line(t.Name), line(err.Error())})
			continue
		}
		seen[t.Name] = true
		l.Tools = append(l.Tools, tool)
	}
	slices.SortFunc(l.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return l
}

func offered(t *sdk.Tool) (Tool, error) {
	if len(t.Name) > maxName || !model.ValidTool(t.Name) || strings.ContainsAny(t.Name, ":/") {
		return Tool{}, fmt.Errorf("its name is not made of 1 to %d letters, digits, '_', '-' and '.'", maxName)
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return Tool{}, err
	}
	schema, err := subset(t.InputSchema)
	if err != nil {
		return Tool{}, err
	}
	sum := sha256.Sum256(raw)
	tool := Tool{Name: t.Name, Description: short(t.Description, maxDescription), Schema: schema, Sum: hex.EncodeToString(sum[:])}
	if t.Annotations != nil {
		tool.ReadOnly = t.Annotations.ReadOnlyHint
	}
	return tool, nil
}

func short(s string, runes int) string {
	s = model.Visible(s)
	if r := []rune(s); len(r) > runes {
		s = string(r[:runes-1]) + "…"
	}
	return s
}

// subset writes a schema in the keywords that decisions are held to here. What
// they cannot say is left to the server, which has to check its arguments in any
// case: the schema becomes wider by that, never narrower in what it needs. An
// argument that cannot be described at all is left out if the tool works without.
func subset(schema any) (json.RawMessage, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("its arguments are not described by an object")
	}
	if _, typed := m["type"]; !typed {
		m["type"] = "object"
	}
	out, err := narrowed(m, 0)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	if b.Len() > maxSchema {
		return nil, fmt.Errorf("the schema of its arguments has %d bytes, and %d are taken", b.Len(), maxSchema)
	}
	if _, err := planner.ParseSchema(b.Bytes()); err != nil {
		return nil, fmt.Errorf("its arguments cannot be checked here: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// kept are the keywords of each type that are taken as they are, if they are of the form that is known.
var kept = map[string][]string{
	"string": {"minLength", "maxLength"}, "integer": {"minimum", "maximum"}, "number": {"minimum", "maximum"},
}

func narrowed(m map[string]any, depth int) (map[string]any, error) {
	if depth > maxDepth {
		return nil, errors.New("its arguments are nested too deep")
	}
	typ, err := typeOf(m)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"type": typ}
	if d, ok := m["description"].(string); ok {
		out["description"] = short(d, maxDescription/2)
	}
	for _, key := range kept[typ] {
		if n, ok := m[key].(json.Number); ok {
			out[key] = n
		}
	}
	if list, ok := m["enum"].([]any); ok && len(list) > 0 && len(list) <= model.MaxEnum && !slices.ContainsFunc(list, smuggles) {
		out["enum"] = list
		if trial, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"x": out}}); err != nil || unreadable(trial) {
			delete(out, "enum")
		}
	}
	switch typ {
	case "array":
		if items, ok := m["items"].(map[string]any); ok {
			if inner, err := narrowed(items, depth+1); err == nil {
				out["items"] = inner
			}
		}
	case "object":
		return out, properties(m, out, depth)
	}
	return out, nil
}

// smuggles tells whether a value of an enum has characters in it that nobody sees.
// It is not rewritten: it would mean another value to the server.
func smuggles(v any) bool {
	text, ok := v.(string)
	return ok && model.Visible(text) != text
}

// argument is what a name may be. Anthropic's API refuses the whole request if one
// of any tool is another: "Property keys should
// match pattern ...".
var argument = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func unreadable(schema []byte) bool {
	_, err := planner.ParseSchema(schema)
	return err != nil
}

// typeOf is the one type of a value, null apart.
func typeOf(m map[string]any) (string, error) {
	for _, k := range []string{"$ref", "anyOf", "oneOf", "allOf", "not", "if"} {
		if _, ok := m[k]; ok {
			return "", fmt.Errorf("an argument that it needs is described by %s, which is not known here", k)
		}
	}
	switch t := m["type"].(type) {
	case string:
		return t, nil
	case []any:
		var types []string
		for _, one := range t {
			if s, ok := one.(string); ok && s != "null" {
				types = append(types, s)
			}
		}
		if len(types) == 1 {
			return types[0], nil
		}
	}
	return "", errors.New("an argument that it needs has not one type")
}

// properties narrows those of an object.
func properties(m, out map[string]any, depth int) error {
	all, _ := m["properties"].(map[string]any)
	needed := map[string]bool{}
	if list, ok := m["required"].([]any); ok {
		for _, n := range list {
			name, _ := n.(string)
			needed[name] = true
		}
	}
	props := map[string]any{}
	closed := m["additionalProperties"] == false || depth == 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, ok := all[name].(map[string]any)
		inner, err := map[string]any(nil), errors.New("an argument that it needs is not described")
		switch {
		case !argument.MatchString(name):
			err = errors.New("the name of an argument that it needs is not made of 1 to 64 letters, digits, '_', '-' and '.'")
		case ok:
			inner, err = narrowed(p, depth+1)
		}
		switch {
		case err == nil:
			props[name] = inner
		case needed[name]:
			return err
		default:
			closed = true // what is left out must not be made up
		}
	}
	required := []string{}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if props[name] == nil {
			return errors.New("an argument that it needs is not described")
		}
		required = append(required, name)
	}
	out["properties"], out["required"] = props, required
	if closed {
		out["additionalProperties"] = false
	}
	return nil
}

// refused tells the reason of a server that answered a call with an error of the protocol.
func refused(err error) (string, bool) {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return "", false
	}
	return line(e.Message), true
}
