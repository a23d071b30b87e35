package fleet_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

func TestAHeartbeatComesEvery15SecondsAndAfterEachWelcome(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.slots = 2
		w.start(0)
		pass(2 * time.Second)
		begun := w.cloud.count(wire.TypeHeartbeat)
		pass(60 * time.Second)
		if n := w.cloud.count(wire.TypeHeartbeat) - begun; n != 4 {
			t.Errorf("%d heartbeats in a minute", n)
		}
		h := bodies[wire.Heartbeat](w)[0]
		if len(h.Slots) != 2 || h.Slots[1] != (wire.SlotReport{Slot: 2, State: "ready", Phone: "2", Model: "sim"}) || h.SkillsVersion != "7" {
			t.Errorf("%+v", h)
		}
		pass(2 * time.Second)
		n := w.cloud.count(wire.TypeHeartbeat)
		w.cloud.setOnline(false) // for a moment only: no heartbeat is missed
		pass(time.Second)
		w.cloud.setOnline(true)
		pass(time.Second)
		if w.cloud.count(wire.TypeHeartbeat) == n {
			t.Error("no heartbeat after the welcome")
		}
	})
}

func TestTheTimeBetweenHeartbeatsCanBeChangedAtOnce(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.start(0)
		pass(2 * time.Second)
		for _, c := range []struct {
			every time.Duration
			want  int
		}{{5 * time.Second, 12}, {0, 4}} {
			w.p.fleet.SetHeartbeat(c.every)
			pass(time.Second) // one comes at once
			begun := w.cloud.count(wire.TypeHeartbeat)
			pass(time.Minute)
			if n := w.cloud.count(wire.TypeHeartbeat) - begun; n != c.want {
				t.Errorf("each %s: %d heartbeats in a minute", c.every, n)
			}
		}
	})
}

func TestWhatTheSyncDoesNotListEnds(t *testing.T) {
	for name, sync := range map[string]wire.Sync{
		"not listed": {},
		"unknown":    {Unknown: []wire.AttemptRef{ref("t1", 1)}},
		"both":       {Leases: []wire.LeaseRef{{TaskID: "t1", Attempt: 1, LeaseMS: 100_000}}, Unknown: []wire.AttemptRef{ref("t1", 1)}},
		"another":    {Leases: []wire.LeaseRef{{TaskID: "t1", Attempt: 2, LeaseMS: 100_000}}},
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.phones.think = 10 * time.Minute
				w.cloud.submit("t1", false)
				w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
					h, ok := c.Body.(wire.Heartbeat)
					return wire.TypeSync, sync, ok && len(h.Running) > 0
				}
				w.start(0)
				pass(20 * time.Second)
				if c := w.cancelled(ref("t1", 1)); !slices.Equal(c, []wire.Code{wire.AttemptOver}) {
					t.Errorf("%v", c)
				}
			})
		})
	}
}

func TestAnAttemptIsNotJudgedByTheAnswerToAnOlderHeartbeat(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			if c.Type != wire.TypeHeartbeat {
				return "", nil, false
			}
			// The answer was made before the claim, and arrives after it.
			w.cloud.mu.Unlock()
			time.Sleep(5 * time.Second)
			w.cloud.mu.Lock()
			return wire.TypeSync, wire.Sync{}, true
		}
		w.cloud.submit("t1", false)
		w.start(0)
		pass(8 * time.Second)
		if c := w.cancelled(ref("t1", 1)); len(c) != 0 || w.started(ref("t1", 1)) != 1 {
			t.Errorf("%v", c)
		}
	})
}

func TestACancellationIsToldOnceByHintOrSync(t *testing.T) {
	for name, hint := range map[string]bool{"hint": true, "sync": false} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, w *world) {
				w.phones.think = 10 * time.Minute
				w.cloud.submit("t1", false)
				w.start(0)
				pass(5 * time.Second)
				w.cloud.mu.Lock()
				w.cloud.task("t1").cancel = true
				w.cloud.mu.Unlock()
				if hint {
					w.p.push(wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 2}) // of another attempt
					w.p.push(wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 1})
					w.p.push(wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 1})
					if c := w.cancelled(ref("t1", 1)); len(c) != 1 {
						t.Errorf("the hint was not followed at once: %v", c)
					}
				}
				w.settle(time.Minute)
				if c := w.cancelled(ref("t1", 1)); !slices.Equal(c, []wire.Code{wire.TaskCancelled}) {
					t.Errorf("%v", c)
				}
			})
		})
	}
}

func TestACancellationDuringTheStartIsNotLost(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		w.phones.refuse = func(a fleet.Assignment) error {
			w.p.push(wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 1})
			if len(w.cancelled(a.Ref())) != 0 {
				t.Error("it was cancelled before it has begun")
			}
			return nil
		}
		w.start(0)
		pass(3 * time.Second)
		if c := w.cancelled(ref("t1", 1)); !slices.Equal(c, []wire.Code{wire.TaskCancelled}) {
			t.Errorf("%v", c)
		}
	})
}

func TestACancelledAttemptKeepsItsLeaseWhileItEnds(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.phones.ask = "which?"
		w.cloud.submit("t1", false)
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) { // the question keeps the attempt busy
			return wire.TypeError, wire.Refuse(wire.LimitExceeded, nil), c.Type == wire.TypeQuestion
		}
		w.start(0)
		pass(5 * time.Second)
		w.p.push(wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 1})
		pass(100 * time.Second)
		if n := w.cloud.count(wire.TypeRenew); n != 2 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestTheSyncTellsOfALongerLease(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		w.cloud.fault = func(c link.Call) fault { // the cloud renews, and nobody hears
			if c.Type == wire.TypeRenew {
				return loseAnswer
			}
			return noFault
		}
		w.start(0)
		pass(4 * time.Minute)
		if c := w.cancelled(ref("t1", 1)); len(c) != 0 {
			t.Errorf("%v", c)
		}
	})
}

func TestAQuestionIsRepeatedUntilTheCloudHasItAndItsAnswerHandedOn(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.ask = "which?"
		w.cloud.submit("t1", false)
		w.cloud.fault = first(wire.TypeQuestion, 3, loseAnswer)
		w.start(0)
		pass(time.Minute)
		q := bodies[wire.Question](w)
		if len(q) != 4 || q[3].TaskID != "t1" || q[3].Attempt != 1 || q[3].QuestionID != "q" || q[3].Text != "which?" {
			t.Errorf("%+v", q)
		}
		w.settle(time.Minute)
	})
}

func TestAnswersAreHandedOnToAttemptsThatRun(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		w.start(0)
		pass(5 * time.Second)
		w.p.push(wire.TypeAnswer, wire.Answer{TaskID: "t1", Attempt: 1, QuestionID: "q", Text: "pushed"})
		w.p.push(wire.TypeAnswer, wire.Answer{TaskID: "t1", Attempt: 2, QuestionID: "q", Text: "of another"})
		w.cloud.mu.Lock()
		w.cloud.answers = []wire.Answer{{TaskID: "t1", Attempt: 1, QuestionID: "q", Text: "synced"}}
		w.cloud.mu.Unlock()
		pass(15 * time.Second)
		var got []string
		w.phones.do(func() { got = w.phones.answers })
		if !slices.Equal(got, []string{"t1/1 q pushed", "t1/1 q synced"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestAQuestionEndsWithItsContextOrARefusal(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.think = 10 * time.Minute
		w.cloud.submit("t1", false)
		answer := wire.Refuse(wire.ProviderTimeout, nil)
		w.cloud.script = func(c link.Call) (wire.Type, any, bool) {
			return wire.TypeError, answer, c.Type == wire.TypeQuestion
		}
		w.start(0)
		pass(5 * time.Second)
		var a fleet.Assignment
		w.phones.do(func() { a = w.phones.last })
		ctx, cancel := context.WithTimeout(w.p.ctx, time.Minute)
		defer cancel()
		if err := a.Ask(ctx, wire.Question{QuestionID: "q"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		w.cloud.mu.Lock()
		answer = wire.Refuse(wire.AttemptOver, nil)
		w.cloud.mu.Unlock()
		if err := a.Ask(w.p.ctx, wire.Question{QuestionID: "q"}); !wire.Is(err, wire.AttemptOver) {
			t.Errorf("%v", err)
		}
	})
}

func TestAnEventGoesIntoTheOutbox(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.start(0)
		now := time.Now().UnixMilli()
		if err := w.p.fleet.Event("phone_lost", 3, "S", map[string]int{"n": 1}); err != nil {
			t.Fatal(err)
		}
		if err := w.p.fleet.Event("bad", 0, "", func() {}); err == nil {
			t.Error("a detail that is no JSON was taken")
		}
		pass(time.Second)
		e := w.cloud.events
		if len(e) != 1 || e[0].Kind != "phone_lost" || e[0].Slot != 3 || e[0].Phone != "S" || e[0].At != now || string(e[0].Detail) != `{"n":1}` {
			t.Errorf("%+v", e)
		}
	})
}
