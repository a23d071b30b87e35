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

const (
	testLimit = 8 * time.Minute
	soon      = 60 * time.Second // bounds each wait for something that comes at once on an idle machine
)

// site is a cloud, and a rack whose phones sit in slots 1 and 2.
type site struct {
	*sitetest.Site
	t       *testing.T
	ctx     context.Context
	id      string // of the rack
	reboots [3]atomic.Int32
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, ctx: t.Context()}
	folder := filepath.Join(t.TempDir(), "rules")
	s.must(os.Mkdir(folder, 0o755))
	s.must(os.WriteFile(filepath.Join(folder, "orders.yaml"), []byte(rules), 0o644))
	s.Site = sitetest.New(t, t.Context(), sitetest.Options{
		Phones: 2,
		Phone: func(p *rackrig.PhoneSpec) {
			p.RebootDelay, p.OnReboot = 4*time.Second, func(string) { s.reboots[p.Slot].Add(1) }
		},
		Flags: []string{"--rules", folder},
	})
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	s.ctx = ctx
	s.do(nil, "provider", "add", "orders", "--provider", "scripted", "--option", `{"rules":"orders.yaml"}`, "--activate")
	var hosts []fleet.Host
	s.do(&hosts, "host", "list")
	s.id = hosts[0].Rack
	s.ready(1, 2)
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
}

// ready waits until the phones of slots can be used and the cloud knows that the rack is there.
func (s *site) ready(slots ...int) {
	s.t.Helper()
	_, err := rackrig.WaitState(s.ctx, s.Rack, action.Ready, slots...)
	s.must(err)
	s.presence("online")
}

func (s *site) presence(want string) {
	s.t.Helper()
	var h fleet.Host
	s.await(want, func() (bool, any) {
		s.do(&h, "host", "show", s.id)
		return h.Presence == want, h.Presence
	})
}

// await looks again and again until something is so.
func (s *site) await(what string, look func() (so bool, seen any)) {
	s.t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(200 * time.Millisecond) {
		so, seen := look()
		if so {
			return
		}
		if time.Now().After(end) || s.ctx.Err() != nil {
			s.t.Fatalf("%s is waited for, seen is %+v", what, seen)
		}
	}
}

// do gives an order and reads its JSON.
func (s *site) do(v any, args ...string) {
	s.t.Helper()
	s.must(s.Cloud.Ask(s.ctx, v, args...))
}

// try gives an order that may be refused, and returns its exit code and its JSON.
func (s *site) try(v any, args ...string) int {
	s.t.Helper()
	var out bytes.Buffer
	exit, err := s.Cloud.Ctl(s.ctx, &out, append([]string{"--json"}, args...)...)
	if exit == 0 {
		s.must(err)
	}
	if v != nil {
		if err := json.Unmarshal(out.Bytes(), v); err != nil {
			s.t.Fatalf("rackcloud %v printed %q: %v", args, out.String(), err)
		}
	}
	return exit
}

// command looks at a command.
func (s *site) command(id string) (c fleet.Command) {
	s.t.Helper()
	s.do(&c, "command", "show", id)
	return c
}

// state waits until a command is in a state.
func (s *site) state(id string, want wire.CommandState) (c fleet.Command) {
	s.t.Helper()
	s.await("command "+string(want), func() (bool, any) {
		c = s.command(id)
		return c.State == want, c
	})
	return c
}

func (s *site) task(id string) (v fleet.Task) {
	s.t.Helper()
	s.do(&v, "task", "show", id)
	return v
}

func (s *site) taskState(id string, want wire.TaskState) (v fleet.Task) {
	s.t.Helper()
	s.await("task "+string(want), func() (bool, any) {
		v = s.task(id)
		return v.State == want, v
	})
	return v
}
