package firmware

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"phonerack/agent/runner"
	"phonerack/agent/runner/record"
	"phonerack/agent/skill/toolset"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/firmware/skills"
	"phonerack/sync/fleet"
)

// A task is one attempt that runs now.
type task struct {
	rack    *Rack
	id      string            // of this rack; names record and trajectory
	granted *fleet.Assignment // by the cloud; nil for a task of this rack alone
	live    *live
	lease   *lease.Lease
	log     *slog.Logger
	ctx     context.Context // of the attempt; ended with a refusal as cause
	cancel  context.CancelCauseFunc
	ended   chan struct{}     // closed when the result is written down
	files   map[string]string // that came with it: name -> sha256
	skills  *toolset.Set      // what its skills come down to; nil without any
	talks   *skills.Talks     // with MCP servers, for its skills; likewise

	mu       sync.Mutex
	status   action.TaskStatus // as people are shown it live; guarded by mu, as is what follows
	mask     record.Mask       // of its parameters and of the answers it got
	steps    []json.RawMessage
	changed  chan struct{} // closed and replaced when a step is added or the status changes
	answers  chan<- string // takes the one answer that the task waits for; nil if it does not
	question string        // id of the question that is open, as the cloud knows it
}

// step is called by the runner after each turn.
func (t *task) step(s runner.Step) {
	encoded, err := json.Marshal(s)
	if err != nil {
		t.log.Error("step cannot be encoded", "err", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, encoded)
	t.status.Steps = len(t.steps)
	if t.granted != nil && t.granted.Stepped != nil {
		t.granted.Stepped(len(t.steps))
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *task) snapshot() action.TaskStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// written is how a status of the task is written down: without the values of its parameters, which may be passwords.
func (t *task) written(status action.TaskStatus) action.TaskStatus {
	t.mu.Lock()
	mask := t.mask
	t.mu.Unlock()
	status.Message, status.Refusal = mask.Text(status.Message), mask.Refusal(status.Refusal)
	if status.Question != nil {
		q := *status.Question
		q.Text, q.Options = mask.Text(q.Text), slices.Clone(q.Options)
		for i, option := range q.Options {
			q.Options[i] = mask.Text(option)
		}
		status.Question = &q
	}
	return status
}

func (t *task) update(status action.TaskStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
}

// since returns the steps after the first n, and a channel that is closed when there are more.
func (t *task) since(n int) (steps []json.RawMessage, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps[n:], t.changed
}
