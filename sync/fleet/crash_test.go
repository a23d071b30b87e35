package fleet_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"phonerack/sync/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// TestACrashAtAnyStepLosesAndDoublesNothing kills the process at each of its
// steps in turn: before and after each commit, between a request and its answer,
// before a write and before an execution. The next life opens the file as it was.
func TestACrashAtAnyStepLosesAndDoublesNothing(t *testing.T) {
	t.Run("one after the other", func(t *testing.T) {
		// Goroutines take turns at random, so that lives differ in length a little.
		for at, survived := int64(1), 0; survived < 5; at++ {
			if !crash(t, at, "") {
				survived++
			}
			if at > 500 {
				t.Fatal("it never lives to the end")
			}
		}
	})
	for _, step := range []string{
		"before a commit", "after a commit", "ask task.claim", "answer to task.claim", "ask task.release", "answer to task.release",
		"ask cmd.pending", "answer to cmd.pending", "ask task.heartbeat", "answer to task.heartbeat",
		"before a write", "before an execution", "ack of task.result", "ack of cmd.status",
	} {
		t.Run(step, func(t *testing.T) {
			if !crash(t, 1, step) {
				t.Error("it lives")
			}
			crash(t, 2, step)
			crash(t, 3, step)
		})
	}
}

// crash lives a life that dies, and another one, and tells whether the first did.
func crash(t *testing.T, at int64, step string) (died bool) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir)
		w.phones.slots = 2
		w.phones.refuse = func(a fleet.Assignment) error {
			if a.Task.TaskID == "odd" && a.Attempt == 1 {
				return wire.Refuse(wire.AppMissing, map[string]any{"package": "x"})
			}
			return nil
		}
		w.cloud.submit("a", true)
		w.cloud.submit("odd", true)
		w.cloud.submit("b", false)
		p := w.startToDie(at, step)
		for i, name := range []string{"once", "ping", "once", "dance"} {
			p.push(wire.TypeExecute, w.cloud.command(name, i%2, time.Hour))
		}
		for range 100 {
			pass(time.Second)
			if p.dead.Load() || w.unsettled() == "" {
				break
			}
		}
		died = p.dead.Load()
		p.end()
		next := w.start(0)
		w.settle(10 * time.Minute)
		for _, k := range w.cloud.tasks {
			if k.state != wire.TaskSucceeded && !(k.TaskID == "b" && k.state == wire.TaskLost) {
				t.Errorf("task %s is %s", k.TaskID, k.state)
			}
		}
		next.end()
		if t.Failed() {
			t.Fatalf("it died at step %d, %s", at, p.diedAt)
		}
	})
	return died
}

// TestWhateverIsLostOrRepeated drives rack and cloud at random.
func TestWhateverIsLostOrRepeated(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		// Only what rapid needs: it must not ask for the deadline inside of a bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) { randomLife(t, dir) })
	})
}

func randomLife(t *rapid.T, dir string) {
	w := newWorld(t, dir)
	w.phones.slots = rapid.IntRange(1, 3).Draw(t, "slots")
	w.phones.think = time.Duration(rapid.SampledFrom([]int{1, 20, 100}).Draw(t, "think")) * time.Second
	w.start(0)
	defer func() { w.p.end() }()
	faults := rapid.SampledFrom([]fault{noFault, noFault, loseRequest, loseAnswer, twice, cutLine})
	var queue []fault
	w.cloud.fault = func(link.Call) fault {
		if len(queue) == 0 {
			return noFault
		}
		f := queue[0]
		queue = queue[1:]
		return f
	}
	tasks := 0
	var sent []wire.Command
	push := func(c wire.Command) { w.p.push(wire.TypeExecute, c) }
	t.Repeat(map[string]func(*rapid.T){
		"": func(*rapid.T) { w.check() },
		"time passes": func(t *rapid.T) {
			pass(time.Duration(rapid.SampledFrom([]int{10, 300, 5000, 30_000, 200_000}).Draw(t, "ms")) * time.Millisecond)
		},
		"submit": func(t *rapid.T) {
			tasks++
			w.cloud.submit(fmt.Sprint("t", tasks), rapid.Bool().Draw(t, "repeatable"))
		},
		"cancel": func(t *rapid.T) {
			if tasks == 0 {
				return
			}
			w.cloud.mu.Lock()
			k := w.cloud.tasks[rapid.IntRange(0, tasks-1).Draw(t, "task")]
			if k.state == wire.TaskQueued {
				k.state = wire.TaskStopped
			}
			k.cancel = true
			ref := wire.Cancel{TaskID: k.TaskID, Attempt: k.attempt}
			w.cloud.mu.Unlock()
			if rapid.Bool().Draw(t, "hint") {
				w.p.push(wire.TypeCancel, ref)
			}
		},
		"command": func(t *rapid.T) {
			c := w.cloud.command(rapid.SampledFrom([]string{"once", "ping", "dance"}).Draw(t, "name"), rapid.IntRange(0, 2).Draw(t, "slot"),
				time.Duration(rapid.SampledFrom([]int{5, 3600}).Draw(t, "life"))*time.Second)
			sent = append(sent, c)
			if rapid.Bool().Draw(t, "pushed") {
				push(c)
			}
		},
		"an old command again": func(t *rapid.T) {
			if len(sent) > 0 {
				push(rapid.SampledFrom(sent).Draw(t, "command"))
			}
		},
		"faults": func(t *rapid.T) {
			more := rapid.SliceOfN(faults, 1, 8).Draw(t, "faults")
			w.cloud.mu.Lock()
			queue = append(queue, more...)
			w.cloud.mu.Unlock()
		},
		"offline": func(*rapid.T) { w.cloud.setOnline(false) },
		"online":  func(*rapid.T) { w.cloud.setOnline(true) },
		"restart": func(*rapid.T) {
			w.p.end()
			w.start(0)
		},
		"crash soon": func(t *rapid.T) {
			at := rapid.Int64Range(1, 40).Draw(t, "step")
			w.p.end()
			w.start(at)
			pass(time.Duration(rapid.IntRange(1, 60).Draw(t, "s")) * time.Second)
			w.p.end()
			w.start(0)
		},
		"the slot is taken": func(t *rapid.T) {
			n := rapid.IntRange(1, 3).Draw(t, "slot")
			w.phones.do(func() {
				if w.phones.busy == nil {
					w.phones.busy = map[int]bool{}
				}
				w.phones.busy[n] = !w.phones.busy[n]
			})
		},
	})
	w.cloud.mu.Lock()
	queue = nil
	w.cloud.mu.Unlock()
	w.cloud.setOnline(true)
	w.phones.do(func() { w.phones.busy, w.phones.think = nil, time.Second })
	w.settle(time.Hour)
}
