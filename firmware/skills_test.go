package firmware_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/registry"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/store"
	"phonerack/sync/wire"
)

const toolkit = "name: local/devops-toolkit\ndescription: What we use.\nitems:\n  - {type: tool_ref, name: tap}\n  - {type: tool_ref, name: agent_skills/weather}\n"

func weather(t *testing.T, root string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, "weather"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: weather\ndescription: Says the weather.\n---\n# Weather\n"
	if err := os.WriteFile(filepath.Join(root, "weather", folder.FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSkillsOutliveARestartAndFoldersAreFound(t *testing.T) {
	root := t.TempDir()
	b := newBench(t, 1)
	b.config.Skills.Paths = folder.Paths{Folders: []string{root}}
	weather(t, root)
	b.start()
	var added action.SkillDetail
	if err := b.Call(t.Context(), "skill_add", action.SkillYAML{YAML: toolkit}, &added); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.start()
	var shown action.SkillDetail
	if err := b.Call(t.Context(), "skill_show", action.SkillArgs{Name: "local/devops-toolkit"}, &shown); err != nil || fmt.Sprint(shown) == "" || !shown.CreatedAt.Equal(added.CreatedAt) || len(shown.Items) != 2 {
		t.Errorf("after a restart: %+v, %v", shown, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		var v action.SkillValidation
		if err := b.Call(t.Context(), "skill_validate", action.SkillValidateArgs{Skills: []string{"local/devops-toolkit"}}, &v); err != nil {
			t.Fatal(err)
		}
		if v.Valid {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the folder is not found: %q", v.Errors)
		}
		time.Sleep(20 * time.Millisecond)
	}
	var l registry.Listing
	if err := b.Call(t.Context(), "skill_tools", action.SkillToolsArgs{Name: "local/devops-toolkit"}, &l); err != nil {
		t.Fatal(err)
	}
	if l.Tools[0].Source != registry.Builtin || !l.Tools[0].Writes || l.Tools[1].Source != registry.AgentSkills || l.Tools[1].SourceMetadata["path"] != filepath.Join(root, "weather") {
		t.Errorf("tools %+v", l.Tools)
	}
}

// TestARackStartsWithoutASkillThatCannotBeRead: the rest is there, and the skill is named until somebody removes it.
func TestARackStartsWithoutASkillThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.start()
	for _, name := range []string{"local/bad", "local/good"} {
		yaml := fmt.Sprintf("name: %s\ndescription: What we use.\nitems:\n  - {type: tool_ref, name: tap}\n", name)
		if err := b.Call(t.Context(), "skill_add", action.SkillYAML{YAML: yaml}, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.stop()
	db, err := store.Open(store.Options{Path: filepath.Join(b.config.Rack.State, "rackd.db"), Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := db.Bucket("skills")
	if err == nil {
		err = bucket.Update(func(b *bolt.Bucket) error { return b.Bucket([]byte("skills")).Put([]byte("local/bad"), []byte("{")) })
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b.start()
	if err := b.Call(t.Context(), "skill_show", action.SkillArgs{Name: "local/good"}, nil); err != nil {
		t.Errorf("the other skill: %v", err)
	}
	named := func() bool { return b.says("skill_set_aside", "local/bad") }
	b.within("the finding", named)
	if err := b.Call(t.Context(), "skill_remove", action.SkillArgs{Name: "local/bad"}, nil); err != nil {
		t.Error(err)
	}
	b.within("its end", func() bool { return !named() })
}

// TestWhatTheConfigurationLeavesOutIsNoMatterOfTheVersion: the refusal names the keys that would give it.
func TestWhatTheConfigurationLeavesOutIsNoMatterOfTheVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.config.MCP.Enabled = false
	b.start()
	err := b.Call(t.Context(), "skill_catalog", struct{}{}, nil)
	if r, ok := errors.AsType[*wire.Refusal](err); !ok || r.Code != wire.NotConfigured || !strings.Contains(r.Sentence("en"), "set cloud.identity") {
		t.Errorf("a catalog without a cloud: %v", err)
	}
	err = b.rack.SpeakMCP(t.Context(), action.Actor{Name: "lee", Role: action.Operator}, strings.NewReader(""), io.Discard)
	if r, ok := errors.AsType[*wire.Refusal](err); !ok || r.Code != wire.NotConfigured || !strings.Contains(r.Sentence("en"), "set mcp.enabled = true") {
		t.Errorf("MCP that is switched off: %v", err)
	}
}

// TestWithoutSkillsThereAreDeviceToolsOnly: skills.enabled = false.
func TestWithoutSkillsThereAreDeviceToolsOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	weather(t, root)
	b := newBench(t, 1)
	b.config.Skills = config.Skills{Enabled: false, Paths: folder.Paths{Folders: []string{root}}}
	b.start()
	b.phones[1].plug(t)
	b.await(1, action.Ready)
	all, err := b.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]any{
		"skill_show": action.SkillArgs{Name: "a/b"}, "skill_remove": action.SkillArgs{Name: "a/b"}, "skill_search": action.SkillSearchArgs{Query: "x"},
		"skill_add": action.SkillYAML{YAML: toolkit}, "skill_update": action.SkillYAML{YAML: toolkit}, "skill_validate": action.SkillValidateArgs{Skills: []string{"a/b"}},
	}
	n := 0
	for _, d := range all {
		if !strings.HasPrefix(d.Name, "skill_") {
			continue
		}
		n++
		if err := b.Call(t.Context(), d.Name, args[d.Name], nil); !wire.Is(err, wire.SkillsDisabled) {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if n != 10 {
		t.Errorf("%d actions of skills", n)
	}
	var o action.Observation
	if err := b.Call(t.Context(), "observe", slotArgs(1), &o); err != nil {
		t.Errorf("the phone: %v", err)
	}
	if raw, err := json.Marshal(o); err != nil || strings.Contains(string(raw), "weather") {
		t.Errorf("%s, %v", raw, err)
	}
}
