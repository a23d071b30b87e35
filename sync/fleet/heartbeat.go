package fleet

import (
	"context"
	"time"

	"phonerack/sync/wire"
)

// heartbeats tells the cloud what the rack does: every 15 s unless SetHeartbeat
// says otherwise, and at once after a welcome.
func (f *Fleet) heartbeats(ctx context.Context) {
	for {
		if f.o.Link.WaitOnline(ctx) != nil {
			return
		}
		begun := f.o.Boot()
		if err := f.heartbeat(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("a heartbeat was not answered", "err", err)
		}
		if !pause(ctx, max(begun+f.heartbeatEvery()-f.o.Boot(), 0), f.beat) {
			return
		}
	}
}

func (f *Fleet) heartbeat(ctx context.Context) error {
	h, listed := f.heartbeatNow()
	var s wire.Sync
	sent, err := f.request(ctx, wire.KindTask, wire.TypeHeartbeat, h, wire.TypeSync, &s)
	if err != nil {
		return err
	}
	f.follow(listed, s, sent)
	return nil
}

// heartbeatNow is what the cloud should know, and the attempts in it that its
// answer may end.
func (f *Fleet) heartbeatNow() (wire.Heartbeat, []*attempt) {
	h := wire.Heartbeat{Slots: []wire.SlotReport{}, Running: []wire.Running{}, SkillsVersion: f.o.SkillsVersion()}
	for _, s := range f.o.Runner.Slots() {
		h.Slots = append(h.Slots, wire.SlotReport{Slot: s.Number, State: s.State, Phone: s.Phone, Model: s.Model})
	}
	f.lookAtOutbox()
	f.mu.Lock()
	defer f.mu.Unlock()
	var listed []*attempt
	for _, a := range f.attempts {
		ended := a.leftOver || a.Release != nil
		h.Running = append(h.Running, wire.Running{
			TaskID: a.TaskID, Attempt: a.Attempt, Slot: a.Slot, Wrote: a.Wrote, Ended: ended, Steps: a.steps, Answered: a.answered,
		})
		if !ended {
			listed = append(listed, a)
		}
	}
	for _, r := range f.unacknowledged() {
		h.Running = append(h.Running, wire.Running{
			TaskID: r.TaskID, Attempt: r.Attempt, Slot: r.Slot, Wrote: r.Wrote, Ended: true, Steps: r.Steps,
		})
	}
	return h, listed
}

// follow does what the cloud says. An attempt that was granted after the
// heartbeat is not in listed, and not judged by its answer.
func (f *Fleet) follow(listed []*attempt, s wire.Sync, sent time.Duration) {
	leases := map[wire.AttemptRef]bool{}
	for _, l := range s.Leases {
		ref := wire.AttemptRef{TaskID: l.TaskID, Attempt: l.Attempt}
		leases[ref] = true
		if a := f.running(ref); a != nil {
			f.extend(a, sent, l.LeaseMS)
		}
	}
	for _, ref := range s.Unknown {
		delete(leases, ref)
	}
	for _, a := range listed {
		if !leases[a.ref()] {
			f.end(a, attemptOver(a.ref()), true)
		}
	}
	for _, ref := range s.Cancel {
		f.cancel(ref)
	}
	for _, a := range s.Answers {
		f.answer(a)
	}
	f.noteOrphans(leases)
}

// noteOrphans notes whether the cloud has given out a lease that never arrived.
// A claim that is on its way may be about to bring it.
func (f *Fleet) noteOrphans(leases map[wire.AttemptRef]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orphans = false
	for _, c := range f.claims {
		if c.busy {
			return
		}
	}
	for ref := range leases {
		if _, over := f.over[ref]; !over && f.attempts[ref] == nil {
			f.orphans = true
		}
	}
}

// running finds an attempt that the runner has, or is about to have.
func (f *Fleet) running(ref wire.AttemptRef) *attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.attempts[ref]
	if a == nil || a.leftOver || a.Release != nil {
		return nil
	}
	return a
}

func (f *Fleet) cancel(ref wire.AttemptRef) {
	if a := f.running(ref); a != nil {
		f.end(a, wire.Refuse(wire.TaskCancelled, map[string]any{"task": ref.TaskID}), false)
	}
}

func (f *Fleet) answer(a wire.Answer) {
	ref := wire.AttemptRef{TaskID: a.TaskID, Attempt: a.Attempt}
	if f.running(ref) != nil {
		f.o.Runner.Answer(ref, a.QuestionID, a.Text)
	}
}

// onCancel and onAnswer take the hints; the next heartbeat's answer says the same.
func (f *Fleet) onCancel(_ context.Context, m *wire.Message) {
	var c wire.Cancel
	if err := m.Decode(&c); err != nil {
		f.log.Warn("a cancellation cannot be read", "err", err)
		return
	}
	f.cancel(wire.AttemptRef(c))
}

func (f *Fleet) onAnswer(_ context.Context, m *wire.Message) {
	var a wire.Answer
	if err := m.Decode(&a); err != nil {
		f.log.Warn("an answer cannot be read", "err", err)
		return
	}
	f.answer(a)
}

// question repeats a question until the cloud has it.
func (f *Fleet) question(ctx context.Context, a *attempt, q wire.Question) error {
	q.TaskID, q.Attempt = a.TaskID, a.Attempt
	return f.insist(ctx, a, wire.TypeQuestion, q)
}
