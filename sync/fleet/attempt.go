package fleet

import (
	"context"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// attempt is a granted attempt whose result is not in the outbox. The fleet's
// lock guards all but what is fixed at its making.
type attempt struct {
	attemptRecord               // Wrote and Release change
	fence, end    time.Duration // of writes and of the lease, on the boot clock
	renew         time.Duration // when to ask for more time
	steps         int
	answered      string        // the newest question that somebody here has answered
	started       bool          // Start has returned without a refusal
	unready       func()        // ends its preparation; nil but for then
	leftOver      bool          // an earlier process had it
	ending        *wire.Refusal // why it was asked to end
	lapsed        bool          // its lease is over
	room          func()        // releases the room for its result; nil if none is kept
	gone          chan struct{} // closed when it is over
}

func newAttempt(r attemptRecord) *attempt {
	return &attempt{attemptRecord: r, gone: make(chan struct{})}
}

func (a *attempt) isGone() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

func attemptOver(ref wire.AttemptRef) *wire.Refusal {
	return wire.Refuse(wire.AttemptOver, map[string]any{"task": ref.TaskID, "attempt": ref.Attempt})
}

// takeUpAttempts goes on with what is on record at the begin of a run.
func (f *Fleet) takeUpAttempts() {
	f.mu.Lock()
	var all []*attempt
	for _, a := range f.attempts {
		all = append(all, a)
	}
	f.mu.Unlock()
	for _, a := range all {
		f.spawn(func(ctx context.Context) {
			f.mu.Lock()
			release := a.Release
			f.mu.Unlock()
			switch {
			case release != nil:
				f.giveBack(ctx, a)
			case a.leftOver:
				f.reportLost(ctx, a)
			default:
				f.tend(ctx, a)
			}
		})
	}
}

// prepareTime bounds the preparation of an attempt, which keeps its slot.
const prepareTime = 5 * time.Minute

// prepared has the runner fetch what an attempt needs, under a lease that is renewed, and starts it. What fails gives
// the lease back, and has the slot's next claim wait.
func (f *Fleet) prepared(ctx context.Context, c *claim, a *attempt, task wire.Task) {
	f.spawn(func(ctx context.Context) { f.tend(ctx, a) })
	cancelled, err := f.prepareAttempt(ctx, a, task)
	if cancelled != nil {
		f.report(ctx, a, wire.Result{Outcome: wire.Cancelled, Error: cancelled})
		return
	}
	if err == nil {
		err = f.start(a, task)
	}
	f.mu.Lock()
	if err == nil {
		c.again.reset()
	} else {
		c.next = f.o.Boot() + c.again.after(err)
	}
	f.mu.Unlock()
	if err != nil {
		f.refused(ctx, a, wire.From(err))
	}
}

// prepareAttempt tells whether somebody has cancelled the attempt, or why else it cannot start.
func (f *Fleet) prepareAttempt(ctx context.Context, a *attempt, task wire.Task) (cancelled *wire.Refusal, err error) {
	limited, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	f.mu.Lock()
	a.unready = cancel
	if a.ending != nil { // it came between the commit and here
		cancel()
	}
	f.mu.Unlock()
	err = f.o.Runner.Prepare(limited, f.assignment(a, task))
	f.mu.Lock()
	a.unready = nil
	ending, lapsed := a.ending, a.lapsed
	f.mu.Unlock()
	switch {
	case ending != nil && !lapsed:
		return ending, nil
	case ending != nil:
		return nil, ending
	case ctx.Err() != nil && err != nil: // the process stops: the lease goes back in its next life
		return nil, wire.Refuse(wire.ShuttingDown, nil)
	}
	return nil, err
}

// start hands a committed attempt to the runner.
func (f *Fleet) start(a *attempt, task wire.Task) error {
	if err := f.o.Runner.Start(f.assignment(a, task)); err != nil {
		return err
	}
	f.mu.Lock()
	a.started = true
	ending := a.ending
	f.mu.Unlock()
	if ending != nil { // it came between the commit and here
		f.o.Runner.Cancel(a.ref(), ending)
	}
	return nil
}

func (f *Fleet) assignment(a *attempt, task wire.Task) Assignment {
	f.mu.Lock()
	fence := a.fence
	f.mu.Unlock()
	return Assignment{
		Task: task, Attempt: a.Attempt, Slot: a.Slot, Phone: a.Phone, Fence: fence,
		Wrote: func() error { return f.wrote(a) },
		Stepped: func(n int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			a.steps = max(a.steps, n)
		},
		Answered: func(questionID string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			a.answered = questionID
			signal(f.beat)
		},
		Ask:      func(ctx context.Context, q wire.Question) error { return f.question(ctx, a, q) },
		Finish:   func(tx *bolt.Tx, r wire.Result) error { return f.finish(tx, a, r) },
		Finished: f.Wake,
	}
}

// refused notes that an attempt did not start, and gives its lease back.
func (f *Fleet) refused(ctx context.Context, a *attempt, why *wire.Refusal) {
	f.log.Info("a task was refused", "slot", a.Slot, "task", a.TaskID, "attempt", a.Attempt, "err", why)
	f.mu.Lock()
	a.Release = why // from here on Wrote fails
	f.mu.Unlock()
	began := false
	err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
		in := b.Bucket(bucketAttempts)
		r, ok := get[attemptRecord](in, keyOf(a.ref()))
		if began = !ok || r.Wrote; began {
			return nil
		}
		r.Release = why
		return put(in, keyOf(a.ref()), r)
	})
	if err != nil { // a restart would report the attempt as lost, with nothing written
		f.log.Error("a refused attempt could not be stored", "task", a.TaskID, "attempt", a.Attempt, "err", err)
	}
	if began { // it wrote all the same: only a result says so
		f.report(ctx, a, wire.Result{Outcome: wire.Failed, Error: why})
		return
	}
	f.spawn(func(ctx context.Context) { f.giveBack(ctx, a) })
}

// giveBack releases a lease until the cloud knows it, and removes the record.
func (f *Fleet) giveBack(ctx context.Context, a *attempt) {
	f.mu.Lock()
	why := a.Release
	f.mu.Unlock()
	err := f.insist(ctx, a, wire.TypeRelease, wire.Release{TaskID: a.TaskID, Attempt: a.Attempt, SkillsVersion: a.Skills, Error: why})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		f.log.Info("a lease was over before it was given back", "task", a.TaskID, "attempt", a.Attempt, "err", err)
	}
	again := f.backOff(time.Second, 30*time.Second)
	for {
		err := f.o.Bucket.Update(func(b *bolt.Bucket) error { return f.conclude(b, a, overRecord{}) })
		if err == nil {
			f.Wake()
			return
		}
		f.log.Error("a record could not be removed", "task", a.TaskID, "attempt", a.Attempt, "err", err)
		if !pause(ctx, again.after(nil), nil) {
			return
		}
	}
}

// wrote commits that something may have been written.
func (f *Fleet) wrote(a *attempt) error {
	f.mu.Lock()
	done, release := a.Wrote, a.Release
	f.mu.Unlock()
	if a.isGone() || release != nil {
		return attemptOver(a.ref())
	}
	if done {
		return nil
	}
	err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
		in := b.Bucket(bucketAttempts)
		r, ok := get[attemptRecord](in, keyOf(a.ref()))
		if !ok || r.Release != nil {
			return attemptOver(a.ref())
		}
		r.Wrote = true
		return put(in, keyOf(a.ref()), r)
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a.Wrote = true
	return nil
}

// finish is the part of the runner's transaction that ends an attempt.
func (f *Fleet) finish(tx *bolt.Tx, a *attempt, r wire.Result) error {
	b := f.o.Bucket.In(tx)
	on, ok := get[attemptRecord](b.Bucket(bucketAttempts), keyOf(a.ref()))
	if !ok || on.Release != nil {
		return nil
	}
	r.TaskID, r.Attempt, r.Wrote = a.TaskID, a.Attempt, r.Wrote || on.Wrote
	id, err := f.putResult(tx, r)
	if err != nil {
		return err
	}
	return f.conclude(b, a, overRecord{Wrote: r.Wrote, Steps: r.Steps, Entry: id})
}

// putResult puts a result into the outbox. One that no frame carries, or that the
// cloud could not read, is replaced by the failure that it is: the attempt must
// end all the same.
func (f *Fleet) putResult(tx *bolt.Tx, r wire.Result) (id string, err error) {
	why := wire.Refuse(wire.Internal, nil)
	if len(r.Result) == 0 || wire.Unmarshal(r.Result, new(any)) == nil {
		id, err = f.o.Outbox.PutTx(tx, link.Entry{Type: wire.TypeResult, Body: r})
		if !errors.Is(err, link.ErrTooLarge) {
			return id, err
		}
		why = tooLarge("result", len(r.Result)+len(r.Message), link.ResultRoom)
	}
	short := wire.Result{TaskID: r.TaskID, Attempt: r.Attempt, Outcome: r.Outcome, Wrote: r.Wrote, Steps: r.Steps, Tokens: r.Tokens, Error: why}
	if short.Outcome == wire.Succeeded {
		short.Outcome = wire.Failed
	}
	return f.o.Outbox.PutTx(tx, link.Entry{Type: wire.TypeResult, Body: short})
}

func tooLarge(what string, size, limit int) *wire.Refusal {
	return wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": what, "size": size, "limit": limit})
}

// conclude takes an attempt's record away within a transaction, and the attempt
// with its commit.
func (f *Fleet) conclude(b *bolt.Bucket, a *attempt, over overRecord) error {
	over.TaskID, over.Attempt, over.Slot = a.TaskID, a.Attempt, a.Slot
	if err := b.Bucket(bucketAttempts).Delete(keyOf(a.ref())); err != nil {
		return err
	}
	if err := putOver(b, over); err != nil {
		return err
	}
	b.Tx().OnCommit(func() { f.settled(a, over) })
	return nil
}

// settled follows the commit of an attempt's end.
func (f *Fleet) settled(a *attempt, over overRecord) {
	f.mu.Lock()
	if a.isGone() {
		f.mu.Unlock()
		return
	}
	close(a.gone)
	delete(f.attempts, a.ref())
	over.acked = over.Entry == ""
	f.over[a.ref()] = over
	f.dropOver()
	room := a.room
	a.room = nil
	f.mu.Unlock()
	if room != nil {
		room()
	}
}

// dropOver forgets ended attempts that are acknowledged, when there are many. The
// database keeps the order, and this need not. The lock is held.
func (f *Fleet) dropOver() {
	for ref, r := range f.over {
		if len(f.over) <= 2*keepOver {
			return
		}
		if r.acked {
			delete(f.over, ref)
		}
	}
}

// unacknowledged are the ended attempts whose result is still in the outbox, by
// the newest look at it. The lock is held.
func (f *Fleet) unacknowledged() []overRecord {
	var all []overRecord
	for _, r := range f.over {
		if !r.acked {
			all = append(all, r)
		}
	}
	return all
}

// lookAtOutbox finds out which results the cloud has acknowledged. The database
// is asked without the lock: what follows a commit takes it.
func (f *Fleet) lookAtOutbox() {
	f.mu.Lock()
	waiting := f.unacknowledged()
	f.mu.Unlock()
	for _, r := range waiting {
		if r.Entry != "" {
			if held, err := f.o.Outbox.Holds(r.Entry); held || err != nil {
				continue
			}
		}
		r.acked = true
		f.mu.Lock()
		f.over[wire.AttemptRef{TaskID: r.TaskID, Attempt: r.Attempt}] = r
		f.mu.Unlock()
	}
}

// reportLost says that an attempt of an earlier process has ended somehow.
func (f *Fleet) reportLost(ctx context.Context, a *attempt) {
	f.report(ctx, a, wire.Result{
		Outcome: wire.Lost,
		Error: wire.Refuse(wire.OutcomeUnknown, map[string]any{
			"slot": a.Slot, "serial": a.Phone, "what": "task " + a.TaskID,
		}),
	})
}

// report ends an attempt that the runner does not have, in a transaction of its
// own, as soon as there is room.
func (f *Fleet) report(ctx context.Context, a *attempt, r wire.Result) {
	again := f.backOff(time.Second, 30*time.Second)
	for {
		err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
			on, ok := get[attemptRecord](b.Bucket(bucketAttempts), keyOf(a.ref()))
			if !ok {
				return nil
			}
			r.TaskID, r.Attempt, r.Wrote = a.TaskID, a.Attempt, on.Wrote
			id, err := f.putResult(b.Tx(), r)
			if err != nil {
				return err
			}
			return f.conclude(b, a, overRecord{Wrote: r.Wrote, Entry: id})
		})
		if err == nil {
			f.log.Warn("an attempt was cut", "slot", a.Slot, "task", a.TaskID, "attempt", a.Attempt, "outcome", r.Outcome, "wrote", r.Wrote)
			f.Wake()
			return
		}
		f.log.Error("the end of an attempt could not be stored", "task", a.TaskID, "attempt", a.Attempt, "err", err)
		if !pause(ctx, again.after(nil), nil) {
			return
		}
	}
}
