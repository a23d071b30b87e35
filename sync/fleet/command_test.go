package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// send stores a command and pushes it.
func (w *world) send(name string, slot int, life time.Duration) wire.Command {
	c := w.cloud.command(name, slot, life)
	w.p.push(wire.TypeExecute, c)
	return c
}

func states(all []wire.CommandStatus) (s []wire.CommandState) {
	for _, one := range all {
		s = append(s, one.Status)
	}
	return s
}

func (w *world) ran(id string) (n int) {
	w.phones.do(func() { n = w.phones.executed[id] })
	return n
}

func wantStates(t *testing.T, w *world, id string, want ...wire.CommandState) {
	t.Helper()
	got := w.cloud.status(id)
	if !slices.Equal(states(got), want) {
		t.Errorf("%s: %v, want %v", id, states(got), want)
	}
	for i, s := range got {
		if s.Version != i+1 {
			t.Errorf("%s: status %d has version %d", id, i, s.Version)
		}
	}
}

func TestACommandIsAcceptedRunAndReported(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.report = fleet.Report{
			Detail: json.RawMessage(`{"a":1}`), Attachments: []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: []byte("x")}},
		}
		w.start(0)
		pass(time.Second)
		c := w.send("once", 1, time.Hour)
		w.settle(time.Minute)
		wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandSucceeded)
		last := w.cloud.status(c.CommandID)[2]
		if string(last.Detail) != `{"a":1}` || last.Error != nil || w.cloud.pictures[c.CommandID] != 1 {
			t.Errorf("%+v", last)
		}
	})
}

func TestHowACommandEnds(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want wire.CommandState
		code wire.Code
	}{
		"refused": {wire.Refuse(wire.SlotEmpty, map[string]any{"slot": 1}), wire.CommandFailed, wire.SlotEmpty},
		"failed":  {errors.New("broken"), wire.CommandFailed, wire.Internal},
		"unknown": {wire.Refuse(wire.OutcomeUnknown, nil), wire.CommandUnknown, wire.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.phones.fail = test.err
				w.start(0)
				pass(time.Second)
				c := w.send("once", 1, time.Hour)
				w.settle(time.Minute)
				wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning, test.want)
				if s := w.cloud.status(c.CommandID)[2]; s.Error == nil || s.Error.Code != test.code {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestACommandHasABoundedTime(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.hold, w.commandTime = make(chan struct{}), 30*time.Second
		w.start(0)
		pass(time.Second)
		c := w.send("once", 1, time.Hour)
		pass(25 * time.Second)
		wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning)
		pass(10 * time.Second)
		wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandTimedOut)
	})
}

func TestACommandThatCannotBeIsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *wire.Command)
		code  wire.Code
	}{
		"unknown name":  {func(c *wire.Command) { c.Name = "dance" }, wire.UnknownAction},
		"expired":       {func(c *wire.Command) { c.Expires = time.Now().UnixMilli() }, wire.Expired},
		"without end":   {func(c *wire.Command) { c.Expires = 0 }, wire.Expired},
		"negative slot": {func(c *wire.Command) { c.Target.Slot = -1 }, wire.SlotUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.start(0)
				pass(time.Second)
				c := w.cloud.command("once", 0, time.Hour)
				test.spoil(&c)
				w.p.push(wire.TypeExecute, c)
				pass(time.Second)
				wantStates(t, w, c.CommandID, wire.CommandRejected)
				if s := w.cloud.status(c.CommandID); s[0].Error.Code != test.code || w.ran(c.CommandID) != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestACommandWithoutNumberOrIDIsIgnored(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.start(0)
		pass(time.Second)
		for _, c := range []wire.Command{{CommandID: "x", Name: "once"}, {Seq: 1, Name: "once"}, {Seq: 1, CommandID: strings.Repeat("x", 65)}} {
			w.p.push(wire.TypeExecute, c)
		}
		pass(time.Second)
		if n := len(w.cloud.statuses); n != 0 || len(w.phones.executed) != 0 {
			t.Errorf("%d statuses", n)
		}
		w.send("once", 0, time.Hour)
		w.settle(time.Minute)
	})
}

func TestAReportThatNoFrameCarriesIsLeftOut(t *testing.T) {
	for name, detail := range map[string]string{"large": `"` + strings.Repeat("x", maxBody) + `"`, "twice": `{"a":1,"a":2}`} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.phones.report = fleet.Report{Detail: json.RawMessage(detail)}
				w.start(0)
				pass(time.Second)
				c := w.send("once", 1, time.Hour)
				w.settle(time.Minute)
				wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandSucceeded)
				if s := w.cloud.status(c.CommandID)[2]; s.Error == nil || s.Detail != nil {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestOrderHoldsForATargetAndTargetsRunSideBySide(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.hold = make(chan struct{})
		w.start(0)
		pass(time.Second)
		for i := range 6 {
			w.send("once", i%2, time.Hour) // 1, 3, 5 for the rack, 2, 4, 6 for the slot
		}
		pass(time.Second)
		var order []string
		w.phones.do(func() { order = slices.Sorted(slices.Values(w.phones.order)) })
		if !slices.Equal(order, []string{"once-1", "once-2"}) {
			t.Errorf("these began: %v", order)
		}
		for range 6 {
			w.phones.hold <- struct{}{}
		}
		w.settle(time.Minute)
		for _, want := range [][]string{{"once-1", "once-3", "once-5"}, {"once-2", "once-4", "once-6"}} {
			var got []string
			for _, id := range w.phones.order {
				if slices.Contains(want, id) {
					got = append(got, id)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
	})
}

func TestTheFirstWelcomeOfADatabaseSaysWhereToGoOn(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.base = 17
		w.start(0)
		pass(time.Second)
		w.send("once", 0, time.Hour)
		w.settle(time.Minute)
		if p := bodies[wire.Pending](w); p[0].After != 17 || w.ran("once-18") != 1 {
			t.Errorf("%+v", p)
		}
		// A later welcome moves nothing.
		w.cloud.mu.Lock()
		w.cloud.base = 100
		w.cloud.mu.Unlock()
		w.cloud.setOnline(false)
		pass(time.Second)
		w.cloud.setOnline(true)
		pass(time.Second)
		if p := bodies[wire.Pending](w); p[len(p)-1].After != 18 {
			t.Errorf("%+v", p)
		}
	})
}

func TestWhatWasNotPushedIsAskedFor(t *testing.T) {
	t.Run("after the welcome, page by page", func(t *testing.T) {
		life(t, func(t *testing.T, w *world) {
			for range 8 {
				w.cloud.command("once", 1, time.Hour)
			}
			w.cloud.fault = first(wire.TypePending, 2, loseAnswer)
			w.start(0)
			w.settle(2 * time.Minute)
			if !slices.IsSorted(w.phones.order) || len(w.phones.order) != 8 {
				t.Errorf("%v", w.phones.order)
			}
		})
	})
	t.Run("when one is missing before a pushed one", func(t *testing.T) {
		life(t, func(t *testing.T, w *world) {
			w.start(0)
			pass(time.Second)
			w.cloud.command("once", 1, time.Hour)
			last := w.send("once", 1, time.Hour)
			w.p.push(wire.TypeExecute, last)
			w.settle(time.Minute)
			if !slices.Equal(w.phones.order, []string{"once-1", "once-2"}) {
				t.Errorf("%v", w.phones.order)
			}
		})
	})
	t.Run("over numbers that are over", func(t *testing.T) {
		life(t, func(t *testing.T, w *world) {
			w.cloud.command("once", 1, time.Millisecond)
			w.cloud.command("once", 1, time.Hour)
			pass(time.Second)
			w.start(0)
			w.settle(time.Minute)
			if !slices.Equal(w.phones.order, []string{"once-2"}) {
				t.Errorf("%v", w.phones.order)
			}
		})
	})
	t.Run("in a list out of order", func(t *testing.T) {
		life(t, func(t *testing.T, w *world) {
			a, b := w.cloud.command("once", 1, time.Hour), w.cloud.command("once", 1, time.Hour)
			w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
				return wire.TypeCommands, wire.Commands{Commands: []wire.Command{b, a}}, c.Type == wire.TypePending
			}
			w.start(0)
			w.settle(time.Minute)
			if !slices.Equal(w.phones.order, []string{"once-1", "once-2"}) {
				t.Errorf("%v", w.phones.order)
			}
		})
	})
	t.Run("of a cloud that always has more", func(t *testing.T) {
		life(t, func(t *testing.T, w *world) {
			w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
				return wire.TypeCommands, wire.Commands{More: true}, c.Type == wire.TypePending
			}
			w.start(0)
			pass(time.Minute)
			if n := w.cloud.count(wire.TypePending); n > 2 {
				t.Errorf("asked %d times", n)
			}
		})
	})
}

// A retained command, or one that a broker sends again, comes with each connect.
func TestReport03_AnOldCommandAtEachConnectRunsOnce(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.start(0)
		pass(time.Second)
		c := w.send("once", 1, time.Hour)
		w.settle(time.Minute)
		for i := range 4 {
			w.cloud.setOnline(false)
			pass(time.Second)
			if i%2 == 1 {
				w.p.end()
				w.start(0)
			}
			w.cloud.setOnline(true)
			w.p.push(wire.TypeExecute, c)
			pass(5 * time.Second)
		}
		if n := w.ran(c.CommandID); n != 1 {
			t.Errorf("it ran %d times", n)
		}
		got := w.cloud.status(c.CommandID)
		if len(got) != 3+4 {
			t.Errorf("answered with %v", states(got))
		}
		for _, s := range got[2:] {
			if s.Status != wire.CommandSucceeded || s.Version != 3 {
				t.Errorf("the stored status is %+v", s)
			}
		}
	})
}

// That a message arrived says nothing about its execution.
func TestReport04_DeliveredIsNotExecuted(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.hold = make(chan struct{})
		w.start(0)
		pass(time.Second)
		c, next := w.send("once", 1, time.Hour), w.send("once", 1, time.Hour)
		pass(time.Minute)
		wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning)
		wantStates(t, w, next.CommandID, wire.CommandAccepted)
		w.cloud.setOnline(false)
		w.p.push(wire.TypeExecute, w.cloud.command("once", 1, time.Hour)) // never delivered
		w.phones.hold <- struct{}{}
		pass(time.Minute)
		wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning) // done, and not told yet
		w.cloud.setOnline(true)
		close(w.phones.hold)
		w.settle(time.Minute)
		for _, id := range []string{"once-1", "once-2", "once-3"} {
			wantStates(t, w, id, wire.CommandAccepted, wire.CommandRunning, wire.CommandSucceeded)
		}
	})
}

func TestWhatARestartDoesToCommands(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.hold = make(chan struct{})
		w.start(0)
		pass(time.Second)
		cut, again := w.send("once", 1, time.Hour), w.send("ping", 2, time.Hour)
		waiting, late := w.send("once", 1, time.Hour), w.send("once", 2, 10*time.Second)
		pass(time.Second)
		w.p.end()
		close(w.phones.hold)
		pass(20 * time.Second)
		w.cloud.setOnline(false)
		w.start(0)
		pass(time.Minute)
		if w.ran(waiting.CommandID) != 0 {
			t.Error("a command ran before the cloud's time was known")
		}
		w.cloud.setOnline(true)
		w.settle(time.Minute)
		wantStates(t, w, cut.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandUnknown)
		wantStates(t, w, again.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandRunning, wire.CommandSucceeded)
		wantStates(t, w, waiting.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandSucceeded)
		wantStates(t, w, late.CommandID, wire.CommandAccepted, wire.CommandRejected)
		for c, n := range map[string]int{cut.CommandID: 1, again.CommandID: 2, waiting.CommandID: 1, late.CommandID: 0} {
			if w.ran(c) != n {
				t.Errorf("%s ran %d times, want %d", c, w.ran(c), n)
			}
		}
	})
}

func TestAnotherCommandUnderAKnownNumberIsRejected(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.start(0)
		pass(time.Second)
		c := w.send("once", 1, time.Hour)
		w.settle(time.Minute)
		c.CommandID = "other"
		w.p.push(wire.TypeExecute, c)
		pass(time.Second)
		wantStates(t, w, "other", wire.CommandRejected)
		if w.ran("other") != 0 || w.cloud.status("other")[0].Error.Code != wire.RequestConflict {
			t.Errorf("%+v", w.cloud.status("other"))
		}
	})
}

func TestOldCommandsAreForgottenAndNeverRunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		count int
		wait  time.Duration
	}{"many": {510, 0}, "long ago": {2, 8 * 24 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.start(0)
				pass(time.Second)
				var all []wire.Command
				for i := range test.count {
					all = append(all, w.cloud.command("dance", 0, time.Hour)) // rejected, and over at once
					w.p.push(wire.TypeExecute, all[i])
					if i%50 == 0 {
						pass(time.Second)
					}
				}
				pass(time.Second)
				w.cloud.setOnline(false)
				pass(test.wait)
				w.cloud.setOnline(true)
				pass(time.Second)
				w.p.push(wire.TypeExecute, w.cloud.command("dance", 0, time.Hour))
				w.p.push(wire.TypeExecute, all[0])
				w.p.push(wire.TypeExecute, all[0])
				pass(time.Second)
				got := w.cloud.status(all[0].CommandID)
				if s := got[len(got)-1]; s.Status != wire.CommandUnknown || s.Version < 1000 {
					t.Errorf("the forgotten one is answered %+v", s)
				}
				if test.count > 500 {
					w.p.push(wire.TypeExecute, all[30])
					pass(time.Second)
					got := w.cloud.status(all[30].CommandID)
					if s := got[len(got)-1]; s.Status != wire.CommandRejected || len(got) != 2 {
						t.Errorf("the kept one is answered %v", states(got))
					}
				}
			})
		})
	}
}

func TestCommandsBeforeTheFirstWelcomeWaitForIt(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.setOnline(false)
		w.start(0)
		pass(time.Second)
		c := w.cloud.command("once", 1, time.Hour)
		m, err := wire.NewMessage(wire.TypeExecute, time.Now(), time.Minute, c)
		if err != nil {
			t.Fatal(err)
		}
		w.p.line.handlers[wire.TypeExecute](w.p.ctx, m) // it overtakes the welcome
		pass(time.Second)
		if n := w.ran(c.CommandID); n != 0 {
			t.Fatal(fmt.Sprint("it ran ", n, " times before the welcome"))
		}
		w.cloud.setOnline(true)
		w.settle(time.Minute)
		if n := w.ran(c.CommandID); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// TestACommandThatComesAsTheRunBeginsIsDoneOnce: link and fleet begin at the same moment, and the first push may be
// quicker than the records.
func TestACommandThatComesAsTheRunBeginsIsDoneOnce(t *testing.T) {
	for range 150 {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, dir)
			c := w.cloud.command("once", 0, time.Hour)
			p := w.start(0)
			var pushes sync.WaitGroup
			for range 8 {
				pushes.Go(func() { p.push(wire.TypeExecute, c) })
			}
			pushes.Wait()
			w.settle(time.Minute)
			if n := w.ran(c.CommandID); n != 1 {
				t.Errorf("it was done %d times", n)
			}
			wantStates(t, w, c.CommandID, wire.CommandAccepted, wire.CommandRunning, wire.CommandSucceeded)
			p.end()
		})
	}
}
