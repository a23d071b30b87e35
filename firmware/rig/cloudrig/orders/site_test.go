package orders_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/firmware/rig/rackrig"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { sitetest.Main(m) }

// rules are those of the tasks here: one waits until somebody ends it, one asks, one says what it was told.
const rules = `name: orders
goals:
  - '(?i)^(?P<what>wait|ask|end)$'
rules:
  - name: end
    when: {goal: '(?i)^end$'}
    do: {finish: {success: true, message: 'there is nothing to do'}}
  - name: wait
    when: {goal: '(?i)^wait$'}
    do: {wait: {ms: 2000}}
  - name: ask
    when: {not_past: {tool: ask_human}}
    do: {ask_human: {question: 'Which colour?', options: [red, blue]}}
  - name: told
    when: {answer: [red, blue]}
    do: {finish: {success: true, message: 'it shall be {answer}'}}
  - name: something else
    do: {finish: {success: false, message: 'neither red nor blue'}}
`

const testLimit = 8 * time.Minute

// site is a cloud, and a rack whose phones sit in slots 1 and 2.
type site struct {
	*sitetest.Operator
	reboots [3]atomic.Int32
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Operator: &sitetest.Operator{T: t, Ctx: t.Context()}}
	folder := filepath.Join(t.TempDir(), "rules")
	s.Must(os.Mkdir(folder, 0o755))
	s.Must(os.WriteFile(filepath.Join(folder, "orders.yaml"), []byte(rules), 0o644))
	s.Site = sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 2,
		Phone: func(p *rackrig.PhoneSpec) {
			p.RebootDelay, p.OnReboot = 4*time.Second, func(string) { s.reboots[p.Slot].Add(1) }
		},
		Flags: []string{"--rules", folder},
	})
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	s.Ctx = ctx
	s.Do(nil, "provider", "add", "orders", "--provider", "scripted", "--option", `{"rules":"orders.yaml"}`, "--activate")
	s.FindRack()
	s.ready(1, 2)
	return s
}

// ready waits until the phones of slots can be used and the cloud knows that the rack is there.
func (s *site) ready(slots ...int) {
	s.T.Helper()
	_, err := rackrig.WaitState(s.Ctx, s.Rack, action.Ready, slots...)
	s.Must(err)
	s.presence("online")
}

func (s *site) presence(want string) {
	s.T.Helper()
	var h fleet.Host
	s.Await(want, func() (bool, any) {
		s.Do(&h, "host", "show", s.ID)
		return h.Presence == want, h.Presence
	})
}

// try gives an order that may be refused, and returns its exit code and its JSON.
func (s *site) try(v any, args ...string) int {
	s.T.Helper()
	var out bytes.Buffer
	exit, err := s.Cloud.Ctl(s.Ctx, &out, append([]string{"--json"}, args...)...)
	if exit == 0 {
		s.Must(err)
	}
	if v != nil {
		if err := json.Unmarshal(out.Bytes(), v); err != nil {
			s.T.Fatalf("rackcloud %v printed %q: %v", args, out.String(), err)
		}
	}
	return exit
}

// command looks at a command.
func (s *site) command(id string) (c fleet.Command) {
	s.T.Helper()
	s.Do(&c, "command", "show", id)
	return c
}

// state waits until a command is in a state.
func (s *site) state(id string, want wire.CommandState) (c fleet.Command) {
	s.T.Helper()
	s.Await("command "+string(want), func() (bool, any) {
		c = s.command(id)
		return c.State == want, c
	})
	return c
}

func (s *site) task(id string) (v fleet.Task) {
	s.T.Helper()
	s.Do(&v, "task", "show", id)
	return v
}

func (s *site) taskState(id string, want wire.TaskState) (v fleet.Task) {
	s.T.Helper()
	s.Await("task "+string(want), func() (bool, any) {
		v = s.task(id)
		return v.State == want, v
	})
	return v
}
