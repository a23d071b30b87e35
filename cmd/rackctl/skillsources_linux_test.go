package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/firmware/action"
	"phonerack/firmware/skills"
	"phonerack/sync/catalog"
)

// subscribed is a copy of a catalog in memory. What is for somebody else is of the subscription "desk".
type subscribed struct {
	copy   model.Copy
	skills map[string]*model.Skill // by hash
	status catalog.Status
}

func (s *subscribed) Copy() *model.Copy      { return &s.copy }
func (s *subscribed) Status() catalog.Status { return s.status }

func (s *subscribed) Skill(e model.Entry) (*model.Skill, error) {
	if k := s.skills[e.SHA256]; k != nil {
		return k, nil
	}
	return nil, errors.New("gone")
}

// subscribe gives a bench's rack a catalog.
func subscribe(t *testing.T, b *bench, all ...*model.Skill) *subscribed {
	t.Helper()
	s := &subscribed{skills: map[string]*model.Skill{}}
	s.copy.Subscriptions = []model.SubscriptionState{{ID: "all", State: model.Active}, {ID: "desk", State: model.Active, Agents: []string{"mcp-desk"}}}
	for _, k := range all {
		k.Version, k.UpdatedAt = "7", time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
		if k.Subscription == "" {
			k.Subscription = "all"
		}
		raw, err := k.Encode()
		if err != nil {
			t.Fatal(err)
		}
		e := model.EntryOf(k, raw)
		s.skills[e.SHA256] = k
		s.copy.Rows = append(s.copy.Rows, model.RowOf(e, k))
	}
	slices.SortFunc(s.copy.Rows, func(a, b model.Row) int { return strings.Compare(a.ID, b.ID) })
	b.rack.Book.(*skills.Skills).Follow(s)
	return s
}

func text(id string) *model.Skill {
	return &model.Skill{ID: id, Name: "小红书 tips", Description: "How to look for notes.", Kind: model.Knowledge, Tags: []string{"social"}, Content: "# Tips\n\nLook \u200btwice.\n"}
}

func calls(id, tool string) *model.Skill {
	return &model.Skill{
		ID: id, Name: "Search", Description: "Searches notes.", Kind: model.FlowTemplate,
		Parameters: []model.Parameter{{Name: "query", Type: model.String, Required: true, Description: "what to look for"}},
		Steps:      []model.Step{{Tool: "observe", ArgsTemplate: []byte(`{}`)}, {Tool: tool, ArgsTemplate: []byte(`{"text":"{query}"}`)}},
	}
}

// withAll is a bench with a skill of each source: two of the registry, an Agent Skill, and of the catalog one to read, one to use, one
// that cannot be used and one that persons do not have.
func withAll(t *testing.T) (*bench, *subscribed) {
	b, root := withSkills(t)
	secret := text("secret")
	secret.Subscription = "desk"
	s := subscribe(t, b, text("tips"), calls("search", "input_text"), calls("broken", "fly"), secret)
	putFolder(t, root, "weather", "---\nname: weather\ndescription: Says the weather.\n---\n# Weather\nAsk twice.\n")
	b.did(0, "", "skill", "tools", "--refresh")
	b.did(0, base, "skill", "add", "-")
	b.did(0, "name: zone/last\ndescription: The last.\nitems: [{type: include, name: catalog/search}]\n", "skill", "add", "-")
	return b, s
}

// asked is the data of an answer of rackctl.
func asked[T any](t *testing.T, b *bench, args ...string) (data T) {
	t.Helper()
	out, _ := b.did(0, "", append(args, "--format", "json")...)
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data
}

func names(rows []action.SkillRow) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestSkillsOfAllSourcesAreSeenTogether(t *testing.T) {
	b, s := withAll(t)
	t.Run("list", func(t *testing.T) {
		for namespace, want := range map[string]string{
			"": "agent_skills/weather catalog/broken catalog/search catalog/tips local/base zone/last", "catalog": "catalog/broken catalog/search catalog/tips",
			"agent_skills": "agent_skills/weather", "local": "local/base", "none": "",
		} {
			if list := asked[action.SkillList](t, b, "skill", "list", "--namespace", namespace); names(list.Skills) != want {
				t.Errorf("namespace %q: %s", namespace, names(list.Skills))
			}
		}
		list := asked[action.SkillList](t, b, "skill", "list")
		if want := (action.SkillSummary{Total: 6, Registry: 2, Catalog: 3, AgentSkills: 1, Unavailable: 1}); list.Summary == nil || *list.Summary != want {
			t.Errorf("summary %+v", list.Summary)
		}
		broken := list.Skills[1]
		if broken.Unavailable != `skill unavailable: step 2 calls tool "fly", which is not registered` || broken.Kind != model.FlowTemplate || broken.Source != action.FromCatalog || broken.Subscription != "all" || broken.Stale {
			t.Errorf("%+v", broken)
		}
		if list.Skills[0].Source != action.FromAgentSkills || list.Skills[4].Source != action.FromRegistry || list.Skills[4].Kind != action.Collection {
			t.Errorf("%+v", list.Skills)
		}
	})
	t.Run("a catalog that was not renewed in time", func(t *testing.T) {
		s.status.StaleSince = time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
		defer func() { s.status.StaleSince = time.Time{} }()
		list := asked[action.SkillList](t, b, "skill", "list")
		for _, r := range list.Skills {
			if r.Stale != (r.Source == action.FromCatalog) {
				t.Errorf("%+v", r)
			}
		}
		out, _ := b.did(0, "", "skill", "list")
		if !list.Summary.StaleSince.Equal(s.status.StaleSince) || !strings.Contains(out, "stale,unavailable") || !strings.Contains(out, "may be out of date since") ||
			!strings.Contains(out, "6 skills: 2 registered, 3 of the catalog, 1 Agent Skills; 1 cannot be used now") {
			t.Errorf("%+v\n%s", list.Summary, out)
		}
		if d := asked[action.SkillDetail](t, b, "skill", "show", "catalog/tips"); !d.Stale {
			t.Errorf("%+v", d)
		}
	})
	t.Run("search", func(t *testing.T) {
		if got := names(asked[action.SkillList](t, b, "skill", "search", "小红书").Skills); got != "catalog/tips" {
			t.Errorf("%s", got)
		}
		if got := names(asked[action.SkillList](t, b, "skill", "search", "base", "weather", "search").Skills); !strings.HasPrefix(got, "local/base catalog/search agent_skills/weather") {
			t.Errorf("%s", got)
		}
	})
	t.Run("show", func(t *testing.T) {
		out, _ := b.did(0, "", "skill", "show", "catalog/tips")
		if !strings.Contains(out, "小红书 tips") || !strings.Contains(out, "subscription  all") || !strings.Contains(out, "# Tips\n\nLook twice.\n") {
			t.Errorf("%q", out)
		}
		if d := asked[action.SkillDetail](t, b, "skill", "show", "catalog/broken"); d.Unavailable == "" || len(d.Steps) != 2 || d.Parameters[0].Name != "query" || d.Source != action.FromCatalog {
			t.Errorf("%+v", d)
		}
		out, _ = b.did(0, "", "skill", "show", "catalog/search")
		if !strings.Contains(out, `{"text":"{query}"}`) || !strings.Contains(out, "what to look for") {
			t.Errorf("%s", out)
		}
		if d := asked[action.SkillDetail](t, b, "skill", "show", "agent_skills/weather"); !strings.Contains(d.Content, "Ask twice.") || d.Path == "" || d.Kind != model.Knowledge {
			t.Errorf("%+v", d)
		}
	})
	t.Run("tools and validate", func(t *testing.T) {
		for args, want := range map[string]struct {
			code  int
			holds string
		}{
			"tools catalog/search":       {0, "input_text"},
			"tools zone/last":            {0, "catalog/search"},
			"tools catalog/tips":         {0, "0 tools"},
			"tools agent_skills/weather": {0, "1 tools"},
			"tools catalog/broken":       {1, `step 2 calls tool "fly"`},
			"tools catalog/none":         {1, "there is no skill catalog/none"},
			"validate catalog/search catalog/tips agent_skills/weather zone/last": {0, "ok"},
			"validate catalog/broken":    {1, `Skill 'catalog/broken': skill unavailable: step 2 calls tool "fly", which is not registered`},
			"validate catalog/none":      {1, "Skill 'catalog/none' referenced in plan is not registered"},
			"validate agent_skills/none": {1, "Skill 'agent_skills/none' referenced in plan is not registered"},
		} {
			stdout, stderr := b.did(want.code, "", append([]string{"skill"}, strings.Fields(args)...)...)
			if !strings.Contains(stdout+stderr, want.holds) {
				t.Errorf("skill %s: %s%s", args, stdout, stderr)
			}
		}
	})
}

// TestSpec000_NotEntitledIsUnknownToAPerson: each question about a skill that a person does not have is answered as one about none.
func TestSpec000_NotEntitledIsUnknownToAPerson(t *testing.T) {
	b, _ := withAll(t)
	for _, args := range []string{"show %s", "tools %s", "validate %s", "update %s", "remove %s"} {
		ask := func(name string) string {
			words := strings.Fields("skill " + fmt.Sprintf(args, name))
			stdin := ""
			if words[1] == "update" {
				words[2], stdin = "-", "name: "+name+"\ndescription: d\nitems: []\n"
			}
			stdout, stderr := b.did(1, stdin, words...)
			return strings.ReplaceAll(stdout+stderr, name, "NAME")
		}
		if got, want := ask("catalog/secret"), ask("catalog/nobody"); got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
	}
	if out, _ := b.did(0, "", "skill", "search", "小红书", "tips", "notes"); strings.Contains(out, "secret") {
		t.Errorf("%s", out)
	}
}

// TestSpec000_D2_NothingOfTheCatalogIsChangedHere: what is there is refused as what is not, and stays.
func TestSpec000_D2_NothingOfTheCatalogIsChangedHere(t *testing.T) {
	b, _ := withAll(t)
	for _, c := range []struct{ verb, name, holds string }{
		{"remove", "catalog/tips", "skills of the catalog cannot be changed here: they come from a subscription"},
		{"update", "catalog/tips", `the namespace "catalog" is reserved: its skills come from elsewhere and cannot be changed here`},
		{"add", "catalog/tips", `the namespace "catalog" is reserved: its skills come from elsewhere and cannot be changed here`},
		{"remove", "agent_skills/weather", "the namespace is reserved: its skills come from elsewhere"},
		{"update", "agent_skills/weather", `the namespace "agent_skills" is reserved: its skills come from elsewhere and cannot be changed here`},
	} {
		words, stdin := []string{"skill", c.verb, c.name}, ""
		if c.verb != "remove" {
			words[2], stdin = "-", "name: "+c.name+"\ndescription: d\nitems: []\n"
		}
		stdout, stderr := b.did(1, stdin, words...)
		if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.holds) {
			t.Errorf("%v: %s%s", words, stdout, stderr)
		}
	}
	if got := names(asked[action.SkillList](t, b, "skill", "list").Skills); got != "agent_skills/weather catalog/broken catalog/search catalog/tips local/base zone/last" {
		t.Errorf("%s", got)
	}
}

func TestAListOf2500SkillsComesInBoundedParts(t *testing.T) {
	b, _ := withSkills(t)
	var all []*model.Skill
	for i := range 2500 {
		k := text(fmt.Sprintf("skill-%04d", i))
		if i < model.MaxPage { // the first part is the largest that there can be
			k.Description = strings.Repeat("界", model.MaxDescription)
		}
		all = append(all, k)
	}
	subscribe(t, b, all...)
	b.did(0, base, "skill", "add", "-")
	whole := asked[action.SkillList](t, b, "skill", "list")
	if len(whole.Skills) != 2501 || whole.Next != "" || whole.Summary.Total != 2501 || whole.Skills[2500].Name != "local/base" {
		t.Fatalf("%d skills, %+v", len(whole.Skills), whole.Summary)
	}
	book := b.rack.Book
	parts, after := 0, ""
	for seen := 0; ; parts++ {
		list := book.List("", after, model.MaxPage)
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Skills) > model.MaxPage || len(raw) > 256<<10 {
			t.Fatalf("%d skills in %d bytes", len(list.Skills), len(raw))
		}
		for i, r := range list.Skills {
			if r.Name != whole.Skills[seen+i].Name {
				t.Fatalf("%s where %s is next", r.Name, whole.Skills[seen+i].Name)
			}
		}
		if seen += len(list.Skills); list.Next == "" {
			if seen != 2501 {
				t.Errorf("%d skills", seen)
			}
			break
		}
		after = list.Next
	}
	if parts != 50 {
		t.Errorf("%d parts", parts)
	}
}
