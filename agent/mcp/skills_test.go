package mcp_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"phonerack/agent/mcp/mcptest"
	"phonerack/agent/tools"
)

// listed are the tools of a server by name.
func (b *bench) listed() map[string]map[string]any {
	b.Helper()
	all := map[string]map[string]any{}
	for _, t := range b.ask(modern, "tools/list", nil, nil).Result["tools"].([]any) {
		tool := t.(map[string]any)
		all[tool["name"].(string)] = tool
	}
	return all
}

func TestSpec000_SkillsOverMCP(t *testing.T) {
	t.Run("list_skills/search_skills/get_skill only ever surface skills the current deployment is actually subscribed to", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow), draft(t, "manners", noteKnowledge))
		b.skills.Entitle("shop", "desk")
		b.skills.Entitle("manners", "guest")
		ids := func(r result) string {
			var got []string
			for _, row := range r.Object["skills"].([]any) {
				got = append(got, row.(map[string]any)["id"].(string))
			}
			return strings.Join(got, " ")
		}
		if got := ids(b.call("list_skills", nil, nil)); got != "shop-search" {
			t.Errorf("desk lists %q", got)
		}
		if got := ids(b.call("list_skills", nil, guest)); got != "shop-manners" {
			t.Errorf("guest lists %q", got)
		}
		if got := ids(b.call("search_skills", map[string]any{"query": "shop"}, guest)); got != "shop-manners" {
			t.Errorf("guest finds %q", got)
		}
		for _, tool := range []string{"get_skill", "resolve_skill_parameters"} {
			hidden := b.call(tool, map[string]any{"id": "shop-search"}, guest)
			unknown := b.call(tool, map[string]any{"id": "shop-nothing"}, guest)
			if hidden.code() != "not_found" || len(hidden.Texts) != len(unknown.Texts) {
				t.Fatalf("%s: %+v, %+v", tool, hidden, unknown)
			}
			for i := range hidden.Texts {
				if got := strings.ReplaceAll(hidden.Texts[i], "shop-search", "shop-nothing"); got != unknown.Texts[i] {
					t.Errorf("%s tells a hidden skill from an unknown one: %q, %q", tool, hidden.Texts[i], unknown.Texts[i])
				}
			}
		}
	})
	t.Run("a revocation known locally hides a skill at once", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow))
		b.skills.Entitle("shop", "desk")
		if r := b.call("get_skill", map[string]any{"id": "shop-search"}, nil); r.IsError {
			t.Fatalf("%+v", r)
		}
		b.skills.Entitle("shop")
		if r := b.call("get_skill", map[string]any{"id": "shop-search"}, nil); r.code() != "not_found" {
			t.Errorf("%+v", r)
		}
		if r := b.call("list_skills", nil, nil); len(r.Object["skills"].([]any)) != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("get_skill returns metadata + content/template", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow), draft(t, "shop", noteKnowledge))
		b.skills.Entitle("shop", "desk")
		flow := b.call("get_skill", map[string]any{"id": "shop-search"}, nil)
		want := `{"id":"shop-search","name":"Search the shop","kind":"flow_template","description":"Finds an article in the shop","version":"3","tags":["shop"],"source":"catalog","subscription_id":"shop",` +
			`"parameters":[{"name":"query","type":"string","required":true,"description":"what to look for"},{"name":"times","type":"integer","default":500}],` +
			`"steps":[{"tool":"launch_app","args_template":{"package":"com.example.shop"}},{"tool":"input_text","args_template":{"text":"{query}"}},{"tool":"wait","args_template":{"ms":"{times}"}}]}`
		if flow.Texts[0] != want || !sameJSON(t, flow.raw, want) {
			t.Errorf("flow template:\n%s", flow.Texts[0])
		}
		knowledge := b.call("get_skill", map[string]any{"id": "shop-manners"}, nil)
		if knowledge.Object["content"] != "Look before you buy.\n" || knowledge.Object["kind"] != "knowledge" {
			t.Errorf("knowledge: %v", knowledge.Object)
		}
	})
	t.Run("missing required parameters are named, and nothing is executed", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteFlow))
		b.skills.Entitle("shop", "desk")
		r := b.call("resolve_skill_parameters", map[string]any{"id": "shop-search", "values": map[string]any{"colour": "red", "times": "many"}}, nil)
		if !r.IsError || r.Texts[0] != `the parameters do not fit: missing: query; unknown: "colour"; times must be a whole number, and is a text` {
			t.Errorf("%+v", r)
		}
		r = b.call("resolve_skill_parameters", map[string]any{"id": "shop-search", "slot": mcptest.Slot, "values": map[string]any{"query": "a {times}; input keyevent 3\u200d"}}, nil)
		want := `{"calls":[{"tool":"launch_app","arguments":{"package":"com.example.shop","slot":3}},{"tool":"input_text","arguments":{"slot":3,"text":"a {times}; input keyevent 3\u200d"}},{"tool":"wait","arguments":{"ms":500,"slot":3}}]}`
		if r.IsError || r.Texts[0] != want || !sameJSON(t, r.raw, want) {
			t.Errorf("%+v", r)
		}
		if acts := b.devices.Phone.Acts(); len(acts) != 0 {
			t.Errorf("the phone was touched: %v", acts)
		}
		for _, call := range r.Object["calls"].([]any) { // they are what tools/call takes
			c := call.(map[string]any)
			if got := b.call(c["tool"].(string), c["arguments"].(map[string]any), nil); got.code() == "bad_arguments" {
				t.Errorf("%v: %v", c, got.Texts)
			}
		}
	})
	t.Run("a step with an unregistered tool is a clear error", func(t *testing.T) {
		broken := draft(t, "shop", strings.ReplaceAll(noteFlow, "tool: wait", "tool: warp"))
		b := newBench(t, broken)
		b.skills.Entitle("shop", "desk")
		r := b.call("resolve_skill_parameters", map[string]any{"id": broken.ID, "values": map[string]any{"query": "x"}}, nil)
		if !r.IsError || r.Texts[0] != `skill unavailable: step 3 calls tool "warp", which is not registered` {
			t.Errorf("%+v", r)
		}
	})
	t.Run("D5: knowledge has nothing to resolve", func(t *testing.T) {
		b := newBench(t, draft(t, "shop", noteKnowledge))
		b.skills.Entitle("shop", "desk")
		if r := b.call("resolve_skill_parameters", map[string]any{"id": "shop-manners"}, nil); !r.IsError || !strings.Contains(r.Texts[0], "knowledge") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("D2, D5: there is no create, update or run_skill tool", func(t *testing.T) {
		b := newBench(t)
		var skills []string
		for name, tool := range b.listed() {
			if !strings.Contains(name, "skill") {
				continue
			}
			skills = append(skills, name)
			if hints := tool["annotations"].(map[string]any); hints["readOnlyHint"] != true || hints["destructiveHint"] != false || hints["openWorldHint"] != false {
				t.Errorf("%s may do more than read: %v", name, hints)
			}
		}
		slices.Sort(skills)
		if want := []string{"get_skill", "list_skills", "resolve_skill_parameters", "search_skills"}; !slices.Equal(skills, want) {
			t.Errorf("tools of skills: %v", skills)
		}
		for _, name := range []string{"create_skill", "update_skill", "delete_skill", "run_skill", "run_skill_flow"} {
			if r := b.ask(modern, "tools/call", map[string]any{"name": name, "arguments": map[string]any{}}, nil); r.Error == nil || r.Error.Code != -32602 {
				t.Errorf("%s: %+v", name, r)
			}
		}
	})
	t.Run("skills.enabled = false leaves device tools only", func(t *testing.T) {
		b := newBench(t)
		b.server.SetSkills(nil)
		all := b.listed()
		for name := range all {
			if strings.Contains(name, "skill") {
				t.Errorf("%s is left", name)
			}
		}
		if all["tap"] == nil {
			t.Error("tap is gone")
		}
		if r := b.ask(modern, "tools/call", map[string]any{"name": "list_skills", "arguments": map[string]any{}}, nil); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("list_skills: %+v", r)
		}
	})
}

func sameJSON(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return false
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func TestSkillsArePagedByOpaqueCursors(t *testing.T) {
	b := newBench(t)
	var all []string
	skills := mcptest.NewSkills()
	for i := range 60 {
		id := fmt.Sprintf("skill-%02d", i)
		all = append(all, id)
		skills = mcptest.NewSkills(append(skills.All(), draft(t, "shop", strings.Replace(noteKnowledge, "shop-manners", id, 1)))...)
	}
	skills.Entitle("shop", "desk")
	b.server.SetSkills(skills)
	var got []string
	cursor, pages := "", 0
	for {
		args := map[string]any{}
		if cursor != "" {
			args["cursor"] = cursor
		}
		r := b.call("list_skills", args, nil)
		for _, row := range r.Object["skills"].([]any) {
			got = append(got, row.(map[string]any)["id"].(string))
		}
		pages++
		next, more := r.Object["next_cursor"].(string)
		if !more {
			break
		}
		if strings.Contains(next, "skill") || pages > 10 {
			t.Fatalf("cursor %q after page %d", next, pages)
		}
		cursor = next
	}
	if !slices.Equal(got, all) || pages != 3 {
		t.Errorf("%d pages: %v", pages, got)
	}
}

func TestALongTextComesInParts(t *testing.T) {
	long := draft(t, "shop", noteKnowledge)
	long.Content = strings.Repeat("长文", 50_000) + "."
	b := newBench(t, long)
	b.skills.Entitle("shop", "desk")
	var text strings.Builder
	for offset, parts := 0, 0; ; parts++ {
		r := b.call("get_skill", map[string]any{"id": long.ID, "offset": offset}, nil)
		if r.IsError || r.Object["content_length"] != 100_001.0 || parts > 3 {
			t.Fatalf("part %d: %v %v", parts, r.Texts[0][:100], r.Object["content_length"])
		}
		text.WriteString(r.Object["content"].(string))
		next, more := r.Object["next_offset"].(float64)
		if !more {
			break
		}
		offset = int(next)
	}
	if text.String() != long.Content {
		t.Errorf("%d bytes of %d", text.Len(), len(long.Content))
	}
	if r := b.call("get_skill", map[string]any{"id": long.ID, "offset": 100_002}, nil); r.code() != "bad_arguments" {
		t.Errorf("behind the end: %+v", r)
	}
}

func TestInvisibleCharactersOfSkillsAreLeftOut(t *testing.T) {
	smuggler := draft(t, "shop", noteKnowledge)
	smuggler.Content = "Look\u200b before\U000e0041 you\u202e buy.\x1b[2J\x07 👨\u200d👩\u200d👧 ❤\ufe0f\n\tIndented."
	smuggler.Name = "Manners\u2066"
	b := newBench(t, smuggler)
	b.skills.Entitle("shop", "desk")
	r := b.call("get_skill", map[string]any{"id": smuggler.ID}, nil)
	if got := r.Object["content"]; got != "Look before you buy.[2J 👨\u200d👩\u200d👧 ❤\ufe0f\n\tIndented." {
		t.Errorf("content: %q", got)
	}
	if got := fmt.Sprint(r.Object["warnings"]); !strings.Contains(got, "left out of content: U+200B zero width space") || !strings.Contains(got, "left out of name: U+2066") {
		t.Errorf("warnings: %s", got)
	}
	if row := b.call("list_skills", nil, nil).Object["skills"].([]any)[0].(map[string]any); row["name"] != "Manners" {
		t.Errorf("name in the list: %q", row["name"])
	}
}

// TestToolsKeepTheirWord holds the list of tools to what the protocol and
// docs/tools.md ask, and what they answer to their output schemas.
func TestToolsKeepTheirWord(t *testing.T) {
	b := newBench(t, draft(t, "shop", noteFlow), draft(t, "shop", noteKnowledge))
	b.skills.Entitle("shop", "desk")
	b.devices.Phone.Installed = nil
	name := regexp.MustCompile(`^[a-z_]{1,64}$`)
	listed := b.listed()
	schemas := map[string]*jsonschema.Resolved{}
	for n, tool := range listed {
		if !name.MatchString(n) || tool["description"] == "" {
			t.Errorf("%s: %v", n, tool)
		}
		for _, key := range []string{"inputSchema", "outputSchema"} {
			raw, err := json.Marshal(tool[key])
			if err != nil {
				t.Fatal(err)
			}
			var schema jsonschema.Schema
			if err := json.Unmarshal(raw, &schema); err != nil || schema.Type != "object" {
				t.Fatalf("%s: %s: %v", n, key, err)
			}
			resolved, err := schema.Resolve(nil)
			if err != nil {
				t.Fatalf("%s: %s: %v", n, key, err)
			}
			if key == "outputSchema" {
				schemas[n] = resolved
			}
			if strings.Contains(string(raw), "$ref") {
				t.Errorf("%s: %s refers elsewhere", n, key)
			}
		}
	}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"list_skills", nil},
		{"search_skills", map[string]any{"query": "shop"}},
		{"search_skills", map[string]any{"query": "nothing of the kind"}},
		{"get_skill", map[string]any{"id": "shop-search"}},
		{"get_skill", map[string]any{"id": "shop-manners"}},
		{"resolve_skill_parameters", map[string]any{"id": "shop-search", "values": map[string]any{"query": "x"}}},
		{"list_phones", nil},
		{"hold_slot", map[string]any{"slot": 3}},
		{"observe", map[string]any{"slot": 3}},
		{"take_screenshot", map[string]any{"slot": 3}},
		{"press_key", map[string]any{"slot": 3, "key": "home"}},
		{"list_apps", map[string]any{"slot": 3}},
		{"wait", map[string]any{"slot": 3, "ms": 100}},
		{"release_slot", map[string]any{"slot": 3}},
	} {
		r := b.call(c.tool, c.args, nil)
		if r.IsError {
			t.Errorf("%s: %v", c.tool, r.Texts)
			continue
		}
		if err := schemas[c.tool].Validate(r.Object); err != nil {
			t.Errorf("%s answers what its schema does not say: %v: %s", c.tool, err, r.raw)
		}
		if !sameJSON(t, r.raw, r.Texts[0]) {
			t.Errorf("%s: the text is not the object: %s", c.tool, r.Texts[0])
		}
	}
}

func TestPhonesHaveTheToolsOfPlanners(t *testing.T) {
	b := newBench(t)
	listed := b.listed()
	var left []string
	for _, tool := range tools.Default().Tools() {
		got, ok := listed[tool.Name]
		if !ok {
			left = append(left, tool.Name)
			continue
		}
		var want map[string]any
		if err := json.Unmarshal(tool.Schema, &want); err != nil {
			t.Fatal(err)
		}
		schema := got["inputSchema"].(map[string]any)
		properties := schema["properties"].(map[string]any)
		if properties["slot"] == nil || !slices.Contains(schema["required"].([]any), any("slot")) {
			t.Errorf("%s needs no slot: %v", tool.Name, schema)
		}
		delete(properties, "slot")
		schema["required"] = slices.DeleteFunc(schema["required"].([]any), func(v any) bool { return v == "slot" })
		if want["required"] == nil {
			want["required"] = []any{}
		}
		if fmt.Sprint(schema) != fmt.Sprint(want) {
			t.Errorf("%s: schema %v, want %v", tool.Name, schema, want)
		}
		hints := got["annotations"].(map[string]any)
		a := tool.Annotations
		if hints["readOnlyHint"] != a.ReadOnly || hints["destructiveHint"] != a.Destructive || hints["idempotentHint"] != a.Idempotent || hints["openWorldHint"] != a.OpenWorld {
			t.Errorf("%s: hints %v", tool.Name, hints)
		}
	}
	if want := []string{"set_clipboard", "stop_app", "install_app", "read_document", "pull_file", "ask_human", "finish", "fail"}; !slices.Equal(left, want) {
		t.Errorf("left out: %v, want %v", left, want)
	}
}

func TestToolsThatNeedAPermissionAreOfferedWithIt(t *testing.T) {
	devices := mcptest.NewDevices()
	devices.Allowed = []string{tools.PermitStop, tools.PermitClipboard, tools.PermitInstall, tools.PermitFiles}
	b := newBenchWith(t, devices)
	listed := b.listed()
	for name, want := range map[string]bool{"stop_app": true, "set_clipboard": true, "read_document": true, "install_app": false, "pull_file": false, "finish": false} {
		if _, ok := listed[name]; ok != want {
			t.Errorf("%s is offered: %v", name, ok)
		}
	}
	b = newBench(t)
	if r := b.ask(modern, "tools/call", map[string]any{"name": "stop_app", "arguments": map[string]any{"slot": 3, "package": "com.example.shop"}}, nil); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("without the permission: %+v", r)
	}
}

func TestActsOnAPhone(t *testing.T) {
	b := newBench(t)
	seen := b.call("observe", map[string]any{"slot": 3}, nil)
	screen, _ := seen.Object["screen"].(map[string]any)
	if seen.IsError || screen["package"] != "com.example.shop" || !strings.Contains(screen["elements"].(string), `"Buy\u200b now"`) {
		t.Fatalf("observe: %+v", seen)
	}
	tapped := b.call("tap", map[string]any{"slot": 3, "element": 0, "generation": screen["generation"]}, nil)
	if tapped.IsError || tapped.Object["wrote"] != true {
		t.Errorf("tap: %+v", tapped)
	}
	if acts := b.devices.Phone.Acts(); len(acts) != 1 || !strings.HasPrefix(acts[0], "tap") {
		t.Errorf("acts: %v", acts)
	}
	if r := b.call("observe", map[string]any{"slot": 3}, nil); r.IsError {
		t.Fatal(r)
	}
	if r := b.call("tap", map[string]any{"slot": 3, "element": 0, "generation": screen["generation"]}, nil); r.code() != "stale_element" {
		t.Errorf("an element of an old look: %+v", r)
	}
	if r := b.call("take_screenshot", map[string]any{"slot": 3}, nil); r.Images != 1 || r.IsError {
		t.Errorf("take_screenshot: %+v", r)
	}
	for name, args := range map[string]map[string]any{
		"without a slot":      {"key": "home"},
		"a slot that is text": {"slot": "3", "key": "home"},
		"slot 0":              {"slot": 0, "key": "home"},
		"an unknown argument": {"slot": 3, "key": "home", "shell": "reboot"},
		"another letter case": {"slot": 3, "Key": "home"},
		"an unknown key":      {"slot": 3, "key": "power"},
		"a list":              {"slot": []int{3}, "key": "home"},
	} {
		if r := b.call("press_key", args, nil); r.code() != "bad_arguments" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := b.call("press_key", map[string]any{"slot": 9, "key": "home"}, nil); r.code() != "slot_unknown" {
		t.Errorf("slot 9: %+v", r)
	}
}

func TestPhonesOfOthersAreNotTouched(t *testing.T) {
	b := newBench(t)
	if r := b.call("hold_slot", map[string]any{"slot": 3, "seconds": 60}, nil); r.IsError || r.Object["until"] != "2026-11-30T12:00:00Z" {
		t.Fatalf("%+v", r)
	}
	before := len(b.devices.Phone.Acts())
	r := b.call("press_key", map[string]any{"slot": 3, "key": "home"}, guest)
	if r.code() != "slot_busy" || !strings.Contains(r.Texts[0], "held by desk") {
		t.Errorf("%+v", r)
	}
	if got := len(b.devices.Phone.Acts()); got != before {
		t.Error("the phone was touched all the same")
	}
	if r := b.call("press_key", map[string]any{"slot": 3, "key": "home"}, nil); r.IsError {
		t.Errorf("the holder: %+v", r)
	}
	if r := b.call("release_slot", map[string]any{"slot": 3}, guest); r.code() != "slot_busy" {
		t.Errorf("release by another: %+v", r)
	}
	if r := b.call("release_slot", map[string]any{"slot": 3}, nil); r.IsError {
		t.Errorf("release: %+v", r)
	}
	if r := b.call("press_key", map[string]any{"slot": 3, "key": "home"}, guest); r.IsError {
		t.Errorf("afterwards: %+v", r)
	}
}
