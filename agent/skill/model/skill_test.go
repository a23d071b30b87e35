package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"phonerack/agent/skill/model"
)

// search is a flow template as a person writes it.
const search = `id: xhs-search
name: 小红书搜索
description: Search notes on Xiaohongshu
kind: flow_template
version: 1.10
tags: [social, 小红书]
aliases: [xhs, RED]
parameters:
  - name: query
    type: string
    required: true
    description: what to look for
  - name: pages
    type: integer
    default: 1
    enum: [1, 2, 3]
  - name: sort
    type: string
steps:
  - tool: launch_app
    args_template: {package: com.xingin.xhs}
  - tool: input_text
    args_template:
      text: "{query} {{top {pages}}}"
      order: "{sort}"
`

func draft(t *testing.T, file, text string) *model.Skill {
	t.Helper()
	s, err := model.ParseDraft(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// published is a draft with what the platform adds.
func published(t *testing.T, file, text string) *model.Skill {
	t.Helper()
	s := draft(t, file, text)
	s.Subscription = "social"
	s.UpdatedAt = time.Date(2026, 11, 30, 8, 40, 0, 120e6, time.UTC)
	return s
}

func TestDraftOfAFlowTemplate(t *testing.T) {
	got := draft(t, "search.yaml", search)
	want := &model.Skill{
		ID: "xhs-search", Name: "小红书搜索", Description: "Search notes on Xiaohongshu", Kind: model.FlowTemplate, Version: "1.10",
		Tags: []string{"social", "小红书"}, Aliases: []string{"xhs", "RED"},
		Parameters: []model.Parameter{
			{Name: "query", Type: model.String, Required: true, Description: "what to look for"},
			{Name: "pages", Type: model.Integer, Default: json.RawMessage("1"), Enum: []json.RawMessage{json.RawMessage("1"), json.RawMessage("2"), json.RawMessage("3")}},
			{Name: "sort", Type: model.String},
		},
		Steps: []model.Step{
			{Tool: "launch_app", ArgsTemplate: json.RawMessage(`{"package":"com.xingin.xhs"}`)},
			{Tool: "input_text", ArgsTemplate: json.RawMessage(`{"order":"{sort}","text":"{query} {{top {pages}}}"}`)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"launch_app", "input_text"}, got.Tools()); diff != "" {
		t.Error(diff)
	}
}

func TestDraftOfKnowledgeAsMarkdown(t *testing.T) {
	got := draft(t, "tips.md", "\ufeff---\r\nid: tips\r\nname: Tips\r\ndescription: |\r\n  a\r\n  --- no fence\r\nversion: 1\r\n---\r\n\r\n# Tips\r\n---\r\nmore\r\n")
	want := &model.Skill{ID: "tips", Name: "Tips", Description: "a\n--- no fence\n", Kind: model.Knowledge, Version: "1", Content: "# Tips\n---\nmore\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCanonicalJSONIsStable(t *testing.T) {
	s := published(t, "search.yaml", search)
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"xhs-search","name":"小红书搜索","description":"Search notes on Xiaohongshu","kind":"flow_template","version":"1.10",` +
		`"tags":["social","小红书"],"aliases":["xhs","RED"],"subscription_id":"social","updated_at":"2026-11-30T08:40:00.12Z",` +
		`"parameters":[{"name":"query","type":"string","required":true,"description":"what to look for"},` +
		`{"name":"pages","type":"integer","default":1,"enum":[1,2,3]},{"name":"sort","type":"string"}],` +
		`"steps":[{"tool":"launch_app","args_template":{"package":"com.xingin.xhs"}},` +
		`{"tool":"input_text","args_template":{"order":"{sort}","text":"{query} {{top {pages}}}"}}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	again, err := model.ParseSkill(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, again); diff != "" {
		t.Error(diff)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if got := model.Sum(raw); got != model.EntryOf(s, raw).SHA256 || !model.ValidSum(got) {
		t.Errorf("sum %s", got)
	}
}

func TestDraftLacksWhatThePlatformAdds(t *testing.T) {
	err := draft(t, "search.yaml", search).Validate()
	if err == nil || !strings.Contains(err.Error(), "subscription_id: is missing") {
		t.Errorf("got %v", err)
	}
}

// TestRefusedDrafts changes one thing of a draft that is accepted.
func TestRefusedDrafts(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "tags:", "tag:", `search.yaml line 6: the key "tag" is not known here`},
		{"key twice", "version: 1.10", "name: again\nversion: 1.10", `search.yaml line 5: the key "name" is there twice`},
		{"missing", "name: 小红书搜索\n", "", "search.yaml line 1, name: is missing"},
		{"empty", "name: 小红书搜索", `name: " "`, "search.yaml line 2, name: must not be empty"},
		{"null", "name: 小红书搜索", "name: ~", "search.yaml line 2, name: must be a text, and is null"},
		{"boolean for a text", "name: 小红书搜索", "name: true", "must be a text, and is true or false: put it in quotes"},
		{"list for a text", "name: 小红书搜索", "name: [a]", "search.yaml line 2, name: must be a text, and is a list"},
		{"text for a list", "tags: [social, 小红书]", "tags: social", "search.yaml line 6, tags: must be a list, and is a text"},
		{"text for a boolean", "required: true", `required: "true"`, "parameters[0].required: must be true or false, and is a text"},
		{"yes for a boolean", "required: true", `required: yes`, "parameters[0].required: must be true or false, and is a text"},
		{"id", "id: xhs-search", "id: XHS/search", `id: must have 1 to 63 of a-z, 0-9 and '-', and is "XHS/search"`},
		{"control character", "name: 小红书搜索", `name: "a\ab"`, "name: has the control character U+0007"},
		{"line break in a name", "name: 小红书搜索", `name: "a\nb"`, "name: has the control character U+000A"},
		{"kind", "kind: flow_template", "kind: flow", "kind: must be one of knowledge, flow_template"},
		{"other kind's field", "kind: flow_template", "kind: flow_template\ncontent: x", "content: belongs to knowledge"},
		{"alias", "tags: [social, 小红书]", "tags: &a [social]\naliases: *a", "an alias is not accepted"},
		{"tag", "version: 1.10", "version: !!str 1.10", `a tag such as "!!str" is not accepted`},
		{"merge key", "args_template: {package: com.xingin.xhs}", "args_template: {<<: {a: b}}", "a key must be a plain text"},
		{"number YAML alone knows", "{package: com.xingin.xhs}", "{package: 0x10}", "steps[0].args_template.package: must be written as a number like 12 or 1.5, or in quotes"},
		{"infinity", "{package: com.xingin.xhs}", "{package: .inf}", "steps[0].args_template.package: must be written as a number"},
		{"second document", "steps:", "---\nsteps:", "a second document follows the first"},
		{"tag twice", "[social, 小红书]", "[social, social]", `tags[1]: "social" is there twice`},
		{"parameter twice", "name: pages", "name: query", `parameters[1].name: the parameter "query" is there twice`},
		{"parameter name", "name: pages", "name: 1st", "parameters[1].name: must have 1 to 64 letters"},
		{"default of another type", "default: 1", `default: "1"`, "parameters[1].default: must be a whole number, and is a text"},
		{"default with fraction", "default: 1", `default: 1.0`, "parameters[1].default: must be a whole number without fraction and exponent"},
		{"default not in enum", "default: 1", `default: 9`, "parameters[1].default: must be one of 1, 2, 3"},
		{"enum of another type", "enum: [1, 2, 3]", "enum: [1, two]", "parameters[1].enum[1]: must be a whole number"},
		{"enum twice", "enum: [1, 2, 3]", "enum: [1, 2, 1]", "parameters[1].enum[2]: 1 is there twice"},
		{"enum empty", "enum: [1, 2, 3]", "enum: []", "parameters[1].enum: needs at least 1 entries"},
		{"required with default", "    default: 1", "    required: true\n    default: 1", "a parameter that is required cannot have a default"},
		{"unknown placeholder", `order: "{sort}"`, `order: "{other}"`, "the placeholder {other} is no parameter of the skill"},
		{"placeholder with blanks", `order: "{sort}"`, `order: "{ sort }"`, `steps[1].args_template.order: "{ sort }" is no placeholder`},
		{"open brace", `order: "{sort}"`, `order: "{sort"`, `"{sort" is no placeholder`},
		{"close brace", `order: "{sort}"`, `order: "{sort} }"`, "a single } belongs to no placeholder"},
		{"escaped placeholder", `order: "{sort}"`, `order: "{{query}} {sort}"`, "{{query}} stands for a text with braces; write {query}"},
		{"optional in a text", `order: "{sort}"`, `order: "by {sort}"`, `the parameter "sort" may be absent`},
		{"optional in a list", `order: "{sort}"`, `order: ["{sort}"]`, `the parameter "sort" may be absent`},
		{"unused parameter", `order: "{sort}"`, `order: up`, `parameters[2].name: no step uses the parameter "sort"`},
		{"placeholder in a key", `order: "{sort}"`, `"{sort}": up`, `the key "{sort}" has braces`},
		{"tool", "tool: launch_app", `tool: "launch app"`, "steps[0].tool: must name a tool"},
		{"no arguments", "    args_template: {package: com.xingin.xhs}\n", "", "steps[0].args_template: is missing"},
		{"arguments no object", "args_template: {package: com.xingin.xhs}", "args_template: [1]", "steps[0].args_template: must be an object, and is a list"},
		{"no object at all", search, "[1, 2]", "search.yaml line 1: must be an object, and is a list"},
		{"nothing", search, "", "search.yaml line 1: it is empty"},
		{"comments only", search, "# nothing\n", "it is empty"},
		{"not UTF-8", "小红书搜索", "\xff", "search.yaml: it is not valid UTF-8"},
		{"too large", "name: 小红书搜索", "name: " + strings.Repeat("x", model.MaxYAMLBytes), "at most 65536 are accepted"},
		{"long description", "Search notes on Xiaohongshu", strings.Repeat("红", 1025), "description: has 1025 characters, at most 1024 are accepted"},
		{"too deep", "{package: com.xingin.xhs}", "{package: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}", "it is nested deeper than 64 levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(search, c.old) {
				t.Fatalf("the draft has no %q", c.old)
			}
			_, err := model.ParseDraft("search.yaml", []byte(strings.Replace(search, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}
