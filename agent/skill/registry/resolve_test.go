package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/agent/skill/model"
)

// library is a set of skills for a resolver.
type library map[string]*model.RegistrySkill

func (l library) resolver() *Resolver {
	return &Resolver{Skill: func(name string) (*model.RegistrySkill, bool) {
		s, ok := l[name]
		return s, ok
	}}
}

func (l library) put(s *model.RegistrySkill) { l[s.Name] = s }

// naive follows the rules of spec 004 as they are written: by recursion, a list
// at a time, each way anew.
type naive struct {
	l     library
	calls int
}

var errNaive = errors.New("it does not resolve")

func (n *naive) resolve(name string, path []string) ([]Entry, error) {
	s, ok := n.l[name]
	if !ok || slices.Contains(path, name) {
		return nil, errNaive
	}
	n.calls++
	path = append(slices.Clone(path), name)
	var list []Entry
	add := func(e Entry) {
		for i := range list {
			if list[i].Name == e.Name {
				list[i] = e
				return
			}
		}
		list = append(list, e)
	}
	for _, it := range s.Items {
		if it.Include == nil {
			continue
		}
		sub, err := n.resolve(it.Include.Name, path)
		if err != nil {
			return nil, err
		}
		for _, e := range sub {
			e.Overrides = shallow(e.Overrides, it.Include.Overrides)
			add(e)
		}
	}
	for _, it := range s.Items {
		if it.ToolRef != nil {
			add(Entry{Name: it.ToolRef.Name, SourceSkill: name, Type: model.ToolRefItem, Overrides: shallow(shallow(nil, s.Overrides[it.ToolRef.Name]), it.ToolRef.Overrides)})
		}
	}
	i := 0
	for _, it := range s.Items {
		if it.InlineTool != nil {
			add(Entry{Name: fmt.Sprintf("%s/_anon_%d", name, i), SourceSkill: name, Type: model.InlineToolItem, IsInline: true, Inline: it.InlineTool})
			i++
		}
	}
	for _, it := range s.Items {
		if it.MCPSource != nil {
			for _, tool := range it.MCPSource.ToolFilter.Include {
				add(Entry{Name: "mcp:" + it.MCPSource.Name + "/" + tool, SourceSkill: name, Type: model.MCPSourceItem, Server: it.MCPSource})
			}
		}
	}
	for _, it := range s.Items {
		if it.AgentSource != nil {
			add(Entry{Name: "agent_skill:" + it.AgentSource.Path, SourceSkill: name, Type: model.AgentSourceItem, Agent: it.AgentSource})
		}
	}
	return list, nil
}

func shallow(base, top model.Overrides) model.Overrides {
	m := model.Overrides{}
	maps.Copy(m, base)
	maps.Copy(m, top)
	if len(m) == 0 {
		return nil
	}
	return m
}

var overridesGen = rapid.Custom(func(t *rapid.T) model.Overrides {
	m := model.Overrides{}
	for _, field := range rapid.SliceOfN(rapid.SampledFrom([]string{"description", "writes", "read_only", "limit"}), 0, 3).Draw(t, "fields") {
		m[field] = json.RawMessage(fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "value")))
	}
	if len(m) == 0 {
		return nil
	}
	return m
})

// drawLibrary makes skills s0 to sN. acyclic includes only earlier ones.
func drawLibrary(t *rapid.T, acyclic bool) (library, string) {
	l := library{}
	n := rapid.IntRange(1, 7).Draw(t, "skills")
	name := func(i int) string { return fmt.Sprintf("x/s%d", i) }
	tool := rapid.SampledFrom([]string{"a", "b", "c", "d", "x/tool", "mcp:m/t"})
	for i := range n {
		s := &model.RegistrySkill{Name: name(i)}
		for range rapid.IntRange(0, 6).Draw(t, "items") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0, 1:
				high := n // the last is one that is not there
				if acyclic {
					high = i - 1
				}
				if high >= 0 {
					s.Items = append(s.Items, model.Item{Include: &model.Include{Name: name(rapid.IntRange(0, high).Draw(t, "include")), Overrides: overridesGen.Draw(t, "overrides")}})
				}
			case 2:
				s.Items = append(s.Items, model.Item{ToolRef: &model.ToolRef{Name: tool.Draw(t, "tool"), Overrides: overridesGen.Draw(t, "overrides")}})
			case 3:
				s.Items = append(s.Items, model.Item{InlineTool: &model.InlineTool{Source: model.SourceCustom, ReadOnly: rapid.Bool().Draw(t, "read_only")}})
			case 4:
				s.Items = append(s.Items, model.Item{MCPSource: &model.MCPSource{
					Name: "m", Transport: model.Stdio, ToolFilter: &model.ToolFilter{Include: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"t", "u", "v"}), 1, 3, rapid.ID).Draw(t, "filter")},
				}})
			case 5:
				s.Items = append(s.Items, model.Item{AgentSource: &model.AgentSource{Path: rapid.SampledFrom([]string{"/p", "/q"}).Draw(t, "path")}})
			}
		}
		if rapid.Bool().Draw(t, "has overrides") {
			s.Overrides = map[string]model.Overrides{tool.Draw(t, "overridden"): overridesGen.Draw(t, "overrides")}
		}
		l.put(s)
	}
	return l, name(n - 1)
}

func TestResolverDoesWhatTheRulesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, root := drawLibrary(t, true)
		want, err := (&naive{l: l}).resolve(root, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.resolver().Resolve(root)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Entries { // nil and empty are the same
			if len(got.Entries[i].Overrides) == 0 {
				got.Entries[i].Overrides = nil
			}
		}
		if len(want) != len(got.Entries) || len(want) > 0 && !reflect.DeepEqual(want, got.Entries) {
			t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got.Entries))
		}
	})
}

func TestResolverRefusesWhatTheRulesRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, root := drawLibrary(t, false)
		_, want := (&naive{l: l}).resolve(root, nil)
		_, got := l.resolver().Resolve(root)
		if (want == nil) != (got == nil) {
			t.Fatalf("the rules say %v, the resolver says %v", want, got)
		}
		if cycle, ok := errors.AsType[*CycleError](got); ok {
			p := cycle.Path
			if len(p) < 2 || p[0] != p[len(p)-1] {
				t.Fatalf("the path %v is not closed", p)
			}
			for i := range len(p) - 1 {
				if !slices.ContainsFunc(l[p[i]].Items, func(it model.Item) bool { return it.Include != nil && it.Include.Name == p[i+1] }) {
					t.Fatalf("%s does not include %s", p[i], p[i+1])
				}
			}
		}
	})
}

// diamonds makes levels of two skills, each of which includes both of the level below.
func diamonds(levels int) (library, string) {
	l := library{}
	for i := range levels {
		for _, side := range []string{"l", "r"} {
			s := &model.RegistrySkill{Name: fmt.Sprintf("d/%s%d", side, i), Items: []model.Item{{ToolRef: &model.ToolRef{Name: fmt.Sprintf("tool_%s%d", side, i)}}}}
			if i > 0 {
				for _, below := range []string{"l", "r"} {
					s.Items = append(s.Items, model.Item{Include: &model.Include{
						Name: fmt.Sprintf("d/%s%d", below, i-1), Overrides: model.Overrides{"by": json.RawMessage(fmt.Sprintf("%q", side))},
					}})
				}
			}
			l.put(s)
		}
	}
	top := &model.RegistrySkill{Name: "d/top", Items: []model.Item{
		{Include: &model.Include{Name: fmt.Sprintf("d/l%d", levels-1)}}, {Include: &model.Include{Name: fmt.Sprintf("d/r%d", levels-1)}},
	}}
	l.put(top)
	return l, top.Name
}

// TestThirtyLevelsOfDiamonds would take 2^30 visits without memory.
func TestThirtyLevelsOfDiamonds(t *testing.T) {
	l, top := diamonds(30)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := l.resolver().Resolve(top)
		if err != nil || len(r.Entries) != 60 {
			t.Errorf("%d tools, %v", len(r.Entries), err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it visits every way")
	}
	small, root := diamonds(8)
	want, err := (&naive{l: small}).resolve(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := small.resolver().Resolve(root)
	if err != nil || !reflect.DeepEqual(want, got.Entries) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got.Entries))
	}
}

// TestFlattenIsLinear counts what is looked up and walked: four times the skills take four times the work.
func TestFlattenIsLinear(t *testing.T) {
	work := func(levels int) int {
		l, top := diamonds(levels)
		n := 0
		r := &Resolver{Skill: func(name string) (*model.RegistrySkill, bool) {
			n++
			s, ok := l[name]
			return s, ok
		}}
		if _, err := r.Resolve(top); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if small, large := work(125), work(500); small != 251 || large != 1001 {
		t.Errorf("250 skills take %d visits, 1,000 take %d", small, large)
	}
	allocs := func(levels int) float64 {
		l, top := diamonds(levels)
		return testing.AllocsPerRun(3, func() { _, _ = l.resolver().Resolve(top) })
	}
	if small, large := allocs(125), allocs(500); large > 5*small {
		t.Errorf("250 skills take %.0f allocations, 1,000 take %.0f", small, large)
	}
}

// TestFlattenIsDeterministic: maps are walked in another order each time.
func TestFlattenIsDeterministic(t *testing.T) {
	l, top := diamonds(6)
	for _, s := range l {
		s.Overrides = map[string]model.Overrides{}
		for i := range 5 {
			s.Overrides[fmt.Sprintf("tool_l%d", i)] = model.Overrides{"a": []byte("1"), "b": []byte("2")}
		}
	}
	var first []byte
	for i := range 1000 {
		r, err := l.resolver().Resolve(top)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(r.Entries)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = raw
		}
		if string(raw) != string(first) {
			t.Fatalf("run %d differs", i)
		}
	}
}

func TestAChainAsDeepAsTheRegistry(t *testing.T) {
	l := library{}
	for i := range MaxSkills {
		s := &model.RegistrySkill{Name: fmt.Sprintf("c/s%d", i), Items: []model.Item{{ToolRef: &model.ToolRef{Name: fmt.Sprintf("t%d", i)}}}}
		if i > 0 {
			s.Items = append(s.Items, model.Item{Include: &model.Include{Name: fmt.Sprintf("c/s%d", i-1)}})
		}
		l.put(s)
	}
	r, err := l.resolver().Resolve(fmt.Sprintf("c/s%d", MaxSkills-1))
	if err != nil || len(r.Entries) != MaxSkills || r.Entries[0].Name != "t0" {
		t.Errorf("%v", err)
	}
}

func TestTooManyToolsAreRefused(t *testing.T) {
	l := library{}
	for i := range 21 {
		s := &model.RegistrySkill{Name: fmt.Sprintf("m/s%d", i)}
		for j := range 1000 {
			s.Items = append(s.Items, model.Item{ToolRef: &model.ToolRef{Name: fmt.Sprintf("t%d_%d", i, j)}})
		}
		if i > 0 {
			s.Items = append(s.Items, model.Item{Include: &model.Include{Name: fmt.Sprintf("m/s%d", i-1)}})
		}
		l.put(s)
	}
	_, err := l.resolver().Resolve("m/s20")
	if _, ok := errors.AsType[*TooManyToolsError](err); !ok {
		t.Errorf("got %v", err)
	}
}

func names(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return strings.Join(all, " ")
}

// BenchmarkFlatten1000SkillsWithDiamonds wants the same result of each run.
func BenchmarkFlatten1000SkillsWithDiamonds(b *testing.B) {
	for _, levels := range []int{125, 250, 500} {
		l, top := diamonds(levels)
		b.Run(fmt.Sprintf("skills=%d", 2*levels), func(b *testing.B) {
			var first []Entry
			for b.Loop() {
				r, err := l.resolver().Resolve(top)
				if err != nil {
					b.Fatal(err)
				}
				if first == nil {
					first = r.Entries
				}
				if !slices.EqualFunc(first, r.Entries, func(x, y Entry) bool {
					return x.Name == y.Name && x.SourceSkill == y.SourceSkill && len(x.Overrides) == len(y.Overrides)
				}) {
					b.Fatal("a run differs")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*levels), "ns/skill")
		})
	}
}
