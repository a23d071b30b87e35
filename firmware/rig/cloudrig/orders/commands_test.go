package orders_test

import (
	"bytes"
	"encoding/json"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

// send orders a command for a slot, 0 for the rack, and does not wait for it.
func (s *site) send(name string, slot string, more ...string) (c fleet.Command) {
	s.T.Helper()
	s.Do(&c, append([]string{"command", "send", name, s.ID, "--slot", slot}, more...)...)
	return c
}

func TestCommandsFromTheOperatorToThePhone(t *testing.T) {
	s := newSite(t)

	var late fleet.Command
	s.In("a command that waits longer than it may is never done", func(t *testing.T) {
		s.Rack.Kill()
		s.presence("offline")
		late = s.send("reboot", "2", "--expires", "2s") // shorter, it may be over before the cloud has it
		s.Await("the end of its time", func() (bool, any) { return time.Now().After(time.UnixMilli(late.Expires)), late })
	})
	s.In("a command for a rack that is not there is done when it is", func(t *testing.T) {
		c := s.send("ping", "0")
		if c.State != wire.CommandQueued || c.Sent != 0 {
			t.Errorf("%+v", c)
		}
		s.Must(s.Rack.StartRackd(s.Ctx))
		c = s.state(c.CommandID, wire.CommandSucceeded)
		var detail struct{ Slots int }
		if json.Unmarshal(c.Detail, &detail) != nil || detail.Slots != 2 {
			t.Errorf("the answer of ping is %s", c.Detail)
		}
		s.ready(1, 2)
	})
	s.In("ping and identify", func(t *testing.T) {
		var c fleet.Command
		s.Do(&c, "command", "send", "ping", s.ID, "--wait", "60s")
		if c.State != wire.CommandSucceeded {
			t.Errorf("%+v", c)
		}
		s.Do(&c, "command", "send", "identify", s.ID, "--args", `{"seconds":1}`, "--wait", "60s")
		var detail struct{ Slots []int }
		if err := json.Unmarshal(c.Detail, &detail); err != nil || c.State != wire.CommandSucceeded || !slices.Equal(detail.Slots, []int{1, 2}) {
			t.Errorf("%s: %s", c.State, c.Detail)
		}
	})
	s.In("a screenshot is kept in a file", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "screen.jpg")
		var c fleet.Command
		s.Do(&c, "command", "send", "screenshot", s.ID, "--slot", "1", "--out", out)
		raw, err := os.ReadFile(out)
		s.Must(err)
		if _, err := jpeg.Decode(bytes.NewReader(raw)); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		again := filepath.Join(t.TempDir(), "again.jpg")
		s.Do(nil, "command", "show", c.CommandID, "--out", again)
		if second, err := os.ReadFile(again); err != nil || !bytes.Equal(raw, second) {
			t.Errorf("another picture, %v", err)
		}
		before := s.count()
		if exit := s.try(nil, "command", "send", "screenshot", s.ID, "--slot", "1", "--out", out); exit != 1 {
			t.Errorf("a file was overwritten: exit code %d", exit)
		}
		if after := s.count(); after != before {
			t.Errorf("%d commands were ordered for a picture that cannot be kept", after-before)
		}
	})
	s.In("a slot that is not there fails with the reason", func(t *testing.T) {
		var c fleet.Command
		if exit := s.try(&c, "command", "send", "screenshot", s.ID, "--slot", "9", "--wait", "60s"); exit != 1 || c.State != wire.CommandFailed {
			t.Errorf("exit code %d, %+v", exit, c)
		}
		if c.Error == nil || c.Error.Code != wire.SlotUnknown {
			t.Errorf("%v", c.Error)
		}
	})
	s.In("commands of a slot keep their order, and hold up no other slot", func(t *testing.T) {
		first := s.send("identify", "1", "--args", `{"seconds":5}`)
		second := s.send("identify", "1", "--args", `{"seconds":1}`)
		other := s.send("screenshot", "2")
		other = s.state(other.CommandID, wire.CommandSucceeded)
		if c := s.command(first.CommandID); c.State.Over() && c.Updated < other.Updated {
			t.Errorf("slot 2 has waited for slot 1")
		}
		second = s.state(second.CommandID, wire.CommandSucceeded)
		if c := s.command(first.CommandID); c.State != wire.CommandSucceeded || c.Updated > second.Updated {
			t.Errorf("%+v was overtaken by %+v", c, second)
		}
	})
	s.In("a command that may be repeated is finished after rackd was killed", func(t *testing.T) {
		c := s.send("identify", "1", "--args", `{"seconds":6}`)
		s.state(c.CommandID, wire.CommandRunning)
		s.killed()
		s.state(c.CommandID, wire.CommandSucceeded)
	})
	s.In("a command that may not is unknown, and never done again", func(t *testing.T) {
		c := s.send("reboot", "1")
		s.Await("restart", func() (bool, any) { n := s.reboots[1].Load(); return n == 1, n })
		s.state(c.CommandID, wire.CommandRunning)
		s.killed()
		s.state(c.CommandID, wire.CommandUnknown)
		s.ready(1, 2)
		var done fleet.Command
		s.Do(&done, "command", "send", "reboot", s.ID, "--slot", "2", "--wait", "60s") // a whole one
		if done.State != wire.CommandSucceeded || s.reboots[2].Load() != 1 {
			t.Errorf("%+v, %d restarts of slot 2", done, s.reboots[2].Load())
		}
		if n := s.reboots[1].Load(); n != 1 {
			t.Errorf("the phone was restarted %d times", n)
		}
		if c := s.command(c.CommandID); c.State != wire.CommandUnknown {
			t.Errorf("%+v", c)
		}
	})
	s.In("what happened to the rack and its phones is in its events", func(t *testing.T) {
		s.Await("the events of kills and of phones", func() (bool, any) {
			var all []fleet.Event
			s.Do(&all, "events", "--rack", s.ID)
			seen := map[string]int{}
			for _, e := range all {
				var detail struct {
					Cause string `json:"cause"`
				}
				if err := json.Unmarshal(e.Detail, &detail); err != nil {
					t.Fatalf("%+v: %v", e, err)
				}
				seen[strings.TrimSpace(e.Kind+" "+detail.Cause)]++
			}
			return seen["rack.started first"] == 1 && seen["rack.started cut"] >= 2 && seen["phone.ready"] >= 4, seen
		})
	})
	s.In("what was late has timed out", func(t *testing.T) {
		if c := s.state(late.CommandID, wire.CommandTimedOut); c.Sent != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// killed ends rackd as kill -9 does, and starts it again.
func (s *site) killed() {
	s.T.Helper()
	s.Rack.Kill()
	s.Must(s.Rack.StartRackd(s.Ctx))
}

// count is how many commands there are.
func (s *site) count() int {
	s.T.Helper()
	var all []fleet.Command
	s.Do(&all, "command", "list", "--limit", "0")
	return len(all)
}
