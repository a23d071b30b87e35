package runner

import (
	"context"
	"errors"
	"time"

	"phonerack/sync/wire"
)

// bound ends ctx at the deadline and when the phone is gone. stop releases what
// it holds and waits for it.
func (a *attempt) bound(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := func() {}
	if !a.task.Deadline.IsZero() {
		ctx, release = context.WithDeadlineCause(ctx, a.task.Deadline,
			wire.Refuse(wire.DeadlinePassed, map[string]any{"deadline": a.task.Deadline.UTC().Truncate(time.Second)}))
	}
	watcher := make(chan struct{}) // closed by the goroutine below
	go func() {
		defer close(watcher)
		select {
		case <-a.Gone:
			cancel(wire.Refuse(wire.PhoneLost, map[string]any{"slot": a.Slot, "serial": a.Phone}))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watcher
		release()
	}
}

// whyEnded tells what ended ctx.
func (a *attempt) whyEnded(ctx context.Context) *wire.Refusal {
	if r, ok := errors.AsType[*wire.Refusal](context.Cause(ctx)); ok {
		return r
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return wire.Refuse(wire.DeadlinePassed, nil)
	}
	return wire.Refuse(wire.TaskCancelled, map[string]any{"task": a.task.ID})
}

// ended makes the result of a run that did not succeed.
func (a *attempt) ended(refusal *wire.Refusal) *Result {
	outcome := Failed
	switch refusal.Code {
	case wire.TaskCancelled, wire.ShuttingDown:
		outcome = Cancelled
	}
	return &Result{Outcome: outcome, Message: refusal.Error(), Refusal: refusal}
}

// final tells whether a refusal leaves nothing to try on this phone under this
// lease.
func final(code wire.Code) bool {
	switch code {
	case wire.NotLeased, wire.AttemptOver, wire.SlotBusy, wire.TaskCancelled, wire.ShuttingDown, wire.NotYourTask,
		wire.PhoneLost, wire.PhoneOffline, wire.PhoneUnauthorized, wire.PhoneSetup, wire.SlotEmpty, wire.SlotUnknown,
		wire.DeadlinePassed:
		return true
	}
	return false
}
