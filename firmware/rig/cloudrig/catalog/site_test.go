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

	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/firmware/rig/rackrig"
	"phonerack/sync/catalog"
)

func TestMain(m *testing.M) { sitetest.Main(m) }

const testLimit = 6 * time.Minute

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
	*sitetest.Operator
	gate *gate
	ctl  []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Operator: &sitetest.Operator{T: t, Ctx: t.Context()}, gate: newGate(t)}
	folder := filepath.Join(t.TempDir(), "rules")
	s.Must(os.Mkdir(folder, 0o755))
	s.Must(os.WriteFile(filepath.Join(folder, "catalog.yaml"), []byte(rules), 0o644))
	s.Site = sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 1, Flags: []string{"--rules", folder},
		Config: "[planner]\ntransport = \"cloud\"\n[skills]\nagent_skills_paths = \"none\"\npoll_interval = \"10s\"\n[cloud]\nbroker = \"ssl://" + s.gate.l.Addr().String() + "\"\nidentity = %q\n",
	})
	s.gate.lead(s.Cloud.MQTT())
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	s.Ctx = ctx
	programs, err := sitetest.Build(ctx)
	s.Must(err)
	s.ctl = []string{programs.Rackctl, "--socket", filepath.Join(s.Rack.Scratch(), "run", "rackd.sock")}
	s.Do(nil, "provider", "add", "catalog", "--provider", "scripted", "--option", `{"rules":"catalog.yaml"}`, "--activate")
	s.FindRack()
	s.ready()
	return s
}

// in runs a sub-test. What follows goes on from where it ends, so that a failed one ends them all.
func (s *site) in(name string, fn func(t *testing.T)) {
	if !s.In(name, fn) {
		s.T.FailNow()
	}
}

// ready waits until the phone can be used and the cloud has welcomed the rack.
func (s *site) ready() {
	s.T.Helper()
	s.Reach(s.Ctx)
	_, err := rackrig.WaitState(s.Ctx, s.Rack, action.Ready, 1)
	s.Must(err)
}

// refused gives an order that has to be refused, with a sentence.
func (s *site) refused(args ...string) string {
	s.T.Helper()
	var out bytes.Buffer
	exit, err := s.Cloud.Ctl(s.Ctx, &out, args...)
	if exit == 0 || err == nil {
		s.T.Fatalf("rackcloud %v was not refused: %s", args, out.String())
	}
	return err.Error()
}

// rackctl asks the rack, and tells how rackctl ends.
func (s *site) rackctl(args ...string) (out string, exit int) {
	s.T.Helper()
	var b bytes.Buffer
	exit, err := s.Rack.Ctl(s.Ctx, &b, args...)
	s.Must(err)
	return b.String(), exit
}

// asked is the data of an answer about skills.
func asked[T any](s *site, args ...string) (data T) {
	s.T.Helper()
	out, exit := s.rackctl(append(append([]string{"skill"}, args...), "--format", "json")...)
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || exit != 0 {
		s.T.Fatalf("rackctl skill %v: exit code %d, %v: %s", args, exit, err, out)
	}
	s.Must(json.Unmarshal(answer.Data, &data))
	return data
}

// listed are the names of the skills that a person at the rack has.
func (s *site) listed() string {
	s.T.Helper()
	var names []string
	for _, r := range asked[action.SkillList](s, "list").Skills {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

func (s *site) awaitList(want string) {
	s.T.Helper()
	s.Await(want, func() (bool, any) {
		got := s.listed()
		return got == want, got
	})
}

func (s *site) status() catalog.Status { return asked[catalog.Status](s, "catalog") }

// client is an MCP client at the rack's standard input and output.
func (s *site) client() *sdk.ClientSession {
	s.T.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(s.Ctx, &sdk.CommandTransport{
		Command: exec.Command(s.ctl[0], append(s.ctl[1:], "mcp")...),
	}, nil)
	s.Must(err)
	s.T.Cleanup(func() { c.Close() })
	return c
}

// tool calls a tool, whose answer may be an error.
func (s *site) tool(c *sdk.ClientSession, name string, args map[string]any) string {
	s.T.Helper()
	r, err := c.CallTool(s.Ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	s.Must(err)
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
	s.T.Helper()
	var list struct{ Skills []struct{ ID string } }
	s.Must(json.Unmarshal([]byte(s.tool(c, "list_skills", nil)), &list))
	var ids []string
	for _, r := range list.Skills {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

// draft writes a text skill into a folder.
func (s *site) draft(dir, id, version, text string) string {
	s.T.Helper()
	path := filepath.Join(dir, id+".md")
	s.Must(os.WriteFile(path, fmt.Appendf(nil, "---\nid: %s\nname: Skill %s\ndescription: How to %s.\nversion: %q\n---\n%s\n", id, id, id, version, text), 0o600))
	return path
}

// restart starts rackd again, after it was killed.
func (s *site) restart() {
	s.T.Helper()
	s.Must(s.Rack.StartRackd(s.Ctx))
}
