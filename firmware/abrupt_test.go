package firmware_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// startNative runs rackd until the returned function kills it.
func (b *bench) startNative(rackd, file string) (kill func()) {
	b.t.Helper()
	var log lockedText
	command := exec.CommandContext(b.t.Context(), rackd, "run", "--config", file)
	command.Stderr = &log
	if err := command.Start(); err != nil {
		b.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		command.Process.Kill()
		command.Wait()
	})
	b.t.Cleanup(kill)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b.Call(b.t.Context(), "phones", nil, nil) == nil {
			return kill
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("rackd does not answer:\n%s", log.String())
		}
	}
}

// wantTidy finds what a crash has left and nobody took away.
func (b *bench) wantTidy(state string) {
	b.t.Helper()
	err := filepath.WalkDir(state, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		switch ext := filepath.Ext(base); {
		case entry.IsDir(), ext == ".jpg", base == "steps.jsonl", base == "task.json", base == "index.html", base == "adbkey", base == "rackd.db", base == "rackd.db.lock":
		case strings.HasPrefix(base, "rackd.db.") && !strings.Contains(base, "damaged"): // the copy, and one that was being made
		default:
			b.t.Errorf("%s was left", name)
		}
		return nil
	})
	if err != nil {
		b.t.Error(err)
	}
}
