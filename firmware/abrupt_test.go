package firmware_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/rig/rackrig"
)

// The longest test stands in the first file: those that wait beside each other begin in this order.

// A rackd that is killed at any moment opens its database again, tells of each task what is known, and leaves nothing
// lying about.
func TestKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1].plug(t)
	programs, err := rackrig.BuildNative(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(b.config.Rack.State)
	rng := rand.New(rand.NewPCG(9, 11)) // the same moments in each run, as far as a scheduler allows
	known := map[string]action.TaskState{}
	open := ""
	for n := range 11 {
		kill := b.startNative(programs.Rackd, filepath.Join(folder, "rackd.toml"))
		var list action.TaskList
		if err := b.Call(t.Context(), "task_list", nil, &list); err != nil {
			t.Fatalf("start %d: %v", n, err)
		}
		if len(list.Tasks) != len(known) {
			t.Errorf("start %d: %d tasks, %d were acknowledged", n, len(list.Tasks), len(known))
		}
		for _, task := range list.Tasks {
			want := known[task.ID]
			if task.ID == open && task.State != action.Running { // it may have ended just before the kill
				b.checkEnd(task)
				known[task.ID] = task.State
			} else if task.State != want {
				t.Errorf("start %d: task %s is %s, was %s", n, task.ID, task.State, want)
			}
		}
		if n == 10 {
			kill()
			break
		}
		b.await(1, action.Ready)
		task := b.runTask(1, shopGoal)
		open, known[task.ID] = task.ID, action.Running
		time.Sleep(time.Duration(rng.Int64N(int64(1200 * time.Millisecond))))
		kill()
	}
	b.wantTidy(b.config.Rack.State)
}

// checkEnd holds a task that the kill met to what it can say of itself.
func (b *bench) checkEnd(task action.TaskStatus) {
	b.t.Helper()
	steps, err := os.ReadFile(filepath.Join(b.config.Rack.State, "tasks", task.ID, "steps.jsonl"))
	finished := strings.Contains(string(steps), `"success":true`)
	switch {
	case task.State == action.TaskLost && task.Wrote && strings.Contains(task.Message, "rackd ended"):
	case task.State == action.Succeeded && err == nil && finished:
	default:
		b.t.Errorf("task %+v with the steps\n%s", task, steps)
	}
}
