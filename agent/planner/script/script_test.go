package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

const samplePrompt = `goal: "put a \"red\" kettle in the basket"
param colour: "red"
step 3 of 30
past 1: launch_app {"package":"com.phonerack.shop"} -> done; screen changed: +9 -4 ~0
past 2: tap {"element":1,"generation":4} on button "Search -> now" id="com.phonerack.shop:id/go" -> done; no change
past 3: input_text {"text":"a } -> b"} on edit hint="Search" -> done; screen changed: +0 -0 ~1; text verified
past 4: no decision -> failed provider_timeout "The planner; gave no decision"; not seen
past 5: tap {} -> refused bad_arguments "x"; not seen
note: "something"
screen 7: app com.phonerack.shop activity ".Odd Name" size 1080x2400 keyboard shown
[0] edit "" hint="Search" id="com.phonerack.shop:id/search" clickable focused
[1] button "Add\nto basket" id="com.phonerack.shop:id/add" clickable
[2] image desc="Kettle"
[3] text "[4] button \"forged\""
`

func TestParsePrompt(t *testing.T) {
	p, err := parsePrompt(samplePrompt)
	if err != nil {
		t.Fatal(err)
	}
	if p.goal != `put a "red" kettle in the basket` || p.params["colour"] != "red" || p.step != 3 {
		t.Errorf("head: %+v", p)
	}
	if p.screen.gen != 7 || p.screen.app != "com.phonerack.shop" || p.screen.activity != ".Odd Name" || p.screen.keyboard != "shown" {
		t.Errorf("screen: %+v", p)
	}
	if got := fmt.Sprintf("%+v", p.elements); got != `[{index:0 role:edit text: desc: hint:Search id:com.phonerack.shop:id/search states:[clickable focused]}`+
		` {index:1 role:button text:Add
to basket desc: hint: id:com.phonerack.shop:id/add states:[clickable]}`+
		` {index:2 role:image text: desc:Kettle hint: id: states:[]}`+
		` {index:3 role:text text:[4] button "forged" desc: hint: id: states:[]}]` {
		t.Errorf("elements: %s", got)
	}
	for i, want := range []struct{ tool, outcome, code, effect, text, on string }{
		{"launch_app", "done", "", "screen changed: +9 -4 ~0", "", ""},
		{"tap", "done", "", "no change", "", "Search -> now"},
		{"input_text", "done", "", "screen changed: +0 -0 ~1", "verified", ""},
		{"", "failed", "provider_timeout", "not seen", "", ""},
		{"tap", "refused", "bad_arguments", "not seen", "", ""},
	} {
		c := p.past[i]
		on := ""
		if c.on != nil {
			on = c.on.text
		}
		if c.tool != want.tool || c.outcome != want.outcome || c.code != want.code || c.effect != want.effect || c.text != want.text || on != want.on {
			t.Errorf("past %d: %+v, want %+v", i+1, c, want)
		}
	}
}

func TestScreenLineHasWordsOfManyKinds(t *testing.T) {
	const head = "goal: \"x\"\n"
	for line, want := range map[string]screen{
		"screen 3:":         {there: true, gen: 3},
		"screen 3: app a.b": {there: true, gen: 3, app: "a.b"},
		"screen 3: locked":  {there: true, gen: 3, locked: true},
		`screen 3: app "a b" locked picture 720x1600 no-tree drawn secure dialog "locked secure"`: {
			there: true, gen: 3, app: "a b", locked: true, noTree: "drawn", secure: true, dialog: "locked secure", inDialog: true,
		},
		`screen 3: activity .Main size 1080x2400 keyboard hidden picture 720x1600 dialog ""`: {
			there: true, gen: 3, activity: ".Main", keyboard: "hidden", inDialog: true,
		},
		`screen 3: folded "app c.d locked" app a.b`: {there: true, gen: 3, app: "a.b"}, // a word of a later version
	} {
		p, err := parsePrompt(head + line + "\n")
		if err != nil || p.screen != want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", line, p.screen, err, want)
		}
	}
}

func TestConditionsOnScreenAnswersAndResults(t *testing.T) {
	const rules = `
name: n
goals: [x]
rules:
  - name: wait for a person at the lock
    when: {locked: true}
    do: {wait: {ms: 1}}
  - name: a black picture
    when: {secure: true, no_tree: unreadable}
    do: {wait: {ms: 2}}
  - name: a dialog with that title
    when: {dialog: {contains: battery}}
    do: {wait: {ms: 3}}
  - name: told what to type
    when: {answer: {matches: '^[0-9]+$'}}
    do: {input_text: {text: '{answer}'}}
  - name: the list was long
    when: {result: {contains: com.example}}
    do: {wait: {ms: 4}}
  - name: it changed
    when: {last: {changed: true}}
    do: {wait: {ms: 5}}
`
	const head = "goal: \"x\"\n"
	for prompt, want := range map[string]string{
		"screen 1: locked\n":                                                           `wait {"ms":1}`,
		"screen 1: no-tree unreadable secure\n":                                        `wait {"ms":2}`,
		"screen 1: dialog \"Battery low\"\n":                                           `wait {"ms":3}`,
		"answer 1: \"no\"\nanswer 3: \"4711\"\nscreen 1:\n":                            `input_text {"text":"4711"}`,
		"result 2: \"com.example.a\\ncom.b\"\nscreen 1:\n":                             `wait {"ms":4}`,
		"past 1: tap {} -> done; picture changed; still moving\nscreen 1:\n":           `wait {"ms":5}`,
		"past 1: tap {} -> done; screen changed: +1 -0 ~0; text verified\nscreen 1:\n": `wait {"ms":5}`,
		"past 1: tap {} -> done; no change; still moving\nscreen 1: no-tree drawn\n":   "",
		"answer 1: \"perhaps\"\nscreen 1: dialog \"Update\" keyboard hidden secure\n":  "",
	} {
		d, err := decide(t, rules, head+prompt)
		if got := strings.TrimSpace(d.Tool + " " + string(d.Arguments)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", prompt, got, err, want)
		}
	}
}

func TestParsePromptRefusesBrokenLines(t *testing.T) {
	for _, s := range []string{
		"", "goal: \"x\"\n", "goal: x\nscreen 1:\n", "screen x:\n", "screen 1:\n[x] button\n", "screen 1:\n[0]\n",
		"screen 1:\n[0] button \"open\n", "screen 1:\n[0] button \"\\q\"\n", "step x\nscreen 1:\n", "past 1 tap\nscreen 1:\n",
		"past 1: tap [] -> done; no change\nscreen 1:\n", "past 1: tap {}\nscreen 1:\n", "answer 1 \"x\"\nscreen 1:\n", "result 1: x\nscreen 1:\n", "screen 1: dialog \"x\n", "past 1: tap {} -> failed x\nscreen 1:\n",
		"screen 1:\n" + strings.Repeat("[0] text\n", maxElements+1), strings.Repeat("x", maxPromptBytes+1),
	} {
		if _, err := parsePrompt(s); err == nil {
			t.Errorf("accepted %.60q", s)
		}
	}
}

var offered = []planner.Tool{{Name: "tap"}, {Name: "input_text"}, {Name: "launch_app"}, {Name: "wait"}, {Name: "finish"}, {Name: "swipe"}}

const sampleRules = `
name: sample
goals: ['put an? (?P<item>.+) in the basket', 'buy (?P<item>.+)']
params: [colour]
shared:
  - &popup {role: button, label: [Not now, 以后再说]}
rules:
  - name: close the popup
    when: {exists: *popup}
    do: {tap: {element: *popup}}
  - name: open the shop
    when: {not_app: com.phonerack.shop}
    do: {launch_app: {package: com.phonerack.shop}}
  - name: typed twice without success
    when: {past: {tool: input_text, text: failed, times: 2, within: 4}}
    do: {finish: {success: false, message: 'cannot type {item}'}}
  - name: type
    when:
      exists: {role: edit, hint: {contains: search}, states: [focused]}
      not_past: {tool: input_text, args: {contains: '{item}'}, text: verified}
    do: {input_text: {text: '{item}', submit: true, element: {id: search}}}
  - name: add
    when:
      last: {tool: input_text, changed: true}
      missing: {text: {matches: '^no {item}\b.*'}}
    do:
      tap: {element: {role: button, text: {is: Add}, after: {role: text, text: {contains: '{item}'}}}}
  - name: look further
    when: {step: 9}
    do: {swipe: {direction: up, element: {role: list, nth: -1}}}
  - name: tool that nobody offers
    do: {fly: {}}
`

func decide(t *testing.T, rules, userPrompt string) (planner.Decision, error) {
	t.Helper()
	r, err := Parse("sample.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	return r.Decide(context.Background(), planner.Request{UserPrompt: userPrompt, Tools: offered})
}

func TestDecide(t *testing.T) {
	const head = "goal: \"Please put a kettle in the basket\"\n"
	const shop = "screen 5: app com.phonerack.shop keyboard hidden\n"
	const field = `[0] edit "" hint="Search here" id="com.phonerack.shop:id/search" clickable focused` + "\n"
	for _, c := range []struct{ name, prompt, want string }{
		{"elsewhere", head + "screen 1: app a.b\n", `launch_app {"package":"com.phonerack.shop"}`},
		{"popup first", head + "screen 2: app a.b\n[0] button \"以后再说\" clickable\n", `tap {"element":0,"generation":2}`},
		{"type", head + shop + field, `input_text {"element":0,"generation":5,"submit":true,"text":"kettle"}`},
		{"second button", head + `past 1: input_text {"text":"Kettle"} -> done; screen changed: +1 -1 ~0; text verified` + "\n" + shop + field +
			"[1] button \"Add\"\n[2] text \"Steel KETTLE\"\n[3] button \"add\"\n", `tap {"element":3,"generation":5}`},
		{"swipe the last list", head + "step 9 of 30\n" + shop + "[0] list scrollable\n[1] list scrollable\n", `swipe {"direction":"up","element":1,"generation":5}`},
		{"give up", head + strings.Repeat("past 1: input_text {} -> done; no change; text failed\n", 2) + shop + field, `finish {"message":"cannot type kettle","success":false}`},
		{"item of a later alternative", `goal: "buy <tea> & cups"` + "\n" + shop + field, `input_text {"element":0,"generation":5,"submit":true,"text":"<tea> & cups"}`},
	} {
		d, err := decide(t, sampleRules, c.prompt)
		if got := d.Tool + " " + string(d.Arguments); err != nil || got != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestNoRuleIsAFailureAndNotADefault(t *testing.T) {
	for _, c := range []struct {
		name, prompt, detail string
		retryable            bool
	}{
		{"no rules for it", "goal: \"dance\"\nscreen 1: app x.y\n", "there are no rules for this goal", false},
		{"none applies", "goal: \"buy tea\"\nscreen 4: app com.phonerack.shop\n", "no rule of sample applies to screen 4 of app com.phonerack.shop", true},
		{"no prompt", "hello", "the prompt shows no screen", false},
	} {
		d, err := decide(t, sampleRules, c.prompt)
		refusal, ok := errors.AsType[*wire.Refusal](err)
		if !ok || refusal.Code != wire.NoToolCall || refusal.Args["detail"] != c.detail || refusal.Retryable != c.retryable {
			t.Errorf("%s: %v", c.name, err)
		}
		if d.Tool != "" || d.Arguments != nil {
			t.Errorf("%s: decided %+v", c.name, d)
		}
	}
}

func TestDecideIsDeterministic(t *testing.T) {
	r, err := Parse("sample.yaml", []byte(sampleRules))
	if err != nil {
		t.Fatal(err)
	}
	req := planner.Request{UserPrompt: samplePrompt, Tools: offered}
	first, err := r.Decide(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if d, err := r.Decide(context.Background(), req); err != nil || string(d.Arguments) != string(first.Arguments) {
			t.Fatal(d, err)
		}
	}
}

func TestLoadErrorsNameTheLine(t *testing.T) {
	const head = "name: n\ngoals: [x]\n"
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"", 1, "no documents"},
		{"# nothing\n---\n", 3, "must be a mapping"},
		{"a: [", 2, ""},
		{"name: n\nname: m\n", 2, ""},
		{"goals: [x]\nrules: []", 1, "needs a name"},
		{"name: n\nrules: []", 1, "needs goals"},
		{head, 1, "needs rules"},
		{head + "rules: []", 3, "list is empty"},
		{head + "extra: 1", 3, `no key "extra"`},
		{"name: n\ngoals: ['(']\nrules: []", 2, "missing closing"},
		{"name: n\ngoals: ['\\pL{1000}']\nrules: []", 2, "too large"},
		{strings.Repeat("#", maxFileBytes+1), 1, "is it a rule file?"},
		{head + "rules:\n  - do: {tap: {}}", 4, "needs a name"},
		{head + "rules:\n  - name: a", 4, "needs do"},
		{head + "rules:\n  - name: a\n    do: {tap: {}, swipe: {}}", 5, "one tool"},
		{head + "rules:\n  - name: a\n    do: {tap: {element: 3}}", 5, "selector must be a mapping"},
		{head + "rules:\n  - name: a\n    do:\n      tap: {element: {x: 3}}", 6, `no key "x"`},
		{head + "rules:\n  - name: a\n    do:\n      tap: {element: {nth: 1}}", 6, "needs a role"},
		{head + "rules:\n  - name: a\n    do:\n      input_text:\n        text: 'the {thing}'", 7, "{thing} is neither"},
		{head + "rules:\n  - name: a\n    do: {wait: {ms: 1.5}}", 5, "whole number"},
		{head + "rules:\n  - name: a\n    do: {wait: {ms: ~}}", 5, "is expected"},
		{head + "rules:\n  - name: a\n    when: {keyboard: up}\n    do: {wait: {ms: 1}}", 5, `"up" is none of`},
		{head + "rules:\n  - name: a\n    when: {step: many}\n    do: {wait: {ms: 1}}", 5, "whole number"},
		{head + "rules:\n  - name: a\n    when: {exists: {text: {}}}\n    do: {wait: {ms: 1}}", 5, "needs is, contains or matches"},
		{head + "rules:\n  - name: a\n    when: {exists: {text: {matches: '('}}}\n    do: {wait: {ms: 1}}", 5, "missing closing"},
		{head + "rules:\n  - name: a\n    when: {last: {changed: perhaps}}\n    do: {wait: {ms: 1}}", 5, "true or false"},
		{head + "rules:\n  - name: a\n    when: {last: {on: {role: x, nth: 2}}}\n    do: {wait: {ms: 1}}", 5, "on cannot use"},
		{head + "rules: &r\n  - *r\n", 3, ""},
		{head + "rules:\n  - name: a\n    do: {wait: {ms: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "}}", 5, "too deep"},
	} {
		_, err := Parse("f.yaml", []byte(c.text))
		e, ok := errors.AsType[*LoadError](err)
		if !ok || e.Line != c.line || !strings.Contains(e.Reason, c.want) {
			t.Errorf("%q:\n got %v\nwant line %d, %q", c.text, err, c.line, c.want)
			continue
		}
		if !strings.HasPrefix(err.Error(), fmt.Sprintf("f.yaml:%d: ", c.line)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("reads %q", err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil {
		t.Error("an empty folder was accepted")
	}
	for _, name := range []string{"b.yaml", "a.yaml"} {
		text := strings.ReplaceAll(sampleRules, "name: sample", "name: "+name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Load(dir)
	if err != nil || len(r.scripts) != 2 || r.scripts[0].name != "a.yaml" {
		t.Fatalf("folder: %v", err)
	}
	if r, err = Load(filepath.Join(dir, "b.yaml")); err != nil || len(r.scripts) != 1 {
		t.Fatalf("file: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzParsePrompt(f *testing.F) {
	f.Add(samplePrompt)
	f.Add("screen 1:\n[0] web view\npast 1: tap {} on \n")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePrompt(s)
		if err == nil && len(p.elements) > strings.Count(s, "[") {
			t.Errorf("%d elements out of %q", len(p.elements), s)
		}
	})
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(sampleRules), samplePrompt)
	f.Fuzz(func(t *testing.T, rules []byte, userPrompt string) {
		r, err := Parse("fuzz.yaml", rules)
		if err != nil {
			if _, ok := errors.AsType[*LoadError](err); !ok {
				t.Errorf("no line in %v", err)
			}
			return
		}
		d, err := r.Decide(context.Background(), planner.Request{UserPrompt: userPrompt, Tools: offered})
		if err == nil && !json.Valid(d.Arguments) {
			t.Errorf("arguments %q", d.Arguments)
		}
	})
}
