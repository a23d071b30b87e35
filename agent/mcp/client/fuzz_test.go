package client

import (
	"encoding/json"
	"testing"

	"phonerack/agent/planner"
)

// FuzzSubset: whatever a server says, what is offered can be checked.
func FuzzSubset(f *testing.F) {
	for _, s := range []string{
		`{"type":"object"}`, `{}`, `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",1]}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer","minimum":1e400}}}}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		out, err := subset(json.RawMessage(raw))
		if err != nil {
			return
		}
		if _, err := planner.ParseSchema(out); err != nil {
			t.Errorf("%s came out as %s: %v", raw, out, err)
		}
	})
}

func TestSchemasAreNarrowedHonestly(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`{"properties":{"a":{"type":"string","enum":["x","y"],"pattern":"^x"}}}`, `{"additionalProperties":false,"properties":{"a":{"enum":["x","y"],"type":"string"}},"required":[],"type":"object"}`},
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"$ref":"#"},"c":{"type":"boolean"}}}}}`, `{"additionalProperties":false,"properties":{"a":{"additionalProperties":false,"properties":{"c":{"type":"boolean"}},"required":[],"type":"object"}},"required":[],"type":"object"}`},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[]}}}}`, `{"additionalProperties":false,"properties":{"a":{"type":"array"}},"required":[],"type":"object"}`},
		{`{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"]}`, ``},
		{`{"properties":{"a b":{"type":"string"},"ok":{"type":"string"}}}`, `{"additionalProperties":false,"properties":{"ok":{"type":"string"}},"required":[],"type":"object"}`},
		{`{"properties":{"a\u001b[2J":{"type":"string"}},"required":["a\u001b[2J"]}`, ``},
		{`{"properties":{"a":{"type":"string","enum":["x","y\u200b"]}}}`, `{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":[],"type":"object"}`},
		{`{"type":"object","required":["a"]}`, ``},
		{`{"type":"string"}`, ``},
		{`[]`, ``},
	} {
		out, err := subset(json.RawMessage(c.in))
		if string(out) != c.out || (err == nil) != (c.out != "") {
			t.Errorf("%s came out as %s, %v", c.in, out, err)
		}
	}
}
