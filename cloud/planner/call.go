package planner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"phonerack/agent/planner/provider"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// Estimates for what is reserved before a call. A day's limit is meant to hold, so they are high: what is not used is
// given back when the answer is stored.
const (
	bytesOfToken = 3    // English has about 4, Chinese and JSON fewer
	screenTokens = 5000 // at most 4,784 of newer Anthropic models (docs: vision)
)

// maxTokens bounds what a provider may say that it has counted.
const maxTokens = 1<<31 - 1

// ask makes the one call of a request, and gives what is to be stored.
func (t *turn) ask(ctx context.Context) (store.Finish, *wire.Refusal) {
	none := store.Finish{}
	t.ready()
	if t.broken != nil {
		return none, t.broken
	}
	if r := t.reserve(ctx); r != nil {
		return none, r
	}
	t.accepted(t.profile.Timeout)
	out, r := t.call(ctx)
	t.at(AfterReply)
	t.in, t.out = int64(min(out.Usage.In, maxTokens)), int64(min(out.Usage.Out, maxTokens))
	t.o.Metrics.tokens.WithLabelValues("in").Add(float64(t.in))
	t.o.Metrics.tokens.WithLabelValues("out").Add(float64(t.out))
	if r != nil {
		return none, r
	}
	return store.Finish{
		Host: t.caller.Host, RequestID: t.req.RequestID, Owner: t.plan.Owner, SystemPrompt: t.req.SystemPrompt, UserPrompt: t.req.UserPrompt,
		Tool: out.Decision.Tool, Arguments: out.Decision.Arguments, TokensIn: t.in, TokensOut: t.out, Profile: t.profile.Name, Reservation: t.reserved,
	}, nil
}

// reserve takes room in the profile's limits.
func (t *turn) reserve(ctx context.Context) *wire.Refusal {
	if t.profile.Limits == (store.Limits{}) {
		t.reserved = store.Unlimited(t.profile.ID, t.o.Clock())
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.o.Margin/2)
	defer cancel()
	r, err := t.o.Store.Reserve(ctx, t.caller.scope(), t.profile.ID, t.cost)
	if err == nil {
		t.reserved = r
		return nil
	}
	if limit, ok := errors.AsType[*store.LimitError](err); ok {
		what, n := "planner requests in a minute", t.profile.Limits.RequestsPerMinute
		if limit.Limit == "tokens" {
			what, n = "planner tokens in a day", t.profile.Limits.TokensPerDay
		}
		refusal := wire.Refuse(wire.LimitExceeded, map[string]any{"what": what, "limit": n}).Because(err)
		return refusal.After(max(0, limit.RetryAt.Sub(t.o.Clock())))
	}
	return t.refusal(err)
}

// settle writes what a call did cost whose answer this call could not store. If that fails, the reservation stays
// counted, so that no limit is passed.
func (t *turn) settle(ctx context.Context) {
	if t.reserved == (store.Reservation{}) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.o.Margin/4)
	defer cancel()
	spent := store.Spent{Host: t.caller.Host, Task: t.req.TaskID, TokensIn: t.in, TokensOut: t.out}
	if err := t.o.Store.Settle(ctx, t.caller.scope(), t.reserved, spent); err != nil {
		t.log.Error("cost of a planner call is not accounted", "error", err, "tokens_in", t.in, "tokens_out", t.out)
	}
	t.reserved = store.Reservation{}
}

// prepare makes the call ready, while the request's row is being committed: encoding it takes as long as that.
func (t *turn) prepare() {
	defer close(t.prepared)
	defer func() {
		if v := recover(); v != nil {
			t.broken = t.panicked(v)
		}
	}()
	if t.broken != nil {
		return
	}
	c, r := t.client()
	if r != nil {
		t.broken = r
		return
	}
	t.cost = c.estimate(t.req, len(t.screen) > 0)
	t.provider = c.prepare(request(t.req, t.screen))
}

// panicked is what becomes of a request in whose call something panicked.
func (t *turn) panicked(v any) *wire.Refusal {
	// Not the value itself: it may quote what was asked.
	t.o.Metrics.panics.Inc()
	t.log.Error("panic in a provider call", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
	return wire.Refuse(wire.Internal, nil)
}

// call calls the provider. A panic there is a failure of this request and of nothing else.
func (t *turn) call(ctx context.Context) (out provider.Outcome, refusal *wire.Refusal) {
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			out, refusal = provider.Outcome{}, t.panicked(v)
		}
		outcome := "decision"
		if refusal != nil {
			outcome = string(refusal.Code)
		}
		t.o.Metrics.latency.WithLabelValues(t.profile.Provider, outcome).Observe(time.Since(start).Seconds())
	}()
	ctx, cancel := context.WithTimeout(ctx, t.profile.Timeout)
	defer cancel()
	out, err := t.provider(ctx)
	if err != nil {
		refusal = wire.From(err)
		if refusal.Code == wire.Internal {
			t.log.Error("provider call failed", "error", err)
		}
	}
	return out, refusal
}

// request is what the provider is asked: nothing but text, tools and screen of the rack's request.
func request(req *wire.PlanRequest, screen []byte) provider.Request {
	r := provider.Request{
		TaskID: req.TaskID, Attempt: req.Attempt, RequestID: req.RequestID, SystemPrompt: req.SystemPrompt, UserPrompt: req.UserPrompt,
		Tools: make([]provider.Tool, len(req.Tools)), Screen: screen,
	}
	for i, t := range req.Tools {
		r.Tools[i] = provider.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}
	}
	return r
}
