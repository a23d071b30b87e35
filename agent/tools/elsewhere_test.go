package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

func TestToolsOfElsewhereAreBoundedAndCountAsWrites(t *testing.T) {
	called := 0
	r := tools.Default().Where(func(t tools.Tool) bool { return t.Name == "tap" }).Described(map[string]string{"tap": "Once.", "none": "x"}).With(
		tools.Elsewhere("mcp:a/b", "d", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`), func(context.Context, json.RawMessage) (tools.Answer, error) {
			called++
			return tools.Answer{Text: strings.Repeat("水", 5000), Sent: true}, nil
		}))
	offer := r.Offer()
	if len(offer) != 2 || offer[0].Description != "Once." || offer[1].Name != "mcp:a/b" {
		t.Errorf("%+v", offer)
	}
	out, err := r.Execute(t.Context(), tools.Env{}, planner.Decision{Tool: "mcp:a/b", Arguments: json.RawMessage(`{"n":1}`)})
	if err != nil || !out.Wrote || out.Settle || utf8.RuneCountInString(out.Result) > tools.MaxResult || !strings.HasSuffix(out.Result, "ask for less at once)") {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := r.Execute(t.Context(), tools.Env{}, planner.Decision{Tool: "mcp:a/b", Arguments: json.RawMessage(`{"m":1}`)}); !wire.Is(err, wire.BadArguments) || called != 1 {
		t.Errorf("%v, called %d times", err, called)
	}
	if _, err := r.Execute(t.Context(), tools.Env{}, planner.Decision{Tool: "press_key", Arguments: json.RawMessage(`{"key":"home"}`)}); !wire.Is(err, wire.UnknownTool) {
		t.Errorf("%v", err)
	}
	for _, name := range tools.Control() {
		if tool, ok := byName(name); !ok || tool.Permission != "" {
			t.Errorf("%s is no tool that each task has", name)
		}
	}
}

func byName(name string) (tools.Tool, bool) {
	for _, t := range tools.Default().Tools() {
		if t.Name == name {
			return t, true
		}
	}
	return tools.Tool{}, false
}
