package store

import (
	"context"
	"errors"
)

// system is who acts when time does.
const system = "system"

const expireBatch = 500 // records of one kind in one run

// Expire ends what ran out of time: leases that ended Grace ago, tasks still queued at their deadline, commands past
// their expiry (timed_out if they were never handed out, else unknown). Any number of replicas may run it; each record
// is ended, and told, by one of them. A run takes at most 500 of each.
func (y *System) Expire(ctx context.Context) (Expired, error) {
	var e Expired
	return e, errors.Join(y.expireLeases(ctx, &e), y.expireTasks(ctx, &e), y.expireCommands(ctx, &e))
}

func scanTenantRef(r scanner) (ref TenantRef, err error) {
	return ref, r.Scan(&ref.Tenant, &ref.Host, &ref.Task, &ref.Attempt)
}

// expireLeases takes one transaction for each, so that a long list blocks nobody.
func (y *System) expireLeases(ctx context.Context, e *Expired) error {
	var due []TenantRef
	err := y.s.read(ctx, Scope{}, func(t *tx) (err error) {
		due, err = list(t, scanTenantRef, `SELECT tenant, host, task, attempt FROM attempts WHERE `+liveAttempt+` AND until <= ? ORDER BY until LIMIT ?`,
			t.now-Grace.Milliseconds(), expireBatch)
		return err
	})
	for _, ref := range due {
		if err != nil {
			return err
		}
		var to TaskState
		err = y.s.write(ctx, Scope{ref.Tenant, system}, func(t *tx) error {
			to = ""
			task, a, err := t.lockAttempt(ref.Host, ref.Ref)
			if err == nil && !a.State.Terminal() && t.over(a) {
				to, err = t.lose(task, a, "lease")
			}
			return err
		})
		if to != "" && err == nil {
			e.Lost = append(e.Lost, ref)
		}
		if to == Queued && err == nil {
			e.Requeued = append(e.Requeued, ref)
		}
	}
	return err
}

func (y *System) expireTasks(ctx context.Context, e *Expired) error {
	return y.s.write(ctx, Scope{Actor: system}, func(t *tx) (err error) {
		e.Late, err = list(t, scanTenantRef, `UPDATE tasks SET state = ?, ended = ?, error = ? WHERE id IN
			(SELECT id FROM tasks WHERE state = 'queued' AND deadline > 0 AND deadline <= ? ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED)
			RETURNING tenant, '', id, 0`, Failed, t.now, string(refusal("expired")), t.now, expireBatch)
		for _, ref := range e.Late {
			if err == nil {
				err = t.auditFor(Scope{ref.Tenant, system}, "task.expire", ref.Task, nil)
			}
		}
		return err
	})
}

// expireCommands gives a rack Grace to report what it began in time, and a day to report how it ended.
func (y *System) expireCommands(ctx context.Context, e *Expired) error {
	type ended struct{ id, tenant, state string }
	scan := func(r scanner) (c ended, err error) { return c, r.Scan(&c.id, &c.tenant, &c.state) }
	return y.s.write(ctx, Scope{Actor: system}, func(t *tx) error {
		e.Commands = nil
		late := t.now - Grace.Milliseconds()
		all, err := list(t, scan, `UPDATE commands SET state = CASE WHEN sent = 0 THEN 'timed_out' ELSE 'unknown' END, assumed = CASE WHEN sent = 0 THEN 0 ELSE 1 END,
			updated = ? WHERE id IN (SELECT id FROM commands WHERE `+openCommand+` AND (state = 'queued' AND expires <= ? OR expires <= ?)
			ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED) RETURNING id, tenant, state`, t.now, late, late-silence.Milliseconds(), expireBatch)
		for _, c := range all {
			if err == nil {
				e.Commands = append(e.Commands, c.id)
				err = t.auditFor(Scope{c.tenant, system}, "command.expire", c.id, map[string]any{"state": c.state})
			}
		}
		return err
	})
}
