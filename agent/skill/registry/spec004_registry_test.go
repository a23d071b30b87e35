package registry

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/agent/skill/model"
)

// whole has every field that a skill can have.
const whole = `
name: local/whole
description: Everything that a skill can say.
version: "1.10"
overrides:
  tap: {writes: true, write_scope: [a, b]}
items:
  - {type: tool_ref, name: tap}
  - {type: include, name: local/base}
  - type: inline_tool
    description: Counts words.
    source: custom
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    output_schema: {type: object}
    read_only: true
    checkpointable: true
    side_effects: true
  - type: mcp_source
    name: linear
    transport: streamable-http
    url: https://example.com/mcp
    headers: {Authorization: Bearer x}
    tool_filter: {include: [create, list], exclude: [list]}
  - type: mcp_source
    name: files
    transport: stdio
    command: /usr/bin/files
    args: ["--root", ""]
    env: {A: "1", B: ""}
  - {type: agent_source, path: /opt/skills/weather-report}
  - {type: tool_ref, name: swipe, overrides: {description: Moves the list., limit: 5}}
  - {type: include, name: local/base, overrides: {writes: false}}
  - type: inline_tool
    description: Writes a line.
    writes: true
`

const base = "{name: local/base, description: The base., items: [{type: tool_ref, name: observe}]}"

func TestSpec004_RegistrationBehavior(t *testing.T) {
	t.Run("Skills are registered with a namespaced name (namespace/short_name) as the unique identifier", func(t *testing.T) {
		r := openRegistry(t, newFile(t), &Tools{})
		s := add(t, r, base)
		if s.Name != "local/base" || s.Namespace != "local" || s.ShortName != "base" {
			t.Errorf("got %+v", s)
		}
		add(t, r, "{name: other/base, description: Another., items: []}")
		if got := len(r.List("")); got != 2 {
			t.Errorf("%d skills", got)
		}
	})
	t.Run("Duplicate names are rejected with DuplicateSkillError", func(t *testing.T) {
		r := openRegistry(t, newFile(t), &Tools{})
		first := add(t, r, base)
		_, err := r.Add(parse(t, "{name: local/base, description: Another., items: []}"), nil)
		if dup, ok := errors.AsType[*DuplicateSkillError](err); !ok || dup.Name != "local/base" || err.Error() != "Skill 'local/base' is already registered" {
			t.Errorf("got %v", err)
		}
		if s, err := r.Get("local/base"); err != nil || s != first {
			t.Errorf("the first one is %+v, %v", s, err)
		}
	})
	t.Run("Names must match ^[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+$", func(t *testing.T) {
		r := openRegistry(t, newFile(t), &Tools{})
		long := strings.Repeat("a", 101)
		for _, name := range []string{
			"", "base", "/base", "local/", "local/a/b", "lo cal/b", "local/b.c", "local/ü", "local\x00/b", "../b", " local/b", "local/b\n",
			long + "/b", "local/" + long + long[:50], "local//b", "local:b/c",
		} {
			_, err := r.Add(&model.RegistrySkill{Name: name, Description: "d", Items: []model.Item{}}, nil)
			if _, ok := errors.AsType[*model.Error](err); !ok {
				t.Errorf("%q: got %v", name, err)
			}
		}
		for _, name := range []string{"a/b", "A-_9/z_-0", long[:100] + "/" + long[:100] + long[:50]} {
			if _, err := r.Add(&model.RegistrySkill{Name: name, Description: "d", Items: []model.Item{}}, nil); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
	t.Run("Removing a skill cascades to all child skill_items rows", func(t *testing.T) {
		f := newFile(t)
		r := openRegistry(t, f, &Tools{})
		add(t, r, base)
		add(t, r, "{name: local/bas, description: The name before., items: [{type: tool_ref, name: a}]}")
		add(t, r, "{name: local/base2, description: The name after., items: [{type: tool_ref, name: b}]}")
		add(t, r, whole)
		if got := len(f.rows("skill_items")); got != 12 {
			t.Fatalf("%d items", got)
		}
		includers, err := r.Remove("local/base")
		if err != nil || !slices.Equal(includers, []string{"local/whole"}) {
			t.Errorf("includers %v, %v", includers, err)
		}
		if _, err := r.Remove("local/whole"); err != nil {
			t.Error(err)
		}
		var left []any
		for _, row := range f.rows("skill_items") {
			left = append(left, row["skill_name"])
		}
		if len(f.rows("skills")) != 2 || !reflect.DeepEqual(left, []any{"local/bas", "local/base2"}) {
			t.Errorf("left: %v", left)
		}
		if _, err := r.Get("local/whole"); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSpec004_SkillItems(t *testing.T) {
	f := newFile(t)
	r := openRegistry(t, f, &Tools{})
	add(t, r, base)
	before := add(t, r, whole)
	t.Run("Each skill stores its components as ordered items in the skill_items table. The item_type discriminator distinguishes", func(t *testing.T) {
		var got []string
		for i, row := range f.rows("skill_items")[1:] {
			if row["item_order"] != float64(i) || row["skill_name"] != "local/whole" {
				t.Errorf("row %d: %v", i, row)
			}
			got = append(got, fmt.Sprint(row["item_type"], " ", row["item_name"]))
		}
		want := []string{
			"tool_ref tap", "include local/base", "inline_tool <nil>", "mcp_source linear", "mcp_source files",
			"agent_source /opt/skills/weather-report", "tool_ref swipe", "include local/base", "inline_tool <nil>",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("Items are stored with a stable item_order to preserve definition ordering across round-trips", func(t *testing.T) {
		for range 2 {
			f.restart()
			after, err := openRegistry(t, f, &Tools{}).Get("local/whole")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(before, after) {
				t.Errorf("(-before +after):\n%s", cmp.Diff(before, after))
			}
		}
	})
}

// TestARestartLosesNothing: whatever was registered is read back, field by field.
func TestARestartLosesNothing(t *testing.T) {
	f := newFile(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		l, _ := drawLibrary(rt, true)
		r := openRegistry(t, f, &Tools{})
		for i := range len(l) {
			s := *l[fmt.Sprintf("x/s%d", i)]
			s.Name = fmt.Sprintf("run%d/s%d", n, i)
			s.Description = rapid.StringMatching(`[a-zà-ÿ世界"'<>&]{1,20}`).Draw(rt, "description")
			s.Items = slices.Clone(s.Items)
			for j, it := range s.Items {
				switch {
				case it.Include != nil:
					s.Items[j].Include = &model.Include{Name: strings.Replace(it.Include.Name, "x/", fmt.Sprintf("run%d/", n), 1), Overrides: described(it.Include.Overrides)}
				case it.ToolRef != nil:
					s.Items[j].ToolRef = &model.ToolRef{Name: it.ToolRef.Name, Overrides: described(it.ToolRef.Overrides)}
				case it.InlineTool != nil:
					s.Items[j].InlineTool.Description = "d"
				case it.MCPSource != nil:
					s.Items[j].MCPSource.Command = "/bin/m"
				}
			}
			for tool, o := range s.Overrides {
				if s.Overrides[tool] = described(o); s.Overrides[tool] == nil {
					s.Overrides = nil
				}
			}
			if _, err := r.Add(&s, nil); err != nil {
				rt.Fatal(err)
			}
		}
		before := r.List("")
		f.restart()
		r = openRegistry(t, f, &Tools{})
		if after := r.List(""); !reflect.DeepEqual(before, after) {
			rt.Fatalf("(-before +after):\n%s", cmp.Diff(before, after))
		}
		for _, s := range before { // or the file grows with each run
			if _, err := r.Remove(s.Name); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// described turns the numbers of drawn overrides into values that the fields take.
func described(o model.Overrides) model.Overrides {
	var out model.Overrides
	for field, v := range o {
		if out == nil {
			out = model.Overrides{}
		}
		switch field {
		case "description":
			v = []byte(`"number ` + string(v) + `"`)
		case "writes", "read_only":
			v = []byte("true")
		}
		out[field] = v
	}
	return out
}

func TestSpec004_Filters(t *testing.T) {
	r := openRegistry(t, newFile(t), &Tools{})
	for _, name := range []string{"local/b", "team/a", "local/a", "local2/a", "loca/a"} {
		add(t, r, "{name: "+name+", description: d, items: []}")
	}
	list := func(namespace string) string {
		var all []string
		for _, s := range r.List(namespace) {
			all = append(all, s.Name)
		}
		return strings.Join(all, " ")
	}
	t.Run(`Namespace filter: Pass namespace="local" to list only skills in the local namespace`, func(t *testing.T) {
		if got := list("local"); got != "local/a local/b" {
			t.Errorf("got %s", got)
		}
	})
	if got := list(""); got != "loca/a local/a local/b local2/a team/a" {
		t.Errorf("all: %s", got)
	}
	if got := list("nobody"); got != "" {
		t.Errorf("none: %s", got)
	}
}

func TestSpec004_ServiceAPI(t *testing.T) {
	f := newFile(t)
	r := openRegistry(t, f, &Tools{})
	first := add(t, r, base)
	t.Run("Retrieve", func(t *testing.T) {
		if s, err := r.Get("local/base"); err != nil || !reflect.DeepEqual(s, first) {
			t.Errorf("got %+v, %v", s, err)
		}
		if _, err := r.Get("local/other"); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("Update", func(t *testing.T) {
		next, err := r.Update(parse(t, "{name: local/base, description: Anew., items: [{type: tool_ref, name: b}, {type: tool_ref, name: a}]}"), nil)
		if err != nil || next.Description != "Anew." || next.CreatedAt != first.CreatedAt || !next.UpdatedAt.After(first.UpdatedAt) {
			t.Errorf("got %+v, %v", next, err)
		}
		if first.Description != "The base." {
			t.Error("what was handed out has changed")
		}
		rows := f.rows("skill_items")
		if len(rows) != 2 || rows[0]["item_name"] != "b" || rows[1]["item_name"] != "a" {
			t.Errorf("rows %v", rows)
		}
		f.restart()
		if s, err := openRegistry(t, f, &Tools{}).Get("local/base"); err != nil || !reflect.DeepEqual(s, next) {
			t.Errorf("after a restart: %+v, %v", s, err)
		}
		if _, err := r.Update(parse(t, "{name: local/none, description: d, items: []}"), nil); !errors.Is(err, ErrUnknown) {
			t.Errorf("an unknown one: %v", err)
		}
	})
	t.Run("Remove", func(t *testing.T) {
		r := openRegistry(t, f, &Tools{})
		if _, err := r.Remove("local/base"); err != nil {
			t.Error(err)
		}
		if _, err := r.Remove("local/base"); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSpec004_DatabaseSchema(t *testing.T) {
	f := newFile(t)
	r := openRegistry(t, f, &Tools{})
	add(t, r, base)
	add(t, r, whole)
	for table, columns := range map[string][]string{
		"skills":      {"name", "namespace", "short_name", "description", "version", "metadata_json", "created_at", "updated_at"},
		"skill_items": {"id", "skill_name", "item_type", "item_name", "item_config", "item_order", "created_at"},
	} {
		t.Run(table, func(t *testing.T) {
			have := map[string]bool{}
			for _, row := range f.rows(table) {
				for column, v := range row {
					have[column] = true
					width := map[string]int{"name": 255, "namespace": 100, "short_name": 150, "version": 50, "created_at": 30, "updated_at": 30, "skill_name": 255, "item_type": 30, "item_name": 500}[column]
					if s, ok := v.(string); ok && width > 0 && len(s) > width {
						t.Errorf("%s is %q: wider than %d", column, s, width)
					}
				}
			}
			for _, c := range columns {
				if !have[c] {
					t.Errorf("no column %s", c)
				}
				delete(have, c)
			}
			if len(have) > 0 {
				t.Errorf("columns beside those of the spec: %v", have)
			}
		})
	}
	t.Run("ISO-8601 creation timestamp", func(t *testing.T) {
		if got := f.rows("skills")[0]["created_at"]; got != "2026-11-30T08:00:01.123456Z" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("Auto-increment PK", func(t *testing.T) {
		if _, err := r.Update(parse(t, base), nil); err != nil {
			t.Fatal(err)
		}
		ids := map[any]bool{}
		for _, row := range f.rows("skill_items") {
			ids[row["id"]] = true
		}
		if len(ids) != 10 || ids[1.0] || !ids[11.0] {
			t.Errorf("ids %v: that of a removed row must not come again", ids)
		}
	})
	t.Run("JSON metadata (overrides, etc.)", func(t *testing.T) {
		if got := f.rows("skills")[1]["metadata_json"]; got != `{"overrides":{"tap":{"write_scope":["a","b"],"writes":true}}}` {
			t.Errorf("got %v", got)
		}
	})
}

func TestReservedNamespaces(t *testing.T) {
	r := openRegistry(t, newFile(t), &Tools{})
	for _, name := range []string{"catalog/x", "agent_skills/x"} {
		s := &model.RegistrySkill{Name: name, Description: "d", Items: []model.Item{}}
		if _, err := r.Add(s, nil); !errors.Is(err, ErrReserved) {
			t.Errorf("add %s: %v", name, err)
		}
		if _, err := r.Update(s, nil); name == "catalog/x" && !errors.Is(err, ErrCatalog) || name != "catalog/x" && !errors.Is(err, ErrReserved) {
			t.Errorf("update %s: %v", name, err)
		}
	}
	if _, err := r.Remove("catalog/x"); !errors.Is(err, ErrCatalog) {
		t.Errorf("remove: %v", err)
	}
	if len(r.List("")) != 0 {
		t.Error("something was registered")
	}
}

func TestNamesOfInlineToolsAreNobodyElses(t *testing.T) {
	r := openRegistry(t, newFile(t), &Tools{})
	for _, s := range []*model.RegistrySkill{
		{Name: "x/_anon_0", Description: "d", Items: []model.Item{}},
		{Name: "x/y", Description: "d", Items: []model.Item{{ToolRef: &model.ToolRef{Name: "x/z/_anon_0"}}}},
	} {
		if _, err := r.Add(s, nil); err == nil {
			t.Errorf("%s was taken", s.Name)
		}
	}
}

func TestRegistrationRefusesWhatCannotResolve(t *testing.T) {
	f := newFile(t)
	r := openRegistry(t, f, &Tools{})
	add(t, r, base)
	add(t, r, "{name: local/outer, description: d, items: [{type: include, name: local/base}]}")
	for name, c := range map[string]struct {
		change func(*model.RegistrySkill, Catalog) (*Skill, error)
		text   string
		want   string
	}{
		"missing include":        {r.Add, "{name: local/a, description: d, items: [{type: include, name: local/none}]}", "Included skill 'local/none' not found"},
		"missing catalog skill":  {r.Add, "{name: local/a, description: d, items: [{type: include, name: catalog/none}]}", "Included skill 'catalog/none' not found"},
		"itself":                 {r.Add, "{name: local/a, description: d, items: [{type: include, name: local/a}]}", "Cycle detected in skill includes: local/a -> local/a"},
		"cycle":                  {r.Update, "{name: local/base, description: d, items: [{type: include, name: local/outer}]}", "Cycle detected in skill includes: local/base -> local/outer -> local/base"},
		"non-overridable fields": {r.Add, "{name: local/a, description: d, items: [{type: include, name: local/base, overrides: {name: x}}]}", "Non-overridable field(s) name in overrides from skill 'local/a' (include path: local/a -> local/base)"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.change(parse(t, c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got := len(f.rows("skills")); got != 2 || len(r.List("")) != 2 {
		t.Errorf("%d rows", got)
	}
	if s, _ := r.Get("local/base"); s.Description != "The base." {
		t.Errorf("the update left %q", s.Description)
	}
}

// TestAFailedWriteChangesNothing: the disk may be full.
func TestAFailedWriteChangesNothing(t *testing.T) {
	f := newFile(t)
	r := openRegistry(t, f, &Tools{})
	old := add(t, r, base)
	f.fail = errors.New("no room")
	if _, err := r.Update(parse(t, "{name: local/base, description: new, items: []}"), nil); !errors.Is(err, f.fail) {
		t.Errorf("update: %v", err)
	}
	if _, err := r.Add(parse(t, "{name: local/b, description: new, items: []}"), nil); !errors.Is(err, f.fail) {
		t.Errorf("add: %v", err)
	}
	if _, err := r.Remove("local/base"); !errors.Is(err, f.fail) {
		t.Errorf("remove: %v", err)
	}
	f.fail = nil
	if all := r.List(""); len(all) != 1 || all[0] != old {
		t.Errorf("left: %v", all)
	}
}

// TestADamagedRecordIsSetAside: it is named and kept, the others are there, and it can be registered anew or removed.
func TestADamagedRecordIsSetAside(t *testing.T) {
	const name = "local/whole"
	text := whole[:strings.Index(whole, "  - {type: include")]
	for what, damage := range map[string][2]string{
		"an item of another place": {"skill_items", `{"id":1,"skill_name":"local/whole","item_type":"tool_ref","item_name":"other","item_order":3}`},
		"an item that is no JSON":  {"skill_items", `{"id":`},
		"a skill that is no JSON":  {"skills", "\x00\xff"},
		"a date that is none":      {"skills", `{"name":"local/whole","created_at":"today","updated_at":"today"}`},
		"another one's name":       {"skills", `{"name":"zeta/other","namespace":"zeta","short_name":"other","description":"d","created_at":"2026-11-30T08:00:00.000000Z","updated_at":"2026-11-30T08:00:00.000000Z"}`},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFile(t)
			r := openRegistry(t, f, &Tools{})
			add(t, r, text)
			add(t, r, "{name: zeta/other, description: Stays., items: [{type: tool_ref, name: observe}]}")
			items := len(f.rows("skill_items"))
			f.corrupt(damage[0], []byte(damage[1]))
			for start := range 2 {
				f.restart()
				var log strings.Builder
				r, err := Open(Options{Bucket: f, Tools: &Tools{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				if said := strings.Contains(log.String(), name); said != (start == 0) {
					t.Errorf("start %d: the log says %s", start, log.String())
				}
				if got := r.SetAside(); !slices.Equal(got, []string{name}) {
					t.Errorf("start %d: set aside are %q", start, got)
				}
				if _, err := r.Get(name); !errors.Is(err, ErrUnknown) {
					t.Errorf("start %d: %v", start, err)
				}
				if s, err := r.Get("zeta/other"); err != nil || s.Description != "Stays." || len(s.Items) != 1 {
					t.Errorf("start %d: the other one: %+v, %v", start, s, err)
				}
			}
			if kept, left := f.count("set_aside"), f.count("skills"); kept != items || left != 1 { // its row and its items, without the other's
				t.Errorf("%d rows are kept, want %d; %d skills are left", kept, items, left)
			}
			r = openRegistry(t, f, &Tools{})
			add(t, r, text)
			if got := r.SetAside(); len(got) != 0 {
				t.Errorf("registered anew, and set aside are %q", got)
			}
			f.restart()
			if r = openRegistry(t, f, &Tools{}); len(r.SetAside()) != 0 || f.count("set_aside") == 0 {
				t.Errorf("after a restart set aside are %q, of %d rows", r.SetAside(), f.count("set_aside"))
			}
			if _, err := r.Remove(name); err != nil || f.count("set_aside") != 0 {
				t.Errorf("removed: %v, %d rows are kept", err, f.count("set_aside"))
			}
		})
	}
	f := newFile(t)
	add(t, openRegistry(t, f, &Tools{}), text)
	f.corrupt("skills", nil)
	r := openRegistry(t, f, &Tools{})
	if _, err := r.Remove(name); err != nil || len(r.SetAside()) != 0 {
		t.Errorf("removed as it is: %v, set aside are %q", err, r.SetAside())
	}
	if _, err := r.Remove(name); !errors.Is(err, ErrUnknown) {
		t.Errorf("once more: %v", err)
	}
}

func TestReadersAndWritersAtOnce(t *testing.T) {
	r := openRegistry(t, newFile(t), &Tools{})
	add(t, r, base)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20 {
			if _, err := r.Add(parse(t, fmt.Sprintf("{name: local/s%d, description: d, items: [{type: include, name: local/base}]}", i)), nil); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		select {
		case <-done:
			if len(r.List("local")) != 21 {
				t.Errorf("%d skills", len(r.List("local")))
			}
			return
		default:
			for _, s := range r.List("local") {
				if _, _, err := r.Tools(s.Name, nil); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
}
