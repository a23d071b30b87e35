package fleet

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// lookAtClock bounds a pause between two looks at the boot clock, which goes on
// while the board sleeps and timers do not.
const lookAtClock = 5 * time.Second

// tend renews the lease of a started attempt until the attempt or the lease is
// over.
func (f *Fleet) tend(ctx context.Context, a *attempt) {
	again := f.backOff(time.Second, 5*time.Second)
	for !a.isGone() {
		f.mu.Lock()
		now, end, renew, lapsed := f.o.Boot(), a.end, a.renew, a.lapsed || a.Release != nil
		f.mu.Unlock()
		switch {
		case lapsed:
			return
		case now >= end:
			f.end(a, attemptOver(a.ref()), true)
			return
		case now < renew:
			if !pause(ctx, min(renew-now, end-now, lookAtClock), a.gone) {
				return
			}
		default:
			f.renewal(ctx, a, again, end-now)
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// renewal asks once for more time. left is what the lease still has.
func (f *Fleet) renewal(ctx context.Context, a *attempt, again *backOff, left time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	f.mu.Lock()
	body := wire.Renew{TaskID: a.TaskID, Attempt: a.Attempt, Wrote: a.Wrote, Steps: a.steps}
	f.mu.Unlock()
	var more wire.Renewed
	sent, err := f.request(ctx, wire.KindTask, wire.TypeRenew, body, wire.TypeRenewed, &more)
	if err == nil {
		again.reset()
		f.extend(a, sent, more.LeaseMS)
		f.mu.Lock()
		a.renew = sent + wire.RenewEvery
		f.mu.Unlock()
		return
	}
	if r, ok := final(err); ok && (r.Code == wire.AttemptOver || r.Code == wire.NotYourTask) {
		f.end(a, r, true)
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, link.ErrOffline) {
		level = slog.LevelDebug
	}
	f.log.Log(ctx, level, "a lease was not renewed", "slot", a.Slot, "task", a.TaskID, "attempt", a.Attempt, "left", left.Round(time.Second), "err", err)
	f.mu.Lock()
	a.renew = f.o.Boot() + again.after(err)
	f.mu.Unlock()
}

// extend moves the end of a lease, and with it the fence, later and never
// earlier: an older answer may come late.
func (f *Fleet) extend(a *attempt, sent time.Duration, ms int64) {
	end := sent + time.Duration(min(ms, maxLeaseMS))*time.Millisecond
	f.mu.Lock()
	if end <= a.end || a.lapsed || a.isGone() {
		f.mu.Unlock()
		return
	}
	a.end, a.fence = end, end-wire.FenceBefore
	fence := a.fence
	f.mu.Unlock()
	f.o.Runner.Extend(a.ref(), fence)
}

// end asks an attempt to end. lapsed says that its lease is over, so that there
// is nothing to renew; a cancelled one keeps its lease while it puts the phone in
// order. Each is told once.
func (f *Fleet) end(a *attempt, why *wire.Refusal, lapsed bool) {
	f.mu.Lock()
	told := a.ending != nil && (a.lapsed || !lapsed)
	if told || a.isGone() || a.Release != nil || a.leftOver {
		f.mu.Unlock()
		return
	}
	a.ending, a.lapsed = why, lapsed
	started := a.started
	if a.unready != nil {
		a.unready()
	}
	f.mu.Unlock()
	f.log.Info("an attempt has to end", "slot", a.Slot, "task", a.TaskID, "attempt", a.Attempt, "err", why)
	if started {
		f.o.Runner.Cancel(a.ref(), why)
	}
}
