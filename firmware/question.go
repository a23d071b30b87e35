package firmware

import (
	"context"
	"fmt"
	"time"

	"phonerack/agent/runner"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

// ask parks the task until somebody answers or its time is over. The lease stays.
func (t *task) ask(ctx context.Context, q tools.Question) (string, error) {
	answers := make(chan string, 1)
	id := wire.NewID(time.Now())
	t.change(func(status *action.TaskStatus) {
		t.answers, t.question = answers, id
		status.State = action.Waiting
		status.Question = &action.Question{Text: q.Text, Options: q.Options, Asked: time.Now().UTC()}
	})
	t.remember()
	t.log.Info("task waits for an answer")
	defer t.askCloud(ctx, id, q)()
	defer func() {
		t.change(func(status *action.TaskStatus) {
			t.answers, t.question = nil, ""
			status.State, status.Question = action.Running, nil
		})
	}()
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// stands notes that the attempt is held up, or goes on. While it waits for an answer ask has told so.
func (t *task) stands(state runner.State) {
	if state == runner.Waiting {
		return
	}
	t.change(func(status *action.TaskStatus) {
		if status.State = action.Running; state == runner.Paused {
			status.State = action.Paused
		}
	})
	t.remember()
	t.log.Info("task goes on or is held up", "state", string(state))
}

// change alters the status, and tells those who watch.
func (t *task) change(fn func(*action.TaskStatus)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn(&t.status)
	close(t.changed)
	t.changed = make(chan struct{})
}

// remember writes the status down, so that a restart knows what the task waited for. It is no loss if that fails: the
// task is there to be asked.
func (t *task) remember() {
	if err := t.rack.taskLog.put(t.written(t.snapshot())); err != nil {
		t.log.Warn("the task's state could not be written down", "err", err)
	}
}

// AnswerTask implements action.Rack.
func (r *Rack) AnswerTask(id, answer, actor string) (action.TaskStatus, error) {
	t := r.running(id)
	if t == nil {
		if _, err := r.Task(id); err != nil {
			return action.TaskStatus{}, err
		}
		return action.TaskStatus{}, wire.Refuse(wire.TaskNotWaiting, map[string]any{"task": id})
	}
	var answers chan<- string
	question := ""
	t.change(func(status *action.TaskStatus) {
		if answers, t.answers = t.answers, nil; answers != nil { // one answer a question
			question = t.question
			t.mask = t.mask.Whole(fmt.Sprintf("answer %d", status.Steps+1), answer) // as the record calls it
			status.State, status.Question = action.Running, nil
		}
	})
	if answers == nil {
		return action.TaskStatus{}, wire.Refuse(wire.TaskNotWaiting, map[string]any{"task": id})
	}
	answers <- answer // there is room for one
	t.log.Info("task answered", "actor", actor)
	if t.granted != nil && t.granted.Answered != nil && actor != cloudActor {
		t.granted.Answered(question) // the cloud asks for it, too
	}
	return t.snapshot(), nil
}
