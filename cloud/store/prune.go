package store

import (
	"context"
	"time"
)

const (
	pruneBatch  = 500
	pruneBudget = time.Minute
	loosePlan   = time.Hour      // how long a request outside a task can be repeated
	usedWindows = 48 * time.Hour // windows of limits that old count for nothing
	mostLeft    = 100_000        // counting more would take as long as pruning

	keptBodies   = 24 * time.Hour      // of versions that were replaced: racks may be fetching them
	keptRemovals = 30 * 24 * time.Hour // of skills and grants: a rack that was away longer gets the whole list
)

// prunable selects the tasks to look at. Those that were pruned before are out of the index, or each batch would go
// through all of history. The joins below are CROSS JOIN because SQLite then reads the left side first.
const prunable = `k.ended > 0 AND k.pruned = 0 AND k.ended < ?`

// forgettable selects tasks whose decisions and requests are gone. The state need not be asked: one that is queued again is not pruned any
// longer.
const forgettable = `k.pruned = 1 AND k.ended > 0 AND k.ended < ?`

// dayOf is the day of a time as accounts have it; before all days for the zero time.
func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(dayForm)
}

// Prune removes what is older than asked, in bounded batches, and gives the room back to the file system (SQLite; on
// PostgreSQL autovacuum makes it reusable). Requests outside a task go after an hour in any case.
func (y *System) Prune(ctx context.Context, o PruneOptions) (p Pruned, err error) {
	if o.Batch <= 0 {
		o.Batch = pruneBatch
	}
	if o.Budget <= 0 {
		o.Budget = pruneBudget
	}
	now := y.s.clock()
	end := time.Now().Add(o.Budget) // a budget of real time, whatever the records' clock says
	p.Done = true
	for _, j := range p.deletions(o, now) {
		if err = y.batches(ctx, end, o.Batch, j.count, &p.Done, j.q, j.args); err != nil {
			return p, err
		}
	}
	if err = y.pruneRemovals(ctx, end, o.Batch, now.Add(-keptRemovals).UnixMilli(), &p); err != nil {
		return p, err
	}
	if !p.Done {
		err = y.s.read(ctx, Scope{}, func(t *tx) error {
			return t.row(`SELECT COUNT(*) FROM (SELECT d.step FROM tasks k CROSS JOIN decisions d WHERE `+prunable+` AND d.task = k.id LIMIT ?) due`,
				ms(o.Before), mostLeft).Scan(&p.Left)
		})
		if err != nil {
			return p, err
		}
	}
	return p, y.shrink(ctx)
}

// deletion is a statement that removes a batch, and where its rows are counted. Its last argument is the batch's size.
type deletion struct {
	count *int64
	q     string
	args  []any // all but the last
}

// deletions are what a run does, in this order.
func (p *Pruned) deletions(o PruneOptions, now time.Time) []deletion {
	minute, day := now.Add(-usedWindows).Unix()/60, now.Add(-usedWindows).UTC().Format(dayForm)
	return []deletion{
		// The requests go first: without its decision a request could not be answered any more.
		{&p.Requests, `DELETE FROM plan_requests WHERE (host, id) IN (SELECT r.host, r.id FROM tasks k CROSS JOIN plan_requests r
			WHERE ` + prunable + ` AND r.task = k.id LIMIT ?)`, []any{ms(o.Before)}},
		{
			&p.Requests, `DELETE FROM plan_requests WHERE (host, id) IN (SELECT host, id FROM plan_requests WHERE task = '' AND created < ? LIMIT ?)`,
			[]any{now.Add(-loosePlan).UnixMilli()},
		},
		{&p.Decisions, `DELETE FROM decisions WHERE (task, attempt, step) IN (SELECT d.task, d.attempt, d.step FROM tasks k CROSS JOIN decisions d
			WHERE ` + prunable + ` AND d.task = k.id LIMIT ?)`, []any{ms(o.Before)}},
		{new(int64), `UPDATE tasks SET pruned = 1 WHERE id IN (SELECT k.id FROM tasks k WHERE ` + prunable + ` AND NOT EXISTS (SELECT 1 FROM plan_requests r
			WHERE r.task = k.id) AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.task = k.id) LIMIT ?)`, []any{ms(o.Before)}},
		{&p.Audits, `DELETE FROM audits WHERE id IN (SELECT id FROM audits WHERE at < ? ORDER BY at LIMIT ?)`, []any{ms(o.AuditBefore)}},
		{new(int64), `DELETE FROM releases WHERE (task, host) IN (SELECT r.task, r.host FROM tasks k CROSS JOIN releases r WHERE ` + forgettable + `
			AND r.task = k.id LIMIT ?)`, []any{ms(o.TasksBefore)}},
		{new(int64), `DELETE FROM attempts WHERE (task, attempt) IN (SELECT a.task, a.attempt FROM tasks k CROSS JOIN attempts a WHERE ` + forgettable + `
			AND a.task = k.id LIMIT ?)`, []any{ms(o.TasksBefore)}},
		{new(int64), `DELETE FROM task_files WHERE (task, sha256) IN (SELECT x.task, x.sha256 FROM tasks k CROSS JOIN task_files x WHERE ` + forgettable + `
			AND x.task = k.id LIMIT ?)`, []any{ms(o.TasksBefore)}},
		{&p.Tasks, `DELETE FROM tasks WHERE id IN (SELECT k.id FROM tasks k WHERE ` + forgettable + ` AND NOT EXISTS (SELECT 1 FROM attempts a
			WHERE a.task = k.id) AND NOT EXISTS (SELECT 1 FROM releases r WHERE r.task = k.id) AND NOT EXISTS (SELECT 1 FROM task_files x WHERE x.task = k.id)
			LIMIT ?)`, []any{ms(o.TasksBefore)}},
		{
			&p.Files, `DELETE FROM files WHERE at < ? AND (tenant, sha256) IN (SELECT f.tenant, f.sha256 FROM files f WHERE f.at < ? AND NOT EXISTS
			(SELECT 1 FROM task_files x WHERE x.tenant = f.tenant AND x.sha256 = f.sha256) LIMIT ?)`,
			[]any{now.Add(-keptFiles).UnixMilli(), now.Add(-keptFiles).UnixMilli()},
		},
		{
			&p.Commands, `DELETE FROM commands WHERE id IN (SELECT id FROM commands WHERE state NOT IN ('queued', 'accepted', 'running') AND updated < ? LIMIT ?)`,
			[]any{ms(o.CommandsBefore)},
		},
		{&p.Accounts, `DELETE FROM accounts WHERE (tenant, day, host, task, profile) IN (SELECT tenant, day, host, task, profile FROM accounts
			WHERE day < ? LIMIT ?)`, []any{dayOf(o.AccountsBefore)}},
		{&p.Windows, `DELETE FROM profile_minutes WHERE (profile, minute) IN (SELECT profile, minute FROM profile_minutes WHERE minute < ? LIMIT ?)`, []any{minute}},
		{&p.Windows, `DELETE FROM profile_days WHERE (profile, day) IN (SELECT profile, day FROM profile_days WHERE day < ? LIMIT ?)`, []any{day}},
		{
			&p.Skills, `DELETE FROM blobs WHERE (tenant, sha256) IN (SELECT b.tenant, b.sha256 FROM blobs b WHERE b.at < ? AND NOT EXISTS (SELECT 1 FROM skills k
			WHERE k.tenant = b.tenant AND k.id = b.skill AND k.sha256 = b.sha256 AND k.removed = 0) LIMIT ?)`, []any{now.Add(-keptBodies).UnixMilli()},
		},
	}
}

// pruneRemovals forgets what was removed or ended before. From then on, older versions cannot be gone on from, which is
// said before the first row goes.
func (y *System) pruneRemovals(ctx context.Context, end time.Time, batch int, before int64, p *Pruned) error {
	if time.Now().After(end) {
		p.Done = false
		return nil
	}
	type mark struct {
		tenant  string
		version int64
	}
	var marks []mark
	err := y.s.read(ctx, Scope{}, func(t *tx) (err error) {
		marks, err = list(t, func(r scanner) (m mark, err error) { return m, r.Scan(&m.tenant, &m.version) }, `SELECT tenant, MAX(changed) FROM
			(SELECT tenant, changed FROM skills WHERE removed > 0 AND removed < ? UNION ALL SELECT tenant, changed FROM grants WHERE ended > 0 AND ended < ?) gone
			GROUP BY tenant`, before, before)
		return err
	})
	if err != nil {
		return err
	}
	for _, m := range marks {
		if err := y.s.write(ctx, Scope{}, func(t *tx) error {
			_, err := t.exec(`UPDATE catalogs SET oldest = ? WHERE tenant = ? AND oldest < ?`, m.version, m.tenant, m.version)
			return err
		}); err != nil {
			return err
		}
	}
	for _, q := range []string{
		`DELETE FROM skills WHERE removed > 0 AND removed < ? AND (tenant, id) IN (SELECT k.tenant, k.id FROM skills k JOIN catalogs c ON c.tenant = k.tenant
			WHERE k.removed > 0 AND k.removed < ? AND k.changed <= c.oldest LIMIT ?)`,
		`DELETE FROM grants WHERE ended > 0 AND ended < ? AND (tenant, subscription, rack, agent) IN (SELECT g.tenant, g.subscription, g.rack, g.agent
			FROM grants g JOIN catalogs c ON c.tenant = g.tenant WHERE g.ended > 0 AND g.ended < ? AND g.changed <= c.oldest LIMIT ?)`,
	} {
		if err := y.batches(ctx, end, batch, &p.Skills, &p.Done, q, []any{before, before}); err != nil {
			return err
		}
	}
	return nil
}

// batches runs a deletion until it finds less than a batch, or until the budget ends.
func (y *System) batches(ctx context.Context, end time.Time, batch int, count *int64, done *bool, q string, args []any) error {
	for {
		if time.Now().After(end) {
			*done = false
			return nil
		}
		var n int64
		err := y.s.write(ctx, Scope{}, func(t *tx) (err error) {
			n, err = t.exec(q, append(args, batch)...)
			return err
		})
		*count += n
		if err != nil || n < int64(batch) {
			return err
		}
	}
}

// shrink gives free pages of an SQLite file back, and empties its log.
func (y *System) shrink(ctx context.Context) error {
	if y.s.d.postgres {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pruneBudget)
	defer cancel()
	for _, pragma := range []string{`PRAGMA incremental_vacuum`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if err := y.s.lite.write(ctx, alone, func(q querier) error { return drain(ctx, q, pragma) }); err != nil {
			return err
		}
	}
	return nil
}

// drain runs a statement and reads its rows to the end: incremental_vacuum frees a page a row.
func drain(ctx context.Context, q querier, text string) error {
	rows, err := q.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	return rows.Err()
}
