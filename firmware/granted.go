package firmware

import (
	"context"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/sync/fleet"
	"phonerack/sync/wire"
)

// cloudActor is who has started a task that the cloud has granted.
const cloudActor = "cloud"

// name is how records, planner and cloud call the attempt.
func (t *task) name() (id string, attempt int) {
	if t.granted != nil {
		return t.granted.Task.TaskID, t.granted.Attempt
	}
	return t.id, 1
}

func (t *task) holder() lease.Holder {
	id, attempt := t.name()
	return lease.Holder{Kind: lease.Task, Who: t.status.StartedBy, TaskID: id, Attempt: attempt}
}

// term is how long the slot is leased at first. What the cloud has granted ends at its fence.
func (t *task) term(within time.Duration) time.Duration {
	if t.granted != nil {
		return t.granted.Fence - t.rack.clock()
	}
	return within + leaseMargin
}

// planner decides the task's turns. The cloud keeps decisions of tasks that it knows; those of this rack alone are asked
// for outside of any task.
func (t *task) planner() planner.Planner {
	if t.granted == nil {
		return taskless{t.rack.planner}
	}
	return t.rack.planner
}

// taskless asks without naming a task.
type taskless struct{ planner.Planner }

// Decide implements planner.Planner.
func (p taskless) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	req.TaskID, req.Attempt = "", 0
	return p.Planner.Decide(ctx, req)
}

// result is how the task's end is written down: a granted one goes to the cloud in the same transaction.
func (t *task) result(status action.TaskStatus) debt {
	d := debt{status: status}
	if t.granted == nil {
		return d
	}
	g := t.granted
	r := wire.Result{
		TaskID: g.Task.TaskID, Attempt: g.Attempt, Outcome: outcomes[status.State], Wrote: status.Wrote, Steps: status.Steps, Tokens: status.Tokens,
		Message: cut(status.Message, maxToldMessage), Error: status.Refusal, Result: status.Result,
	}
	d.also = func(tx *bolt.Tx) error { return g.Finish(tx, r) }
	d.paid = g.Finished
	return d
}

// maxToldMessage bounds a message to the cloud, in bytes.
const maxToldMessage = 4000

var outcomes = map[action.TaskState]wire.Outcome{
	action.Succeeded: wire.Succeeded, action.TaskError: wire.Failed, action.Cancelled: wire.Cancelled, action.TaskLost: wire.Lost,
}

// cut shortens a text to n bytes at a character's border.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// askCloud has the cloud ask somebody, too, while the task waits. The returned function ends that.
func (t *task) askCloud(ctx context.Context, id string, q tools.Question) func() {
	if t.granted == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	task, attempt := t.name()
	go func() {
		defer close(done)
		defer t.survive()
		err := t.granted.Ask(ctx, wire.Question{TaskID: task, Attempt: attempt, QuestionID: id, Text: q.Text, Choices: q.Options})
		if err != nil && ctx.Err() == nil {
			t.log.Warn("the question does not reach the cloud; it can be answered here", "err", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// grantedTask finds the attempt among those that run.
func (r *Rack) grantedTask(ref wire.AttemptRef) *task {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tasks {
		if g := t.granted; g != nil && g.Task.TaskID == ref.TaskID && g.Attempt == ref.Attempt {
			return t
		}
	}
	return nil
}

// phones are the rack's slots as package fleet works with them: it implements fleet.Runner.
type phones struct{ rack *Rack }

// Slots implements fleet.Runner.
func (p phones) Slots() []fleet.Slot {
	r := p.rack
	r.mu.Lock()
	stopping := r.stopping
	r.mu.Unlock()
	list := make([]fleet.Slot, 0, len(r.slots))
	for number, s := range r.slots {
		state, live := s.snapshot()
		_, leased := r.leases.Lookup(number)
		one := fleet.Slot{Number: number, State: string(state.State), Phone: state.Serial, Model: state.Model}
		one.Idle = state.State == action.Ready && !leased && !stopping && r.care.closed(number) == ""
		if serial, is := r.care.sleeping(number); is && !leased && !stopping {
			one.Idle, one.Asleep, one.Phone, one.State = true, true, serial, string(health.Resting)
			if b := r.book.Lookup(number, serial).Baseline; b != nil {
				one.Apps = b.Packages
			}
		}
		if live != nil && live.entry != nil {
			if b := live.entry.Record().Baseline; b != nil {
				one.Apps = b.Packages
			}
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b fleet.Slot) int { return a.Number - b.Number })
	return list
}

// Prepare implements fleet.Runner: it wakes a phone that rests, and fetches the files that the task names and that are not here yet.
func (p phones) Prepare(ctx context.Context, a fleet.Assignment) error {
	if _, err := specOf(a); err != nil { // before anything is fetched for it
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	if _, err := p.rack.toolset(a.Task.Skills, a.Task.Permissions, a.Task.TaskID, a.Slot); err != nil { // likewise
		return err
	}
	if err := p.rack.care.wake(ctx, a.Slot, a.Phone); err != nil {
		return err
	}
	for _, in := range a.Task.Inputs {
		if err := p.rack.fetchInput(ctx, p.rack.cloud.link.Request, in); err != nil {
			return err
		}
	}
	return nil
}

// Start implements fleet.Runner.
func (p phones) Start(a fleet.Assignment) error {
	spec, err := specOf(a)
	if err != nil {
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	if s := p.rack.slots[a.Slot]; s != nil {
		if state, _ := s.snapshot(); state.Serial != a.Phone {
			return wire.Refuse(wire.PhoneLost, map[string]any{"slot": a.Slot, "serial": a.Phone}).After(0) // it may come back
		}
	}
	if now, trusted := p.rack.cloud.link.Now(); a.Task.Deadline != 0 && trusted {
		left := time.UnixMilli(a.Task.Deadline).Sub(now)
		if left <= 0 {
			return wire.Refuse(wire.DeadlinePassed, map[string]any{"deadline": time.UnixMilli(a.Task.Deadline).UTC().Format(time.RFC3339)})
		}
		spec.Within = min(spec.Within, left)
	}
	_, err = p.rack.begin(spec, cloudActor, &a)
	return err
}

// specOf holds a task of the cloud to what a person's task is held to.
func specOf(a fleet.Assignment) (action.TaskSpec, error) {
	t := a.Task
	if t.Budget.MS < 0 || t.Budget.MS > int64(maxGrantedWithin/time.Millisecond) {
		return action.TaskSpec{}, fmt.Errorf("budget.ms must be from 1 to %d", maxGrantedWithin.Milliseconds())
	}
	args := action.TaskRunArgs{
		SlotArgs: action.SlotArgs{Slot: a.Slot}, Goal: t.Goal, Params: t.Params, Steps: t.Budget.Steps, Seconds: int((t.Budget.MS + 999) / 1000),
		Tokens: t.Budget.Tokens, Permissions: t.Permissions, Skills: t.Skills, ResultSchema: t.ResultSchema,
	}
	if len(t.Inputs) > wire.MaxInputs {
		return action.TaskSpec{}, fmt.Errorf("a task takes at most %d files from the cloud", wire.MaxInputs)
	}
	for _, in := range t.Inputs {
		if _, twice := args.Inputs[in.Name]; twice {
			return action.TaskSpec{}, fmt.Errorf("two files have the name %.80q", in.Name)
		}
		if in.Size < 1 || in.Size > wire.MaxInput {
			return action.TaskSpec{}, fmt.Errorf("the file %.80q has %d bytes where 1 to %d are allowed", in.Name, in.Size, wire.MaxInput)
		}
		if args.Inputs == nil {
			args.Inputs = map[string]string{}
		}
		args.Inputs[in.Name] = in.SHA256
	}
	return args.Spec()
}

const maxGrantedWithin = 6 * time.Hour

// Extend implements fleet.Runner.
func (p phones) Extend(ref wire.AttemptRef, fence time.Duration) {
	t := p.rack.grantedTask(ref)
	if t == nil {
		return
	}
	if err := t.lease.Renew(fence - p.rack.clock()); err != nil {
		t.log.Warn("the lease was not renewed", "err", err)
	}
}

// Cancel implements fleet.Runner.
func (p phones) Cancel(ref wire.AttemptRef, why *wire.Refusal) {
	if t := p.rack.grantedTask(ref); t != nil {
		t.log.Info("the cloud ends the attempt", "code", why.Code)
		t.cancel(why)
	}
}

// Answer implements fleet.Runner.
func (p phones) Answer(ref wire.AttemptRef, questionID, text string) {
	t := p.rack.grantedTask(ref)
	if t == nil {
		return
	}
	t.mu.Lock()
	open := t.question == questionID && t.answers != nil
	t.mu.Unlock()
	if !open || text == "" || len(text) > action.MaxAnswer {
		return
	}
	if _, err := p.rack.AnswerTask(t.id, text, cloudActor); err != nil {
		t.log.Info("an answer of the cloud came too late", "err", err)
	}
}
