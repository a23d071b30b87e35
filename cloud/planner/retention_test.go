package planner_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"phonerack/cloud/planner"
	"phonerack/cloud/store"
)

// pruner notes when it is asked for what.
type pruner struct {
	at    []time.Time
	asked []store.PruneOptions
	say   []store.Pruned // the last one again and again
	err   error
}

func (p *pruner) Prune(_ context.Context, o store.PruneOptions) (store.Pruned, error) {
	p.at, p.asked = append(p.at, time.Now()), append(p.asked, o)
	return p.say[min(len(p.at), len(p.say))-1], p.err
}

func TestRetentionRunsAtItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := &pruner{say: []store.Pruned{{Decisions: 500}, {Decisions: 20, Done: true}}}
		run(t, planner.Retention{Store: p, Window: 24 * time.Hour, AuditWindow: 48 * time.Hour, Every: time.Hour, Batch: 7}, 10*time.Hour)
		if first := p.at[0].Sub(began); first > 6*time.Minute {
			t.Errorf("the first run came after %s", first)
		}
		if again := p.at[1].Sub(p.at[0]); again < 5*time.Minute || again > 7*time.Minute {
			t.Errorf("a run that left something was followed after %s", again)
		}
		for i := 2; i < len(p.at); i++ {
			if wait := p.at[i].Sub(p.at[i-1]); wait < 54*time.Minute || wait > 66*time.Minute {
				t.Errorf("run %d came after %s", i, wait)
			}
		}
		if len(p.at) < 9 {
			t.Errorf("%d runs in 10 hours", len(p.at))
		}
		for i, o := range p.asked {
			if !o.Before.Equal(p.at[i].Add(-24*time.Hour)) || !o.AuditBefore.Equal(p.at[i].Add(-48*time.Hour)) || o.Batch != 7 {
				t.Errorf("asked for %+v", o)
			}
		}
	})
}

func TestRetentionLivesThroughFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pruner{say: []store.Pruned{{}}, err: errors.New("connection reset")}
		run(t, planner.Retention{Store: p}, 5*time.Hour)
		if len(p.at) < 4 || len(p.at) > 6 {
			t.Errorf("%d runs in 5 hours, want one an hour", len(p.at))
		}
		if o := p.asked[0]; !o.Before.Equal(p.at[0].Add(-planner.DefaultWindow)) || !o.AuditBefore.IsZero() {
			t.Errorf("asked for %+v", o)
		}
	})
}

func TestRetentionTellsThatSomethingIsLeft(t *testing.T) {
	for _, left := range []int64{700, 0} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{t: t, reg: prometheus.NewRegistry()}
			run(t, planner.Retention{Store: &pruner{say: []store.Pruned{{Requests: 3, Done: left == 0, Left: left}}}, Metrics: planner.NewMetrics(b.reg), Every: time.Hour}, 7*time.Minute)
			equal(t, "left", b.counter("retention_left"), float64(left))
			if b.counter("pruned_total", "kind", "request") < 3 {
				t.Error("what was removed is not counted")
			}
		})
	}
}

func run(t *testing.T, r planner.Retention, d time.Duration) {
	t.Helper()
	r.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r.Run(ctx)
}
