package firmware

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
	"phonerack/firmware/store"
	"phonerack/sync/wire"
)

// newLog returns a log over a database of its own.
func newLog(t *testing.T) *taskLog {
	t.Helper()
	folder := t.TempDir()
	s, err := store.Open(store.Options{Path: filepath.Join(folder, "rackd.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	bucket, err := s.Bucket(tasksBucket)
	if err != nil {
		t.Fatal(err)
	}
	return &taskLog{bucket: bucket, folder: folder, log: slog.New(slog.DiscardHandler)}
}

func TestATrajectoryWithoutAnEndGetsOneWhenThereIsRoomAgain(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	failed := action.TaskStatus{State: action.TaskError, Message: "no such thing", Steps: 3, Tokens: 7, Wrote: true, Ended: ended, Refusal: wire.Refuse(wire.TaskFailed, nil)}
	for _, c := range []struct {
		name     string
		status   action.TaskStatus
		page     string // what it says
		conclude func(l *taskLog, status action.TaskStatus)
	}{
		{"the result is owed", failed, "failed: a goal", func(l *taskLog, status action.TaskStatus) {
			r := &Rack{taskLog: l, owed: map[string]debt{status.ID: {status: status}}, log: l.log}
			r.payOwed()
		}},
		{"found at the start", failed, "failed: a goal", nil},
		{"cut, found at the start", action.TaskStatus{State: action.TaskLost, Ended: ended}, "cut off: a goal", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLog(t)
			c.status.ID = "a"
			folder := filepath.Join(l.folder, "a")
			w, err := record.Create(folder, record.Task{ID: "a", Attempt: 1, Goal: "a goal", Started: ended}, record.Mask{}) // and never closed
			if err != nil {
				t.Fatal(err)
			}
			w.Add(&record.Step{N: 1, Tool: "wait", Arguments: json.RawMessage(`{}`), Outcome: record.Done, Effect: "no change"}, nil)
			if c.conclude == nil {
				c.conclude = func(l *taskLog, status action.TaskStatus) {
					if err := errors.Join(l.put(status), l.endOpen(ended)); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.conclude(l, c.status)
			task, err := record.ReadTask(folder)
			if err != nil || (task.End == nil) != (c.status.State == action.TaskLost) {
				t.Fatalf("end %+v, %v", task.End, err)
			}
			if e := task.End; e != nil && (e.Outcome != "failed" || e.Message != "no such thing" || e.Code() != wire.TaskFailed || e.Steps != 3 || e.Tokens != 7 || !e.Wrote || !e.At.Equal(ended)) {
				t.Errorf("end %+v", e)
			}
			page, err := os.ReadFile(filepath.Join(folder, "index.html"))
			if err != nil || !strings.Contains(string(page), c.page) || strings.Count(string(page), `id="step-`) != 1 {
				t.Errorf("%v, page\n%s", err, page)
			}
			before, err := os.Stat(filepath.Join(folder, "index.html"))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.endOpen(ended); err != nil {
				t.Fatal(err)
			}
			if after, err := os.Stat(filepath.Join(folder, "index.html")); err != nil || !os.SameFile(before, after) {
				t.Errorf("a whole trajectory is written again: %v", err)
			}
		})
	}
}

func TestTaskOfABoardWhoseClockFellBackIsTheNewest(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	clock := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	var last string
	var err error
	for i := range keptTasks + 1 {
		now := clock
		if i == keptTasks {
			now = time.Unix(60, 0) // after a power cut, before anybody told the time
		}
		if last, err = l.newID(now); err != nil {
			t.Fatal(err)
		}
		if err := l.put(action.TaskStatus{ID: last, State: action.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	l.prune()
	if _, err := l.get(last); err != nil {
		t.Errorf("the newest task: %v", err)
	}
	if list, err := l.list(keptTasks + 1); err != nil || len(list) != keptTasks || list[0].ID != last {
		t.Errorf("%d tasks, the first is %v, want %s; %v", len(list), list[0].ID, last, err)
	}
}
