package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// life runs a test in a world of its own, inside a bubble of time.
func life(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir)
		fn(t, w)
		if w.p != nil {
			w.p.end()
		}
		w.check()
	})
}

func ref(id string, n int) wire.AttemptRef { return wire.AttemptRef{TaskID: id, Attempt: n} }

// first makes the first n messages of a type suffer.
func first(t wire.Type, n int, f fault) func(link.Call) fault {
	return func(c link.Call) fault {
		if c.Type != t || n == 0 {
			return noFault
		}
		n--
		return f
	}
}

// bodies are what was asked, in order.
func bodies[T any](w *world) (all []T) {
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	for _, c := range w.cloud.asks {
		if b, ok := c.Body.(T); ok {
			all = append(all, b)
		}
	}
	return all
}

func (w *world) resultOf(ref wire.AttemptRef) (r wire.Result) {
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	for _, r = range w.cloud.results[ref] {
	}
	return r
}

func (w *world) started(ref wire.AttemptRef) (n int) {
	w.phones.do(func() { n = w.phones.starts[ref] })
	return n
}

func (w *world) cancelled(ref wire.AttemptRef) (codes []wire.Code) {
	w.phones.do(func() { codes = slices.Clone(w.phones.cancels[ref]) })
	return codes
}

func TestATaskIsClaimedRunAndReportedOnce(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		w.start(0)
		w.settle(time.Minute)
		r := w.resultOf(ref("t1", 1))
		if r.Outcome != wire.Succeeded || !r.Wrote || r.Steps != 2 {
			t.Errorf("%+v", r)
		}
		c := bodies[wire.Claim](w)[0]
		if c.Slot != 1 || c.Phone != "1" || c.SkillsVersion != "7" || len(c.Apps) != 1 || c.ClaimID == "" {
			t.Errorf("%+v", c)
		}
	})
}

func TestAClaimKeepsItsIDUntilItsFateIsKnown(t *testing.T) {
	for _, f := range []fault{loseRequest, loseAnswer, cutLine} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(f, restart), func(t *testing.T) {
				life(t, func(t *testing.T, w *world) {
					w.cloud.submit("t1", false)
					w.cloud.fault = first(wire.TypeClaim, 1, f)
					w.start(0)
					pass(5 * time.Second)
					if restart {
						w.p.end()
						w.start(0)
					}
					w.cloud.setOnline(true)
					w.settle(2 * time.Minute)
					c := bodies[wire.Claim](w)
					if c[0].ClaimID != c[1].ClaimID {
						t.Errorf("%v and %v", c[0], c[1])
					}
					if w.resultOf(ref("t1", 1)).Outcome != wire.Succeeded {
						t.Error("the first attempt did not run")
					}
				})
			})
		}
	}
}

func TestALeaseThatNeverArrivedIsFetchedForASlotThatIsBusyNow(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		w.cloud.fault = first(wire.TypeClaim, 1, loseAnswer)
		w.phones.refuse = func(a fleet.Assignment) error {
			if a.Attempt == 1 {
				return wire.Refuse(wire.SlotBusy, nil)
			}
			return nil
		}
		w.start(0)
		pass(3 * time.Second)
		w.phones.do(func() { w.phones.busy = map[int]bool{1: true} })
		pass(time.Minute)
		if n := w.cloud.count(wire.TypeRelease); n != 1 {
			t.Fatalf("released %d times", n)
		}
		claims := w.cloud.count(wire.TypeClaim)
		pass(time.Minute)
		if n := w.cloud.count(wire.TypeClaim); n != claims {
			t.Errorf("a busy slot went on claiming: %d, %d", claims, n)
		}
		w.phones.do(func() { w.phones.busy = nil })
		w.settle(time.Minute)
	})
}

func TestABusySlotAsksForNothingThatWasNotGranted(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.fault = first(wire.TypeClaim, 1, loseRequest)
		w.start(0)
		pass(3 * time.Second)
		w.phones.do(func() { w.phones.busy = map[int]bool{1: true} })
		w.cloud.submit("t1", false)
		pass(2 * time.Minute)
		if n := w.cloud.count(wire.TypeClaim); n != 1 {
			t.Errorf("%d claims", n)
		}
	})
}

func TestALeaseThatIsOnItsWayIsNotTakenForALostOne(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.slots, w.phones.busy = 2, map[int]bool{2: true}
		w.cloud.fault = first(wire.TypeClaim, 1, loseRequest) // of slot 1
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			q, ok := c.Body.(wire.Claim)
			if !ok || q.Slot != 2 {
				return "", nil, false
			}
			typ, body := w.cloud.claim(q)
			w.cloud.mu.Unlock()
			time.Sleep(18 * time.Second) // a heartbeat is answered meanwhile
			w.cloud.mu.Lock()
			return typ, body, true
		}
		w.start(0)
		pass(3 * time.Second)
		w.phones.do(func() { w.phones.busy = map[int]bool{1: true} })
		pass(19 * time.Second) // slot 1's claim has failed
		w.cloud.submit("t1", false)
		w.cloud.submit("t2", false)
		pass(2 * time.Minute)
		for _, c := range bodies[wire.Claim](w)[1:] {
			if c.Slot == 1 {
				t.Fatalf("slot 1 is busy and claims: %+v", c)
			}
		}
		if w.started(ref("t1", 1)) != 1 {
			t.Error("slot 2 did not get the task")
		}
	})
}

func TestAClaimWithoutATaskWaitsAndCostsNoWrite(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			return wire.TypeNone, wire.NoTask{}, c.Type == wire.TypeClaim
		}
		w.start(0)
		pass(time.Minute)
		steps := w.p.steps.Load()
		pass(time.Minute)
		c := bodies[wire.Claim](w)
		if len(c) < 15 || len(c) > 24 {
			t.Errorf("%d claims in two minutes, want one in 5 s and a bit", len(c))
		}
		for _, one := range c {
			if one.ClaimID != c[0].ClaimID {
				t.Fatalf("a fresh id: %v", c)
			}
		}
		asked := int64(2 * (len(c)/2 + 5 + 2)) // each has two steps, question and answer
		if n := w.p.steps.Load() - steps; n > asked {
			t.Errorf("%d steps for about %d questions", n, asked/2)
		}
		w.phones.do(func() { w.phones.serial = "other" })
		pass(10 * time.Second)
		last := bodies[wire.Claim](w)
		if n := last[len(last)-1]; n.ClaimID == c[0].ClaimID || n.Phone != "other1" {
			t.Errorf("another phone claims as %+v", n)
		}
	})
}

func TestNothingIsClaimed(t *testing.T) {
	for name, set := range map[string]func(w *world){
		"offline":            func(w *world) { w.cloud.setOnline(false) },
		"while draining":     func(w *world) { w.p.fleet.Drain(true) },
		"while paused":       func(w *world) { w.p.fleet.Pause(true) },
		"by a busy slot":     func(w *world) { w.phones.do(func() { w.phones.busy = map[int]bool{1: true} }) },
		"without room":       func(w *world) { w.room, _ = 1, w.p.reserved.Add(1) },
		"after the run ends": func(w *world) { w.p.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.start(0)
				set(w)
				w.cloud.submit("t1", false)
				pass(time.Minute)
				if n := w.cloud.count(wire.TypeClaim); n != 0 {
					t.Errorf("%d claims", n)
				}
			})
		})
	}
}

func TestDrainingSaysSoAndLetsRunWhatRuns(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		w.start(0)
		pass(3 * time.Second)
		w.p.fleet.Drain(true)
		if w.p.line.presence != wire.Draining {
			t.Errorf("it says %q", w.p.line.presence)
		}
		w.settle(time.Minute)
		w.cloud.submit("t2", false)
		pass(10 * time.Second)
		if w.started(ref("t2", 1)) != 0 {
			t.Error("it claims while it drains")
		}
		w.p.fleet.Drain(false)
		w.settle(time.Minute)
	})
}

// TestARackThatIsPausedAndDrainsClaimsWhenBothAreOver: one is the cloud's wish, the other the rack's own.
func TestARackThatIsPausedAndDrainsClaimsWhenBothAreOver(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.start(0)
		w.p.fleet.Pause(true)
		w.p.fleet.Drain(true)
		w.cloud.submit("t1", false)
		w.p.fleet.Pause(false)
		pass(10 * time.Second)
		if w.started(ref("t1", 1)) != 0 || w.p.line.presence != wire.Draining {
			t.Errorf("it claims while it drains, and says %q", w.p.line.presence)
		}
		w.p.fleet.Pause(true)
		w.p.fleet.Drain(false)
		pass(10 * time.Second)
		if w.started(ref("t1", 1)) != 0 || w.p.line.presence != wire.Draining {
			t.Errorf("it claims while it is paused, and says %q", w.p.line.presence)
		}
		w.p.fleet.Pause(false)
		if w.p.line.presence != wire.Online {
			t.Errorf("it says %q", w.p.line.presence)
		}
		w.settle(time.Minute)
	})
}

func TestALeaseCountsFromTheSendingAndIsRenewedEvery40Seconds(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 100 * time.Second
		w.cloud.submit("t1", false)
		w.start(0)
		pass(2 * time.Second)
		sent := time.Second // half of the spread of first claims
		w.phones.do(func() {
			if got := w.phones.last.Fence; got != sent+110*time.Second {
				t.Errorf("the fence closes at %v", got)
			}
		})
		pass(81 * time.Second)
		var fences []time.Duration
		w.phones.do(func() { fences = w.phones.extended[ref("t1", 1)] })
		if n := w.cloud.count(wire.TypeRenew); n != 2 {
			t.Errorf("%d renewals in 83 s", n)
		}
		last := fences[len(fences)-1]
		if want := sent + 80*time.Second + 110*time.Second; last < want || last > want+time.Second {
			t.Errorf("the fence is at %v, want %v", last, want)
		}
		if !slices.IsSorted(fences) {
			t.Errorf("it moved back: %v", fences)
		}
		w.settle(5 * time.Minute)
	})
}

func TestWithoutRenewalTheAttemptIsCancelledAtTheEndOfTheLease(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		w.start(0)
		pass(3 * time.Second)
		w.cloud.setOnline(false)
		pass(117 * time.Second) // 1 s after the start it was claimed, so 1 s is left
		if c := w.cancelled(ref("t1", 1)); len(c) != 0 {
			t.Fatalf("too early: %v", c)
		}
		pass(2 * time.Second)
		if c := w.cancelled(ref("t1", 1)); !slices.Equal(c, []wire.Code{wire.AttemptOver}) {
			t.Fatalf("%v", c)
		}
		if w.cloud.count(wire.TypeRenew) != 0 {
			t.Error("renewed while offline")
		}
		w.cloud.setOnline(true)
		w.settle(10 * time.Minute)
	})
}

func TestARenewalIsTriedAgainWhileThereIsTime(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 80 * time.Second
		w.cloud.submit("t1", false)
		w.cloud.fault = first(wire.TypeRenew, 3, loseAnswer)
		w.start(0)
		w.settle(10 * time.Minute)
		if w.resultOf(ref("t1", 1)).Outcome != wire.Succeeded {
			t.Errorf("%+v", w.resultOf(ref("t1", 1)))
		}
	})
}

func TestARefusedRenewalEndsTheAttempt(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			return wire.TypeError, wire.Refuse(wire.NotYourTask, map[string]any{"task": "t1"}), c.Type == wire.TypeRenew
		}
		w.start(0)
		pass(45 * time.Second)
		if c := w.cancelled(ref("t1", 1)); !slices.Equal(c, []wire.Code{wire.NotYourTask}) {
			t.Errorf("%v", c)
		}
		if n := w.cloud.count(wire.TypeRenew); n != 1 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestARefusedStartIsReleasedUntilTheCloudKnows(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		w.cloud.fault = first(wire.TypeRelease, 2, loseRequest)
		w.phones.refuse = func(a fleet.Assignment) error {
			if a.Attempt == 1 {
				return wire.Refuse(wire.AppMissing, map[string]any{"package": "x"})
			}
			return nil
		}
		w.start(0)
		pass(5 * time.Second)
		var a fleet.Assignment
		w.phones.do(func() { a = w.phones.last })
		if !wire.Is(a.Wrote(), wire.AttemptOver) {
			t.Error("a refused attempt may write")
		}
		w.p.end() // the release goes on in the next life
		w.start(0)
		w.settle(3 * time.Minute)
		r := bodies[wire.Release](w)
		if len(r) != 3 || r[2].Error.Code != wire.AppMissing || r[2].Attempt != 1 || r[2].SkillsVersion != "7" {
			t.Errorf("%+v", r)
		}
		if len(w.cloud.results[ref("t1", 1)]) != 0 {
			t.Error("a released attempt has a result")
		}
		told := false
		for _, h := range bodies[wire.Heartbeat](w) {
			for _, one := range h.Running {
				told = told || one.Attempt == 1 && one.Ended && !one.Wrote
			}
		}
		if !told {
			t.Error("no heartbeat told that nothing was written")
		}
	})
}

func TestRefusalsOneAfterTheOtherComeSlowly(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		for i := range 50 {
			w.cloud.submit(fmt.Sprint("t", i), false)
		}
		w.phones.refuse = func(fleet.Assignment) error { return wire.Refuse(wire.PhoneOffline, nil) }
		w.start(0)
		pass(30 * time.Second)
		if n := w.cloud.count(wire.TypeRelease); n < 3 || n > 8 {
			t.Errorf("%d tasks were refused in 30 s", n)
		}
	})
}

func TestRoomForAResultIsGivenBack(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.room = 1
		for _, id := range []string{"a", "b", "c"} {
			w.cloud.submit(id, false)
		}
		w.cloud.fault = first(wire.TypeClaim, 2, loseRequest)
		w.phones.refuse = func(a fleet.Assignment) error {
			if a.Task.TaskID == "b" && a.Attempt == 1 {
				return wire.Refuse(wire.AppMissing, nil)
			}
			return nil
		}
		w.start(0)
		w.settle(5 * time.Minute)
		w.p.fleet.Drain(true)
		pass(time.Minute)
		if n := w.p.reserved.Load(); n != 0 {
			t.Errorf("room for %d results is kept", n)
		}
	})
}

func TestAShorterLeaseMovesNoFenceBack(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			return wire.TypeRenewed, wire.Renewed{LeaseMS: 20_000}, c.Type == wire.TypeRenew
		}
		w.start(0)
		pass(100 * time.Second)
		w.phones.do(func() {
			if all := w.phones.extended[ref("t1", 1)]; !slices.IsSorted(all) || len(all) > 0 && all[0] < w.phones.last.Fence {
				t.Errorf("from %v to %v", w.phones.last.Fence, all)
			}
		})
		if w.cloud.count(wire.TypeRenew) != 2 {
			t.Errorf("%d renewals", w.cloud.count(wire.TypeRenew))
		}
	})
}

func TestAnAttemptThatWroteBeforeItRefusedHasAResult(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		w.phones.refuse = func(a fleet.Assignment) error { return errors.Join(a.Wrote(), errors.New("no")) }
		w.start(0)
		w.settle(time.Minute)
		if r := w.resultOf(ref("t1", 1)); r.Outcome != wire.Failed || !r.Wrote || w.cloud.count(wire.TypeRelease) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestALeaseThatCannotBeGoesBack(t *testing.T) {
	good := wire.Lease{Task: wire.Task{TaskID: "t1", Goal: "g"}, Attempt: 1, LeaseMS: 120_000}
	for name, spoil := range map[string]func(l *wire.Lease){
		"attempt 0":        func(l *wire.Lease) { l.Attempt = 0 },
		"negative attempt": func(l *wire.Lease) { l.Attempt = -3 },
		"no goal":          func(l *wire.Lease) { l.Task.Goal = " \n" },
		"no task":          func(l *wire.Lease) { l.Task.TaskID = "" },
		"another claim":    func(l *wire.Lease) { l.ClaimID = "other" },
		"no claim":         func(l *wire.Lease) { l.ClaimID = "" },
		"no time":          func(l *wire.Lease) { l.LeaseMS = 0 },
		"too little time":  func(l *wire.Lease) { l.LeaseMS = 10_000 },
		"negative time":    func(l *wire.Lease) { l.LeaseMS = -1 << 62 },
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
					switch q := c.Body.(type) {
					case wire.Claim:
						l := good
						l.ClaimID = q.ClaimID
						spoil(&l)
						return wire.TypeLease, l, true
					case wire.Release:
						return wire.TypeTaskAck, wire.Ack{}, true
					}
					return "", nil, false
				}
				w.start(0)
				pass(20 * time.Second)
				r := bodies[wire.Release](w)
				if len(r) == 0 || r[0].Error == nil || r[0].Error.Code != wire.BadRequest {
					t.Errorf("%+v", r)
				}
				w.phones.do(func() {
					if len(w.phones.starts) != 0 {
						t.Errorf("started: %v", w.phones.starts)
					}
				})
			})
		})
	}
}

func TestALeaseWithAnEndlessTimeOrNameDoesNoHarm(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		id := strings.Repeat("x", 4000)
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			q, ok := c.Body.(wire.Claim)
			return wire.TypeLease, wire.Lease{Task: wire.Task{TaskID: id, Goal: "g"}, Attempt: 1, LeaseMS: 1 << 62, ClaimID: q.ClaimID}, ok
		}
		w.start(0)
		pass(10 * time.Second)
		if w.started(ref(id, 1)) != 0 {
			t.Error("a task with such a name was started")
		}
		id = "t1"
		w.cloud.mu.Lock()
		w.cloud.tasks = append(w.cloud.tasks, &cloudTask{Task: wire.Task{TaskID: id}})
		w.cloud.attempts[ref(id, 1)] = &cloudAttempt{ref: ref(id, 1), until: time.Now().Add(time.Hour)}
		w.cloud.mu.Unlock()
		pass(time.Minute)
		w.phones.do(func() {
			if f := w.phones.last.Fence; w.phones.starts[ref(id, 1)] != 1 || f > w.boot()+time.Hour {
				t.Errorf("the fence is at %v", f)
			}
		})
	})
}

func TestTheLeaseOfAnAttemptThatHasEndedIsNotStartedAgain(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		var lease wire.Lease
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			q, ok := c.Body.(wire.Claim)
			if !ok || w.cloud.task("t1").state != wire.TaskSucceeded {
				return "", nil, false
			}
			lease = wire.Lease{Task: w.cloud.task("t1").Task, Attempt: 1, LeaseMS: 120_000, ClaimID: q.ClaimID}
			return wire.TypeLease, lease, true
		}
		w.start(0)
		pass(30 * time.Second)
		w.p.end()
		w.start(0)
		pass(30 * time.Second)
		if lease.Attempt != 1 || w.started(ref("t1", 1)) != 1 || w.cloud.count(wire.TypeRelease) != 0 {
			t.Errorf("%d starts, %d releases", w.started(ref("t1", 1)), w.cloud.count(wire.TypeRelease))
		}
	})
}

func TestASlotWaitsUntilItsResultIsAcknowledged(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.cloud.submit("t1", false)
		w.cloud.submit("t2", false)
		w.cloud.fault = first(wire.TypeResult, 100, loseRequest)
		w.start(0)
		pass(20 * time.Second) // 100 times 300 ms are not over
		if w.started(ref("t1", 1)) != 1 || w.cloud.count(wire.TypeClaim) != 1 {
			t.Errorf("%d claims", w.cloud.count(wire.TypeClaim))
		}
		h := bodies[wire.Heartbeat](w)
		if r := h[len(h)-1].Running; len(r) != 1 || !r[0].Ended || !r[0].Wrote || r[0].Steps != 2 {
			t.Errorf("the heartbeat says %+v", r)
		}
		w.settle(time.Minute)
		h = bodies[wire.Heartbeat](w)
		if r := h[0].Running; len(r) != 0 {
			t.Errorf("the first heartbeat says %+v", r)
		}
	})
}

func TestARestartReportsWhatNobodyFinishedAsLost(t *testing.T) {
	for _, wrote := range []bool{false, true} {
		t.Run(fmt.Sprint(wrote), func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.phones.think = time.Minute
				w.cloud.submit("t1", false)
				w.start(0)
				pass(30 * time.Second)
				if wrote {
					pass(time.Minute)
				}
				w.p.end()
				w.phones.do(func() { w.phones.think = time.Second })
				w.start(0)
				w.p.end() // at once, and once more
				w.start(0)
				w.settle(5 * time.Minute)
				r := w.resultOf(ref("t1", 1))
				if r.Outcome != wire.Lost || r.Wrote != wrote || r.Error.Code != wire.OutcomeUnknown {
					t.Errorf("%+v", r)
				}
				// What wrote nothing is given out again, what may have written waits for a person.
				if again := w.started(ref("t1", 2)) == 1; again == wrote {
					t.Errorf("a second attempt: %v", again)
				}
			})
		})
	}
}

func TestRecordsOfAnotherGenerationAreDroppedUnreported(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = time.Minute
		w.phones.hold = make(chan struct{})
		w.cloud.submit("t1", false)
		w.start(0)
		w.p.push(wire.TypeExecute, w.cloud.command("ping", 0, time.Hour))
		pass(10 * time.Second)
		w.p.end()
		w.generation, w.cloud.base = 2, 40
		w.start(0)
		close(w.phones.hold)
		pass(time.Minute)
		if n := len(w.cloud.results); n != 0 {
			t.Errorf("%d results", n)
		}
		p := bodies[wire.Pending](w)
		if p[len(p)-1].After != 40 {
			t.Errorf("it goes on after %d", p[len(p)-1].After)
		}
		if n := w.phones.executed["ping-1"]; n != 1 {
			t.Errorf("the command of the old generation ran %d times", n)
		}
	})
}

func TestRunCanBeCalledAgainAndGoesOnWithWhatRuns(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 100 * time.Second
		w.cloud.submit("t1", false)
		p := w.start(0)
		pass(10 * time.Second)
		if err := p.fleet.Run(p.ctx); !errors.Is(err, fleet.ErrRunning) {
			t.Errorf("%v", err)
		}
		p.stop()
		p.wg.Wait()
		p.ctx, p.stop = context.WithCancel(context.Background())
		p.wg.Go(func() { _ = p.fleet.Run(p.ctx) })
		p.wg.Go(p.sessions)
		p.wg.Go(p.drain)
		pass(40 * time.Second)
		if w.cloud.count(wire.TypeRenew) != 1 {
			t.Errorf("%d renewals by the second run", w.cloud.count(wire.TypeRenew))
		}
	})
}

func TestAResultThatIsTooLargeOrUnreadableIsAFailure(t *testing.T) {
	for name, made := range map[string]string{"large": `"` + strings.Repeat("x", maxBody) + `"`, "twice": `{"a":1,"a":2}`, "broken": `{`} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.phones.think = time.Hour
				w.cloud.submit("t1", false)
				w.start(0)
				pass(10 * time.Second)
				var a fleet.Assignment
				w.phones.do(func() { a = w.phones.last })
				for range 2 {
					err := w.p.update(func(tx *bolt.Tx) error {
						return a.Finish(tx, wire.Result{Outcome: wire.Succeeded, Result: []byte(made)})
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				pass(time.Second)
				r := w.resultOf(ref("t1", 1))
				if r.Outcome != wire.Failed || r.Error == nil || len(r.Result) > 2 {
					t.Errorf("%+v", r)
				}
				if err := a.Wrote(); !wire.Is(err, wire.AttemptOver) {
					t.Errorf("it may still write: %v", err)
				}
			})
		})
	}
}

func TestAFinishThatIsRolledBackChangesNothing(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 20 * time.Second
		w.cloud.submit("t1", false)
		w.start(0)
		pass(10 * time.Second)
		var a fleet.Assignment
		w.phones.do(func() { a = w.phones.last })
		err := w.p.update(func(tx *bolt.Tx) error {
			if err := a.Finish(tx, wire.Result{Outcome: wire.Cancelled}); err != nil {
				t.Error(err)
			}
			return errors.New("rolled back")
		})
		if err == nil {
			t.Fatal("committed")
		}
		w.settle(2 * time.Minute)
		if r := w.resultOf(ref("t1", 1)); r.Outcome != wire.Succeeded {
			t.Errorf("%+v", r)
		}
	})
}
