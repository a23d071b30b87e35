package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Times of claiming.
const (
	lookEvery    = time.Second            // at the slots, for one that has become idle
	ackEvery     = 250 * time.Millisecond // at the outbox, while a slot waits for its result to be acknowledged
	claimTime    = 20 * time.Second       // for the answer to a claim
	noTaskPause  = 5 * time.Second        // if the cloud names none
	firstSpread  = 2 * time.Second        // of the first claims of all slots
	minTaskPause = 100 * time.Millisecond
)

// Bounds of what a claim and a lease may hold.
const (
	maxApps    = 500
	maxTaskID  = 128 // bytes
	maxLeaseMS = int64(time.Hour / time.Millisecond)
)

// claim is what a slot asks for. Its id lives until a lease is granted for it:
// an answer that there is no task leaves it free for the next time, which spares
// the card a write for each question.
type claim struct {
	claimRecord
	open   bool // it was sent, and what became of it is not known
	busy   bool // a goroutine is at it
	asleep bool // the phone that was claimed for last has to be woken
	next   time.Duration
	again  *backOff
}

// claiming looks for idle slots while the link is online.
func (f *Fleet) claiming(ctx context.Context) {
	for {
		if f.o.Link.WaitOnline(ctx) != nil {
			return
		}
		if !pause(ctx, f.claimRound(), f.wake) {
			return
		}
	}
}

// claimRound starts a claim for each slot that may have a task, and tells when to
// look again.
func (f *Fleet) claimRound() (wait time.Duration) {
	wait = lookEvery
	slots := map[int]Slot{}
	for _, s := range f.o.Runner.Slots() {
		slots[s.Number] = s
	}
	f.lookAtOutbox()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holding() {
		return wait
	}
	for n := range f.claims {
		if _, ok := slots[n]; !ok {
			slots[n] = Slot{Number: n} // a claim of a slot that is gone
		}
	}
	taken := f.takenSlots()
	for n, s := range slots {
		if taken[n] || n < 1 {
			continue
		}
		c := f.claims[n]
		if c == nil {
			c = &claim{next: f.o.Boot() + f.o.Jitter(firstSpread)}
			f.claims[n] = c
		}
		switch {
		case c.busy || f.o.Boot() < c.next:
		case !s.Idle && !(c.open && f.orphans):
		case f.resultWaits(n):
			wait = ackEvery
		default:
			if !f.begin(c, s) {
				return wait
			}
		}
	}
	return wait
}

// takenSlots are those with an attempt. The lock is held.
func (f *Fleet) takenSlots() map[int]bool {
	taken := map[int]bool{}
	for _, a := range f.attempts {
		taken[a.Slot] = true
	}
	return taken
}

// resultWaits tells whether a result of the slot is not acknowledged yet: until
// then the cloud would give the same lease again. The lock is held.
func (f *Fleet) resultWaits(slot int) bool {
	for _, r := range f.unacknowledged() {
		if r.Slot == slot {
			return true
		}
	}
	return false
}

// begin starts the goroutine of a claim, if there is room for what it may bring.
// The lock is held.
func (f *Fleet) begin(c *claim, s Slot) bool {
	if f.run == nil || f.run.ctx.Err() != nil {
		return false
	}
	release, err := f.o.Outbox.Reserve()
	if err != nil {
		f.log.Warn("no task is claimed: the outbox has no room for a result", "err", err)
		return false
	}
	if c.again == nil {
		c.again = f.backOff(time.Second, time.Minute)
	}
	c.busy, c.asleep = true, s.Asleep
	ctx := f.run.ctx
	f.run.wg.Go(func() {
		wait := f.claim(ctx, c, s, release)
		f.mu.Lock()
		c.busy, c.next = false, f.o.Boot()+wait
		f.mu.Unlock()
	})
	return true
}

// claim asks for a task for a slot, and starts what comes. It tells how long to
// wait before the next claim. release gives the room of the result back; an
// attempt takes it over.
func (f *Fleet) claim(ctx context.Context, c *claim, s Slot, release func()) (wait time.Duration) {
	log := f.log.With("slot", s.Number)
	ask, err := f.prepare(c, s)
	if err != nil {
		release()
		log.Error("a claim could not be stored", "err", err)
		return c.again.after(err)
	}
	limited, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	m, sent, err := f.o.Link.Ask(limited, link.Call{Kind: wire.KindTask, Type: wire.TypeClaim, Body: ask})
	if err == nil && m.Type == wire.TypeLease {
		var l wire.Lease
		if err = m.Decode(&l); err == nil {
			return f.leased(ctx, c, ask, l, sent, release)
		}
	}
	release()
	if err == nil && m.Type == wire.TypeNone {
		var none wire.NoTask
		if err = m.Decode(&none); err == nil {
			f.mu.Lock()
			c.open = false
			f.mu.Unlock()
			c.again.reset()
			return f.spread(none.RetryAfterMS)
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: %.40q", errAnswer, string(m.Type))
	}
	if !errors.Is(err, link.ErrOffline) && ctx.Err() == nil {
		log.Warn("a claim has failed", "claim", ask.ClaimID, "err", err)
	}
	if _, ok := final(err); ok {
		f.forget(c, s.Number)
	}
	return c.again.after(err)
}

// spread is the pause after an answer that there is no task.
func (f *Fleet) spread(ms int64) time.Duration {
	d := noTaskPause
	if ms > 0 {
		d = min(max(time.Duration(min(ms, maxLeaseMS))*time.Millisecond, minTaskPause), maxRetryAfter)
	}
	return d + f.o.Jitter(d/4)
}

// prepare commits the claim's id unless it is the one that is on disk.
func (f *Fleet) prepare(c *claim, s Slot) (wire.Claim, error) {
	f.mu.Lock()
	r, fresh := c.claimRecord, c.ID == "" || !c.open && c.Phone != s.Phone
	f.mu.Unlock()
	if fresh {
		now, _ := f.o.Link.Now()
		r = claimRecord{ID: wire.NewID(now), Phone: s.Phone}
		err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
			return put(b.Bucket(bucketClaims), number(uint64(s.Number)), r)
		})
		if err != nil {
			return wire.Claim{}, err
		}
	}
	f.mu.Lock()
	c.claimRecord, c.open = r, true
	f.mu.Unlock()
	ask := wire.Claim{Slot: s.Number, Phone: r.Phone, ClaimID: r.ID, SkillsVersion: f.o.SkillsVersion()}
	if s.Phone == r.Phone {
		ask.Apps = s.Apps[:min(len(s.Apps), maxApps)]
	}
	return ask, nil
}

// forget gives up the id of a claim that the cloud does not take. If that cannot
// be stored, a restart asks for it once more.
func (f *Fleet) forget(c *claim, slot int) {
	f.mu.Lock()
	c.claimRecord, c.open = claimRecord{}, false
	f.mu.Unlock()
	err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
		return b.Bucket(bucketClaims).Delete(number(uint64(slot)))
	})
	if err != nil {
		f.log.Error("a claim could not be removed", "slot", slot, "err", err)
	}
}

// leased commits an attempt and starts it.
func (f *Fleet) leased(ctx context.Context, c *claim, ask wire.Claim, l wire.Lease, sent time.Duration, release func()) (wait time.Duration) {
	r := attemptRecord{TaskID: l.Task.TaskID, Attempt: l.Attempt, Slot: ask.Slot, Phone: ask.Phone, Skills: ask.SkillsVersion}
	log := f.log.With("slot", r.Slot, "task", fmt.Sprintf("%.*s", maxTaskID, r.TaskID), "attempt", r.Attempt)
	if f.known(r.ref()) {
		// The cloud has not heard the end of the slot's last attempt yet.
		release()
		if l.ClaimID == ask.ClaimID {
			f.forget(c, r.Slot)
		}
		return lookEvery
	}
	if len(r.TaskID) > maxTaskID {
		release()
		log.Error("a lease names a task that cannot be", "bytes", len(r.TaskID))
		f.forget(c, r.Slot)
		return c.again.after(nil)
	}
	r.Release = f.unfit(ask, l, sent)
	err := ctx.Err()
	if err == nil {
		err = f.o.Bucket.Update(func(b *bolt.Bucket) error {
			return errors.Join(b.Bucket(bucketClaims).Delete(number(uint64(r.Slot))), put(b.Bucket(bucketAttempts), keyOf(r.ref()), r))
		})
	}
	if err != nil { // the same claim gets the same lease
		release()
		log.Warn("a granted attempt could not be stored", "err", err)
		return c.again.after(err)
	}
	a := newAttempt(r)
	a.end = sent + time.Duration(min(l.LeaseMS, maxLeaseMS))*time.Millisecond
	a.fence, a.renew = a.end-wire.FenceBefore, sent+wire.RenewEvery
	a.room = release
	f.mu.Lock()
	c.claimRecord, c.open = claimRecord{}, false
	f.attempts[r.ref()] = a
	f.mu.Unlock()
	if r.Release != nil {
		log.Warn("a lease goes back", "err", r.Release)
		f.spawn(func(ctx context.Context) { f.giveBack(ctx, a) })
		return c.again.after(nil)
	}
	if len(l.Task.Inputs) > 0 || c.asleep {
		if !f.spawn(func(ctx context.Context) { f.prepared(ctx, c, a, l.Task) }) {
			f.refused(ctx, a, wire.Refuse(wire.ShuttingDown, nil))
		}
		return 0
	}
	if err := f.start(a, l.Task); err != nil {
		f.refused(ctx, a, wire.From(err))
		return c.again.after(nil)
	}
	f.spawn(func(ctx context.Context) { f.tend(ctx, a) })
	c.again.reset()
	return 0
}

// known tells whether an attempt is here, or was.
func (f *Fleet) known(ref wire.AttemptRef) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, over := f.over[ref]
	return over || f.attempts[ref] != nil
}

// unfit says what is wrong with a lease, or nil.
func (f *Fleet) unfit(ask wire.Claim, l wire.Lease, sent time.Duration) *wire.Refusal {
	lease := time.Duration(min(l.LeaseMS, maxLeaseMS)) * time.Millisecond
	reason := ""
	switch {
	case l.Task.TaskID == "":
		reason = "the lease names no task"
	case l.Attempt < 1:
		reason = "attempts count from 1"
	case strings.TrimSpace(l.Task.Goal) == "":
		reason = "the task has no goal"
	case l.ClaimID != ask.ClaimID:
		reason = "the lease belongs to another claim"
	case lease <= wire.FenceBefore:
		reason = "the lease is too short to write anything"
	case f.o.Boot() >= sent+lease-wire.FenceBefore:
		return wire.Refuse(wire.AttemptOver, map[string]any{"task": l.Task.TaskID, "attempt": l.Attempt})
	default:
		return nil
	}
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
}
