package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/cloud/fleet"
	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/firmware/rig/rackrig"
	"phonerack/sync/catalog"
)

func TestMain(m *testing.M) { sitetest.Main(m) }

const (
	testLimit = 6 * time.Minute
	soon      = 60 * time.Second // bounds each wait for something that comes at once on an idle machine
)

// rules install what came with a task, and end.
const rules = `name: catalog
goals: ['(?i)^install$']
rules:
  - name: install
    when: {not_past: {tool: install_app}}
    do: {install_app: {file: app.apk}}
  - name: stay, because what a task has installed goes when it ends
    when: {not_past: {tool: wait}}
    do: {wait: {ms: 2000}}
  - name: end
    do: {finish: {success: true, message: 'installed'}}
`

// site is a cloud, a rack with a phone in slot 1, and the gate between them.
type site struct {
	*sitetest.Site
	t    *testing.T
	ctx  context.Context
	gate *gate
	id   string // of the rack
	ctl  []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, ctx: t.Context(), gate: newGate(t)}
	folder := filepath.Join(t.TempDir(), "rules")
	s.must(os.Mkdir(folder, 0o755))
	s.must(os.WriteFile(filepath.Join(folder, "catalog.yaml"), []byte(rules), 0o644))
	s.Site = sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 1, Flags: []string{"--rules", folder},
		Config: "[planner]\ntransport = \"cloud\"\n[skills]\nagent_skills_paths = \"none\"\npoll_interval = \"10s\"\n[cloud]\nbroker = \"ssl://" + s.gate.l.Addr().String() + "\"\nidentity = %q\n",
	})
	s.gate.lead(s.Cloud.MQTT())
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	s.ctx = ctx
	programs, err := sitetest.Build(ctx)
	s.must(err)
	s.ctl = []string{programs.Rackctl, "--socket", filepath.Join(s.Rack.Scratch(), "run", "rackd.sock")}
	s.do(nil, "provider", "add", "catalog", "--provider", "scripted", "--option", `{"rules":"catalog.yaml"}`, "--activate")
	var hosts []fleet.Host
	s.do(&hosts, "host", "list")
	s.id = hosts[0].Rack
	s.ready()
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// in makes the site report to a sub-test while it runs.
func (s *site) in(name string, fn func(t *testing.T)) {
	outer := s.t
	outer.Run(name, func(t *testing.T) {
		s.t = t
		defer func() { s.t = outer }()
		fn(t)
	})
	if outer.Failed() {
		outer.FailNow() // what follows goes on from here
	}
}

// ready waits until the phone can be used and the cloud has welcomed the rack.
func (s *site) ready() {
	s.t.Helper()
	s.Reach(s.ctx)
	_, err := rackrig.WaitState(s.ctx, s.Rack, action.Ready, 1)
	s.must(err)
}

// await looks again and again until something is so.
func (s *site) await(what string, look func() (so bool, seen any)) {
	s.t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(100 * time.Millisecond) {
		so, seen := look()
		if so {
			return
		}
		if time.Now().After(end) || s.ctx.Err() != nil {
			s.t.Fatalf("%s is waited for, seen is %+v", what, seen)
		}
	}
}

// do gives an order to the cloud and reads its JSON.
func (s *site) do(v any, args ...string) {
	s.t.Helper()
	s.must(s.Cloud.Ask(s.ctx, v, args...))
}

// refused gives an order that has to be refused, with a sentence.
func (s *site) refused(args ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	exit, err := s.Cloud.Ctl(s.ctx, &out, args...)
	if exit == 0 || err == nil {
		s.t.Fatalf("rackcloud %v was not refused: %s", args, out.String())
	}
	return err.Error()
}

// rackctl asks the rack, and tells how rackctl ends.
func (s *site) rackctl(args ...string) (out string, exit int) {
	s.t.Helper()
	var b bytes.Buffer
	exit, err := s.Rack.Ctl(s.ctx, &b, args...)
	s.must(err)
	return b.String(), exit
}

// asked is the data of an answer about skills.
func asked[T any](s *site, args ...string) (data T) {
	s.t.Helper()
	out, exit := s.rackctl(append(append([]string{"skill"}, args...), "--format", "json")...)
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || exit != 0 {
		s.t.Fatalf("rackctl skill %v: exit code %d, %v: %s", args, exit, err, out)
	}
	s.must(json.Unmarshal(answer.Data, &data))
	return data
}

// listed are the names of the skills that a person at the rack has.
func (s *site) listed() string {
	s.t.Helper()
	var names []string
	for _, r := range asked[action.SkillList](s, "list").Skills {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

func (s *site) awaitList(want string) {
	s.t.Helper()
	s.await(want, func() (bool, any) {
		got := s.listed()
		return got == want, got
	})
}

func (s *site) status() catalog.Status { return asked[catalog.Status](s, "catalog") }

// client is an MCP client at the rack's standard input and output.
func (s *site) client() *sdk.ClientSession {
	s.t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(s.ctx, &sdk.CommandTransport{
		Command: exec.Command(s.ctl[0], append(s.ctl[1:], "mcp")...),
	}, nil)
	s.must(err)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// tool calls a tool, whose answer may be an error.
func (s *site) tool(c *sdk.ClientSession, name string, args map[string]any) string {
	s.t.Helper()
	r, err := c.CallTool(s.ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	s.must(err)
	var all []string
	for _, part := range r.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// ids are the skills that an MCP client is shown.
func (s *site) ids(c *sdk.ClientSession) string {
	s.t.Helper()
	var list struct{ Skills []struct{ ID string } }
	s.must(json.Unmarshal([]byte(s.tool(c, "list_skills", nil)), &list))
	var ids []string
	for _, r := range list.Skills {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

// draft writes a text skill into a folder.
func (s *site) draft(dir, id, version, text string) string {
	s.t.Helper()
	path := filepath.Join(dir, id+".md")
	s.must(os.WriteFile(path, fmt.Appendf(nil, "---\nid: %s\nname: Skill %s\ndescription: How to %s.\nversion: %q\n---\n%s\n", id, id, id, version, text), 0o600))
	return path
}

// restart starts rackd again, after it was killed.
func (s *site) restart() {
	s.t.Helper()
	s.must(s.Rack.StartRackd(s.ctx))
}
