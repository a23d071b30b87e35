package powerrig

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the database of rackcloud

	"phonerack/firmware/action"
)

// Remains is what a disk has after a cut.
type Remains struct {
	Boot       uint64            // rackd's counter
	Session    uint64            // of the link's sessions
	Generation string            // of rackd's database
	Cloud      int64             // generation of the cloud's database
	Tasks      map[string]string // of the cloud: id -> state

	acked    map[attempt]action.TaskState // attempts whose result the cloud has acknowledged to the rack -> how they ended, as the rack says
	told     uint64                       // events that the cloud has acknowledged
	attempts map[attempt]string           // of the cloud -> state
	ended    []action.TaskStatus          // of the rack, by its own runner
}

// attempt names a task tried once.
type attempt struct {
	task string
	n    int
}

func (a attempt) String() string { return fmt.Sprintf("%s/%d", a.task, a.n) }

// over tells whether a task or an attempt of the cloud is in a state that it does not leave by itself.
func over(state string) bool {
	return slices.Contains([]string{"succeeded", "failed", "cancelled", "lost", "released"}, state)
}

// Read opens both databases among the files that [Unpack] has given, and judges them: each by its own check, then one by
// the other. The error names everything that is wrong.
func Read(ctx context.Context, dir string) (*Remains, error) {
	r := &Remains{Tasks: map[string]string{}, acked: map[attempt]action.TaskState{}, attempts: map[attempt]string{}}
	err := errors.Join(r.readRack(filepath.Join(dir, "rackd")), r.readCloud(ctx, filepath.Join(dir, "rackcloud", "cloud.db")))
	if err != nil {
		return r, err
	}
	return r, errors.Join(r.compare(), trajectories(filepath.Join(dir, "rackd", "tasks"), r.ended))
}

// readRack reads rackd's database. What did not exist yet when the power went is no fault.
func (r *Remains) readRack(state string) error {
	raw, err := os.ReadFile(filepath.Join(state, "generation"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.Generation, _, _ = strings.Cut(strings.TrimSpace(string(raw)), " ")
	path := filepath.Join(state, "rackd.db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("rackd.db: %w", err)
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		var damage error
		for err := range tx.Check() { // to its end: the checker waits for who reads
			damage = errors.Join(damage, err)
		}
		if damage != nil {
			return fmt.Errorf("rackd.db: %w", damage)
		}
		if root := tx.Bucket([]byte("rackd")); root != nil {
			if n := root.Get([]byte("boot")); len(n) == 8 {
				r.Boot = binary.BigEndian.Uint64(n)
			}
		}
		return errors.Join(r.readLink(tx), r.readTasks(tx))
	})
}

// readLink finds what has left the outbox.
func (r *Remains) readLink(tx *bolt.Tx) error {
	link, fleet := tx.Bucket([]byte("b.link")), tx.Bucket([]byte("b.fleet"))
	if link == nil || fleet == nil {
		return nil
	}
	var numbers struct {
		Session uint64 `json:"session"`
	}
	if raw := link.Get([]byte("numbers")); raw != nil {
		if err := json.Unmarshal(raw, &numbers); err != nil {
			return fmt.Errorf("numbers of the link: %w", err)
		}
	}
	r.Session = numbers.Session
	ids, ended := link.Bucket([]byte("outbox.ids")), fleet.Bucket([]byte("attempts.over"))
	if ids == nil || ended == nil {
		return nil
	}
	if refused := link.Bucket([]byte("outbox.refused")); refused != nil && refused.Stats().KeyN > 0 {
		return fmt.Errorf("the cloud has refused %d entries of the outbox for good", refused.Stats().KeyN)
	}
	if events := link.Bucket([]byte("outbox.event")); events != nil {
		r.told = events.Sequence() - uint64(events.Stats().KeyN)
	}
	return ended.ForEach(func(_, raw []byte) error {
		var one struct {
			Task    string `json:"task_id"`
			Attempt int    `json:"attempt"`
			Entry   string `json:"entry"`
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return fmt.Errorf("an ended attempt: %w", err)
		}
		if one.Entry != "" && ids.Get([]byte(one.Entry)) == nil {
			r.acked[attempt{one.Task, one.Attempt}] = ""
		}
		return nil
	})
}

// readTasks reads what rackd remembers of its tasks.
func (r *Remains) readTasks(tx *bolt.Tx) error {
	tasks := tx.Bucket([]byte("b.tasks"))
	if tasks == nil {
		return nil
	}
	return tasks.ForEach(func(_, raw []byte) error {
		var t action.TaskStatus
		if err := json.Unmarshal(raw, &t); err != nil {
			return fmt.Errorf("a task of the rack: %w", err)
		}
		ref := attempt{t.CloudTask, t.Attempt}
		if _, ok := r.acked[ref]; ok {
			r.acked[ref] = t.State
		}
		if t.State == action.Succeeded || t.State == action.TaskError || t.State == action.Cancelled {
			r.ended = append(r.ended, t)
		}
		return nil
	})
}

// readCloud reads rackcloud's database, after the write-ahead log that lies beside it.
func (r *Remains) readCloud(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	u := url.URL{Scheme: "file", Path: path}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		return fmt.Errorf("cloud.db: integrity check: %q, %v", verdict, err)
	}
	if n, err := count(ctx, db, "SELECT count(*) FROM pragma_foreign_key_check"); err != nil || n > 0 {
		return fmt.Errorf("cloud.db: %d rows refer to nothing, %v", n, err)
	}
	if n, err := count(ctx, db, "SELECT count(*) FROM sqlite_master WHERE name = 'tasks'"); err != nil || n == 0 {
		return err // the power went before the tables were made
	}
	err = errors.Join(
		db.QueryRowContext(ctx, "SELECT generation FROM installation").Scan(&r.Cloud),
		each(ctx, db, "SELECT id, 0, state FROM tasks", func(task string, _ int, state string) { r.Tasks[task] = state }),
		each(ctx, db, "SELECT task, attempt, state FROM attempts", func(task string, n int, state string) { r.attempts[attempt{task, n}] = state }),
	)
	for what, query := range faults {
		var found error
		e := each(ctx, db, query, func(task string, n int, _ string) {
			found = errors.Join(found, fmt.Errorf("cloud.db: %s: task %s, attempt %d", what, task, n))
		})
		err = errors.Join(err, found, e)
	}
	events, e := count(ctx, db, "SELECT count(*) FROM events")
	if r.told > uint64(events) {
		err = errors.Join(err, fmt.Errorf("the cloud has acknowledged %d events and has %d", r.told, events))
	}
	return errors.Join(err, e)
}

// faults are questions to the cloud's database whose answer must be nothing.
var faults = map[string]string{
	"a gap in the step index": `SELECT task, attempt, '' FROM decisions GROUP BY task, attempt
		HAVING min(step) <> 0 OR max(step) <> count(*) - 1`,
	"the next step is another than its decisions say": `SELECT a.task, a.attempt, '' FROM attempts a
		WHERE a.next_step <> (SELECT count(*) FROM decisions d WHERE d.task = a.task AND d.attempt = a.attempt)`,
	"one request has two decisions": `SELECT min(task), count(*), '' FROM decisions GROUP BY host, request_id HAVING count(*) > 1`,
	"succeeded twice":               `SELECT task, max(attempt), '' FROM attempts WHERE outcome = 'succeeded' GROUP BY task HAVING count(*) > 1`,
	"succeeded without an attempt that did": `SELECT id, attempt, '' FROM tasks t WHERE state = 'succeeded'
		AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.task = t.id AND a.outcome = 'succeeded')`,
	"two submissions of one key": `SELECT min(id), count(*), '' FROM tasks GROUP BY submit_key HAVING count(*) > 1`,
}

func count(ctx context.Context, db *sql.DB, query string) (n int, err error) {
	return n, db.QueryRowContext(ctx, query).Scan(&n)
}

// each calls f for each row of a task, a number and a text.
func each(ctx context.Context, db *sql.DB, query string, f func(task string, n int, text string)) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("cloud.db: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var task, text string
		var n int
		if err := rows.Scan(&task, &n, &text); err != nil {
			return fmt.Errorf("cloud.db: %w", err)
		}
		f(task, n, text)
	}
	return rows.Err()
}

// compare wants every result that was acknowledged to the rack in the cloud's database.
func (r *Remains) compare() (err error) {
	for ref, said := range r.acked {
		state, ok := r.attempts[ref]
		switch {
		case !ok:
			err = errors.Join(err, fmt.Errorf("attempt %s was acknowledged and the cloud does not know it", ref))
		case !over(state):
			err = errors.Join(err, fmt.Errorf("the result of %s was acknowledged, and for the cloud it is still %s", ref, state))
		case said == action.Succeeded && state != "succeeded" && state != "lost":
			// lost: its lease had run out, the result was acknowledged and ignored
			err = errors.Join(err, fmt.Errorf("attempt %s has succeeded, was acknowledged, and for the cloud it is %s", ref, state))
		}
	}
	return err
}

// Acked is how many results the cloud has acknowledged to the rack.
func (r *Remains) Acked() int { return len(r.acked) }

// After wants that nothing of an earlier look is undone. A lost task may be queued again: it turns out that nothing was
// written, or a person says so.
func (r *Remains) After(before *Remains) (err error) {
	for what, pair := range map[string][2]uint64{"boot counter": {before.Boot, r.Boot}, "session": {before.Session, r.Session}} {
		if pair[1] < pair[0] {
			err = errors.Join(err, fmt.Errorf("the %s has gone back from %d to %d", what, pair[0], pair[1]))
		}
	}
	if before.Generation != "" && r.Generation != before.Generation {
		err = errors.Join(err, fmt.Errorf("the generation of rackd's database was %q and is %q: it was lost", before.Generation, r.Generation))
	}
	if before.Cloud != 0 && r.Cloud != before.Cloud {
		err = errors.Join(err, fmt.Errorf("the generation of the cloud's database was %d and is %d", before.Cloud, r.Cloud))
	}
	for ref := range before.acked {
		if _, ok := r.acked[ref]; !ok {
			err = errors.Join(err, fmt.Errorf("the rack has forgotten that it ended %s", ref))
		}
	}
	return errors.Join(err, r.Keeps(before.Tasks))
}

// Keeps wants the tasks that somebody has seen: all of them, and those that were over as they were.
func (r *Remains) Keeps(seen map[string]string) (err error) {
	for id, state := range seen {
		now, ok := r.Tasks[id]
		if !ok {
			err = errors.Join(err, fmt.Errorf("task %s was %s and is not there", id, state))
		} else if over(state) && state != "lost" && now != state {
			err = errors.Join(err, fmt.Errorf("task %s was %s and is %s", id, state, now))
		}
	}
	return err
}
