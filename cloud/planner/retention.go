package planner

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"phonerack/cloud/store"
)

// Defaults of Retention.
const (
	DefaultWindow = 30 * 24 * time.Hour
	DefaultEvery  = time.Hour
)

// behind is the share of Every after which a run goes on that its budget has ended.
const behind = 10

// Pruner removes old rows in bounded batches, as [store.System] does.
type Pruner interface {
	Prune(ctx context.Context, o store.PruneOptions) (store.Pruned, error)
}

// Retention removes the decisions and request rows of tasks that have been terminal for longer than the window, and, each
// after a longer time, what else is over. Any number of replicas may run it.
type Retention struct {
	Store       Pruner
	Window      time.Duration // 0 means DefaultWindow
	AuditWindow time.Duration // of the audit; 0 keeps all

	Tasks    time.Duration // after their end, with their attempts and results; 0 keeps all
	Commands time.Duration // the same
	Accounts time.Duration // of a day; 0 keeps all

	Every  time.Duration // between two runs, give or take a tenth; 0 means DefaultEvery
	Batch  int           // rows of a transaction; 0: the store's default
	Budget time.Duration // of a run; 0: the store's default

	Clock   func() time.Time // nil: time.Now
	Logger  *slog.Logger     // nil: slog.Default
	Metrics *Metrics         // nil: not counted
}

// Run prunes until ctx ends. The first run comes after a random part of a tenth of Every, so that replicas that start
// together do not prune together. A run that fails is logged, and the next one comes at its time.
func (r Retention) Run(ctx context.Context) {
	r = r.filled()
	wait := time.Duration(rand.Int64N(int64(r.Every)/10 + 1))
	for sleep(ctx, wait) == nil {
		done := r.once(ctx)
		wait = r.Every - r.Every/10 + time.Duration(rand.Int64N(int64(r.Every)/5+1))
		if !done {
			wait /= behind
		}
	}
}

func (r Retention) filled() Retention {
	if r.Window <= 0 {
		r.Window = DefaultWindow
	}
	if r.Every <= 0 {
		r.Every = DefaultEvery
	}
	if r.Clock == nil {
		r.Clock = time.Now
	}
	if r.Logger == nil {
		r.Logger = slog.Default()
	}
	if r.Metrics == nil {
		r.Metrics = NewMetrics(nil)
	}
	return r
}

// once is one run. It tells whether nothing that is due is left, or it cannot be told.
func (r Retention) once(ctx context.Context) bool {
	now := r.Clock()
	o := store.PruneOptions{Before: now.Add(-r.Window), Batch: r.Batch, Budget: r.Budget}
	for _, w := range []struct {
		before *time.Time
		window time.Duration
	}{{&o.AuditBefore, r.AuditWindow}, {&o.TasksBefore, r.Tasks}, {&o.CommandsBefore, r.Commands}, {&o.AccountsBefore, r.Accounts}} {
		if w.window > 0 {
			*w.before = now.Add(-w.window)
		}
	}
	p, err := r.Store.Prune(ctx, o)
	for kind, n := range map[string]int64{"decision": p.Decisions, "request": p.Requests, "audit": p.Audits, "window": p.Windows, "task": p.Tasks, "command": p.Commands, "account": p.Accounts, "skill": p.Skills} {
		r.Metrics.pruned.WithLabelValues(kind).Add(float64(n))
	}
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil:
		r.Logger.Error("retention failed", "error", err)
		return true
	}
	r.Metrics.left.Set(float64(p.Left))
	if p.Decisions+p.Requests+p.Audits+p.Tasks+p.Commands+p.Accounts+p.Skills > 0 {
		r.Logger.Info("old records removed", "decisions", p.Decisions, "requests", p.Requests, "audits", p.Audits, "tasks", p.Tasks,
			"commands", p.Commands, "accounts", p.Accounts, "skills", p.Skills, "done", p.Done)
	}
	return p.Done
}
