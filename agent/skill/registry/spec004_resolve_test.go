package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/agent/skill/model"
)

// with registers skills, given as YAML, in their order.
func with(t *testing.T, tools *Tools, texts ...string) *Registry {
	t.Helper()
	r := openRegistry(t, newFile(t), tools)
	for _, text := range texts {
		add(t, r, text)
	}
	return r
}

func resolve(t *testing.T, r *Registry, name string) *Resolved {
	t.Helper()
	resolved, err := r.Resolve(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func entry(t *testing.T, r *Resolved, name string) Entry {
	t.Helper()
	i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("no entry %s in %s", name, names(r.Entries))
	}
	return r.Entries[i]
}

func TestSpec004_FlatteningRules(t *testing.T) {
	t.Run("For each include (left-to-right), recurse into the included skill first, processing its includes before its own tool_refs", func(t *testing.T) {
		r := with(t, &Tools{},
			"{name: s/deep, description: d, items: [{type: tool_ref, name: deep}]}",
			"{name: s/left, description: d, items: [{type: tool_ref, name: left}, {type: include, name: s/deep}]}",
			"{name: s/right, description: d, items: [{type: tool_ref, name: right}]}",
			"{name: s/top, description: d, items: [{type: include, name: s/left}, {type: include, name: s/right}]}")
		if got := names(resolve(t, r, "s/top").Entries); got != "deep left right" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("After all includes are resolved, add the current skill's tool_refs in definition order", func(t *testing.T) {
		r := with(t, &Tools{},
			"{name: s/in, description: d, items: [{type: tool_ref, name: in}]}",
			"{name: s/top, description: d, items: [{type: tool_ref, name: z}, {type: tool_ref, name: a}, {type: include, name: s/in}, {type: tool_ref, name: m}]}")
		if got := names(resolve(t, r, "s/top").Entries); got != "in z a m" {
			t.Errorf("got %s", got)
		}
	})
	every := `{name: s/top, description: d, items: [
		{type: agent_source, path: /opt/skills/w},
		{type: mcp_source, name: linear, transport: sse, url: "https://e.example", tool_filter: {include: [list, create]}},
		{type: inline_tool, description: first}, {type: inline_tool, description: second}, {type: tool_ref, name: tap}]}`
	t.Run("Add inline tools as {skill_name}/_anon_{index}", func(t *testing.T) {
		resolved := resolve(t, with(t, &Tools{}, every), "s/top")
		e := entry(t, resolved, "s/top/_anon_1")
		if !e.IsInline || e.SourceSkill != "s/top" || e.Inline.Description != "second" || entry(t, resolved, "s/top/_anon_0").Inline.Description != "first" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("Add MCP tools as mcp:{server}/{tool_name}", func(t *testing.T) {
		e := entry(t, resolve(t, with(t, &Tools{}, every), "s/top"), "mcp:linear/create")
		if e.IsInline || e.Server.URL != "https://e.example" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("Add agent skills as agent_skill:{path}", func(t *testing.T) {
		resolved := resolve(t, with(t, &Tools{}, every), "s/top")
		if e := entry(t, resolved, "agent_skill:/opt/skills/w"); e.IsInline || e.Agent.Path != "/opt/skills/w" {
			t.Errorf("got %+v", e)
		}
		if got := names(resolved.Entries); got != "tap s/top/_anon_0 s/top/_anon_1 mcp:linear/list mcp:linear/create agent_skill:/opt/skills/w" {
			t.Errorf("the order is %s", got)
		}
	})
}

func TestToolsOfAServerWithoutAFilter(t *testing.T) {
	tools := &Tools{}
	for _, name := range []string{"mcp:linear/b", "mcp:linear/a", "mcp:linear2/c", "mcp:linear/gone"} {
		if err := tools.Add(Tool{Name: name, Source: MCP}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tools.Add(Tool{Name: "mcp:linear/faked", Source: Custom}); err != nil {
		t.Fatal(err)
	}
	r := with(t, tools,
		`{name: s/all, description: d, items: [{type: mcp_source, name: linear, transport: stdio, command: c, tool_filter: {exclude: [gone]}}]}`,
		`{name: s/none, description: d, items: [{type: mcp_source, name: other, transport: stdio, command: c}]}`)
	if got := names(resolve(t, r, "s/all").Entries); got != "mcp:linear/a mcp:linear/b" {
		t.Errorf("got %s", got)
	}
	if got := resolve(t, r, "s/none"); len(got.Entries) != 0 || got.Summary().MCPSources != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestSpec004_DeDuplication(t *testing.T) {
	r := with(t, &Tools{},
		"{name: s/one, description: d, items: [{type: tool_ref, name: shared, overrides: {limit: 1}}, {type: tool_ref, name: one}]}",
		"{name: s/two, description: d, items: [{type: tool_ref, name: two}, {type: tool_ref, name: shared, overrides: {limit: 2}}]}",
		"{name: s/top, description: d, items: [{type: include, name: s/one}, {type: include, name: s/two}]}",
		"{name: s/diamond, description: d, items: [{type: include, name: s/top, overrides: {by: left}}, {type: include, name: s/one, overrides: {by: right}}]}")
	t.Run("the first occurrence determines the position in the output list", func(t *testing.T) {
		if got := names(resolve(t, r, "s/top").Entries); got != "shared one two" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("the last occurrence's entry metadata wins (last-wins semantics)", func(t *testing.T) {
		e := entry(t, resolve(t, r, "s/top"), "shared")
		if e.SourceSkill != "s/two" || string(e.Overrides["limit"]) != "2" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("overlapping includes: a diamond is no cycle, and the right-hand branch's include overrides win", func(t *testing.T) {
		resolved := resolve(t, r, "s/diamond")
		shared, two := entry(t, resolved, "shared"), entry(t, resolved, "two")
		if names(resolved.Entries) != "shared one two" || shared.SourceSkill != "s/one" || string(shared.Overrides["by"]) != `"right"` || string(shared.Overrides["limit"]) != "1" || string(two.Overrides["by"]) != `"left"` {
			t.Errorf("got %+v", resolved.Entries)
		}
	})
}

func TestSpec004_OverrideMerging(t *testing.T) {
	r := with(t, &Tools{},
		`{name: s/in, description: d, overrides: {tap: {a: skill, b: skill, c: skill, d: skill}, none: {a: 1}}, items: [
			{type: tool_ref, name: tap, overrides: {b: ref, c: ref, d: ref}}, {type: tool_ref, name: swipe}, {type: inline_tool, description: i},
			{type: mcp_source, name: m, transport: stdio, command: c, tool_filter: {include: [t]}}, {type: agent_source, path: /p}]}`,
		"{name: s/mid, description: d, overrides: {tap: {a: not mine}}, items: [{type: include, name: s/in, overrides: {c: mid, d: mid}}]}",
		"{name: s/top, description: d, items: [{type: include, name: s/mid, overrides: {d: {deep: 1}}}]}",
		"{name: s/again, description: d, items: [{type: include, name: s/mid, overrides: {d: {other: 1}}}]}")
	text := func(e Entry) string {
		var parts []string
		for _, f := range slices.Sorted(keys(e.Overrides)) {
			parts = append(parts, f+"="+string(e.Overrides[f]))
		}
		return strings.Join(parts, " ")
	}
	t.Run("Skill-level overrides (skill.overrides dict): Applied to matching tool_refs during resolution", func(t *testing.T) {
		resolved := resolve(t, r, "s/in")
		if got := text(entry(t, resolved, "tap")); got != `a="skill" b="ref" c="ref" d="ref"` {
			t.Errorf("tap: %s", got)
		}
		if got := text(entry(t, resolved, "swipe")); got != "" {
			t.Errorf("swipe: %s", got)
		}
	})
	t.Run("Per-include overrides (SkillInclude.overrides): Applied to all tool entries contributed by the included skill", func(t *testing.T) {
		resolved := resolve(t, r, "s/mid")
		for _, name := range []string{"swipe", "s/in/_anon_0", "mcp:m/t", "agent_skill:/p"} {
			if got := text(entry(t, resolved, name)); got != `c="mid" d="mid"` {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
	t.Run("Uses shallow merge -- include overrides are merged on top of any existing entry overrides", func(t *testing.T) {
		if got := text(entry(t, resolve(t, r, "s/top"), "tap")); got != `a="skill" b="ref" c="mid" d={"deep":1}` {
			t.Errorf("got %s", got)
		}
		if got := text(entry(t, resolve(t, r, "s/again"), "tap")); got != `a="skill" b="ref" c="mid" d={"other":1}` {
			t.Errorf("a value that is an object was merged, or a resolution left something behind: %s", got)
		}
	})
}

func TestSpec004_NonOverridableFields(t *testing.T) {
	tool := func(o model.Overrides) model.Item {
		return model.Item{ToolRef: &model.ToolRef{Name: "tap", Overrides: o}}
	}
	include := func(name string, o model.Overrides) model.Item {
		return model.Item{Include: &model.Include{Name: name, Overrides: o}}
	}
	for _, field := range []string{"name", "source_skill", "is_inline"} {
		t.Run(field, func(t *testing.T) {
			bad := model.Overrides{field: []byte(`"tap"`), "limit": []byte("1")}
			for level, c := range map[string]struct {
				skill *model.RegistrySkill
				path  string
			}{
				"skill":   {&model.RegistrySkill{Name: "s/bad", Items: []model.Item{tool(nil)}, Overrides: map[string]model.Overrides{"tap": bad}}, "s/top -> s/bad"},
				"ref":     {&model.RegistrySkill{Name: "s/bad", Items: []model.Item{tool(bad)}}, "s/top -> s/bad"},
				"include": {&model.RegistrySkill{Name: "s/bad", Items: []model.Item{include("s/in", bad)}}, "s/top -> s/bad -> s/in"},
			} {
				l := library{}
				l.put(&model.RegistrySkill{Name: "s/in"}) // has no tool that could be overridden
				l.put(c.skill)
				l.put(&model.RegistrySkill{Name: "s/top", Items: []model.Item{include("s/in", nil), include("s/bad", nil)}})
				_, err := l.resolver().Resolve("s/top")
				want := fmt.Sprintf("Non-overridable field(s) %s in overrides from skill 's/bad' (include path: %s)", field, c.path)
				if e, ok := errors.AsType[*OverrideError](err); !ok || err.Error() != want || e.Skill != "s/bad" {
					t.Errorf("%s: got %v", level, err)
				}
			}
		})
	}
	t.Run("Attempting to override these raises ValueError with the skill name and include path for traceability", func(t *testing.T) {
		l := library{}
		// Each value is the one that the entry has anyway.
		l.put(&model.RegistrySkill{Name: "s/x", Items: []model.Item{tool(model.Overrides{"name": []byte(`"tap"`), "is_inline": []byte("false"), "source_skill": []byte(`"s/x"`)})}})
		_, err := l.resolver().Resolve("s/x")
		if err == nil || err.Error() != "Non-overridable field(s) is_inline, name, source_skill in overrides from skill 's/x' (include path: s/x)" {
			t.Errorf("got %v", err)
		}
	})
}

func TestSpec004_CapabilitySummary(t *testing.T) {
	r := with(t, builtins(t, "tap"),
		`{name: s/in, description: d, items: [{type: inline_tool, description: reads, read_only: true}, {type: agent_source, path: /in},
			{type: mcp_source, name: in, transport: stdio, command: c, tool_filter: {include: [t]}}]}`,
		`{name: s/top, description: d, items: [{type: include, name: s/in}, {type: tool_ref, name: tap, overrides: {read_only: true, writes: true, checkpointable: true, side_effects: true}},
			{type: inline_tool, description: writes, writes: true, checkpointable: true}, {type: inline_tool, description: both, writes: true, side_effects: true},
			{type: mcp_source, name: a, transport: stdio, command: c, tool_filter: {include: [t, u]}}, {type: mcp_source, name: b, transport: stdio, command: c}, {type: agent_source, path: /top}]}`,
		`{name: s/over, description: d, items: [{type: include, name: s/in, overrides: {read_only: false, writes: true}}]}`)
	_, top, err := r.Tools("s/top", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, in, err := r.Tools("s/in", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		title     string
		got, want any
	}{
		{"Total number of resolved tool entries", top.TotalTools, 9},
		{"Count of inline tools with read_only=True", top.ReadOnlyTools, 1},
		{"Count of inline tools with writes=True", top.WriteTools, 2},
		{"Count of inline tools with checkpointable=True", top.CheckpointableTools, 1},
		{"True if any inline tool has side effects", []bool{top.HasSideEffects, in.HasSideEffects}, []bool{true, false}},
		{"Number of MCP server sources on the root skill", []int{top.MCPSources, in.MCPSources}, []int{2, 1}},
		{"Number of agent skill sources on the root skill", []int{top.AgentSkillSources, in.AgentSkillSources}, []int{1, 1}},
	} {
		t.Run(c.title, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("beyond the spec: overrides of an inline tool count", func(t *testing.T) {
		if _, s, err := r.Tools("s/over", nil); err != nil || s.ReadOnlyTools != 0 || s.WriteTools != 1 {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

func TestSpec004_ToolsMethod(t *testing.T) {
	t.Run("Returns a 2-tuple of (list[ResolvedToolEntry], SkillCapabilitySummary)", func(t *testing.T) {
		r := with(t, &Tools{}, "{name: local/code-tools, description: d, items: [{type: tool_ref, name: a}, {type: inline_tool, description: w, writes: true}]}")
		entries, summary, err := r.Tools("local/code-tools", nil)
		if err != nil || names(entries) != "a local/code-tools/_anon_0" || summary != (CapabilitySummary{TotalTools: 2, WriteTools: 1}) {
			t.Errorf("got %v, %+v, %v", entries, summary, err)
		}
		if _, _, err := r.Tools("local/none", nil); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSpec004_ValidatePlan(t *testing.T) {
	r := with(t, builtins(t, "tap"),
		"{name: local/base, description: d, items: [{type: tool_ref, name: tap}]}",
		"{name: local/code-tools, description: d, items: [{type: include, name: local/base}]}",
		"{name: local/outer, description: d, items: [{type: include, name: local/code-tools}]}",
		"{name: local/tools, description: d, items: [{type: tool_ref, name: tap}, {type: tool_ref, name: gone}, {type: tool_ref, name: lost}]}")
	plan := func(names ...string) []string { return r.ValidatePlan(Plan{Skills: names}, nil) }
	t.Run("All referenced skills exist in the registry", func(t *testing.T) {
		if got := plan("local/code-tools", "local/outer"); len(got) != 0 {
			t.Errorf("got %q", got)
		}
		if got := plan("local/code-tools", "local/deploy", "local/deploy", "x"); !slices.Equal(got, []string{
			"Skill 'local/deploy' referenced in plan is not registered", "Skill 'x' referenced in plan is not registered",
		}) {
			t.Errorf("got %q", got)
		}
		if got := plan(); got == nil || len(got) != 0 {
			t.Errorf("an empty plan: %v", got)
		}
	})
	t.Run("Tool refs are valid (if a tool registry is configured)", func(t *testing.T) {
		want := []string{
			"Skill 'local/tools': Tool 'gone' of skill 'local/tools' is not registered", "Skill 'local/tools': Tool 'lost' of skill 'local/tools' is not registered",
		}
		if got := plan("local/tools"); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		if got := r.resolver(nil, nil).ValidatePlan(Plan{Skills: []string{"local/tools"}}, nil); len(got) != 0 {
			t.Errorf("without a tool registry: %q", got)
		}
	})
	t.Run("All includes are resolvable (no missing skills in include chains)", func(t *testing.T) {
		if _, err := r.Remove("local/base"); err != nil {
			t.Fatal(err)
		}
		if got := plan("local/outer"); !slices.Equal(got, []string{
			"Skill 'local/outer': Included skill 'local/base' not found (include path: local/outer -> local/code-tools -> local/base)",
		}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("No cycles in include chains", func(t *testing.T) {
		l := library{}
		l.put(&model.RegistrySkill{Name: "r/root", Items: []model.Item{{Include: &model.Include{Name: "r/a"}}}})
		l.put(&model.RegistrySkill{Name: "r/a", Items: []model.Item{{Include: &model.Include{Name: "r/b"}}}})
		l.put(&model.RegistrySkill{Name: "r/b", Items: []model.Item{{Include: &model.Include{Name: "r/a"}}, {Include: &model.Include{Name: "r/none"}}}})
		got := l.resolver().ValidatePlan(Plan{Skills: []string{"r/root"}}, nil)
		if !slices.Equal(got, []string{
			"Skill 'r/root': Cycle detected in skill includes: r/a -> r/b -> r/a",
			"Skill 'r/root': Included skill 'r/none' not found (include path: r/root -> r/a -> r/b -> r/none)",
		}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestSpec004_ErrorMessages(t *testing.T) {
	l := library{}
	l.put(&model.RegistrySkill{Name: "e/missing", Items: []model.Item{{Include: &model.Include{Name: "e/inc"}}}})
	l.put(&model.RegistrySkill{Name: "A/A", Items: []model.Item{{Include: &model.Include{Name: "B/B"}}}})
	l.put(&model.RegistrySkill{Name: "B/B", Items: []model.Item{{Include: &model.Include{Name: "A/A"}}}})
	l.put(&model.RegistrySkill{Name: "e/field", Items: []model.Item{{ToolRef: &model.ToolRef{Name: "t", Overrides: model.Overrides{"name": []byte("1")}}}}})
	for _, c := range []struct{ condition, skill, begins, holds string }{
		{"Missing skill: Skill '{name}' referenced in plan is not registered", "e/none", "Skill 'e/none' referenced in plan is not registered", ""},
		{"Missing include: Skill '{name}': Included skill '{inc}' not found ...", "e/missing", "Skill 'e/missing': Included skill 'e/inc' not found ", "e/missing -> e/inc"},
		{"Cycle detected: Skill '{name}': Cycle detected in skill includes: A -> B", "A/A", "Skill 'A/A': Cycle detected in skill includes: A/A -> B/B", "A/A -> B/B -> A/A"},
		{"Non-overridable field: Non-overridable field(s) ... in overrides from skill ...", "e/field", "Non-overridable field(s) name in overrides from skill 'e/field'", ""},
	} {
		t.Run(c.condition, func(t *testing.T) {
			got := l.resolver().ValidatePlan(Plan{Skills: []string{c.skill}}, nil)
			if len(got) != 1 || !strings.HasPrefix(got[0], c.begins) || !strings.Contains(got[0], c.holds) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestFaultsOfOneSkillAreBounded(t *testing.T) {
	l := library{}
	s := &model.RegistrySkill{Name: "x/s"}
	for i := range 1000 {
		s.Items = append(s.Items, model.Item{Include: &model.Include{Name: fmt.Sprintf("x/none%d", i)}})
	}
	l.put(s)
	if got := l.resolver().ValidatePlan(Plan{Skills: []string{"x/s"}}, nil); len(got) != maxFaults {
		t.Errorf("%d sentences", len(got))
	}
}

func TestCatalogSkillsAreIncluded(t *testing.T) {
	catalog := shelf{"search": flow("search", "launch_app", "tap", "input_text", "tap"), "tips": {ID: "tips", Name: "tips", Kind: model.Knowledge, Content: "Be patient."}}
	r := openRegistry(t, newFile(t), builtins(t, "launch_app", "tap", "input_text"))
	text := `{name: local/shop, description: d, items: [{type: tool_ref, name: tap}, {type: include, name: catalog/search, overrides: {limit: 1}}, {type: include, name: catalog/tips}]}`
	if _, err := r.Add(parse(t, text), catalog); err != nil {
		t.Fatal(err)
	}
	resolved, err := r.Resolve("local/shop", catalog)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(resolved.Entries); got != "launch_app tap input_text" || !slices.Equal(resolved.CatalogSkills, []string{"search", "tips"}) {
		t.Errorf("tools %s, catalog skills %v", got, resolved.CatalogSkills)
	}
	if e := entry(t, resolved, "launch_app"); e.SourceSkill != "catalog/search" || e.IsInline || string(e.Overrides["limit"]) != "1" {
		t.Errorf("got %+v", e)
	}
	if e := entry(t, resolved, "tap"); e.SourceSkill != "local/shop" {
		t.Errorf("the last one wins: %+v", e)
	}
	if got := r.ValidatePlan(Plan{Skills: []string{"local/shop", "catalog/tips", "catalog/search"}}, catalog); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	// Another caller sees less: what is not for it is as what is not there.
	delete(catalog, "search")
	want := []string{"Skill 'local/shop': Included skill 'catalog/search' not found (include path: local/shop -> catalog/search)", "Skill 'catalog/search' referenced in plan is not registered"}
	if got := r.ValidatePlan(Plan{Skills: []string{"local/shop", "catalog/search", "catalog/tips"}}, catalog); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	none := r.ValidatePlan(Plan{Skills: []string{"catalog/tips"}}, nil)
	unknown := r.ValidatePlan(Plan{Skills: []string{"catalog/nope"}}, catalog)
	if len(none) != 1 || len(unknown) != 1 || strings.ReplaceAll(none[0], "tips", "nope") != unknown[0] {
		t.Errorf("not visible: %q, unknown: %q", none, unknown)
	}
}
