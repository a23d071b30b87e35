package script_test

import (
	"context"
	"fmt"
	"testing"

	"phonerack/agent/planner"
	"phonerack/agent/planner/script"
)

// TestReport16_ShippedRulesNeverTypeTwice: after a text that is said not to have
// arrived the field is emptied, also one that is shown empty.
func TestReport16_ShippedRulesNeverTypeTwice(t *testing.T) {
	rules, err := script.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	const (
		failed  = `past 1: input_text {"text":"x"} -> failed text_differs "x"; no change; text failed` + "\n"
		cleared = `past 2: clear_text {} -> done; no change; text verified` + "\n"
	)
	for _, c := range []struct{ goal, screen, typing string }{
		{
			"search the shop for a kettle and put it in the basket",
			`screen 4: app com.phonerack.shop keyboard shown` + "\n" + `[0] edit %s hint="Search" id="com.phonerack.shop:id/search" clickable focused` + "\n",
			`input_text {"element":0,"generation":4,"submit":true,"text":"kettle"}`,
		},
		{
			"Send the message 'hello' to Mei Lin",
			`screen 4: app com.phonerack.messenger keyboard shown` + "\n" + `[0] edit %s id="com.phonerack.messenger:id/input" clickable focused` + "\n" +
				`[1] text "Mei Lin" id="com.phonerack.messenger:id/title"` + "\n",
			`input_text {"element":0,"generation":4,"text":"hello"}`,
		},
	} {
		for _, shown := range []string{`""`, `"ketle"`} {
			for past, want := range map[string]string{failed: `clear_text {"element":0,"generation":4}`, failed + cleared: c.typing} {
				d, err := rules.Decide(context.Background(), planner.Request{
					UserPrompt: fmt.Sprintf("goal: %q\n%s"+c.screen, c.goal, past, shown),
					Tools:      []planner.Tool{{Name: "tap"}, {Name: "input_text"}, {Name: "clear_text"}, {Name: "press_key"}, {Name: "finish"}},
				})
				if got := d.Tool + " " + string(d.Arguments); err != nil || got != want {
					t.Errorf("%s, %s shown, after %q: %s, %v; want %s", c.goal, shown, past, got, err, want)
				}
			}
		}
	}
}
