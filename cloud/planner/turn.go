package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// Waits between two looks at a request that another replica works on.
const (
	firstLook = 20 * time.Millisecond
	slowLook  = 250 * time.Millisecond
)

// unknownTimeout is how long a request is owned when no profile tells.
const unknownTimeout = time.Second

// fullWait is what a rack is told to wait while the cloud's disk is full.
const fullWait = 30 * time.Second

// turn is one request on its way.
type turn struct {
	*Proxy
	caller   Caller
	req      *wire.PlanRequest
	screen   []byte
	accepted func(time.Duration)
	log      *slog.Logger

	plan    store.PlanRequest
	profile store.Profile

	prepared chan struct{} // closed when what follows is set; nil before there is a profile
	broken   *wire.Refusal // why nothing can be called
	provider ask
	cost     int64 // tokens that the call may use, estimated

	reserved store.Reservation // of the call, until it is settled; zero without one
	in, out  int64             // tokens that the call used
}

// run is Decide without its figures.
func (t *turn) run(ctx context.Context) (wire.PlanDecision, *wire.Refusal) {
	none := wire.PlanDecision{}
	if r := check(t.caller, t.req, t.screen); r != nil {
		return none, r
	}
	if t.req.TaskID == "" && !t.loose.allow(t.caller, t.o.Clock()) {
		what := "planner requests outside of a task in a minute"
		return none, wire.Refuse(wire.LimitExceeded, map[string]any{"what": what, "limit": t.o.LooseRate}).After(time.Minute / time.Duration(t.o.LooseRate))
	}
	hash := hashOf(t.req, t.screen)
	// The profile is read with the row, because its timeout says how long the row is owned. That is the one look of this
	// request: what it finds is what is called.
	t.plan = store.PlanRequest{
		Host: t.caller.Host, ID: t.req.RequestID, Ref: store.Ref{Task: t.req.TaskID, Attempt: t.req.Attempt}, BodyHash: hash,
		Owner: fmt.Sprintf("%s/%d", t.o.Owner, t.calls.Add(1)), Active: t.resolve,
	}
	defer t.ready() // the screen is the caller's again
	return t.begin(ctx)
}

// resolve takes the active profile, nil for none, and tells how long a request is owned under it. While its row is being
// committed the call is made ready. If the transaction has to be run again, so does this.
func (t *turn) resolve(p *store.Profile) time.Duration {
	t.ready()
	t.profile, t.broken = store.Profile{Timeout: unknownTimeout}, nil
	if p == nil {
		t.broken = wire.Refuse(wire.NoProfile, nil)
	} else {
		t.profile = *p
	}
	t.prepared = make(chan struct{})
	go t.prepare()
	return t.profile.Timeout + t.o.Margin
}

// ready waits until the call is ready, if it is being made so.
func (t *turn) ready() {
	if t.prepared != nil {
		<-t.prepared
	}
}

// begin claims the request and brings it to its end, or waits for whoever does, for as long as one call may take.
func (t *turn) begin(ctx context.Context) (wire.PlanDecision, *wire.Refusal) {
	none := wire.PlanDecision{}
	start := time.Now()
	for look, told := firstLook, false; ; look = min(2*look, slowLook) {
		b, err := t.o.Store.Begin(ctx, t.caller.scope(), t.plan)
		if err != nil {
			return none, t.refusal(err)
		}
		t.plan.Active, t.plan.Lease = nil, t.profile.Timeout+t.o.Margin
		switch b.Standing {
		case store.Fresh, store.TakenOver:
			t.at(AfterRequest)
			d, r, lost := t.own(context.WithoutCancel(ctx), b.Standing)
			if !lost {
				return d, r
			}
			continue // whoever took the request over answers it
		case store.Answered:
			t.o.Metrics.answered.Inc()
			return t.stored(b)
		default:
			if !told {
				told = true
				t.accepted(t.profile.Timeout)
			}
		}
		if look = min(look, t.profile.Timeout-time.Since(start)); look <= 0 || sleep(ctx, look) != nil {
			return none, wire.Refuse(wire.ProviderTimeout, map[string]any{"timeout_ms": t.profile.Timeout.Milliseconds()})
		}
	}
}

// stored gives the answer of a request that has one.
func (t *turn) stored(b store.Begun) (wire.PlanDecision, *wire.Refusal) {
	if b.Decision != nil {
		return t.answer(b.Decision), nil
	}
	var r wire.Refusal
	if err := json.Unmarshal(b.Failure, &r); err != nil {
		return wire.PlanDecision{}, t.refusal(fmt.Errorf("stored failure: %w", err))
	}
	return wire.PlanDecision{}, &r
}

// answer is a decision as the rack gets it, the same from its row as at first. What a call outside of a task cost is in
// the accounts only, and so not told at first either.
func (t *turn) answer(d *store.Decision) wire.PlanDecision {
	out := wire.PlanDecision{RequestID: d.RequestID, StepIndex: d.Step, ToolName: d.Tool, Arguments: d.Arguments}
	if d.Task != "" {
		out.Tokens = int(d.TokensIn + d.TokensOut)
	}
	return out
}

// own brings a request to its end that this call owns. lost: another replica owns it now, or its answer is there
// already; nothing was written.
func (t *turn) own(ctx context.Context, standing store.Standing) (d wire.PlanDecision, r *wire.Refusal, lost bool) {
	if standing == store.TakenOver {
		t.log.Warn("planner request is taken over")
	}
	defer t.settle(ctx)
	finish, r := t.ask(ctx)
	if r == nil {
		var row store.Decision
		err := t.write(ctx, func(ctx context.Context) (err error) {
			row, err = t.o.Store.Finish(ctx, t.caller.scope(), finish)
			return err
		})
		if err == nil {
			t.reserved = store.Reservation{} // settled with it
			t.at(AfterCommit)
			t.log.Info("planner decision", "step", row.Step, "tool", row.Tool, "profile", t.profile.Name, "tokens_in", row.TokensIn, "tokens_out", row.TokensOut)
			return t.answer(&row), nil, false
		}
		if errors.Is(err, store.ErrNotOwner) {
			return d, nil, true
		}
		if r = t.refusal(err); r.Code == wire.Internal {
			return d, r, false // it stays open: the same request can be sent again when its ownership has ended
		}
	}
	failure, err := json.Marshal(r)
	if err == nil {
		err = t.write(ctx, func(ctx context.Context) error {
			return t.o.Store.Fail(ctx, t.caller.scope(), store.Failure{
				Host: t.caller.Host, RequestID: t.req.RequestID, Owner: t.plan.Owner, Refusal: failure, TokensIn: t.in, TokensOut: t.out, Reservation: t.reserved,
			})
		})
	}
	switch {
	case errors.Is(err, store.ErrNotOwner):
		return d, nil, true
	case err != nil:
		return d, t.refusal(err), false
	}
	t.reserved = store.Reservation{}
	t.at(AfterCommit)
	t.log.Info("planner failure", "code", r.Code, "profile", t.profile.Name, "provider_status", r.Args["provider_status"], "provider_request", r.Args["request_id"])
	return d, r, false
}

// write tries to store an answer, which may have cost money, for as long as the request is surely owned. An error that
// says why it cannot be stored ends it.
func (t *turn) write(ctx context.Context, store func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.o.Margin/2)
	defer cancel()
	for look := firstLook; ; look = min(2*look, slowLook) {
		err := store(ctx)
		if err == nil || decided(err) {
			return err
		}
		t.log.Error("planner answer is not stored yet", "error", err)
		if sleep(ctx, look) != nil {
			return err
		}
	}
}

// decided tells whether trying again can change nothing.
func decided(err error) bool {
	for _, e := range []error{
		store.ErrNotFound, store.ErrInvalid, store.ErrConflict, store.ErrRequestConflict, store.ErrNotYourTask, store.ErrAttemptOver, store.ErrNotOwner,
		store.ErrRevoked,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refusal puts an error of the store into a code. What is not the caller's fault is logged and may pass.
func (t *turn) refusal(err error) *wire.Refusal {
	task := map[string]any{"task": t.req.TaskID, "attempt": t.req.Attempt}
	switch {
	case errors.Is(err, store.ErrRequestConflict):
		return wire.Refuse(wire.RequestConflict, map[string]any{"request": t.req.RequestID}).Because(err)
	case errors.Is(err, store.ErrAttemptOver):
		return wire.Refuse(wire.AttemptOver, task).Because(err)
	case errors.Is(err, store.ErrNotYourTask), errors.Is(err, store.ErrNotFound) && t.req.TaskID != "":
		return wire.Refuse(wire.NotYourTask, map[string]any{"task": t.req.TaskID}).Because(err)
	case errors.Is(err, store.ErrRevoked), errors.Is(err, store.ErrNotFound): // the rack itself
		return wire.Refuse(wire.Unauthenticated, nil).Because(err)
	}
	t.log.Error("planner request failed", "error", err)
	r := wire.Refuse(wire.Internal, nil).Because(err)
	r.Retryable = true
	if errors.Is(err, store.ErrFull) {
		r = r.After(fullWait)
	}
	return r
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
