package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	liveAttempt = `state IN ('leased', 'running', 'waiting')`
	maxLease    = time.Hour
)

const attemptColumns = `task, attempt, host, slot, phone, claim_id, state, started, until, ended, next_step, wrote, steps, outcome, result,
	error, question_id, question, answer`

func scanAttempt(r scanner) (Attempt, error) {
	var a Attempt
	err := r.Scan(&a.Task, &a.Attempt, &a.Host, &a.Slot, &a.Phone, &a.ClaimID, &a.State, timeIn{&a.Started}, timeIn{&a.Until}, timeIn{&a.Ended},
		&a.NextStep, truth{&a.Wrote}, &a.Steps, &a.Outcome, jsonIn{&a.Result}, jsonIn{&a.Error}, &a.QuestionID, jsonIn{&a.Question},
		jsonIn{&a.Answer})
	return a, err
}

func (r Ref) String() string { return r.Task + "/" + strconv.Itoa(r.Attempt) }

// over tells whether an attempt that is still open in the records has run out of its lease for good.
func (t *tx) over(a Attempt) bool {
	return a.State.Terminal() || t.now >= a.Until.Add(Grace).UnixMilli()
}

func (c *Claim) check() error {
	return check(inRange("slot", int64(c.Slot), 1, maxSlot), textOK("phone", c.Phone, 0, maxName), textOK("claim id", c.ID, 1, maxName),
		textOK("skills version", c.SkillsVersion, 0, maxName), listOK("tags", c.Tags, maxTags), listOK("apps", c.Apps, maxApps),
		leaseOK(c.Lease))
}

func leaseOK(d time.Duration) error {
	return inRange("lease in ms", d.Milliseconds(), 1, maxLease.Milliseconds())
}

// Claim gives a slot its task: the lease of the same claim id; else the slot's live lease; else the first queued task
// that fits by priority and age. ok is false if there is none. A lease that was there already is prolonged to c.Lease
// from now. ErrAttemptOver: the lease of this claim id has ended, claim with a new one. ErrRequestConflict: the claim
// id was another slot's.
func (s *Store) Claim(ctx context.Context, sc Scope, c Claim) (lease Lease, ok bool, err error) {
	if err = check(sc.check(), c.check()); err != nil {
		return Lease{}, false, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		lease, ok = Lease{}, false
		host, err := t.lockHost(c.Host) // a rack's claims take turns
		if err != nil {
			return err
		}
		if !host.Revoked.IsZero() {
			return fmt.Errorf("%w: the rack is revoked", ErrConflict)
		}
		if lease, ok, err = t.standingLease(c); ok || err != nil {
			return err
		}
		id, err := t.nextTask(c, host)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			lease, err = t.grant(c, id)
		}
		ok = err == nil
		return err
	})
	return lease, ok, err
}

// standingLease finds the lease that the claim already has.
func (t *tx) standingLease(c Claim) (Lease, bool, error) {
	a, err := scanAttempt(t.row(`SELECT `+attemptColumns+` FROM attempts WHERE host = ? AND claim_id = ?`, c.Host, c.ID))
	same := err == nil
	if same && a.Slot != c.Slot {
		return Lease{}, false, fmt.Errorf("%w: claim %q was for slot %d", ErrRequestConflict, c.ID, a.Slot)
	}
	if errors.Is(err, sql.ErrNoRows) {
		a, err = scanAttempt(t.row(`SELECT `+attemptColumns+` FROM attempts WHERE host = ? AND slot = ? AND `+liveAttempt, c.Host, c.Slot))
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Lease{}, false, nil
	}
	if err != nil {
		return Lease{}, false, err
	}
	task, a, err := t.lockAttempt(c.Host, a.Ref) // read again under the lock
	if err != nil {
		return Lease{}, false, err
	}
	switch {
	case t.over(a) && same:
		return Lease{}, false, fmt.Errorf("claim %q, attempt %s: %w", c.ID, a.Ref, ErrAttemptOver)
	case a.State.Terminal():
		return Lease{}, false, nil
	case t.over(a):
		_, err = t.lose(task, a, "lease")
		return Lease{}, false, err
	}
	a.Until = fromMS(t.now + c.Lease.Milliseconds())
	_, err = t.exec(`UPDATE attempts SET until = ? WHERE task = ? AND attempt = ?`, ms(a.Until), a.Task, a.Attempt)
	return Lease{task, a}, err == nil, err
}

// nextTask takes the first fitting task for this transaction; one that another replica is taking is passed over.
func (t *tx) nextTask(c Claim, host Host) (id string, err error) {
	tags := append(append([]string{""}, c.Tags...), host.Tags...)
	apps := append([]string{""}, c.Apps...)
	args := []any{t.sc.Tenant, t.now, t.now, c.Host, c.Slot, c.Phone}
	for _, s := range append(tags, apps...) {
		args = append(args, s)
	}
	args = append(args, c.Host, c.SkillsVersion)
	err = t.row(`SELECT id FROM tasks WHERE tenant = ? AND state = 'queued' AND not_before <= ? AND (deadline = 0 OR deadline > ?)
		AND rack IN ('', ?) AND slot IN (0, ?) AND phone IN ('', ?) AND tag IN (`+marks(len(tags))+`) AND app IN (`+marks(len(apps))+`)
		AND NOT EXISTS (SELECT 1 FROM releases r WHERE r.task = tasks.id AND r.host = ? AND r.skills_version = ?)
		ORDER BY priority DESC, created, id LIMIT 1 FOR UPDATE SKIP LOCKED`, args...).Scan(&id)
	return id, err
}

// grant makes the next attempt of a queued task, whose row is locked.
func (t *tx) grant(c Claim, id string) (Lease, error) {
	err := t.one(fmt.Errorf("%w: task %s is taken", ErrConflict, id),
		`UPDATE tasks SET state = ?, attempt = attempt + 1, tries = tries + 1 WHERE id = ? AND state = ?`, Leased, id, Queued)
	if err != nil {
		return Lease{}, err
	}
	task, err := t.task(id)
	if err != nil {
		return Lease{}, err
	}
	a := Attempt{
		Ref: Ref{id, task.Attempt}, Host: c.Host, Slot: c.Slot, Phone: c.Phone, ClaimID: c.ID, State: Leased,
		Started: fromMS(t.now), Until: fromMS(t.now + c.Lease.Milliseconds()),
	}
	_, err = t.exec(`INSERT INTO attempts (task, attempt, tenant, host, slot, phone, claim_id, state, started, until, ended, next_step, wrote, steps,
		outcome, result, error, question_id, question, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, NULL, 0, '', '', '', '', '', '')`,
		a.Task, a.Attempt, t.sc.Tenant, a.Host, a.Slot, a.Phone, a.ClaimID, a.State, t.now, ms(a.Until))
	if err != nil {
		return Lease{}, err
	}
	return Lease{task, a}, t.audit("task.lease", a.Ref.String(), map[string]any{"host": a.Host, "slot": a.Slot, "phone": a.Phone})
}

// lockAttempt reads a task and its attempt for a rack, and holds both. A task that the rack cannot know of is
// ErrNotYourTask whether it exists or not.
func (t *tx) lockAttempt(host string, r Ref) (Task, Attempt, error) {
	task, err := t.lockTask(r.Task)
	if err != nil {
		return Task{}, Attempt{}, foreign(r, err)
	}
	a, err := t.attempt(r)
	if err != nil {
		return Task{}, Attempt{}, foreign(r, err)
	}
	if a.Host != host {
		return Task{}, Attempt{}, foreign(r, sql.ErrNoRows)
	}
	return task, a, nil
}

func (t *tx) attempt(r Ref) (Attempt, error) {
	return scanAttempt(t.row(`SELECT `+attemptColumns+` FROM attempts WHERE task = ? AND attempt = ? AND tenant = ? FOR UPDATE`, r.Task, r.Attempt, t.sc.Tenant))
}

func foreign(r Ref, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("attempt %.80s: %w", r, ErrNotYourTask)
	}
	return err
}

// lockLive is lockAttempt for an attempt that must still be going on.
func (t *tx) lockLive(host string, r Ref) (Task, Attempt, error) {
	task, a, err := t.lockAttempt(host, r)
	if err == nil && t.over(a) {
		err = fmt.Errorf("attempt %s: %w", r, ErrAttemptOver)
	}
	return task, a, err
}
