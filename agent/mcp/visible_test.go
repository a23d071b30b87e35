package mcp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/skill/model"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		`"plain 中文"`:                       `"plain 中文"`,
		"\"a\u200bb\"":                     `"ab"`,
		`"a\u200bb\u0007c\bd\ne\\u200b"`:   `"abcd\ne\\u200b"`,
		`"tag \udb40\udc41\ud83d\ude00"`:   `"tag \ud83d\ude00"`,
		`"half \ud83d\u0041 \udb40"`:       `"half \ud83d\u0041 \udb40"`,
		"\"\U000e0041👨\u200d👩 ❤\ufe0f\"":   "\"👨\u200d👩 ❤\ufe0f\"",
		"line\nand\ttab\x1b[31m\u0085\x7f": "line\nand\ttab[31m",
		`ends with \`:                      `ends with \`,
	} {
		if got := string(visible([]byte(text), false)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	const secret = "\"a\u200b\U000e0041\u0085\""
	if got := string(visible([]byte(secret), true)); got != `"a\u200b\udb40\udc41\u0085"` {
		t.Errorf("literal: %q", got)
	}
}

// FuzzVisible: JSON stays JSON, nothing invisible is left in it, and what is
// escaped means the same.
func FuzzVisible(f *testing.F) {
	f.Add("plain")
	f.Add("a\u200b\U000e0041\x1b👨\u200d👩\\u200b\b\"")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // JSON has no such text
		}
		raw, err := compact(map[string]any{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		var clean, same map[string]string
		if err := json.Unmarshal(visible(raw, false), &clean); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, h := range model.FindHidden(clean["text"]) {
			// A joiner whose picture went with what was left out may now stand alone.
			if h.Rune != 0x200d && h.Rune != 0xfe0f {
				t.Errorf("%q: %v is left", text, h)
			}
		}
		if strings.ContainsFunc(clean["text"], control) {
			t.Errorf("%q: a control character is left in %q", text, clean["text"])
		}
		if err := json.Unmarshal(visible(raw, true), &same); err != nil || same["text"] != text {
			t.Errorf("%q means %q: %v", text, same["text"], err)
		}
	})
}

func TestPlaceReadsOnlyItsOwnCursors(t *testing.T) {
	for _, id := range []string{"a", "shop-search", "agent_skills/pdf", "项目", strings.Repeat("x", 255)} {
		if got, err := place(cursor(id)); err != nil || got != id {
			t.Errorf("%q: %q, %v", id, got, err)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add("")
	f.Add(cursor("a"))
	f.Add("czE6")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := place(text); err == nil && text != "" && (id == "" || cursor(id) != text) {
			t.Errorf("%q is taken for %q", text, id)
		}
	})
}

func TestSlottedLosesNothing(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"slot":{"type":"string"}},"additionalProperties":false}`: "its arguments are open, or have a slot already",
		`{"type":"object","properties":{},"additionalProperties":true}`:                          "its arguments are open, or have a slot already",
		`{"type":"object","properties":{},"additionalProperties":false,"anyOf":[]}`:              `json: unknown field "anyOf"`,
	} {
		if _, err := slotted(json.RawMessage(schema)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", schema, err)
		}
	}
	slot, rest, err := takeSlot(json.RawMessage(`{"b":[1,{"slot":2}],"slot":7,"a":"<&>"}`))
	if err != nil || slot != 7 || !reflect.DeepEqual(string(rest), `{"a":"<&>","b":[1,{"slot":2}]}`) {
		t.Errorf("%d %s %v", slot, rest, err)
	}
}
