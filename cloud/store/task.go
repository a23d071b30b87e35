package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

// TaskState is where a task or an attempt stands.
type TaskState string

// States of a task. An attempt has the same ones but Queued, and Released besides.
const (
	Queued    TaskState = "queued"
	Leased    TaskState = "leased"
	Running   TaskState = "running"
	Waiting   TaskState = "waiting" // for a person's answer; the lease goes on
	Succeeded TaskState = "succeeded"
	Failed    TaskState = "failed"
	Cancelled TaskState = "cancelled"
	Lost      TaskState = "lost"     // nobody knows how it ended; a person may requeue
	Released  TaskState = "released" // given back before the first write
)

// Terminal tells whether nothing follows by itself.
func (s TaskState) Terminal() bool {
	return s == Succeeded || s == Failed || s == Cancelled || s == Lost || s == Released
}

// Target says where a task may run. Every field that is set must match; an empty Target matches any slot.
type Target struct {
	Rack  string `json:"rack,omitempty"`
	Slot  int    `json:"slot,omitempty"`
	Phone string `json:"phone,omitempty"`
	Tag   string `json:"tag,omitempty"`
	App   string `json:"app,omitempty"`
}

// NewTask is what a task starts with. The fields beside Body are those that decide when and where it runs; the store
// does not look into Body.
type NewTask struct {
	Key        string          // the client's; the same key again gives the same task. "" for none
	Body       json.RawMessage // the task object of the wire without task_id, an object of at most 256 KiB
	Target     Target
	NotBefore  time.Time
	Deadline   time.Time // zero: none. A task still queued then fails
	Priority   int       // higher first
	Repeatable bool      // may be tried again although it may have written

	// Files are the hashes of those that were put for it. Left out of JSON if there are none: the hash of the contents is
	// older than files.
	Files []string `json:",omitempty"`
}

// Task as stored.
type Task struct {
	NewTask
	ID      string
	Tenant  string
	State   TaskState
	Attempt int  // the number in force; 0 before the first claim. Numbers are never used twice
	Tries   int  // attempts that count: released ones do not
	Cancel  bool // somebody asked for the end; the rack has not reported it yet
	Created time.Time
	Ended   time.Time       // when State became terminal
	Error   json.RawMessage // why the cloud itself ended it, a wire refusal
}

// Ref names an attempt.
type Ref struct {
	Task    string
	Attempt int
}

// Attempt is a task tried once.
type Attempt struct {
	Ref
	Host     string
	Slot     int
	Phone    string
	ClaimID  string
	State    TaskState
	Started  time.Time // when it was leased
	Until    time.Time // end of the lease
	Ended    time.Time
	NextStep int   // index that the next decision gets; from 0
	Wrote    *bool // nil: unknown
	Steps    int
	Outcome  string
	Result   json.RawMessage
	Error    json.RawMessage

	QuestionID string // the newest question
	Question   json.RawMessage
	Answer     json.RawMessage // empty while it is open
}

// TaskFilter selects tasks; empty fields select all.
type TaskFilter struct {
	States []TaskState
	Host   string // of the attempt in force
}

// Claim asks for a task for one slot.
type Claim struct {
	Host          string
	Slot          int
	Phone         string
	Tags          []string // of slot and phone; the rack's own are added
	Apps          []string // package names on the phone
	ID            string   // claim_id: the same one gives the same lease
	SkillsVersion string   // tasks that this rack gave back with it are not offered
	Lease         time.Duration
}

// Lease is a task given to a slot.
type Lease struct {
	Task    Task
	Attempt Attempt
}

// RunningAttempt is a line of a heartbeat.
type RunningAttempt struct {
	Ref
	Wrote bool // something was sent to the phone, or may have been
	// Ended: the attempt is over on the rack, its result is on the way, and nothing more is going to be written. Only
	// then !Wrote is believed: an attempt that still runs may write after the heartbeat.
	Ended bool
	// Answered is the question that somebody at the rack has answered, "" if none.
	Answered string
}

// Heartbeat is task.heartbeat.
type Heartbeat struct {
	Host          string
	Slots         json.RawMessage
	SkillsVersion string
	Running       []RunningAttempt
}

// Sync is what a heartbeat is answered with.
type Sync struct {
	Leases  []Lease // live ones of this rack; what is not listed must end
	Cancel  []Ref   // listed leases that somebody wants ended
	Unknown []Ref   // reported as running and not live here
}

// Question is what a rack asks a person.
type Question struct {
	ID   string // the same one again changes nothing
	Body json.RawMessage
}

// Result is task.result.
type Result struct {
	Ref
	Host    string
	Outcome TaskState // Succeeded, Failed, Cancelled, or Lost if the rack itself cannot tell
	Wrote   bool
	Steps   int
	Result  json.RawMessage
	Error   json.RawMessage
}

// Ack tells what a result did.
type Ack struct {
	Applied bool      // false: the attempt was over already
	State   TaskState // of the task now
}

const taskColumns = `id, tenant, coalesce(submit_key, ''), body, rack, slot, phone, tag, app, not_before, deadline, priority, repeatable,
	state, attempt, tries, cancel, created, ended, error`

func scanTask(r scanner) (Task, error) {
	var k Task
	err := r.Scan(&k.ID, &k.Tenant, &k.Key, jsonIn{&k.Body}, &k.Target.Rack, &k.Target.Slot, &k.Target.Phone, &k.Target.Tag, &k.Target.App,
		timeIn{&k.NotBefore}, timeIn{&k.Deadline}, &k.Priority, &k.Repeatable,
		&k.State, &k.Attempt, &k.Tries, &k.Cancel, timeIn{&k.Created}, timeIn{&k.Ended}, jsonIn{&k.Error})
	return k, err
}

func (n *NewTask) check() error {
	g := n.Target
	err := check(textOK("key", n.Key, 0, maxName), jsonOK("body", n.Body), inRange("slot", int64(g.Slot), 0, maxSlot),
		textOK("phone", g.Phone, 0, maxName), textOK("tag", g.Tag, 0, maxName), textOK("app", g.App, 0, maxName),
		inRange("priority", int64(n.Priority), -1000, 1000))
	err = check(err, listOK("files", n.Files, wire.MaxInputs))
	if err == nil && g.Rack != "" {
		err = idOK("rack", g.Rack)
	}
	if err == nil && (len(n.Body) == 0 || bytes.TrimSpace(n.Body)[0] != '{') {
		err = invalid("body is no object")
	}
	return err
}

// Submit queues a task. The same key with the same contents gives the task of the first time; with others,
// ErrRequestConflict.
func (s *Store) Submit(ctx context.Context, sc Scope, n NewTask) (task Task, created bool, err error) {
	if err = check(sc.check(), n.check()); err != nil {
		return Task{}, false, err
	}
	n.NotBefore, n.Deadline = fromMS(ms(n.NotBefore)), fromMS(ms(n.Deadline))
	hash := sum(n)
	err = s.write(ctx, sc, func(t *tx) error {
		id, g := NewID(), n.Target
		rows, err := t.exec(`INSERT INTO tasks (id, tenant, submit_key, hash, body, rack, slot, phone, tag, app, not_before, deadline, priority,
			repeatable, state, attempt, tries, cancel, created, ended, pruned, error)
			VALUES (?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, 0, 0, '') ON CONFLICT (tenant, submit_key) DO NOTHING`,
			id, sc.Tenant, n.Key, hash, string(n.Body), g.Rack, g.Slot, g.Phone, g.Tag, g.App, ms(n.NotBefore), ms(n.Deadline), n.Priority,
			bit(n.Repeatable), Queued, t.now)
		if err != nil {
			return err
		}
		if created = rows == 1; created {
			if err = t.addFiles(id, n.Files); err != nil {
				return err
			}
			if task, err = t.task(id); err != nil {
				return err
			}
			return t.audit("task.submit", id, nil)
		}
		var first []byte
		if err = t.row(`SELECT id, hash FROM tasks WHERE tenant = ? AND submit_key = ?`, sc.Tenant, n.Key).Scan(&id, &first); err != nil {
			return err
		}
		if !bytes.Equal(first, hash) {
			return fmt.Errorf("%w: key %q", ErrRequestConflict, n.Key)
		}
		task, err = t.task(id)
		return err
	})
	return task, created, err
}

func (t *tx) task(id string) (Task, error) {
	return scanTask(t.row(`SELECT `+taskColumns+` FROM tasks WHERE id = ? AND tenant = ?`, id, t.sc.Tenant))
}

func (t *tx) lockTask(id string) (Task, error) {
	return scanTask(t.row(`SELECT `+taskColumns+` FROM tasks WHERE id = ? AND tenant = ? FOR UPDATE`, id, t.sc.Tenant))
}

// Task gives a task.
func (s *Store) Task(ctx context.Context, sc Scope, id string) (task Task, err error) {
	if err = sc.check(); err != nil {
		return Task{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		task, err = t.task(id)
		return err
	})
	return task, err
}

// Tasks lists tasks, newest first.
func (s *Store) Tasks(ctx context.Context, sc Scope, f TaskFilter, p Page) (all []Task, next string, err error) {
	size, err := p.size()
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	q, args := `SELECT `+taskColumns+` FROM tasks WHERE tenant = ? AND id < ?`, []any{sc.Tenant, cmp.Or(p.After, newest)}
	q, args = inStates(q, args, f.States)
	if f.Host != "" {
		q += ` AND EXISTS (SELECT 1 FROM attempts a WHERE a.task = tasks.id AND a.attempt = tasks.attempt AND a.host = ?)`
		args = append(args, f.Host)
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scanTask, q+` ORDER BY id DESC LIMIT ?`, append(args, size+1)...)
		return err
	})
	all, next = cut(all, size, func(k Task) string { return k.ID })
	return all, next, err
}

// Attempts lists the attempts of a task in their order.
func (s *Store) Attempts(ctx context.Context, sc Scope, task string) (all []Attempt, err error) {
	if err = sc.check(); err != nil {
		return nil, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		if _, err := t.task(task); err != nil {
			return err
		}
		all, err = list(t, scanAttempt, `SELECT `+attemptColumns+` FROM attempts WHERE task = ? ORDER BY attempt`, task)
		return err
	})
	return all, err
}

// CancelTask ends a queued or lost task at once; of a leased one it notes the wish (Task.Cancel), which the rack learns
// by task.cancel or its next heartbeat. A task that has ended stays as it is.
func (s *Store) CancelTask(ctx context.Context, sc Scope, id string) (task Task, err error) {
	if err = sc.check(); err != nil {
		return Task{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		k, err := t.lockTask(id)
		if err != nil {
			return err
		}
		switch {
		case k.State == Queued || k.State == Lost:
			err = t.setTask(k, Cancelled, nil)
		case !k.State.Terminal() && !k.Cancel:
			_, err = t.exec(`UPDATE tasks SET cancel = 1 WHERE id = ?`, id)
		default:
			task = k
			return nil
		}
		if err == nil {
			err = t.audit("task.cancel", id, nil)
		}
		if err == nil {
			task, err = t.task(id)
		}
		return err
	})
	return task, err
}

// RequeueTask queues a lost or failed task again, as a person decides. ErrConflict in any other state.
func (s *Store) RequeueTask(ctx context.Context, sc Scope, id string) (task Task, err error) {
	if err = sc.check(); err != nil {
		return Task{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		k, err := t.lockTask(id)
		if err != nil {
			return err
		}
		if k.State != Lost && k.State != Failed {
			return fmt.Errorf("%w: the task is %s", ErrConflict, k.State)
		}
		if err = t.setTask(k, Queued, nil); err != nil {
			return err
		}
		if err = t.audit("task.requeue", id, map[string]any{"was": k.State, "attempt": k.Attempt}); err != nil {
			return err
		}
		task, err = t.task(id)
		return err
	})
	return task, err
}

// setTask moves a locked task to a state; cause is why the cloud itself did so, if it was the cloud.
func (t *tx) setTask(k Task, to TaskState, cause json.RawMessage) error {
	ended, cancel := int64(0), k.Cancel
	if to.Terminal() {
		ended = t.now
	}
	if to == Queued {
		cancel = false
	}
	_, err := t.exec(`UPDATE tasks SET state = ?, ended = ?, pruned = 0, error = ?, cancel = ? WHERE id = ?`, to, ended, string(cause), bit(cancel), k.ID)
	return err
}
