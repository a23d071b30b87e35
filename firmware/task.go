package firmware

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"phonerack/agent/runner"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
)

// A task is one attempt that runs now.
type task struct {
	rack   *Rack
	id     string
	live   *live
	lease  *lease.Lease
	log    *slog.Logger
	ctx    context.Context // of the attempt; ended with a refusal as cause
	cancel context.CancelCauseFunc
	ended  chan struct{}     // closed when the result is written down
	files  map[string]string // that came with it: name -> sha256

	mu      sync.Mutex
	status  action.TaskStatus // guarded by mu, as is what follows
	steps   []json.RawMessage
	changed chan struct{} // closed and replaced when a step is added or the status changes
	answers chan<- string // takes the one answer that the task waits for; nil if it does not
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
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *task) snapshot() action.TaskStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
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
