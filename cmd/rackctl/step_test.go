package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStepLines(t *testing.T) {
	for _, c := range []struct{ step, want string }{
		{`{"tool":"launch_app","arguments":{"package":"com.phonerack.shop"}}`, `launch_app com.phonerack.shop`},
		{
			`{"tool":"input_text","arguments":{"element":1,"generation":4,"text":"a \"kettle\"","submit":true},"target":"edit hint=\"Search products\""}`,
			`input_text "a \"kettle\"" into edit hint="Search products" and enter`,
		},
		{`{"tool":"input_text","arguments":{"text":"(not kept)"},"target":"edit id=\"pw\""}`, `input_text (not kept) into edit id="pw"`},
		{`{"tool":"input_text","arguments":{"text":"` + strings.Repeat("é", 70) + `"}}`, `input_text "` + strings.Repeat("é", 60) + `…"`},
		{`{"tool":"press_key","arguments":{"key":"enter"}}`, `press_key enter`},
		{`{"tool":"swipe","arguments":{"direction":"up"},"target":"list"}`, `swipe up on list`},
		{`{"tool":"tap","arguments":{"element":3},"target":"button \"Go\""}`, `tap button "Go"`},
		{`{"tool":"wait","arguments":{"ms":500}}`, `wait 500 ms`},
		{`{"tool":"tap","arguments":{"key":7}}`, `tap`},
		{`{}`, `no decision`},
	} {
		var s step
		if err := json.Unmarshal([]byte(c.step), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.act(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	s := step{Outcome: "done", Effect: "no change", Text: "failed"}
	if got := s.came(); got != "done; no change; text failed" {
		t.Errorf("came to %q", got)
	}
	var refused step
	if err := json.Unmarshal([]byte(`{"outcome":"failed","effect":"not seen","refusal":{"code":"bad_arguments"}}`), &refused); err != nil {
		t.Fatal(err)
	}
	if got := refused.came(); got != "failed bad_arguments; not seen" {
		t.Errorf("came to %q", got)
	}
}
