package fleet

import (
	"context"
	"encoding/json"
	"errors"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// Bounds of a task.
const (
	maxGoal   = 32 << 10 // bytes
	maxTask   = 96 << 10 // bytes of JSON: a lease with it must fit into a frame
	maxSkills = 100
	maxAnswer = 4 << 10 // bytes

	// maxWhen bounds times in ms: later ones are no dates (year 9999) and do not survive JSON.
	maxWhen = 253402300799999
)

// NewTask is a task as an operator submits it. The same key with the same contents is the same task.
type NewTask struct {
	Key  string    `json:"key,omitempty"`
	Task wire.Task `json:"task"`
}

func (n NewTask) check() error {
	t := n.Task
	switch {
	case t.TaskID != "":
		return bad("a new task has no id yet")
	case t.Goal == "" || len(t.Goal) > maxGoal:
		return bad("a goal has 1 to %d bytes", maxGoal)
	case t.Budget.Steps < 0 || t.Budget.MS < 0 || t.Budget.Tokens < 0:
		return bad("a budget is not negative")
	case t.NotBefore < 0 || t.Deadline < 0 || t.Deadline > 0 && t.Deadline <= t.NotBefore:
		return bad("a deadline is later than not_before, and both are milliseconds since the epoch")
	case t.NotBefore > maxWhen || t.Deadline > maxWhen:
		return bad("not_before and deadline lie before the year 10000")
	case len(t.Skills) > maxSkills || len(t.Permissions) > maxSkills || len(t.Params) > maxSkills:
		return bad("a task has at most %d skills, permissions and parameters", maxSkills)
	case t.Target.Rack != "" && !wire.ValidID(t.Target.Rack):
		return bad("%.80q is no rack id", t.Target.Rack)
	}
	if err := checkInputs(t.Inputs); err != nil {
		return err
	}
	if _, err := resultschema.Parse(t.ResultSchema); err != nil {
		return bad("%s", err)
	}
	return nil
}

// Submit queues a task.
func (f *Fleet) Submit(ctx context.Context, op Operator, n NewTask) (task Task, created bool, err error) {
	if err := n.check(); err != nil {
		return Task{}, false, err
	}
	hashes, err := f.known(ctx, op, n.Task.Inputs)
	if err != nil {
		return Task{}, false, err
	}
	if id := n.Task.Target.Rack; id != "" {
		// A task for a rack that was never here would wait for ever. One for a revoked rack is taken: the key of an earlier one may be meant.
		if _, err := f.store.Host(ctx, op.Scope(), id); err != nil {
			return Task{}, false, Named(err, "rack", id)
		}
	}
	body, err := json.Marshal(n.Task)
	if err != nil {
		return Task{}, false, bad("the task cannot be stored")
	}
	if len(body) > maxTask {
		return Task{}, false, wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "task", "size": len(body), "limit": maxTask})
	}
	w := n.Task
	t, created, err := f.store.Submit(ctx, op.Scope(), store.NewTask{
		Key: n.Key, Body: body, Target: store.Target(w.Target), NotBefore: fromMS(w.NotBefore), Deadline: fromMS(w.Deadline),
		Priority: w.Priority, Repeatable: w.Repeatable, Files: hashes,
	})
	if errors.Is(err, store.ErrRequestConflict) {
		return Task{}, false, wire.Refuse(wire.RequestConflict, map[string]any{"request": n.Key}).Because(err)
	}
	return viewTask(t), created, Refusal(err)
}

// Task gives a task with its attempts and its open question.
func (f *Fleet) Task(ctx context.Context, op Operator, id string) (Task, error) {
	t, err := f.store.Task(ctx, op.Scope(), id)
	if err != nil {
		return Task{}, Named(err, "task", id)
	}
	all, err := f.store.Attempts(ctx, op.Scope(), id)
	if err != nil {
		return Task{}, Named(err, "task", id)
	}
	v := viewTask(t)
	v.Attempts = views(all, viewAttempt)
	if n := len(all); n > 0 && t.State == store.Waiting {
		var q questionBody
		if json.Unmarshal(all[n-1].Question, &q) == nil {
			v.Question = &Question{QuestionID: all[n-1].QuestionID, Text: q.Text, Choices: q.Choices}
		}
	}
	return v, nil
}

// Tasks lists tasks, newest first; of all states if none is given.
func (f *Fleet) Tasks(ctx context.Context, op Operator, rack string, states []string, p store.Page) ([]Task, string, error) {
	filter := store.TaskFilter{Host: rack}
	for _, s := range states {
		filter.States = append(filter.States, store.TaskState(s))
	}
	all, next, err := f.store.Tasks(ctx, op.Scope(), filter, p)
	return views(all, viewTask), next, Refusal(err)
}

// Cancel ends a task that nobody works on; a rack that does is told to stop.
func (f *Fleet) Cancel(ctx context.Context, op Operator, id string) (Task, error) {
	t, err := f.store.CancelTask(ctx, op.Scope(), id)
	if err != nil {
		return Task{}, Named(err, "task", id)
	}
	if t.Cancel {
		if to, ok := f.worker(ctx, op, t); ok {
			f.tell(ctx, to, wire.TypeCancel, wire.Cancel{TaskID: t.ID, Attempt: t.Attempt})
		}
	}
	return viewTask(t), nil
}

// worker is the rack that has the attempt in force, if it is there.
func (f *Fleet) worker(ctx context.Context, op Operator, t store.Task) (enroll.Caller, bool) {
	all, err := f.store.Attempts(ctx, op.Scope(), t.ID)
	if err != nil || len(all) == 0 || f.push == nil {
		return enroll.Caller{}, false
	}
	to := enroll.Caller{Tenant: op.Tenant, Rack: all[len(all)-1].Host}
	return to, f.online(ctx, to)
}

// Answer gives the open question of a task its answer, and tells the rack. question is the id of the one that is answered;
// "" answers whichever is open.
func (f *Fleet) Answer(ctx context.Context, op Operator, id, question, text string) (Task, error) {
	if text == "" || len(text) > maxAnswer {
		return Task{}, bad("an answer has 1 to %d bytes", maxAnswer)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return Task{}, bad("the answer cannot be stored")
	}
	a, err := f.store.Answer(ctx, op.Scope(), id, question, raw)
	if errors.Is(err, store.ErrConflict) {
		return Task{}, wire.Refuse(wire.TaskNotWaiting, map[string]any{"task": id}).Because(err)
	}
	if err != nil {
		return Task{}, Named(err, "task", id)
	}
	if answer, ok := answerOf(a); ok {
		if to := (enroll.Caller{Tenant: op.Tenant, Rack: a.Host}); f.push != nil && f.online(ctx, to) {
			f.tell(ctx, to, wire.TypeAnswer, answer)
		}
	}
	return f.Task(ctx, op, id)
}

// Requeue queues a lost or failed task again, as a person decides.
func (f *Fleet) Requeue(ctx context.Context, op Operator, id string) (Task, error) {
	t, err := f.store.RequeueTask(ctx, op.Scope(), id)
	return viewTask(t), Named(err, "task", id)
}

// Host gives a rack.
func (f *Fleet) Host(ctx context.Context, op Operator, id string) (Host, error) {
	h, err := f.store.Host(ctx, op.Scope(), id)
	if err != nil {
		return Host{}, Named(err, "rack", id)
	}
	d, err := f.store.Desired(ctx, op.Scope(), id)
	v := f.seen(h)
	if d.Version > 0 {
		v.Settings = &Settled{Version: d.Version, Applied: d.Applied}
	}
	return v, Named(err, "rack", id)
}

// Hosts lists racks by id.
func (f *Fleet) Hosts(ctx context.Context, op Operator, p store.Page) ([]Host, string, error) {
	all, next, err := f.store.Hosts(ctx, op.Scope(), p)
	return views(all, f.seen), next, Refusal(err)
}

// Label sets a rack's name and tags.
func (f *Fleet) Label(ctx context.Context, op Operator, id, name string, tags []string) error {
	return Named(f.store.LabelHost(ctx, op.Scope(), id, name, tags), "rack", id)
}

// Events lists what racks told by themselves, newest first; of all racks if rack is empty.
func (f *Fleet) Events(ctx context.Context, op Operator, rack string, p store.Page) ([]Event, string, error) {
	all, next, err := f.store.Events(ctx, op.Scope(), rack, p)
	return views(all, viewEvent), next, Refusal(err)
}

// Audits lists who did what, newest first.
func (f *Fleet) Audits(ctx context.Context, op Operator, p store.Page) ([]Audit, string, error) {
	all, next, err := f.store.Audits(ctx, op.Scope(), p)
	return views(all, viewAudit), next, Refusal(err)
}
