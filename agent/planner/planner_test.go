package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"phonerack/sync/wire"
)

var offered = []Tool{
	{Name: "tap", InputSchema: json.RawMessage(`{"type":"object","description":"d","properties":{
		"element":{"type":"integer","minimum":0,"maximum":9},
		"mode":{"type":"string","enum":["short","long"]},
		"note":{"type":"string","minLength":2,"maxLength":3},
		"ratio":{"type":"number","minimum":0.5},
		"list":{"type":"array","items":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}},
		"required":["element"],"additionalProperties":false}`)},
	{Name: "free", InputSchema: json.RawMessage(`{"type":"object"}`)},
	{Name: "broken", InputSchema: json.RawMessage(`{"type":"object","pattern":"x"}`)},
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		code       wire.Code
		path       string
		reason     string
	}{
		{"", `{}`, wire.NoToolCall, "", ""},
		{"fly", `not json`, wire.UnknownTool, "", ""}, // the name comes before the arguments
		{"tap", ``, wire.BadArguments, "$", "ends too early"},
		{"tap", `null`, wire.BadArguments, "$", "must be an object"},
		{"tap", `[]`, wire.BadArguments, "$", "must be an object"},
		{"tap", `"{}"`, wire.BadArguments, "$", "must be an object"},
		{"tap", `{"element":1} {}`, wire.BadArguments, "$", "follows"},
		{"tap", `{"element":1,"element":2}`, wire.BadArguments, "$", "twice"},
		{"tap", "{\"element\":1,\"note\":\"\xff\"}", wire.BadArguments, "$", "UTF-8"},
		{"free", strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40), wire.BadArguments, "$", "nested"},
		{"free", `{"a":"` + strings.Repeat("x", maxJSONBytes) + `"}`, wire.BadArguments, "$", "bytes"},
		{"tap", `{}`, wire.BadArguments, "$.element", "is missing"},
		{"tap", `{"element":"1"}`, wire.BadArguments, "$.element", "must be an integer"},
		{"tap", `{"element":1.0}`, wire.BadArguments, "$.element", "must be an integer"},
		{"tap", `{"element":10}`, wire.BadArguments, "$.element", "at most 9"},
		{"tap", `{"element":-1}`, wire.BadArguments, "$.element", "at least 0"},
		{"tap", `{"element":1,"x":1}`, wire.BadArguments, "$.x", "is not an argument"},
		{"tap", `{"element":1,"mode":"slow"}`, wire.BadArguments, "$.mode", `one of "short", "long"`},
		{"tap", `{"element":1,"note":"ä"}`, wire.BadArguments, "$.note", "at least 2"},
		{"tap", `{"element":1,"note":"äöüß"}`, wire.BadArguments, "$.note", "at most 3"},
		{"tap", `{"element":1,"ratio":0.25}`, wire.BadArguments, "$.ratio", "at least 1/2"},
		{"tap", `{"element":1,"ratio":1e999999999}`, wire.BadArguments, "$.ratio", "out of range"},
		{"tap", `{"element":1,"list":[{"ok":true},{"ok":1}]}`, wire.BadArguments, "$.list[1].ok", "must be a boolean"},
		{"broken", `{}`, wire.Internal, "", ""},
		{"tap", `{"element":1,"mode":"long","note":"äöü","ratio":0.5,"list":[{"ok":true,"more":1}]}`, "", "", ""},
		{"free", `{"any":[1,{"thing":null}]}`, "", "", ""},
	} {
		err := Validate(Decision{Tool: c.tool, Arguments: json.RawMessage(c.args)}, offered)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s %.60s: %v", c.tool, c.args, err)
			}
			continue
		}
		if !wire.Is(err, c.code) {
			t.Errorf("%s %.60s: got %v, want %s", c.tool, c.args, err, c.code)
			continue
		}
		args := wire.From(err).Args
		if path, _ := args["path"].(string); path != c.path {
			t.Errorf("%s %.60s: path %q, want %q", c.tool, c.args, path, c.path)
		}
		if reason, _ := args["reason"].(string); !strings.Contains(reason, c.reason) {
			t.Errorf("%s %.60s: reason %q, want %q", c.tool, c.args, reason, c.reason)
		}
	}
}

func TestParseSchemaRefusesWhatItDoesNotCheck(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{`, "too early"},
		{`[]`, "must be an object"},
		{`{}`, "needs a type"},
		{`{"type":["object"]}`, "needs a type"},
		{`{"type":"null"}`, "unknown type"},
		{`{"type":"string"}`, "arguments are an object"},
		{`{"type":"object","oneOf":[]}`, `"oneOf", which is not supported`},
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`, `$.a uses the keyword "pattern"`},
		{`{"type":"object","minLength":1}`, "does not belong"},
		{`{"type":"object","required":["a"]}`, "does not describe"},
		{`{"type":"object","required":"a"}`, `wrong value for "required"`},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `wrong value for "additionalProperties"`},
		{`{"type":"object","properties":{"a":{"type":"string","enum":[1]}}}`, "enum value"},
		{`{"type":"object","properties":{"a":{"type":"string","minLength":-1}}}`, "wrong value"},
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":"1"}}}`, "wrong value"},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"x"}}}}`, "$.a[] has the unknown type"},
	} {
		if _, err := ParseSchema(json.RawMessage(c.schema)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.schema, err, c.want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	for _, tool := range offered {
		f.Add([]byte(tool.InputSchema), []byte(`{"element":1}`))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := ParseSchema(schema)
		if err != nil {
			return
		}
		if s.Check(value) == nil {
			var m map[string]any
			if err := json.Unmarshal(value, &m); err != nil {
				t.Errorf("%s was accepted, but: %v", value, err)
			}
		}
	})
}
