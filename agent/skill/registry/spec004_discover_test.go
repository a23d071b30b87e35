package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/model"
)

// shelve writes an Agent Skill.
func shelve(t *testing.T, root, name, description string) {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("---\nname: %s\ndescription: %s\ninput_schema:\n  type: object\n  properties: {query: {type: string}}\n---\n# %s\n", name, description, name)
	if err := os.WriteFile(filepath.Join(dir, folder.FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func at(roots ...string) DiscoverOptions {
	return DiscoverOptions{Paths: folder.Paths{Folders: roots}}
}

func toolNames(tools []Tool) string {
	var all []string
	for _, tool := range tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

func TestSpec004_AgentSkillsDiscovery(t *testing.T) {
	root := t.TempDir()
	shelve(t, root, "my-tool", "A custom agent skill")
	tools := builtins(t, "tap")
	r := openRegistry(t, newFile(t), tools)
	d, err := r.Discover(t.Context(), at(root))
	if err != nil {
		t.Fatal(err)
	}
	t.Run(`Construct ToolSpec instances with source="agent_skills" and source_metadata containing the filesystem path`, func(t *testing.T) {
		tool, ok := tools.Get("agent_skills/my-tool")
		if !ok {
			t.Fatal("there is no such tool")
		}
		if len(tool.SourceMetadata["sha256"]) != 64 {
			t.Errorf("the hash is %q", tool.SourceMetadata["sha256"])
		}
		want := Tool{
			Name: "agent_skills/my-tool", Description: "A custom agent skill", InputSchema: []byte(`{"properties":{"query":{"type":"string"}},"type":"object"}`),
			Source: "agent_skills", Capability: Capability{ReadOnly: true}, Text: "# my-tool\n",
			SourceMetadata: map[string]string{
				"path": filepath.Join(root, "my-tool"), "file": filepath.Join(root, "my-tool", "SKILL.md"), "root": root, "sha256": tool.SourceMetadata["sha256"],
			},
		}
		if diff := cmp.Diff(want, tool); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Register each tool in the ToolRegistry under the agent_skills/<name> namespace", func(t *testing.T) {
		if got := toolNames(tools.List(AgentSkills)); got != "agent_skills/my-tool" || toolNames(d.Discovered) != got || len(d.Conflicts) != 0 {
			t.Errorf("table %s, discovered %v, conflicts %v", got, d.Discovered, d.Conflicts)
		}
	})
	t.Run("a skill may refer to it", func(t *testing.T) {
		add(t, r, "{name: local/devops-toolkit, description: d, items: [{type: tool_ref, name: agent_skills/my-tool}]}")
		if got := r.ValidatePlan(Plan{Skills: []string{"local/devops-toolkit"}}, nil); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	})
}

func TestSpec004_ConflictHandling(t *testing.T) {
	for _, strategy := range []Strategy{"", SkipConflicts, RefuseConflicts, ReplaceTools} {
		root := t.TempDir()
		shelve(t, root, "free", "free")
		shelve(t, root, "taken", "found")
		tools := builtins(t, "tap")
		if err := tools.Add(Tool{Name: "agent_skills/taken", Description: "was there", Source: Custom}); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		r, err := Open(Options{Bucket: newFile(t), Tools: tools, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		o := at(root)
		o.Strategy = strategy
		d, err := r.Discover(t.Context(), o)
		got, _ := tools.Get("agent_skills/taken")
		title := map[Strategy]string{
			"":              "skip: default",
			SkipConflicts:   "skip: Keep existing tool, log warning (default)",
			RefuseConflicts: "error: Raise ValueError with collision details",
			ReplaceTools:    "replace: Remove existing tool and register the new one",
		}[strategy]
		t.Run(title, func(t *testing.T) {
			if len(d.Conflicts) != 1 || d.Conflicts[0].Name != "agent_skills/taken" || d.Conflicts[0].Path != filepath.Join(root, "taken") || d.Conflicts[0].With != Custom {
				t.Errorf("conflicts %+v", d.Conflicts)
			}
			switch strategy {
			case RefuseConflicts:
				if !errors.Is(err, ErrConflicts) || !strings.Contains(err.Error(), filepath.Join(root, "taken")) || !strings.Contains(err.Error(), "custom") {
					t.Errorf("got %v", err)
				}
				if got.Description != "was there" || toolNames(tools.List("")) != "agent_skills/taken tap" || len(d.Discovered) != 0 {
					t.Errorf("the table is %v", tools.List(""))
				}
			case ReplaceTools:
				if err != nil || got.Description != "found" || got.Source != AgentSkills || toolNames(d.Discovered) != "agent_skills/free agent_skills/taken" {
					t.Errorf("got %+v, %v, %v", got, d.Discovered, err)
				}
			default:
				if err != nil || got.Description != "was there" || toolNames(d.Discovered) != "agent_skills/free" {
					t.Errorf("got %+v, %v, %v", got, d.Discovered, err)
				}
				if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "agent_skills/taken") {
					t.Errorf("the log says %s", &log)
				}
			}
		})
	}
	r := openRegistry(t, newFile(t), &Tools{})
	if _, err := r.Discover(t.Context(), DiscoverOptions{Strategy: "merge"}); err == nil {
		t.Error("an unknown strategy was taken")
	}
}

// TestWhatIsLeftOutIsLoggedWhenItChanges: the folders are searched every few minutes, and the log of a board is on its card.
func TestWhatIsLeftOutIsLoggedWhenItChanges(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(root, name), 0o755), os.WriteFile(filepath.Join(root, name, "SKILL.md"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put("one", "no front matter")
	shelve(t, root, "taken", "found")
	tools := builtins(t, "tap")
	if err := tools.Add(Tool{Name: "agent_skills/taken", Source: Custom}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r, err := Open(Options{Bucket: newFile(t), Tools: tools, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for i, lines := range []int{2, 0, 1, 0, 1} {
		switch i {
		case 2:
			put("two", "no front matter")
		case 4:
			put("one", "---\nname: one\n---\n")
		}
		log.Reset()
		if d, err := r.RefreshAgentSkills(t.Context(), at(root)); err != nil || len(d.Skipped) == 0 || len(d.Conflicts) != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		if got := strings.Count(log.String(), "level=WARN"); got != lines {
			t.Errorf("search %d logs %d lines, want %d:\n%s", i, got, lines, &log)
		}
	}
}

// TestSkillReport05_TheSameNameTwiceIsTold: the second one shadowed the first, or was shadowed, without a word.
func TestSkillReport05_TheSameNameTwiceIsTold(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	shelve(t, one, "same", "of one")
	shelve(t, two, "same", "of two")
	for strategy, want := range map[Strategy]string{SkipConflicts: "of one", ReplaceTools: "of two"} {
		tools := &Tools{}
		o := at(one, two)
		o.Strategy = strategy
		d, err := openRegistry(t, newFile(t), tools).Discover(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := tools.Get("agent_skills/same")
		if got.Description != want || len(d.Discovered) != 1 || d.Discovered[0].Description != want {
			t.Errorf("%s: got %+v, %+v", strategy, got, d.Discovered)
		}
		if len(d.Conflicts) != 1 || d.Conflicts[0].WithPath != filepath.Join(one, "same") || d.Conflicts[0].Path != filepath.Join(two, "same") {
			t.Errorf("%s: conflicts %v", strategy, d.Conflicts)
		}
	}
}

func TestSpec004_RefreshHook(t *testing.T) {
	root := t.TempDir()
	shelve(t, root, "stays", "old text")
	shelve(t, root, "goes", "goes")
	tools := builtins(t, "tap")
	r := openRegistry(t, newFile(t), tools)
	if _, err := r.Discover(t.Context(), at(root)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "goes")); err != nil {
		t.Fatal(err)
	}
	shelve(t, root, "stays", "new text")
	shelve(t, root, "comes", "comes")
	t.Run("re-scans all configured paths. It first removes previously registered agent skill tools, then re-discovers and re-registers", func(t *testing.T) {
		d, err := r.RefreshAgentSkills(t.Context(), at(root))
		if err != nil || len(d.Conflicts) != 0 || toolNames(d.Discovered) != "agent_skills/comes agent_skills/stays" {
			t.Errorf("got %+v, %v", d, err)
		}
		if got := toolNames(tools.List("")); got != "agent_skills/comes agent_skills/stays tap" {
			t.Errorf("the table is %s", got)
		}
		if tool, _ := tools.Get("agent_skills/stays"); tool.Description != "new text" {
			t.Errorf("got %+v", tool)
		}
	})
	t.Run("paths that are no longer configured lose their skills", func(t *testing.T) {
		other := t.TempDir()
		shelve(t, other, "else", "else")
		if _, err := r.RefreshAgentSkills(t.Context(), at(other)); err != nil {
			t.Fatal(err)
		}
		if got := toolNames(tools.List("")); got != "agent_skills/else tap" {
			t.Errorf("the table is %s", got)
		}
	})
	t.Run("beyond the spec: a refresh that is refused or cut off leaves all as it was", func(t *testing.T) {
		twice := t.TempDir()
		shelve(t, twice, "same", "a")
		o := at(twice, t.TempDir())
		shelve(t, o.Paths.Folders[1], "same", "b")
		o.Strategy = RefuseConflicts
		if _, err := r.RefreshAgentSkills(t.Context(), o); !errors.Is(err, ErrConflicts) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.RefreshAgentSkills(ctx, at(twice)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if got := toolNames(tools.List("")); got != "agent_skills/else tap" {
			t.Errorf("the table is %s", got)
		}
	})
}

func TestDiscoveryTellsWhatItLeftOut(t *testing.T) {
	root := t.TempDir()
	shelve(t, root, "good", "good")
	shelve(t, root, "no-description", "")
	shelve(t, root, "Upper Case", "warned of")
	r := openRegistry(t, newFile(t), &Tools{})
	d, err := r.Discover(t.Context(), at(root, filepath.Join(root, "missing")))
	if err != nil {
		t.Fatal(err)
	}
	codes := []folder.Code{}
	for _, s := range d.Skipped {
		codes = append(codes, s.Code)
	}
	if !slices.Equal(codes, []folder.Code{folder.NoDescription, folder.PathMissing}) {
		t.Errorf("skipped %v", d.Skipped)
	}
	if len(d.Findings) != 1 || d.Findings[0].Code != folder.NameForm || d.Findings[0].Path != filepath.Join(root, "Upper Case") {
		t.Errorf("findings %v", d.Findings)
	}
	o := at(root)
	o.Mode = folder.Strict
	if d, err = r.RefreshAgentSkills(t.Context(), o); err != nil || toolNames(d.Discovered) != "agent_skills/good" || len(d.Skipped) != 2 {
		t.Errorf("strictly: %+v, %v", d, err)
	}
}

func TestToolsTable(t *testing.T) {
	tools := builtins(t, "b", "a")
	if err := tools.Add(Tool{Name: "a", Source: Custom}); !errors.Is(err, ErrToolExists) {
		t.Errorf("twice: %v", err)
	}
	for _, bad := range []Tool{{Name: "", Source: Builtin}, {Name: "x"}, {Name: "x", Source: "elsewhere"}, {Name: strings.Repeat("x", model.MaxItemName+1), Source: Builtin}} {
		if err := tools.Add(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	if err := tools.Replace(MCP, []Tool{{Name: "mcp:s/t", Source: MCP}, {Name: "a", Source: MCP}}); !errors.Is(err, ErrToolExists) || toolNames(tools.List("")) != "a b" {
		t.Errorf("%v, then %s", err, toolNames(tools.List("")))
	}
	for _, names := range [][]string{{"mcp:s/t", "mcp:s/u"}, {"mcp:s/v"}} {
		var next []Tool
		for _, n := range names {
			next = append(next, Tool{Name: n, Source: MCP})
		}
		if err := tools.Replace(MCP, next); err != nil {
			t.Fatal(err)
		}
		if got := toolNames(tools.List(MCP)); got != strings.Join(names, " ") {
			t.Errorf("got %s", got)
		}
	}
	if !tools.Remove("a") || tools.Remove("a") || toolNames(tools.List(Builtin)) != "b" {
		t.Errorf("after a removal: %s", toolNames(tools.List("")))
	}
}
