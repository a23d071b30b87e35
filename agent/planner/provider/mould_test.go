package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"phonerack/agent/planner"
)

// TestMouldsSayWhatTheSDKEncodes asks different things one after the other: each body is what the SDK makes of the request
// itself, whatever stands in its texts.
func TestMouldsSayWhatTheSDKEncodes(t *testing.T) {
	tools := []planner.Tool{
		{Name: "tap", Description: "Taps <once> & no more.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		{Name: "mcp:a/b", InputSchema: json.RawMessage(`{ "type": "object" }`)},
	}
	var asked []planner.Request
	for _, system := range []string{"", "Work a phone.", "\"quoted\"\\ \n\t\u2028 <b>&amp; 手机 \x00"} {
		for _, screen := range []string{"", "\xff\xd8\xff-one", "\xff\xd8\xff-another one"} {
			for _, user := range []string{"Buy a kettle.", `[1] "Search" \ ` + strings.Repeat("<é>", 50), "system:A user:B screen:C"} {
				for n := 1; n <= len(tools); n++ {
					asked = append(asked, planner.Request{SystemPrompt: system, UserPrompt: user, Screen: []byte(screen), Tools: tools[:n]})
				}
			}
		}
	}
	// Tools that differ in one thing from those before.
	described, shaped := tools[0], tools[0]
	described.Description, shaped.InputSchema = "Taps twice.", json.RawMessage(`{"type":"object","properties":{"m":{"type":"string"}}}`)
	for _, tool := range []planner.Tool{described, shaped} {
		asked = append(asked, planner.Request{UserPrompt: "Buy a kettle.", Tools: []planner.Tool{tool}})
	}
	temperature := 0.5
	for _, kind := range Kinds() {
		for _, conf := range []Config{
			{Model: "model-a"},
			{Model: "model-b"},
			{Model: "model-a", BaseURL: "https://models.example/v1"},
			{Model: "model-a", Options: Options{Strict: true, ToolChoice: "named"}},
			{Model: "model-a", Options: Options{Temperature: &temperature, MaxTokens: 100}},
		} {
			conf.Provider = kind
			c, err := New(conf)
			if err != nil {
				t.Fatal(err)
			}
			for i := range asked {
				q, err := c.ask(&asked[i])
				if err != nil {
					t.Fatal(err)
				}
				want, err := protocols[kind].encode(c, &asked[i], base64.StdEncoding.EncodeToString(asked[i].Screen))
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(parsed(t, q.body), parsed(t, want)) {
					t.Fatalf("%s asks\n%s\nwant\n%s", kind, q.body, want)
				}
			}
		}
	}
}

func parsed(t *testing.T, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

func TestMouldsHaveABound(t *testing.T) {
	c, err := New(Config{Provider: Anthropic, Model: "model-a"})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 100<<10)
	for i := range 3 * maxMoulds / (200 << 10) {
		req := planner.Request{UserPrompt: "a", Tools: []planner.Tool{{Name: fmt.Sprint("t", i), Description: long, InputSchema: json.RawMessage(`{"type":"object"}`)}}}
		if _, err := c.ask(&req); err != nil {
			t.Fatal(err)
		}
	}
	size := 0
	for key, m := range moulds.known {
		size += len(key)
		for _, p := range m.parts {
			size += len(p)
		}
	}
	if size != moulds.bytes || size > maxMoulds || size == 0 {
		t.Errorf("%d bytes are remembered, %d are counted, %d are allowed", size, moulds.bytes, maxMoulds)
	}
	tools := []planner.Tool{{Name: "t", Description: strings.Repeat(long, 11), InputSchema: json.RawMessage(`{"type":"object"}`)}}
	if _, err := c.ask(&planner.Request{UserPrompt: "a", Tools: tools}); err != nil || moulds.bytes != size {
		t.Errorf("a mould of a megabyte is remembered, or is none: %v", err)
	}
}
