package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

const flow = `id: search
name: Search
description: Searches notes.
kind: flow_template
version: "1"
parameters: [{name: query, type: string, required: true}]
steps:
  - {tool: observe, args_template: {}}
  - {tool: input_text, args_template: {text: "{query}"}}
`

// many is a catalog whose first sync takes a while.
const many = 120

func TestSpec000_SkillsFromTheOperatorToThoseWhoAskAtTheRack(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	agent := s.client()

	s.in("what is published and granted is there", func(t *testing.T) {
		s.Must(os.WriteFile(filepath.Join(dir, "search.yaml"), []byte(flow), 0o600))
		s.draft(dir, "tips", "1", "Look twice.")
		s.Do(nil, "subscription", "create", "social")
		s.Do(nil, "skill", "publish", dir, "--subscription", "social")
		s.Do(nil, "subscription", "create", "desk")
		s.Do(nil, "skill", "publish", s.draft(t.TempDir(), "secret", "1", "For tasks."), "--subscription", "desk")
		s.Do(nil, "subscription", "grant", "desk", "--rack", s.ID, "--agent", "task")
		if got := s.listed(); got != "" {
			t.Errorf("before the grant there is %s", got)
		}
		s.Do(nil, "subscription", "grant", "social", "--rack", s.ID)
		s.awaitList("catalog/search catalog/tips")
		if got := s.ids(agent); got != "search tips" {
			t.Errorf("an MCP client has %s", got)
		}
		if got := s.tool(agent, "resolve_skill_parameters", map[string]any{"id": "search", "values": map[string]any{"query": "tea"}}); !strings.Contains(got, `"text":"tea"`) {
			t.Errorf("%s", got)
		}
		if out, exit := s.rackctl("skill", "tools", "catalog/search"); exit != 0 || !strings.Contains(out, "2 tools") {
			t.Errorf("%d %s", exit, out)
		}
	})
	s.in("what is for tasks alone is unknown to a person and to an MCP client", func(t *testing.T) {
		if st := s.status(); st.Skills != 3 {
			t.Fatalf("the rack has %d skills", st.Skills)
		}
		if _, exit := s.rackctl("skill", "show", "catalog/secret"); exit != 1 {
			t.Errorf("exit code %d", exit)
		}
		secret, nobody := s.tool(agent, "get_skill", map[string]any{"id": "secret"}), s.tool(agent, "get_skill", map[string]any{"id": "nobody"})
		if strings.ReplaceAll(secret, "secret", "ID") != strings.ReplaceAll(nobody, "nobody", "ID") {
			t.Errorf("%s\n%s", secret, nobody)
		}
	})
	s.in("an update takes the place of what was", func(t *testing.T) {
		s.Do(nil, "skill", "publish", s.draft(dir, "tips", "2", "Look three times."), "--subscription", "social")
		s.Await("version 2", func() (bool, any) {
			d := asked[action.SkillDetail](s, "show", "catalog/tips")
			return d.Version == "2" && strings.Contains(d.Content, "three times"), d
		})
		if got := s.tool(agent, "get_skill", map[string]any{"id": "tips"}); !strings.Contains(got, "three times") {
			t.Errorf("%s", got)
		}
	})
	s.in("a revocation hides at once, while nothing can be fetched, and after kill -9", func(t *testing.T) {
		s.gate.hold(up, true)
		s.Do(nil, "subscription", "revoke", "social", "--rack", s.ID)
		s.awaitList("")
		if got := s.ids(agent); got != "" {
			t.Errorf("an MCP client has %s", got)
		}
		if st := s.status(); st.Hidden != 1 || st.Skills != 3 {
			t.Errorf("%+v", st)
		}
		s.Rack.Kill()
		s.gate.hold(down, true)
		s.restart()
		if got := s.listed(); got != "" {
			t.Errorf("after a restart without a cloud there is %s", got)
		}
		s.gate.hold(up, false)
		s.gate.hold(down, false)
		s.gate.cut()
		s.ready()
		s.Await("a whole list", func() (bool, any) { st := s.status(); return st.Hidden == 0 && st.Skills == 1, st })
		agent = s.client()
	})
	s.in("a grant whose hint is lost comes with the next poll", func(t *testing.T) {
		version := s.status().Version
		s.gate.hold(down, true)
		s.Do(nil, "subscription", "grant", "social", "--rack", s.ID)
		time.Sleep(500 * time.Millisecond) // the hint is on its way, and will not come
		s.gate.cut()
		s.gate.hold(down, false)
		s.Reach(s.Ctx)
		s.awaitList("catalog/search catalog/tips")
		if st := s.status(); st.Version <= version {
			t.Errorf("version %d after %d", st.Version, version)
		}
	})
	s.in("kill -9 during a sync leaves the old catalog whole", s.killDuringSync)
	s.in("a cloud that was killed goes on where it was", func(t *testing.T) {
		before := s.status()
		s.Cloud.Kill()
		if got := s.listed(); !strings.HasPrefix(got, "catalog/many-000") || strings.Count(got, " ") != many+1 {
			t.Errorf("without a cloud there is %s", got)
		}
		s.Must(s.Cloud.Restart(s.Ctx))
		s.ready()
		s.Do(nil, "skill", "remove", "search")
		s.Await("one skill less", func() (bool, any) { st := s.status(); return st.Skills == before.Skills-1, st })
		if st := s.status(); st.Epoch != before.Epoch || st.Version <= before.Version {
			t.Errorf("%+v after %+v", st, before)
		}
	})
	s.in("a rack that another tenant or nobody has granted anything gets nothing", func(t *testing.T) {
		bundle, err := s.Cloud.AddRack(s.Ctx, "foreign")
		s.Must(err)
		r := join(t, s, bundle)
		var page wire.SkillManifest
		m, err := r.ask(wire.TypeSkillChanges, wire.SkillChanges{})
		if err != nil || m.Decode(&page) != nil || strings.Contains(string(page.Manifest), "tips") {
			t.Errorf("%v %s", err, page.Manifest)
		}
		for _, hash := range []string{s.hashOf("tips"), strings.Repeat("0", 64)} {
			if _, err := r.ask(wire.TypeBlobGet, wire.BlobGet{SHA256: hash}); !wire.Is(err, wire.NotFound) {
				t.Errorf("%v", err)
			}
		}
	})
}

// killDuringSync publishes a large catalog, lets some of it through, and kills rackd. What it shows then is what it was.
func (s *site) killDuringSync(t *testing.T) {
	dir := t.TempDir()
	for i := range many {
		s.draft(dir, fmt.Sprintf("many-%03d", i), "1", strings.Repeat("text of a skill ", 1500))
	}
	s.Do(nil, "subscription", "create", "many")
	s.Do(nil, "skill", "publish", dir, "--subscription", "many")
	old, st := s.listed(), s.status()
	before := s.gate.received()
	s.Do(nil, "subscription", "grant", "many")
	s.Await("a part of the bodies", func() (bool, any) {
		got := s.gate.received() - before
		return got > 200<<10, got
	})
	s.gate.hold(down, true)
	s.Rack.Kill()
	s.gate.cut()
	s.restart() // nothing comes down to it yet
	if got := s.listed(); got != old {
		t.Errorf("after the kill there is %s, before it was %s", got, old)
	}
	if now := s.status(); now.Version != st.Version || now.Skills != st.Skills {
		t.Errorf("%+v, before %+v", now, st)
	}
	s.gate.cut()
	s.gate.hold(down, false)
	s.ready()
	s.Await("the whole catalog", func() (bool, any) {
		now := s.status()
		return now.Skills == st.Skills+many && now.Problem == "", now
	})
}
