package skill_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/skill"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/agent/skill/registry/registrytest"
	"phonerack/agent/skill/template"
)

// source is a copy in memory.
type source struct {
	mu     sync.Mutex
	copy   model.Copy
	skills map[string]*model.Skill // by hash
	reads  int
	onRead func(*model.Copy) // may be nil
}

func (s *source) Copy() *model.Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.copy
	return &c
}

func (s *source) Skill(e model.Entry) (*model.Skill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.onRead != nil {
		s.onRead(&s.copy)
	}
	if k := s.skills[e.SHA256]; k != nil {
		return k, nil
	}
	return nil, errors.New("gone")
}

func (s *source) put(t *testing.T, all ...*model.Skill) {
	t.Helper()
	rows := slices.Clone(s.copy.Rows)
	for _, k := range all {
		raw, err := k.Encode()
		if err != nil {
			t.Fatal(err)
		}
		e := model.EntryOf(k, raw)
		s.skills[e.SHA256] = k
		rows = slices.DeleteFunc(rows, func(r model.Row) bool { return r.ID == k.ID })
		rows = append(rows, model.RowOf(e, k))
	}
	slices.SortFunc(rows, func(a, b model.Row) int { return strings.Compare(a.ID, b.ID) })
	s.copy.Rows = rows
}

func knowledge(id, subscription string) *model.Skill {
	return &model.Skill{ID: id, Name: "Notes " + id, Description: "How to shop.", Kind: model.Knowledge, Version: "1", Subscription: subscription, UpdatedAt: time.UnixMilli(1).UTC(), Content: "Text."}
}

func flow(id, subscription, tool string) *model.Skill {
	return &model.Skill{
		ID: id, Name: "Flow " + id, Description: "Shops.", Kind: model.FlowTemplate, Version: "1", Subscription: subscription, UpdatedAt: time.UnixMilli(1).UTC(),
		Parameters: []model.Parameter{{Name: "query", Type: model.String, Required: true}},
		Steps: []model.Step{
			{Tool: "type", ArgsTemplate: []byte(`{"text":"{query}"}`)},
			{Tool: "type", ArgsTemplate: []byte(`{"text":"x"}`)},
			{Tool: tool, ArgsTemplate: []byte(`{"text":"y"}`)},
		},
	}
}

// tools are the registered ones.
type tools struct{ table *registry.Tools }

func (x tools) find(name string) (template.Checker, bool) {
	tool, ok := x.table.Get(name)
	if !ok {
		return nil, false
	}
	s, err := planner.ParseSchema(tool.InputSchema)
	if err != nil {
		panic(err)
	}
	return s, true
}

func (x tools) add(t testing.TB, name string) {
	t.Helper()
	schema := `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	if err := x.table.Add(registry.Tool{Name: name, InputSchema: []byte(schema), Source: registry.Builtin}); err != nil {
		t.Fatal(err)
	}
}

type bench struct {
	*testing.T
	source *source
	tools  tools
	c      *skill.Catalog
	reg    *registry.Registry
}

func newBench(t *testing.T, all ...*model.Skill) *bench {
	t.Helper()
	b := &bench{T: t, source: &source{skills: map[string]*model.Skill{}}, tools: tools{&registry.Tools{}}}
	b.tools.add(t, "type")
	b.source.copy.Subscriptions = []model.SubscriptionState{{ID: "all", State: model.Active}, {ID: "desk", State: model.Active, Agents: []string{"mcp-desk"}}}
	b.source.put(t, all...)
	b.c = skill.New(skill.Options{Source: b.source, Tools: b.tools.find})
	var err error
	if b.reg, err = registry.Open(registry.Options{Bucket: registrytest.New(t), Tools: b.tools.table}); err != nil {
		t.Fatal(err)
	}
	return b
}

// ways asks for a skill by every way that there is. Each answer is what the caller is told, with the id as ID.
func (b *bench) ways(c skill.Caller, id string) map[string]string {
	b.Helper()
	v := b.c.For(c)
	all := map[string]string{}
	say := func(way string, what any) { all[way] = strings.ReplaceAll(fmt.Sprint(what), id, "ID") }
	rows, _ := v.List("", 50)
	say("list", slices.ContainsFunc(rows, func(r skill.Row) bool { return r.ID == id }))
	say("search", slices.ContainsFunc(v.Search(id, 50), func(r skill.Row) bool { return r.ID == id }))
	_, unavailable, err := v.Get(id)
	say("get", fmt.Sprint(unavailable, err))
	_, err = v.Resolve(id, []byte(`{"query":"x"}`))
	say("resolve", err)
	_, found := v.Skill(id)
	say("include", found)
	say("validate_plan", b.reg.ValidatePlan(registry.Plan{Skills: []string{"local/user"}}, v))
	return all
}

// including registers local/user, which includes a skill of the catalog; for a caller who sees everything.
func (b *bench) including(id string) {
	b.Helper()
	s := &model.RegistrySkill{Name: "local/user", Description: "d", Items: []model.Item{{Include: &model.Include{Name: "catalog/" + id}}}}
	b.reg.Remove("local/user")
	if _, err := b.reg.Add(s, b.c.For(skill.Caller{Agent: "mcp", Token: "desk"})); err != nil {
		// What is not there can be included by no way that is checked: only the sentence of the plan counts.
		b.Log(err)
	}
}

var (
	task  = skill.Caller{Agent: skill.ForTasks, Task: "t1", Slot: 2}
	desk  = skill.Caller{Agent: skill.ForMCP, Token: "desk"}
	other = skill.Caller{Agent: skill.ForMCP, Token: "other"}
)

func TestSpec000_Visibility(t *testing.T) {
	t.Run("every way shows what the caller is entitled to, and nothing else", func(t *testing.T) {
		b := newBench(t, flow("shop", "desk", "type"))
		b.including("shop")
		for way, got := range b.ways(desk, "shop") {
			if want := map[string]string{"list": "true", "search": "true", "include": "true", "get": "<nil> <nil>", "resolve": "<nil>", "validate_plan": "[]"}[way]; got != want {
				t.Errorf("%s: %q, want %q", way, got, want)
			}
		}
	})
	t.Run("a skill that is not entitled answers exactly like an unknown one", func(t *testing.T) {
		b := newBench(t, flow("shop", "desk", "type"), knowledge("rest", "all"), knowledge("lab", "nobodys"))
		b.including("shop")
		for _, c := range []skill.Caller{task, other, {}} {
			hidden := b.ways(c, "shop")
			if hidden["get"] != "<nil> "+skill.ErrUnknown.Error() || hidden["list"] != "false" || hidden["search"] != "false" || hidden["include"] != "false" {
				t.Errorf("%+v: %v", c, hidden)
			}
			unknown, lab := b.ways(c, "none"), b.ways(c, "lab")
			for _, way := range []string{"list", "search", "get", "resolve", "include"} {
				if hidden[way] != unknown[way] || lab[way] != unknown[way] {
					t.Errorf("%+v, %s: %q, %q, unknown %q", c, way, hidden[way], lab[way], unknown[way])
				}
			}
			if !strings.Contains(hidden["validate_plan"], "Included skill 'catalog/ID' not found") {
				t.Errorf("%s", hidden["validate_plan"])
			}
		}
	})
	t.Run("D4: a revocation that is known locally hides at once, by every way, before any sync", func(t *testing.T) {
		for name, revoke := range map[string]func(*model.Copy){
			"the skill":        func(c *model.Copy) { c.Hidden = map[string]bool{"shop": true} },
			"the subscription": func(c *model.Copy) { c.Closed = map[string]bool{"desk": true} },
			"all":              func(c *model.Copy) { c.All = true },
			"by its state":     func(c *model.Copy) { c.Subscriptions = []model.SubscriptionState{{ID: "desk", State: model.Revoked}} },
		} {
			b := newBench(t, flow("shop", "desk", "type"))
			b.including("shop")
			b.ways(desk, "shop") // an index is made
			revoke(&b.source.copy)
			got, unknown := b.ways(desk, "shop"), b.ways(desk, "none")
			for _, way := range []string{"list", "search", "get", "resolve", "include"} {
				if got[way] != unknown[way] {
					t.Errorf("%s, %s: %q", name, way, got[way])
				}
			}
			if !strings.Contains(got["validate_plan"], "not found") {
				t.Errorf("%s: %s", name, got["validate_plan"])
			}
		}
	})
	t.Run("a revocation that comes while a skill is read counts", func(t *testing.T) {
		b := newBench(t, flow("shop", "desk", "type"))
		b.source.onRead = func(c *model.Copy) { c.Hidden = map[string]bool{"shop": true} }
		if s, _, err := b.c.For(desk).Get("shop"); !errors.Is(err, skill.ErrUnknown) {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("what is hidden takes no place among the best", func(t *testing.T) {
		b := newBench(t, knowledge("shop-a", "desk"), knowledge("shop-b", "desk"), knowledge("shop-c", "all"))
		if got := b.c.For(task).Search("shop", 1); len(got) != 1 || got[0].ID != "shop-c" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("lists are paged by id", func(t *testing.T) {
		b := newBench(t)
		for i := range 12 {
			b.source.put(t, knowledge(fmt.Sprintf("s%02d", i), []string{"all", "desk"}[i%2]))
		}
		var got []string
		for after, pages := "", 0; ; pages++ {
			rows, more := b.c.For(task).List(after, 4)
			for _, r := range rows {
				got = append(got, r.ID)
			}
			if !more {
				if pages != 1 {
					t.Errorf("%d pages", pages+1)
				}
				break
			}
			after = rows[len(rows)-1].ID
		}
		if fmt.Sprint(got) != "[s00 s02 s04 s06 s08 s10]" {
			t.Errorf("%v", got)
		}
	})
}

func TestSpec000_ToolsThatDrift(t *testing.T) {
	const sentence = `skill unavailable: step 3 calls tool "swipe", which is not registered`
	t.Run("a flow template that calls an unregistered tool is unavailable, at sync and at get", func(t *testing.T) {
		b := newBench(t, flow("shop", "all", "swipe"), flow("good", "all", "type"))
		b.c.Changed()
		reads := b.source.reads
		rows, _ := b.c.For(task).List("", 10)
		if len(rows) != 2 || rows[0].Unavailable != "" || rows[1].Unavailable != sentence || b.source.reads != reads {
			t.Errorf("%+v", rows)
		}
		if _, unavailable, err := b.c.For(task).Get("shop"); err != nil || unavailable == nil || unavailable.Error() != sentence {
			t.Errorf("%v, %v", unavailable, err)
		}
		if _, err := b.c.For(task).Resolve("shop", nil); err == nil || err.Error() != sentence {
			t.Errorf("%v", err)
		}
		if _, found := b.c.For(task).Skill("shop"); found {
			t.Error("it can be included")
		}
	})
	t.Run("and again after the tool set changes", func(t *testing.T) {
		b := newBench(t, flow("shop", "all", "swipe"))
		b.c.Changed()
		b.tools.add(t, "swipe")
		if _, unavailable, err := b.c.For(task).Get("shop"); unavailable != nil || err != nil {
			t.Errorf("at get: %v, %v", unavailable, err)
		}
		b.c.ToolsChanged()
		if rows, _ := b.c.For(task).List("", 10); rows[0].Unavailable != "" {
			t.Errorf("%+v", rows)
		}
		b.tools.table.Remove("swipe")
		b.c.ToolsChanged()
		if rows := b.c.For(task).Search("shop", 10); rows[0].Unavailable != sentence {
			t.Errorf("%+v", rows)
		}
	})
	t.Run("a copy that changes is checked for what is new in it", func(t *testing.T) {
		b := newBench(t, flow("a", "all", "type"))
		b.c.Changed()
		b.source.put(t, flow("b", "all", "swipe"))
		reads := b.source.reads
		b.c.Changed()
		if b.source.reads != reads+1 {
			t.Errorf("%d bodies were read for one new skill", b.source.reads-reads)
		}
	})
}

func TestSpec000_D5_ResolutionGivesCallsAndDoesNothing(t *testing.T) {
	b := newBench(t, flow("shop", "all", "type"), knowledge("text", "all"))
	calls, err := b.c.For(task).Resolve("shop", []byte(`{"query":"{other} $(x)"}`))
	if err != nil || len(calls) != 3 || string(calls[0].Arguments) != `{"text":"{other} $(x)"}` {
		t.Errorf("%s, %v", calls, err)
	}
	if _, err := b.c.For(task).Resolve("shop", nil); err == nil || !strings.Contains(err.Error(), "missing: query") {
		t.Errorf("%v", err)
	}
	if _, err := b.c.For(task).Resolve("text", nil); !errors.Is(err, template.ErrKnowledge) {
		t.Errorf("%v", err)
	}
}
