package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/registry"
	"phonerack/agent/tools"
	"phonerack/firmware/skills"
	"phonerack/firmware/store"
)

// withSkills is a bench whose rack has skills, and the folder where it looks for Agent Skills.
func withSkills(t *testing.T) (b *bench, root string) {
	t.Helper()
	b, root = start(t), t.TempDir()
	s, err := store.Open(store.Options{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	bucket, err := s.Bucket("skills")
	if err != nil {
		t.Fatal(err)
	}
	b.rack.Book, err = skills.Open(skills.Options{
		Bucket: bucket, Tools: tools.Default().Tools(), Discover: registry.DiscoverOptions{Paths: folder.Paths{Folders: []string{root}}},
		Now: func() time.Time { return time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, root
}

const base = `
name: local/base
description: The base.
version: "2"
items:
  - {type: tool_ref, name: observe}
  - {type: inline_tool, description: Counts words., read_only: true, checkpointable: true}
`

const toolkit = `
name: local/devops-toolkit
description: What we use on the bench.
items:
  - {type: include, name: local/base}
  - {type: tool_ref, name: tap, overrides: {description: Taps once.}}
  - {type: tool_ref, name: agent_skills/weather}
  - {type: tool_ref, name: gone}
  - type: mcp_source
    name: linear
    transport: streamable-http
    url: https://user:secret-1@example.com/mcp?key=secret-3
    headers: {Authorization: Bearer secret-2}
    tool_filter: {include: [create]}
`

// did runs rackctl, which has to end with the code.
func (b *bench) did(code int, stdin string, args ...string) (stdout, stderr string) {
	b.t.Helper()
	stdout, stderr, got := b.rackctl(stdin, args...)
	if got != code {
		b.t.Fatalf("rackctl %s: code %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	return stdout, stderr
}

func putFolder(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, name, folder.FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSpec004_CLIOutput(t *testing.T) {
	b, root := withSkills(t)
	b.did(0, base, "skill", "add", "-")
	b.did(0, toolkit, "skill", "add", "-")
	putFolder(t, root, "weather", "---\nname: weather\ndescription: Says the weather.\n---\n")
	putFolder(t, root, "broken", "no front matter")

	type row struct {
		Name, Source   string
		FromSkill      *string `json:"from_skill"`
		Description    string
		ReadOnly       bool `json:"read_only"`
		Writes         bool
		Checkpoint     bool
		SourceMetadata map[string]string `json:"source_metadata"`
	}
	list := func(args ...string) map[string]row {
		out, _ := b.did(0, "", append([]string{"skill", "tools"}, args...)...)
		var answer struct {
			Data struct {
				Tools   []row
				Summary map[string]any
			}
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err)
		}
		rows := map[string]row{}
		for _, r := range answer.Data.Tools {
			rows[r.Name] = r
		}
		if len(args) > 0 && args[0] == "local/devops-toolkit" {
			want := map[string]any{
				"total_tools": 6.0, "read_only_tools": 1.0, "write_tools": 0.0, "checkpointable_tools": 1.0, "has_side_effects": false, "mcp_sources": 1.0, "agent_skill_sources": 0.0,
			}
			if !reflect.DeepEqual(answer.Data.Summary, want) {
				t.Errorf("summary %v", answer.Data.Summary)
			}
		}
		return rows
	}
	t.Run("The CLI agents skill tools command accepts a --refresh flag to trigger this", func(t *testing.T) {
		if list("--format", "json")["agent_skills/weather"].Name != "" {
			t.Error("it is there before anybody looked")
		}
		_, stderr := b.did(0, "", "skill", "tools", "--refresh")
		if !strings.Contains(stderr, "1 found, 0 conflicts, 1 left out") || !strings.Contains(stderr, filepath.Join(root, "broken")) {
			t.Errorf("it says %s", stderr)
		}
		if list("--format", "json")["agent_skills/weather"].Name == "" {
			t.Error("it is not there")
		}
	})
	rows := list("local/devops-toolkit", "--format", "json")
	t.Run("includes source metadata when tools originate from Agent Skills", func(t *testing.T) {
		r := rows["agent_skills/weather"]
		if r.SourceMetadata["path"] != filepath.Join(root, "weather") || r.Description != "Says the weather." {
			t.Errorf("got %+v", r)
		}
	})
	t.Run(`Each entry in the output includes a "source" field indicating the tool's origin (builtin, agent_skills, mcp, or custom)`, func(t *testing.T) {
		got := map[string]string{}
		for name, r := range rows {
			got[name] = r.Source
		}
		want := map[string]string{
			"observe": "builtin", "tap": "builtin", "agent_skills/weather": "agent_skills", "mcp:linear/create": "mcp", "local/base/_anon_0": "custom", "gone": "unregistered",
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("from_skill is null for direct tools; read_only, writes, checkpoint", func(t *testing.T) {
		from := "local/base"
		want := row{Name: "local/base/_anon_0", Source: "custom", FromSkill: &from, Description: "Counts words.", ReadOnly: true, Checkpoint: true}
		if got := rows["local/base/_anon_0"]; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
		if got := rows["tap"]; got.FromSkill != nil || !got.Writes || got.ReadOnly || got.Description != "Taps once." {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSkillCommands(t *testing.T) {
	b, root := withSkills(t)
	putFolder(t, root, "weather", "---\nname: weather\ndescription: Says the weather.\n---\n")
	out, _ := b.did(0, base, "skill", "add", "-")
	for _, want := range []string{"local/base", "The base.", "inline_tool", "tool_ref"} {
		if !strings.Contains(out, want) {
			t.Errorf("add does not say %q:\n%s", want, out)
		}
	}
	file := filepath.Join(t.TempDir(), "toolkit.yaml")
	if err := os.WriteFile(file, []byte(toolkit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := b.did(0, "", "skill", "validate", file); out != "ok\n" {
		t.Errorf("validate: %s", out)
	}
	b.did(0, "", "skill", "add", file)

	for _, c := range []struct {
		args, stdin string
		code        int
		holds       string
	}{
		{"skill list", "", 0, "local/devops-toolkit"},
		{"skill list --namespace team", "", 0, "SKILL"},
		{"skill search what bench", "", 0, "local/devops-toolkit"},
		{"skill show local/base", "", 0, "Counts words."},
		{"skill show local/none", "", 1, "there is no skill local/none"},
		{"skill show catalog/secret", "", 1, "there is no skill catalog/secret"},
		{"skill add -", base, 1, "Skill 'local/base' is already registered"},
		{"skill add -", "name: local/x", 1, "standard input"},
		{"skill add -", "name: catalog/x\ndescription: d\nitems: []\n", 1, "reserved"},
		{"skill update -", "name: local/none\ndescription: d\nitems: []\n", 1, "there is no skill local/none"},
		{"skill update -", "name: local/base\ndescription: Anew.\nitems: [{type: include, name: local/devops-toolkit}]\n", 1, "local/base -> local/devops-toolkit -> local/base"},
		{"skill update -", strings.Replace(base, "The base.", "Anew.", 1), 0, "Anew."},
		{"skill remove catalog/x", "", 1, "cannot be changed here"},
		{"skill validate local/devops-toolkit local/none", "", 1, "Skill 'local/none' referenced in plan is not registered\n"},
		{"skill validate local/devops-toolkit", "", 1, "Tool 'gone' of skill 'local/devops-toolkit' is not registered"},
		{"skill validate -", "name: local/x\ndescription: d\nitems: [{type: include, name: local/none}]\n", 1, "Included skill 'local/none' not found"},
		{"skill validate " + filepath.Join(root, "weather", folder.FileName), "", 1, "rackcloud skill publish"},
		{"skill tools local/none", "", 1, "there is no skill local/none"},
		{"skill remove local/base", "", 0, "cannot be used any more: local/devops-toolkit"},
		{"skill tools local/devops-toolkit", "", 1, "Included skill 'local/base' not found (include path: local/devops-toolkit -> local/base)"},
		{"skill add missing.yaml", "", 1, "no such file"},
		{"skill", "", 2, "expected one of"},
	} {
		stdout, stderr := b.did(c.code, c.stdin, strings.Fields(c.args)...)
		if !strings.Contains(stdout+stderr, c.holds) {
			t.Errorf("rackctl %s does not say %q:\n%s%s", c.args, c.holds, stdout, stderr)
		}
	}
}

func TestSecretsOfSkillsAreNotShown(t *testing.T) {
	b, _ := withSkills(t)
	b.did(0, base, "skill", "add", "-")
	var all string
	for _, args := range []string{"skill add -", "skill show local/devops-toolkit", "skill show local/devops-toolkit --format json", "skill tools local/devops-toolkit --format json", "skill list --json"} {
		out, stderr := b.did(0, toolkit, strings.Fields(args)...)
		all += out + stderr
	}
	if strings.Contains(all, "secret-") || !strings.Contains(all, "(hidden)") {
		t.Errorf("it says\n%s", all)
	}
}

func TestSkillJSONForPrograms(t *testing.T) {
	b, _ := withSkills(t)
	b.did(0, base, "skill", "add", "-")
	for i := range 60 { // more than a page
		b.did(0, strings.Replace(base, "local/base", "many/s"+string(rune('A'+i/26))+string(rune('a'+i%26)), 1), "skill", "add", "-")
	}
	out, _ := b.did(0, "", "skill", "list", "--format", "json")
	var list struct {
		Data struct {
			Skills []struct{ Name, Description, Version string }
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Data.Skills) != 61 {
		t.Fatalf("%d skills, %v", len(list.Data.Skills), err)
	}
	var names []string
	for _, s := range list.Data.Skills {
		names = append(names, s.Name)
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != 61 {
		t.Errorf("names %v", names)
	}
	out, _ = b.did(1, "", "skill", "show", "local/none", "--format", "json")
	var refused struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(out), &refused); err != nil || refused.Error.Code != "not_found" {
		t.Errorf("refusal: %s", out)
	}
	out, _ = b.did(1, "", "skill", "validate", "local/none", "--format", "json")
	var v struct {
		Data struct {
			Valid  bool
			Errors []string
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Data.Valid || len(v.Data.Errors) != 1 {
		t.Errorf("validation: %s", out)
	}
}

func TestARackWithoutSkillsSaysSo(t *testing.T) {
	if _, stderr := start(t).did(1, "", "skill", "list"); stderr != "The skills were not used because this controller has none: skills.enabled is false in its configuration; set it to true and start rackd again.\n" {
		t.Errorf("it says %s", stderr)
	}
}
