package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/firmware/rig/rackrig"
	"phonerack/sync/wire"
)

// restored is a site whose databases are put back. What its phones' app has noted, and how often they were restarted, are
// the judges.
type restored struct {
	*sitetest.Site
	t       *testing.T
	ctx     context.Context
	rack    string // id
	reboots [3]atomic.Int32
}

type commandView struct {
	ID    string            `json:"command_id"`
	Seq   int64             `json:"seq"`
	State wire.CommandState `json:"state"`
}

func (s *restored) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// message submits a task for a slot.
func (s *restored) message(slot int, text string) string {
	s.t.Helper()
	id, err := s.Cloud.Submit(s.ctx, "--goal", fmt.Sprintf("Send the message '%s' to Ana", text), "--slot", fmt.Sprint(slot))
	s.must(err)
	return id
}

func (s *restored) command(name string, more ...string) commandView {
	s.t.Helper()
	var c commandView
	s.must(s.Cloud.Ask(s.ctx, &c, append([]string{"command", "send", name, s.rack}, more...)...))
	return c
}

// reaches waits for a state of a command.
func (s *restored) reaches(id string, want wire.CommandState) (c commandView) {
	s.t.Helper()
	for c.State != want {
		s.must(s.Cloud.Ask(s.ctx, &c, "command", "show", id))
		if c.State.Over() && c.State != want {
			s.t.Fatalf("the command is %s where it should get %s", c.State, want)
		}
		s.pause()
	}
	return c
}

func (s *restored) pause() {
	s.t.Helper()
	select {
	case <-time.After(50 * time.Millisecond):
	case <-s.ctx.Done():
		s.t.Fatal(s.ctx.Err())
	}
}

// ends waits for a task's end.
func (s *restored) ends(id, want string) {
	s.t.Helper()
	end, err := s.Cloud.Await(s.ctx, id)
	s.must(err)
	if end.State != want {
		s.t.Errorf("the task is %s, wanted: %s", end.State, want)
	}
}

func (s *restored) generation() (n int64) {
	s.t.Helper()
	var h struct {
		Generation int64 `json:"generation"`
	}
	s.must(s.Cloud.Ask(s.ctx, &h, "host", "show", s.rack))
	return h.Generation
}

// goesOn wants new work to be done, by which everything older has had its chance.
func (s *restored) goesOn(text string) commandView {
	s.t.Helper()
	_, err := rackrig.WaitState(s.ctx, s.Rack, action.Ready, 1, 2)
	s.must(err)
	s.ends(s.message(1, text+" one"), "succeeded")
	s.ends(s.message(2, text+" two"), "succeeded")
	ping := s.command("ping")
	s.reaches(ping.ID, wire.CommandSucceeded)
	for _, m := range []string{text + " one", text + " two"} {
		s.sent(m)
	}
	return ping
}

func (s *restored) sent(text string) {
	s.t.Helper()
	if n := s.Sent(text); n != 1 {
		s.t.Errorf("%q was sent %d times", text, n)
	}
}

// rebooted wants slot 2 restarted so often.
func (s *restored) rebooted(want int32) {
	s.t.Helper()
	if n := s.reboots[2].Load(); n != want {
		s.t.Errorf("slot 2 was restarted %d times, wanted: %d", n, want)
	}
}

// TestRestoredOldDatabaseRunsNothingAgain puts an old copy back: of the cloud's database, as docs/rackcloud.md tells it, and
// of the rack's. Each has work open that was done after the copy was made.
func TestRestoredOldDatabaseRunsNothingAgain(t *testing.T) {
	s := &restored{t: t}
	s.Site = sitetest.New(t, t.Context(), sitetest.Options{Phones: 2, Phone: func(p *rackrig.PhoneSpec) {
		p.RebootDelay, p.OnReboot = time.Second, func(string) { s.reboots[p.Slot].Add(1) }
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	s.ctx, s.rack = ctx, newClient(t, s.Bundle).bundle.Rack
	t.Run("the cloud's", func(t *testing.T) { s.t = t; s.cloudsDatabase(t.TempDir()) })
	t.Run("the rack's", func(t *testing.T) { s.t = t; s.racksDatabase() })
}

func (s *restored) cloudsDatabase(dir string) {
	copied := filepath.Join(dir, "copy.db")
	busy := s.command("identify", "--slot", "2", "--args", `{"seconds":8}`) // longer than the task takes to begin
	waiting := s.command("reboot", "--slot", "2")
	s.reaches(busy.ID, wire.CommandRunning)
	running, queued := s.message(1, "running"), s.message(1, "queued")
	eventually(s.t, "the task runs", func() bool {
		var task struct{ State string }
		return s.Cloud.Ask(s.ctx, &task, "task", "show", running) == nil && task.State == "running"
	})
	_, err := s.Cloud.Ctl(s.ctx, io.Discard, "backup", copied)
	s.must(err)
	s.ends(running, "succeeded")
	s.ends(queued, "succeeded")
	s.reaches(busy.ID, wire.CommandSucceeded)
	s.reaches(waiting.ID, wire.CommandSucceeded)
	s.rebooted(1)

	s.must(s.Cloud.Close())
	db := filepath.Join(s.Cloud.State(), "cloud.db")
	for _, name := range []string{db + "-wal", db + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.must(err)
		}
	}
	s.must(os.Rename(copied, db))
	s.must(s.Cloud.Restart(s.ctx))
	s.ends(running, "lost")
	s.ends(queued, "lost")
	s.reaches(busy.ID, wire.CommandUnknown)
	s.reaches(waiting.ID, wire.CommandUnknown)
	if ping := s.goesOn("after the cloud's"); ping.Seq <= 1_000_000 {
		s.t.Errorf("the next command has the number %d", ping.Seq)
	}
	s.ends(running, "lost")
	s.ends(queued, "lost")
	s.reaches(waiting.ID, wire.CommandUnknown)
	s.sent("running")
	s.sent("queued")
	s.rebooted(1)
}

func (s *restored) racksDatabase() {
	before := s.generation()
	running := s.message(1, "running on the rack")
	busy := s.command("identify", "--slot", "2", "--args", `{"seconds":5}`)
	waiting := s.command("reboot", "--slot", "2")
	s.reaches(busy.ID, wire.CommandRunning)
	s.reaches(waiting.ID, wire.CommandAccepted)
	s.Rack.Kill()
	db := filepath.Join(s.Rack.Scratch(), "state", "rackd.db")
	old, err := os.ReadFile(db)
	s.must(err)
	s.must(s.Rack.StartRackd(s.ctx))
	s.reaches(busy.ID, wire.CommandSucceeded)
	s.reaches(waiting.ID, wire.CommandSucceeded)
	s.rebooted(2)
	first, err := s.Cloud.Await(s.ctx, running)
	s.must(err)
	sent := s.Sent("running on the rack")
	if n := s.generation(); n != before {
		s.t.Errorf("a kill has made generation %d of %d", n, before)
	}

	s.Rack.Kill()
	s.must(os.WriteFile(db, old, 0o640))
	s.must(s.Rack.StartRackd(s.ctx))
	s.goesOn("after the rack's")
	if n := s.generation(); n <= before {
		s.t.Errorf("the generation is %d, as before", n)
	}
	if again, err := s.Cloud.Await(s.ctx, running); err != nil || again != first {
		s.t.Errorf("the task is %+v, was %+v, %v", again, first, err)
	}
	if n := s.Sent("running on the rack"); n != sent || n > 1 {
		s.t.Errorf("the message was sent %d times, then %d", sent, n)
	}
	s.rebooted(2)
}
