package firmware

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	bolt "go.etcd.io/bbolt"

	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
	"phonerack/firmware/store"
	"phonerack/sync/wire"
)

const (
	tasksFolder = "tasks"
	tasksBucket = "tasks"

	keptTasks        = 500 // the oldest beyond these are forgotten
	keptTrajectories = 100 // of the newest tasks; one takes up to 25 MB
)

// taskLog is what a rack remembers of its tasks: the newest ones, by id, which is also their order in time.
type taskLog struct {
	bucket *store.Bucket
	folder string // of the trajectories
	log    *slog.Logger
}

func (l *taskLog) put(status action.TaskStatus) error { return l.putWith(status, nil) }

// putWith writes a status down together with what also has to do; nil is nothing.
func (l *taskLog) putWith(status action.TaskStatus, also func(*bolt.Tx) error) error {
	encoded, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return l.bucket.Update(func(b *bolt.Bucket) error {
		if err := b.Put([]byte(status.ID), encoded); err != nil || also == nil {
			return err
		}
		return also(b.Tx())
	})
}

// newID names a task. Ids are in order of time, and the order decides what is forgotten: on a board whose clock has fallen
// back, a new task must not count as the oldest.
func (l *taskLog) newID(now time.Time) (string, error) {
	ms := ulid.Timestamp(now)
	err := l.bucket.View(func(b *bolt.Bucket) error {
		newest, _ := b.Cursor().Last()
		if last, err := ulid.ParseStrict(string(newest)); err == nil {
			ms = max(ms, min(last.Time()+1, ulid.MaxTime()))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	id, err := ulid.New(ms, ulid.DefaultEntropy())
	return strings.ToLower(id.String()), err
}

func (l *taskLog) get(id string) (status action.TaskStatus, err error) {
	found := false
	err = l.bucket.View(func(b *bolt.Bucket) error {
		encoded := b.Get([]byte(id))
		if encoded == nil {
			return nil
		}
		found = true
		return json.Unmarshal(encoded, &status)
	})
	if err == nil && !found {
		return status, wire.Refuse(wire.TaskUnknown, map[string]any{"task": id})
	}
	return status, err
}

// list returns the newest tasks, the newest first. An entry that cannot be read is left out and logged.
func (l *taskLog) list(limit int) ([]action.TaskStatus, error) {
	all := []action.TaskStatus{} // an empty list in JSON, too
	err := l.bucket.View(func(b *bolt.Bucket) error {
		c := b.Cursor()
		for k, v := c.Last(); k != nil && len(all) < limit; k, v = c.Prev() {
			var status action.TaskStatus
			if err := json.Unmarshal(v, &status); err != nil {
				l.log.Error("a task's entry cannot be read", "task", string(k), "err", err)
				continue
			}
			all = append(all, status)
		}
		return nil
	})
	return all, err
}

// endOpen marks the tasks that an earlier rackd left open: whether they wrote is not known, and they are never begun again
// by themselves. It also finishes the trajectories for which the earlier rackd had no room. No task may be running.
func (l *taskLog) endOpen(now time.Time) error {
	all, err := l.list(keptTasks)
	if err != nil {
		return fmt.Errorf("look for tasks that were cut: %w", err)
	}
	for n, status := range all {
		switch status.State {
		case action.Running, action.Waiting, action.Paused:
		default:
			if n < keptTrajectories {
				l.conclude(status)
			}
			continue
		}
		status.State, status.Question, status.Ended, status.Wrote = action.TaskLost, nil, now, true
		status.Message = "rackd ended in the middle of the task"
		if err := l.put(status); err != nil {
			return fmt.Errorf("end a task that was cut: %w", err)
		}
		l.clean(status.ID)
		l.log.Warn("task was cut by the end of rackd", "task", status.ID, "slot", status.Slot)
	}
	return nil
}

// clean makes a trajectory that was cut one that can be looked at, and removes what was half written. A task that was cut
// before its first look has none.
func (l *taskLog) clean(id string) {
	folder := filepath.Join(l.folder, filepath.Base(id))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return
	}
	left, err := filepath.Glob(filepath.Join(folder, keepingPrefix+"*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	if err = errors.Join(err, record.Finish(folder)); err != nil {
		l.log.Warn("a trajectory that was cut could not be finished", "task", id, "err", err)
	}
}

// conclude gives the trajectory of a task that has ended its end and its page, if there was no room for them then. One that was
// cut has no end that anybody knows, and gets its page.
func (l *taskLog) conclude(status action.TaskStatus) {
	folder := filepath.Join(l.folder, filepath.Base(status.ID))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if status.State == action.TaskLost {
		if !record.HasPage(folder) {
			l.clean(status.ID)
		}
		return
	}
	err := record.Conclude(folder, record.End{
		At: status.Ended, Outcome: string(status.State), Message: status.Message,
		Steps: status.Steps, Tokens: status.Tokens, Wrote: status.Wrote, Refusal: status.Refusal,
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // not even begun: there was no room from the start
		l.log.Warn("a trajectory without an end could not be finished", "task", status.ID, "err", err)
	}
}

// prune forgets the oldest tasks. It only costs room if it fails.
func (l *taskLog) prune() {
	var ids []string // the newest first
	err := l.bucket.Update(func(b *bolt.Bucket) error {
		c := b.Cursor()
		for k, _ := c.Last(); k != nil; k, _ = c.Prev() {
			ids = append(ids, string(k))
		}
		for _, id := range ids[min(keptTasks, len(ids)):] {
			if err := b.Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.log.Warn("old tasks could not be forgotten", "err", err)
		return
	}
	for _, id := range ids[min(keptTrajectories, len(ids)):] {
		if err := os.RemoveAll(filepath.Join(l.folder, filepath.Base(id))); err != nil {
			l.log.Warn("an old trajectory could not be removed", "task", id, "err", err)
		}
	}
}
