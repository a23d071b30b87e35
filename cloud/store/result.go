package store

import (
	"context"
	"encoding/json"
)

// SetResult ends an attempt as its rack says. It may come any number of times and late: for an attempt that is over it
// is acknowledged and ignored. One thing counts late: that nothing was written lets a task which is still lost by this
// very attempt be queued again.
func (s *Store) SetResult(ctx context.Context, sc Scope, r Result) (ack Ack, err error) {
	err = check(sc.check(), jsonOK("result", r.Result), jsonOK("error", r.Error), inRange("steps", int64(r.Steps), 0, 1<<31))
	switch r.Outcome {
	case Succeeded, Failed, Cancelled, Lost:
	default:
		err = check(err, invalid("outcome %.40q", string(r.Outcome)))
	}
	if err != nil {
		return Ack{}, err
	}
	err = s.ofRack(ctx, sc, r.Host, func(t *tx) error {
		task, a, err := t.lockAttempt(r.Host, r.Ref)
		if err != nil {
			return err
		}
		if a.State.Terminal() {
			ack.Applied = false
			ack.State, err = t.late(task, a, r)
			return err
		}
		wrote := r.Wrote || a.Wrote != nil && *a.Wrote
		_, err = t.exec(`UPDATE attempts SET state = ?, ended = ?, wrote = ?, steps = ?, outcome = ?, result = ?, error = ? WHERE task = ? AND attempt = ?`,
			r.Outcome, t.now, bit(wrote), r.Steps, r.Outcome, string(r.Result), string(r.Error), r.Task, r.Attempt)
		if err != nil {
			return err
		}
		to := r.Outcome
		if to == Lost {
			to = afterLoss(task, &wrote)
		}
		ack = Ack{Applied: true, State: to}
		if err = t.setTask(task, to, nil); err != nil {
			return err
		}
		return t.audit("task.result", r.Ref.String(), map[string]any{"outcome": r.Outcome, "wrote": wrote, "task": to})
	})
	return ack, err
}

// late is a result for an attempt that is over.
func (t *tx) late(task Task, a Attempt, r Result) (TaskState, error) {
	inForce := task.State == Lost && a.State == Lost && task.Attempt == a.Attempt
	if !inForce || r.Wrote || a.Wrote != nil || a.Outcome != "" {
		return task.State, nil
	}
	if _, err := t.exec(`UPDATE attempts SET wrote = 0, outcome = ? WHERE task = ? AND attempt = ?`, r.Outcome, a.Task, a.Attempt); err != nil {
		return "", err
	}
	if err := t.setTask(task, Queued, nil); err != nil {
		return "", err
	}
	return Queued, t.audit("task.requeue", a.Ref.String(), map[string]any{"because": "nothing was written"})
}

// lose ends an attempt of which nobody knows how it ended, and tells where its task is now. Both rows are locked.
func (t *tx) lose(task Task, a Attempt, because string) (TaskState, error) {
	_, err := t.exec(`UPDATE attempts SET state = ?, ended = ? WHERE task = ? AND attempt = ?`, Lost, t.now, a.Task, a.Attempt)
	if err != nil {
		return "", err
	}
	to := afterLoss(task, a.Wrote)
	if err = t.setTask(task, to, nil); err != nil {
		return "", err
	}
	sc := Scope{task.Tenant, t.sc.Actor}
	return to, t.auditFor(sc, "task.lose", a.Ref.String(), map[string]any{"because": because, "task": to})
}

// afterLoss decides what becomes of a task whose attempt was lost: a message must not be sent twice because somebody
// could not tell whether it was sent.
func afterLoss(task Task, wrote *bool) TaskState {
	if task.Repeatable || wrote != nil && !*wrote {
		return orCancelled(task, Queued)
	}
	return orCancelled(task, Lost)
}

// orCancelled is to, or Cancelled if somebody wanted the task ended: its attempt is over without a result.
func orCancelled(task Task, to TaskState) TaskState {
	if task.Cancel {
		return Cancelled
	}
	return to
}

// refusal is a code of sync/wire in the wire's own form.
func refusal(code string) json.RawMessage {
	return json.RawMessage(`{"code":"` + code + `","retryable":false}`)
}
