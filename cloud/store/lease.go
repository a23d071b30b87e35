package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Renew prolongs a live lease to length from now and gives its new end.
func (s *Store) Renew(ctx context.Context, sc Scope, host string, r Ref, length time.Duration) (until time.Time, err error) {
	if err = check(sc.check(), leaseOK(length)); err != nil {
		return time.Time{}, err
	}
	err = s.ofRack(ctx, sc, host, func(t *tx) error {
		task, a, err := t.lockLive(host, r)
		if err != nil {
			return err
		}
		if err = t.running(task, a); err != nil {
			return err
		}
		until = fromMS(t.now + length.Milliseconds())
		_, err = t.exec(`UPDATE attempts SET until = ? WHERE task = ? AND attempt = ?`, ms(until), r.Task, r.Attempt)
		return err
	})
	return until, err
}

// ofRack is write for what a rack asks: a rack of another tenant is not found before anything else is looked at.
func (s *Store) ofRack(ctx context.Context, sc Scope, host string, f func(*tx) error) error {
	return s.write(ctx, sc, func(t *tx) error {
		var one int
		if err := t.row(`SELECT 1 FROM hosts WHERE id = ? AND tenant = ?`, host, sc.Tenant).Scan(&one); err != nil {
			return err
		}
		return f(t)
	})
}

// running notes that a leased attempt has begun. Both rows are locked.
func (t *tx) running(k Task, a Attempt) error {
	if a.State != Leased {
		return nil
	}
	if err := t.move(k, a, Running); err != nil {
		return err
	}
	return t.audit("task.run", a.Ref.String(), nil)
}

// move sets the state of a live attempt and of its task.
func (t *tx) move(k Task, a Attempt, to TaskState) error {
	if _, err := t.exec(`UPDATE attempts SET state = ? WHERE task = ? AND attempt = ?`, to, a.Task, a.Attempt); err != nil {
		return err
	}
	return t.setTask(k, to, nil)
}

// Release gives a task back before the first write. It is queued again at once, the attempt does not count, and this
// rack is not offered it until its skills version is another than the one given here. Again for a released attempt it
// changes nothing.
func (s *Store) Release(ctx context.Context, sc Scope, host string, r Ref, skillsVersion string, cause json.RawMessage) error {
	return s.release(ctx, sc, host, r, &skillsVersion, cause)
}

// ReleaseForNow is Release for a reason that passes, such as a slot that somebody holds: this rack may be offered the
// task again at once.
func (s *Store) ReleaseForNow(ctx context.Context, sc Scope, host string, r Ref, cause json.RawMessage) error {
	return s.release(ctx, sc, host, r, nil, cause)
}

// release excludes the rack until its skills version is another than except, which may be nil for not at all.
func (s *Store) release(ctx context.Context, sc Scope, host string, r Ref, except *string, cause json.RawMessage) error {
	version := ""
	if except != nil {
		version = *except
	}
	if err := check(sc.check(), textOK("skills version", version, 0, maxName), jsonOK("error", cause)); err != nil {
		return err
	}
	return s.ofRack(ctx, sc, host, func(t *tx) error {
		task, a, err := t.lockAttempt(host, r)
		switch {
		case err != nil:
			return err
		case a.State == Released:
			return nil
		case t.over(a):
			return fmt.Errorf("attempt %s: %w", r, ErrAttemptOver)
		case a.Wrote != nil && *a.Wrote:
			return fmt.Errorf("%w: attempt %s has written to the phone", ErrConflict, r)
		}
		_, err = t.exec(`UPDATE attempts SET state = ?, ended = ?, wrote = 0, error = ? WHERE task = ? AND attempt = ?`,
			Released, t.now, string(cause), r.Task, r.Attempt)
		if err != nil {
			return err
		}
		if except != nil {
			_, err = t.exec(`INSERT INTO releases (task, host, skills_version) VALUES (?, ?, ?)
				ON CONFLICT (task, host) DO UPDATE SET skills_version = excluded.skills_version`, r.Task, host, version)
			if err != nil {
				return err
			}
		}
		if _, err = t.exec(`UPDATE tasks SET tries = tries - 1 WHERE id = ?`, r.Task); err != nil {
			return err
		}
		if err = t.setTask(task, orCancelled(task, Queued), nil); err != nil {
			return err
		}
		return t.audit("task.release", r.String(), map[string]any{"host": host})
	})
}

// Heartbeat notes what a rack has and does, and answers what it should be doing. It prolongs no lease.
func (s *Store) Heartbeat(ctx context.Context, sc Scope, h Heartbeat) (sync Sync, err error) {
	err = check(sc.check(), jsonOK("slots", h.Slots), textOK("skills version", h.SkillsVersion, 0, maxName),
		inRange("number of running attempts", int64(len(h.Running)), 0, maxSlot))
	if err != nil {
		return Sync{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		sync = Sync{}
		if _, err := t.lockHost(h.Host); err != nil {
			return err
		}
		_, err := t.exec(`UPDATE hosts SET last_seen = ?, slots = ?, skills_version = ? WHERE id = ?`, t.now, string(h.Slots), h.SkillsVersion, h.Host)
		if err != nil {
			return err
		}
		refs, err := t.liveOf(h.Host)
		if err != nil {
			return err
		}
		live := map[Ref]bool{}
		for _, r := range refs {
			live[r] = true
		}
		for _, run := range h.Running {
			if !live[run.Ref] {
				sync.Unknown = append(sync.Unknown, run.Ref)
			} else if err = t.reported(h.Host, run); err != nil {
				return err
			}
		}
		sync.Leases, sync.Cancel, err = t.leasesOf(h.Host)
		return err
	})
	return sync, err
}

// reported notes what a heartbeat says of a live attempt.
func (t *tx) reported(host string, run RunningAttempt) error {
	task, a, err := t.lockAttempt(host, run.Ref)
	if err != nil || a.State.Terminal() {
		return err
	}
	if err = t.running(task, a); err != nil {
		return err
	}
	if a.State == Waiting && run.Answered != "" && run.Answered == a.QuestionID {
		if err = t.move(task, a, Running); err != nil {
			return err
		}
		if err = t.audit("task.answer", a.Ref.String(), map[string]any{"question": a.QuestionID, "at": "rack"}); err != nil {
			return err
		}
	}
	if !run.Wrote && !run.Ended {
		return nil
	}
	// What was written stays written, whatever a later report says.
	_, err = t.exec(`UPDATE attempts SET wrote = ? WHERE task = ? AND attempt = ? AND coalesce(wrote, 0) = 0`, bit(run.Wrote), run.Task, run.Attempt)
	return err
}

// liveOf lists the live attempts of a rack.
func (t *tx) liveOf(host string) ([]Ref, error) {
	scan := func(r scanner) (ref Ref, err error) { return ref, r.Scan(&ref.Task, &ref.Attempt) }
	return list(t, scan, `SELECT task, attempt FROM attempts WHERE host = ? AND `+liveAttempt+` AND until > ? ORDER BY slot`,
		host, t.now-Grace.Milliseconds())
}

// leasesOf lists the leases of a rack, and which of them somebody wants ended.
func (t *tx) leasesOf(host string) (leases []Lease, cancel []Ref, err error) {
	refs, err := t.liveOf(host)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range refs {
		task, err := t.task(r.Task)
		if err != nil {
			return nil, nil, err
		}
		a, err := scanAttempt(t.row(`SELECT `+attemptColumns+` FROM attempts WHERE task = ? AND attempt = ?`, r.Task, r.Attempt))
		if err != nil {
			return nil, nil, err
		}
		leases = append(leases, Lease{task, a})
		if task.Cancel {
			cancel = append(cancel, r)
		}
	}
	return leases, cancel, nil
}

// Ask stores a question to a person; the task waits, its lease goes on.
func (s *Store) Ask(ctx context.Context, sc Scope, host string, r Ref, q Question) error {
	if err := check(sc.check(), textOK("question id", q.ID, 1, maxName), jsonOK("question", q.Body)); err != nil {
		return err
	}
	return s.ofRack(ctx, sc, host, func(t *tx) error {
		task, a, err := t.lockLive(host, r)
		if err != nil || a.QuestionID == q.ID {
			return err
		}
		_, err = t.exec(`UPDATE attempts SET question_id = ?, question = ?, answer = '' WHERE task = ? AND attempt = ?`,
			q.ID, string(q.Body), r.Task, r.Attempt)
		if err != nil {
			return err
		}
		if err = t.move(task, a, Waiting); err != nil {
			return err
		}
		return t.audit("task.ask", r.String(), map[string]any{"question": q.ID})
	})
}

// Answer stores a person's answer to the open question of a task and gives the attempt and rack to tell. The first
// answer counts; ErrConflict if nothing is asked, or another question than the one that is answered. Without the
// question's id any is.
func (s *Store) Answer(ctx context.Context, sc Scope, id, question string, answer json.RawMessage) (a Attempt, err error) {
	err = check(sc.check(), textOK("question id", question, 0, maxName), jsonOK("answer", answer), inRange("size of the answer", int64(len(answer)), 1, maxJSON))
	if err != nil {
		return Attempt{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		task, err := t.lockTask(id)
		if err != nil {
			return err
		}
		if task.State != Waiting {
			return fmt.Errorf("%w: the task is %s, nobody asks", ErrConflict, task.State)
		}
		if a, err = t.attempt(Ref{id, task.Attempt}); err != nil {
			return err
		}
		if question != "" && question != a.QuestionID {
			return fmt.Errorf("%w: another question is open", ErrConflict)
		}
		_, err = t.exec(`UPDATE attempts SET answer = ? WHERE task = ? AND attempt = ?`, string(answer), a.Task, a.Attempt)
		if err != nil {
			return err
		}
		if err = t.move(task, a, Running); err != nil {
			return err
		}
		a.State, a.Answer = Running, answer
		return t.audit("task.answer", a.Ref.String(), map[string]any{"question": a.QuestionID})
	})
	return a, err
}
