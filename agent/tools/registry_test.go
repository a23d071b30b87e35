package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

func executeIn(ctx context.Context, env tools.Env, tool, args string) (tools.Outcome, error) {
	return tools.Default().Execute(ctx, env, planner.Decision{Tool: tool, Arguments: json.RawMessage(args)})
}

func TestEveryToolIsWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`) // in the pattern of MCP and of each provider
	seen := map[string]bool{}
	for _, tool := range tools.Default().Tools() {
		s, err := planner.ParseSchema(tool.Schema)
		if err != nil {
			t.Errorf("%s: %v", tool.Name, err)
			continue
		}
		a := tool.Annotations
		switch {
		case !name.MatchString(tool.Name) || seen[tool.Name]:
			t.Errorf("name %q", tool.Name)
		case s.AdditionalProperties:
			t.Errorf("%s takes unknown arguments", tool.Name)
		case tool.Description == "" || utf8.RuneCountInString(tool.Description) > 300:
			t.Errorf("%s has a description of %d characters", tool.Name, utf8.RuneCountInString(tool.Description))
		case a.ReadOnly && a.Destructive:
			t.Errorf("%s only reads and destroys", tool.Name)
		case tool.Role != tools.Viewer && tool.Role != tools.Operator, tool.Role == tools.Viewer && !a.ReadOnly:
			t.Errorf("%s is for %q", tool.Name, tool.Role)
		case tool.Permission != "" && !slices.Contains(tools.Permissions(), tool.Permission):
			t.Errorf("%s needs %q", tool.Name, tool.Permission)
		}
		seen[tool.Name] = true
		bounded(t, tool.Name, "$", s)
		if key := s.Properties["key"]; key != nil {
			for _, k := range key.Enum {
				if !slices.Contains(phone.Keys(), k.(string)) {
					t.Errorf("phones have no key %v", k)
				}
			}
		}
	}
	want := strings.Fields(`observe tap double_tap long_press swipe scroll_to input_text clear_text press_key launch_app stop_app open_url
		list_apps install_app wait wait_for take_screenshot read_document pull_file set_clipboard ask_human finish fail`)
	for _, name := range want {
		if !seen[name] {
			t.Errorf("there is no tool %s", name)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%d tools, want %d", len(seen), len(want))
	}
}

// bounded holds each argument to a bound.
func bounded(t *testing.T, tool, path string, s *planner.Schema) {
	t.Helper()
	switch s.Type {
	case "string":
		if s.MaxLength == nil && s.Enum == nil {
			t.Errorf("%s: %s has no bound", tool, path)
		}
	case "integer":
		if s.Minimum == nil || s.Maximum == nil && path != "$.generation" {
			t.Errorf("%s: %s has no bound", tool, path)
		}
	case "array":
		bounded(t, tool, path+"[]", s.Items)
	}
	for name, p := range s.Properties {
		bounded(t, tool, path+"."+name, p)
	}
}

// minimal are arguments with which each tool that needs a permission, or writes
// by itself, is called.
var minimal = map[string]string{
	"observe": `{}`, "take_screenshot": `{}`, "tap": `{"element":1,"generation":1}`, "double_tap": `{"element":1,"generation":1}`,
	"long_press": `{"element":1,"generation":1}`, "swipe": `{"direction":"up"}`, "scroll_to": `{"text":"add","direction":"down"}`,
	"input_text": `{"text":"x","element":2,"generation":1}`, "clear_text": `{"element":2,"generation":1}`, "press_key": `{"key":"back"}`,
	"set_clipboard": `{"text":"x"}`, "launch_app": `{"package":"a.b"}`, "stop_app": `{"package":"a.b"}`, "list_apps": `{}`,
	"install_app": `{"file":"shop.apk"}`, "open_url": `{"url":"https://example.org"}`, "wait": `{"ms":100}`, "wait_for": `{"text":"add"}`,
	"read_document": `{"file":"notes.txt"}`, "pull_file": `{"path":"/sdcard/b c.txt"}`, "ask_human": `{"question":"x?"}`,
	"finish": `{"message":"x"}`, "fail": `{"reason":"x"}`,
}

func TestPermissionsGateTools(t *testing.T) {
	want := map[string]string{
		"install_app": tools.PermitInstall, "stop_app": tools.PermitStop, "pull_file": tools.PermitFiles, "set_clipboard": tools.PermitClipboard,
	}
	for _, tool := range tools.Default().Tools() {
		if tool.Permission != want[tool.Name] {
			t.Errorf("%s needs %q, want %q", tool.Name, tool.Permission, want[tool.Name])
		}
		offered := func(permissions ...string) bool {
			return slices.ContainsFunc(tools.Default().Offer(permissions...), func(o planner.Tool) bool { return o.Name == tool.Name })
		}
		if offered() != (tool.Permission == "") || !offered(tools.Permissions()...) {
			t.Errorf("%s is offered: %t, with every permission %t", tool.Name, offered(), offered(tools.Permissions()...))
		}
		d := newDesk()
		var others []string
		for _, p := range tools.Permissions() {
			if p != tool.Permission {
				others = append(others, p)
			}
		}
		out, err := do(t, d.env(others...), tool.Name, minimal[tool.Name])
		if tool.Permission == "" {
			if err != nil {
				t.Errorf("%s: %v", tool.Name, err)
			}
			continue
		}
		wantRefusal(t, err, wire.PermissionMissing, tool.Permission)
		wantNothing(t, d.Phone, out)
		if len(d.opened) > 0 || len(d.kept) > 0 || offered(others...) {
			t.Errorf("%s without its permission: opened %q, kept %q", tool.Name, d.opened, d.kept)
		}
		if _, err := do(t, newDesk().env(tool.Permission), tool.Name, minimal[tool.Name]); err != nil {
			t.Errorf("%s with its permission: %v", tool.Name, err)
		}
	}
}

func TestToolsThatOnlyReadNeedNoControls(t *testing.T) {
	for _, tool := range tools.Default().Tools() {
		d := newDesk()
		env := d.env(tools.Permissions()...)
		if tool.Annotations.ReadOnly {
			env.Controls = nil
		}
		out, err := do(t, env, tool.Name, minimal[tool.Name])
		if err != nil || tool.Annotations.ReadOnly && (out.Wrote || len(d.Acts()) > 0 || len(d.kept) > 0) {
			t.Errorf("%s: %+v, %v", tool.Name, out, err)
		}
	}
}

func TestACancelledTaskDoesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, args := range minimal {
		d := newDesk()
		out, err := executeIn(ctx, d.env(tools.Permissions()...), name, args)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		wantNothing(t, d.Phone, out)
	}
}

func TestARegistryOfSomeTools(t *testing.T) {
	viewers := tools.Default().Where(func(t tools.Tool) bool { return t.Role == tools.Viewer })
	p := toolstest.New(shop())
	out, err := viewers.Execute(t.Context(), p.Env(), planner.Decision{Tool: "tap", Arguments: json.RawMessage(minimal["tap"])})
	wantRefusal(t, err, wire.UnknownTool, "no tool tap")
	wantNothing(t, p, out)
	if n := len(viewers.Offer()); n < 5 || n != len(viewers.Tools()) {
		t.Errorf("%d viewers' tools", n)
	}
	for _, tool := range viewers.Tools() {
		if !tool.Annotations.ReadOnly {
			t.Errorf("viewers may %s", tool.Name)
		}
	}
}

// TestTheDocumentationListsTheTools holds docs/tools.md to the registry, and logs
// what the offer costs.
func TestTheDocumentationListsTheTools(t *testing.T) {
	doc, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string // name, hints, role, permission
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if name := strings.Trim(cells[1], "`"); len(cells) == 8 {
			rows = append(rows, []string{name, cells[3], cells[4], cells[5]})
		}
	}
	all := tools.Default().Tools()
	if len(rows) != len(all) {
		t.Fatalf("the documentation has %d tools, the registry %d", len(rows), len(all))
	}
	for i, tool := range all {
		a := tool.Annotations
		var hints []string
		for _, h := range []struct {
			is   bool
			name string
		}{{a.ReadOnly, "read-only"}, {a.Destructive, "destructive"}, {a.Idempotent, "idempotent"}, {a.OpenWorld, "open-world"}} {
			if h.is {
				hints = append(hints, h.name)
			}
		}
		want := []string{tool.Name, strings.Join(hints, ", "), string(tool.Role), tool.Permission}
		if got := rows[i]; !slices.Equal(got, want) {
			t.Errorf("the documentation says %q, the registry %q", got, want)
		}
	}
	figures := regexp.MustCompile(`([0-9]+) tools and about ([0-9]),([0-9]+)`).FindAllStringSubmatch(string(doc), -1)
	if len(figures) != 2 {
		t.Fatalf("the documentation tells %d times what the offer costs", len(figures))
	}
	for i, permissions := range [][]string{nil, tools.Permissions()} {
		offer := tools.Default().Offer(permissions...)
		b, err := json.Marshal(offer)
		if err != nil {
			t.Fatal(err)
		}
		tokens := (len(b) + 3) / 4
		t.Logf("permissions %q: %d tools, %d bytes of JSON, about %d tokens at 4 bytes each", permissions, len(offer), len(b), tokens)
		told, err := strconv.Atoi(figures[i][2] + figures[i][3])
		if err != nil || figures[i][1] != strconv.Itoa(len(offer)) || tokens < told*97/100 || tokens > told*103/100 {
			t.Errorf("the documentation says %s tools and about %d tokens", figures[i][1], told)
		}
	}
}

// FuzzExecute calls tools with anything: none panics, none writes and is refused
// as if it had not, and an outcome says what reached the phone.
func FuzzExecute(f *testing.F) {
	var names []string
	for _, tool := range tools.Default().Tools() {
		names = append(names, tool.Name)
	}
	for i, name := range names {
		f.Add(uint8(i), []byte(minimal[name]), uint8(0))
		f.Add(uint8(i), []byte(`{"element":-1,"generation":18446744073709551615}`), uint8(255))
	}
	f.Add(uint8(2), []byte(`{"x":1,"y":2,"generation":1}`), uint8(1))
	f.Fuzz(func(t *testing.T, tool uint8, args []byte, kind uint8) {
		name := names[int(tool)%len(names)]
		if name == "wait" || name == "wait_for" || name == "scroll_to" && kind&4 != 0 {
			return // they would wait in earnest
		}
		d := newDesk()
		if kind&1 != 0 {
			d.Phone = toolstest.New(game())
		}
		env := d.env()
		if kind&2 != 0 {
			env.Permissions = tools.Permissions()
		}
		if kind&4 != 0 {
			env.Look = nil
		}
		if kind&8 != 0 {
			env.Scene = nil
		}
		if kind&16 != 0 {
			env.Controls = nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d.Looks = func(n int) error {
			if n > 4 { // no waiting in earnest
				cancel()
			}
			return nil
		}
		out, err := tools.Default().Execute(ctx, env, planner.Decision{Tool: name, Arguments: args})
		acts := d.Acts()
		if out.Wrote != (len(acts) > 0) {
			t.Errorf("%s %s: did %q, %+v", name, args, acts, out)
		}
		if kind&16 != 0 && len(acts) > 0 {
			t.Errorf("%s wrote without controls", name)
		}
		if err == nil {
			if planner.Validate(planner.Decision{Tool: name, Arguments: args}, tools.Default().Offer(tools.Permissions()...)) != nil {
				t.Errorf("%s was done with %s", name, args)
			}
			return
		}
		if _, ok := errors.AsType[*wire.Refusal](err); !ok && ctx.Err() == nil {
			t.Errorf("%s %s: %v is no refusal", name, args, err)
		}
		if len(acts) > 0 && len(out.Points) == 0 {
			t.Errorf("%s was refused (%v) after %q", name, err, acts)
		}
		if utf8.RuneCountInString(out.Result) > tools.MaxResult {
			t.Errorf("%s brought %d bytes", name, len(out.Result))
		}
	})
}
