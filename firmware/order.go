package firmware

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/runner"
	"phonerack/agent/runner/cleanup"
	"phonerack/firmware/phonebook"
	"phonerack/firmware/remembered"
	"phonerack/sync/wire"
)

// Bounds of what is done before an attempt and after it. The lease has a margin for each: see task.renew.
const (
	orderTimeout   = 25 * time.Second // of a clean-up; shorter than the margin of a task's lease
	helpersTimeout = time.Minute      // until the helpers of a task run
)

// prepare brings the phone to where an attempt begins: what an earlier task has left is put in order, and the helpers run.
func (t *task) prepare(within time.Duration) {
	defer t.survive()
	t.tidy()
	t.renew(within)
	if !t.live.wantsHelpers() {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, helpersTimeout)
	defer cancel()
	if err := t.live.startHelpers(ctx, t.lease); err != nil {
		t.log.Warn("the helpers do not run; the task does without", "err", err)
	}
}

// renew has the lease last for the attempt and its margin from now on: what comes before the attempt is not at its cost.
func (t *task) renew(within time.Duration) {
	if t.granted != nil { // its lease is as long as the cloud's, see Rack.Extend
		return
	}
	if err := t.lease.Renew(within + leaseMargin); err != nil {
		t.log.Warn("the lease was not renewed", "err", err) // it has ended, and so has t.ctx
	}
}

// survive keeps a panic before or after an attempt from being more than this phone's.
func (t *task) survive() {
	if p := recover(); p != nil {
		t.log.Error("work around a task panicked", "panic", p, "stack", string(debug.Stack()))
	}
}

// fence is the task's lease; the first write under it marks the phone as not in order, on disk, so that a crash cannot
// hide what the task left.
func (t *task) fence() phone.Fence {
	entry := t.live.entry
	if entry == nil && t.granted == nil {
		return t.lease
	}
	return cleanup.Guard(t.lease, func() error {
		if t.granted != nil {
			if err := t.granted.Wrote(); err != nil {
				return fullOr(err)
			}
		}
		if entry == nil {
			return nil
		}
		err := entry.Update(func(r *remembered.Phone) { r.Dirty = &remembered.Dirty{Task: t.id, Since: time.Now().UTC()} })
		if err != nil {
			return fullOr(err)
		}
		return nil
	})
}

// tidy puts a phone in order that an earlier task has left as it was.
func (t *task) tidy() {
	if t.live.entry != nil && t.live.entry.Record().Dirty != nil {
		t.putInOrder(t.ctx, nil)
	}
}

// leave puts the phone in order after the attempt, unless the rack stops or the phone is gone: then the next task does it.
// It returns soon after the rack has begun to stop.
func (t *task) leave(result runner.Result) {
	defer t.survive()
	if !result.Wrote || wire.Is(asError(result.Refusal), wire.ShuttingDown) || wire.Is(asError(result.Refusal), wire.PhoneLost) {
		return
	}
	used := result.Apps
	if used == nil {
		used = []string{}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
	defer cancel()
	defer context.AfterFunc(t.rack.halt, cancel)()
	t.putInOrder(ctx, used)
}

// putInOrder cleans up and forgets that the phone was not in order. used are the apps that the task has used, nil if they
// are not known.
func (t *task) putInOrder(ctx context.Context, used []string) {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	known := cleanup.Known{Used: used, Keep: t.live.helperPackages()}
	entry := t.live.entry
	if entry != nil {
		if b := entry.Record().Baseline; b != nil {
			known.Baseline = b.Packages
		}
	}
	report, err := cleanup.Run(ctx, t.live.phone, t.live.phone.Under(t.lease), known)
	if err != nil {
		t.log.Warn("the phone is not in order after the task; it is tried again before the next one", "err", err)
		return
	}
	t.log.Info("phone in order", "acts", len(report.Done))
	if entry == nil {
		return
	}
	if err := entry.Update(func(r *remembered.Phone) { r.Dirty = nil }); err != nil && !errors.Is(err, phonebook.ErrDetached) {
		t.log.Warn("that the phone is in order could not be written down", "err", err)
	}
}
