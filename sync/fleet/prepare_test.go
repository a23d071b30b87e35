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

// slow prepares for so long.
func slow(d time.Duration) func(context.Context, fleet.Assignment) error {
	return func(ctx context.Context, _ fleet.Assignment) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestATaskWithFilesStartsWhenItIsPreparedAndKeepsItsLeaseMeanwhile(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.slots = 2
		w.phones.prepare = slow(4 * time.Minute)
		w.cloud.submitWithFile("t1")
		w.start(0)
		pass(5 * time.Second)
		w.cloud.submit("t2", false) // the other slot does not wait
		pass(10 * time.Second)
		if w.started(ref("t1", 1)) != 0 || w.started(ref("t2", 1)) != 1 {
			t.Errorf("started %d and %d times", w.started(ref("t1", 1)), w.started(ref("t2", 1)))
		}
		w.settle(10 * time.Minute)
		if w.started(ref("t1", 1)) != 1 {
			t.Errorf("started %d times", w.started(ref("t1", 1)))
		}
		if n := len(bodies[wire.Release](w)); n != 0 {
			t.Errorf("%d releases", n)
		}
		w.phones.do(func() {
			if fence := w.phones.last.Fence; w.phones.last.Task.TaskID == "t1" && fence < 4*time.Minute {
				t.Errorf("it began with a fence at %s", fence)
			}
		})
	})
}

func TestAPhoneThatIsAsleepIsWokenBeforeItsTaskStarts(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.asleep = true
		w.phones.prepare = slow(2 * time.Minute)
		w.cloud.submit("t1", false)
		w.start(0)
		pass(30 * time.Second)
		if n := w.started(ref("t1", 1)); n != 0 {
			t.Errorf("started %d times while the phone was asleep", n)
		}
		w.settle(10 * time.Minute)
		if n := w.started(ref("t1", 1)); n != 1 || len(bodies[wire.Release](w)) != 0 {
			t.Errorf("started %d times, %d releases", n, len(bodies[wire.Release](w)))
		}
	})
}

func TestAPreparationThatFailsGivesTheTaskBackWithItsReason(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		tries := 0
		w.phones.prepare = func(context.Context, fleet.Assignment) error {
			if tries++; tries < 3 {
				return wire.Refuse(wire.InputMissing, map[string]any{"name": "a", "reason": "it is gone"})
			}
			return nil
		}
		w.cloud.submitWithFile("t1")
		w.start(0)
		w.settle(2 * time.Minute)
		all := bodies[wire.Release](w)
		if len(all) != 2 || all[0].Error == nil || all[0].Error.Code != wire.InputMissing || all[1].Attempt != 2 {
			t.Errorf("released %+v", all)
		}
		if w.started(ref("t1", 1))+w.started(ref("t1", 2)) != 0 || w.started(ref("t1", 3)) != 1 {
			t.Error("what was not prepared was started")
		}
	})
}

func TestAPreparationEndsWithItsTimeAndOtherErrorsAreTold(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		var took []time.Duration
		w.phones.prepare = func(ctx context.Context, a fleet.Assignment) error {
			if a.Attempt > 1 {
				return errors.New("odd")
			}
			begun := time.Now()
			<-ctx.Done()
			took = append(took, time.Since(begun))
			return ctx.Err()
		}
		w.cloud.submitWithFile("t1")
		w.start(0)
		pass(5*time.Minute + 30*time.Second)
		if !slices.Equal(took, []time.Duration{5 * time.Minute}) {
			t.Errorf("it took %v", took)
		}
		all := bodies[wire.Release](w)
		if len(all) < 2 || all[1].Error == nil || all[1].Error.Code != wire.Internal {
			t.Errorf("released %+v", all)
		}
		w.phones.do(func() { w.phones.prepare = nil })
		w.settle(5 * time.Minute)
	})
}

func TestATaskThatIsCancelledWhileItIsPreparedEnds(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.prepare = slow(time.Hour)
		w.cloud.submitWithFile("t1")
		w.start(0)
		pass(5 * time.Second)
		w.p.push(wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 1})
		pass(3 * time.Second)
		w.cloud.mu.Lock()
		state := w.cloud.task("t1").state
		w.cloud.mu.Unlock()
		if state != wire.TaskStopped || w.started(ref("t1", 1)) != 0 {
			t.Errorf("the task is %s, started %d times", state, w.started(ref("t1", 1)))
		}
		w.settle(time.Minute)
	})
}

func TestAPreparationEndsWithItsLease(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		var ended time.Duration
		w.phones.prepare = func(ctx context.Context, _ fleet.Assignment) error {
			<-ctx.Done()
			ended = w.boot()
			return ctx.Err()
		}
		w.cloud.submitWithFile("t1")
		w.start(0)
		pass(3 * time.Second)
		w.cloud.setOnline(false)
		pass(3 * time.Minute)
		if ended < 100*time.Second || ended > 130*time.Second || w.started(ref("t1", 1)) != 0 {
			t.Errorf("it ended at %s, started %d times", ended, w.started(ref("t1", 1)))
		}
		w.phones.do(func() { w.phones.prepare = nil })
		w.cloud.setOnline(true)
		w.settle(5 * time.Minute)
	})
}

func TestAPreparationThatAStopCutsIsGivenBackInTheNextLife(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.prepare = slow(time.Hour)
		w.cloud.submitWithFile("t1")
		p := w.start(0)
		pass(5 * time.Second)
		p.stop()
		p.wg.Wait()
		p.end()
		w.phones.do(func() { w.phones.prepare = nil })
		w.start(0)
		w.settle(2 * time.Minute)
		all := bodies[wire.Release](w) // the first life may have tried
		for _, r := range all {
			if r.Attempt != 1 || r.Error == nil || r.Error.Code != wire.ShuttingDown {
				t.Errorf("released %+v", r)
			}
		}
		if len(all) == 0 || w.started(ref("t1", 1)) != 0 || w.started(ref("t1", 2)) != 1 {
			t.Errorf("%d releases, started %d and %d times", len(all), w.started(ref("t1", 1)), w.started(ref("t1", 2)))
		}
	})
}

func TestALeaseThatGoesBackIsNotRenewed(t *testing.T) {
	life(t, func(t *testing.T, w *world) {
		w.phones.prepare = func(context.Context, fleet.Assignment) error {
			return wire.Refuse(wire.InputMissing, map[string]any{"name": "a", "reason": "it is gone"})
		}
		w.cloud.fault = func(c link.Call) fault {
			if c.Type == wire.TypeRelease {
				return loseRequest
			}
			return noFault
		}
		w.cloud.submitWithFile("t1")
		w.start(0)
		pass(100 * time.Second)
		if n := w.cloud.count(wire.TypeRenew); n > 0 {
			t.Errorf("renewed %d times", n)
		}
		w.cloud.mu.Lock()
		w.cloud.fault = nil
		w.cloud.mu.Unlock()
		w.phones.do(func() { w.phones.prepare = nil })
		w.settle(5 * time.Minute)
	})
}
