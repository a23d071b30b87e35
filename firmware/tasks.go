package firmware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"phonerack/agent/runner"
	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
	"phonerack/firmware/store"
	"phonerack/sync/fleet"
	"phonerack/sync/wire"
)

// leaseMargin is how much longer than its task a task's lease lasts: the runner ends by itself before it.
const leaseMargin = 30 * time.Second

// StartTask implements action.Rack. When it returns the task is in the database and runs.
func (r *Rack) StartTask(_ context.Context, spec action.TaskSpec, actor string) (action.TaskStatus, error) {
	return r.begin(spec, actor, nil)
}

// begin starts a task of this rack, or the attempt that the cloud has granted. A refusal means that nothing was written.
func (r *Rack) begin(spec action.TaskSpec, actor string, granted *fleet.Assignment) (action.TaskStatus, error) {
	work := runner.Task{Goal: spec.Goal, Params: spec.Params, MaxSteps: spec.Steps}
	if err := work.Check(); err != nil {
		return action.TaskStatus{}, err
	}
	s, ok := r.slots[spec.Slot]
	if !ok {
		return action.TaskStatus{}, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": spec.Slot})
	}
	l, err := s.usable()
	if err != nil {
		if rests := r.care.wanted(spec.Slot); rests != nil {
			err = rests
		}
		return action.TaskStatus{}, err
	}
	cloudTask := ""
	if granted != nil {
		cloudTask = granted.Task.TaskID
	}
	set, err := r.toolset(spec.Skills, spec.Permissions, cloudTask, spec.Slot)
	if err != nil {
		return action.TaskStatus{}, err
	}
	id, err := r.taskLog.newID(time.Now())
	if err != nil {
		return action.TaskStatus{}, fmt.Errorf("name the task: %w", err)
	}
	t := newTask(r, id, spec, actor, l, granted)
	t.skills = set
	if !r.admit(t) {
		return action.TaskStatus{}, wire.Refuse(wire.ShuttingDown, nil)
	}
	if t.lease, err = r.leases.Acquire(spec.Slot, t.holder(), t.term(spec.Within)); err != nil {
		r.dismiss(t)
		return action.TaskStatus{}, err
	}
	if err := r.taskLog.put(t.snapshot()); err != nil {
		t.lease.Release()
		r.dismiss(t)
		err = fmt.Errorf("write the task down: %w", err)
		if errors.Is(err, store.ErrFull) {
			err = wire.Refuse(wire.RackFull, nil).Because(err)
		}
		return action.TaskStatus{}, err
	}
	go func() {
		defer r.dismiss(t)
		t.run(spec)
	}()
	return t.snapshot(), nil
}

// admit counts a task in, unless the rack is stopping.
func (r *Rack) admit(t *task) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return false
	}
	r.tasks[t.id] = t
	r.working.Add(1)
	return true
}

func (r *Rack) dismiss(t *task) {
	t.cancel(nil)
	close(t.ended)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, t.id)
	r.working.Done()
}

func newTask(r *Rack, id string, spec action.TaskSpec, actor string, l *live, granted *fleet.Assignment) *task {
	t := &task{rack: r, id: id, live: l, granted: granted, files: spec.Inputs, mask: record.NewMask(spec.Params), ended: make(chan struct{}), changed: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.status = action.TaskStatus{
		ID: t.id, Attempt: 1, Slot: spec.Slot, Serial: l.serial, Goal: spec.Goal, Params: slices.Sorted(maps.Keys(spec.Params)),
		State: action.Running, StartedBy: actor, Started: time.Now().UTC(), Boot: r.store.Boot(),
	}
	if granted != nil {
		t.status.Attempt, t.status.CloudTask = granted.Attempt, granted.Task.TaskID
	}
	t.log = r.log.With("slot", spec.Slot, "phone", l.serial, "task", t.id, "attempt", t.status.Attempt)
	if granted != nil {
		t.log = t.log.With("cloud_task", granted.Task.TaskID)
	}
	return t
}

// run works on the task and writes its result down before it tells anybody.
func (t *task) run(spec action.TaskSpec) {
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-t.lease.Done():
			t.cancel(wire.Refuse(wire.NotLeased, map[string]any{"slot": spec.Slot}))
		case <-t.ctx.Done():
		}
	}()
	t.log.Info("task started", "actor", t.status.StartedBy)
	t.prepare(spec.Within)
	result := t.attempt(spec)
	t.leave(result)
	t.cancel(nil)
	<-watching
	t.conclude(result)
	t.lease.Release()
	t.talks.Close() // whatever its servers do, the slot is free already
	t.rack.taskLog.prune()
}

// attempt lets the runner work. A panic in there is this task's failure and nobody else's.
func (t *task) attempt(spec action.TaskSpec) (result runner.Result) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("task panicked", "panic", p, "stack", string(debug.Stack()))
			refusal := wire.Refuse(wire.Internal, nil)
			result = runner.Result{Outcome: runner.Failed, Message: refusal.Error(), Refusal: refusal, Steps: t.snapshot().Steps, Wrote: true}
		}
	}()
	folder := t.rack.taskFolder(t.id)
	run := runner.Runner{
		Registry: t.tools(),
		Observer: t.live.eyes.View(), Controls: t.live.phone.Under(t.fence()), Planner: t.planner(),
		Reads: t.live.phone, Keep: newKeeper(folder).keep, Install: t.input, Ask: t.ask,
		Slot: spec.Slot, Phone: t.live.serial, Device: t.device(), Gone: t.live.conn.Done(), Pictures: t.rack.config.Planner.Pictures,
		Trajectory: folder, Logger: t.rack.log, OnStep: t.step, OnState: t.stands,
	}
	if t.rack.documents != nil {
		run.Documents = t.rack.documents
	}
	t.renew(spec.Within)
	run.Limits.Decide = t.rack.decideWithin
	task, attempt := t.name()
	work := runner.Task{
		ID: task, Attempt: attempt, Goal: spec.Goal, Params: spec.Params, MaxSteps: spec.Steps, Tokens: spec.Tokens,
		Permissions: spec.Permissions, KeepPopups: spec.LeavePopups, Result: spec.Result, Deadline: time.Now().Add(spec.Within),
	}
	if t.skills != nil {
		work.Skills, work.Knowledge, work.Allowed = t.skills.Skills, t.skills.Text, t.skills.Check
	}
	result, err := run.Run(t.ctx, work)
	if err != nil {
		t.log.Error("trajectory is not whole", "err", err)
	}
	return result
}

// conclude commits the result, and only then shows it. What cannot be written is owed: it is shown, and written when there
// is room.
func (t *task) conclude(result runner.Result) {
	status := t.snapshot()
	status.State = taskState(result)
	status.Message, status.Refusal, status.Result = result.Message, result.Refusal, result.Object
	status.Steps, status.Tokens, status.Wrote, status.Ended = result.Steps, result.Tokens, result.Wrote, time.Now().UTC()
	d := t.result(t.written(status))
	if err := t.rack.taskLog.putWith(d.status, d.also); err != nil {
		t.log.Error("the task's result could not be written down yet", "err", err)
		t.rack.owe(d)
	} else if d.paid != nil {
		d.paid()
	}
	t.rack.tally.done(status.State)
	t.update(status)
}

func taskState(result runner.Result) action.TaskState {
	switch {
	case result.Outcome == runner.Succeeded:
		return action.Succeeded
	case wire.Is(asError(result.Refusal), wire.ShuttingDown):
		return action.TaskLost
	case result.Outcome == runner.Cancelled:
		return action.Cancelled
	}
	return action.TaskError
}

func asError(r *wire.Refusal) error {
	if r == nil {
		return nil
	}
	return r
}

// Tasks implements action.Rack.
func (r *Rack) Tasks(limit int) ([]action.TaskStatus, error) {
	list, err := r.taskLog.list(limit)
	for i := range list {
		if t := r.running(list[i].ID); t != nil {
			list[i] = t.snapshot()
		} else if owed, ok := r.owes(list[i].ID); ok {
			list[i] = owed
		}
	}
	return list, err
}

// PutInput implements action.Rack.
func (r *Rack) PutInput(ctx context.Context, in io.Reader) (action.Input, error) {
	return r.inputs.put(ctx, in)
}

// Task implements action.Rack.
func (r *Rack) Task(id string) (action.TaskStatus, error) {
	if t := r.running(id); t != nil {
		return t.snapshot(), nil
	}
	if owed, ok := r.owes(id); ok {
		return owed, nil
	}
	return r.taskLog.get(id)
}

// CancelTask implements action.Rack. It waits a moment, so that the answer usually tells the end.
func (r *Rack) CancelTask(id, actor string) (action.TaskStatus, error) {
	t := r.running(id)
	if t == nil {
		return r.Task(id)
	}
	t.log.Info("task cancelled", "actor", actor)
	t.cancel(wire.Refuse(wire.TaskCancelled, map[string]any{"task": id}))
	select {
	case <-t.ended:
	case <-time.After(cancelWait):
	}
	return t.snapshot(), nil
}

const cancelWait = 3 * time.Second

func (r *Rack) running(id string) *task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[id]
}

// taskFolder is where a task's trajectory lies. Ids are made here and looked up before they get so far.
func (r *Rack) taskFolder(id string) string {
	return filepath.Join(r.config.Rack.State, tasksFolder, filepath.Base(cmp.Or(id, "none")))
}
