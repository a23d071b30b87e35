package provider

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Waits between two attempts, where the provider names none.
const (
	firstWait = 500 * time.Millisecond // doubled for each further attempt
	maxWait   = 8 * time.Second
	// A further attempt has to have this much time after the wait, or a quarter of
	// the timeout if that is less: else it would end as a timeout, and hide why the one
	// before it failed.
	worthwhile = 2 * time.Second
)

// Client asks one provider profile for decisions. It is safe for concurrent
// use, costs little to make, and needs no closing.
type Client struct {
	cfg       Config
	base      *url.URL
	transport http.RoundTripper
}

// Usage is what a call cost, in tokens, as the provider counts them. In holds
// all input tokens, those read from the provider's cache (Cached) included.
type Usage struct{ In, Out, Cached int }

// Outcome is what came of a call, of a failed one too.
type Outcome struct {
	Decision  planner.Decision // the zero value after a failure
	Usage     Usage            // zero if the provider told nothing
	Attempts  int              // requests that were sent
	Status    int              // HTTP status of the last answer, 0 without one
	RequestID string           // the provider's id of the last answer, bounded
	Model     string           // which model answered, as the provider says, bounded
}

// New checks cfg. It neither connects nor looks anything up.
func New(cfg Config) (*Client, error) {
	cfg, base, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	pool := cfg.Pool
	if pool == nil {
		pool = &defaultPool
	}
	return &Client{cfg: cfg, base: base, transport: pool.transport(cfg.Proxy)}, nil
}

// Decide implements planner.Planner by [Client.Call].
func (c *Client) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	out, err := c.Call(ctx, req)
	return out.Decision, err
}

// Call asks for one decision. It blocks until the profile's timeout at the
// longest, or until ctx ends.
//
// Its error is a *wire.Refusal: one of the planner codes, with the arguments
// provider_status, request_id, attempts, profile and detail where they are known;
// ProviderTimeout also if a deadline of ctx passed; BadRequest if req cannot be
// asked at all. If ctx was cancelled, it is an error that wraps context.Canceled
// instead. The Outcome tells what is known of a failed call as well.
func (c *Client) Call(ctx context.Context, req planner.Request) (Outcome, error) {
	p, err := c.Prepare(req)
	if err != nil {
		return Outcome{}, err
	}
	return p.Call(ctx)
}

// Prepared is a request that is ready to be sent. It holds on to the request's bytes.
type Prepared struct {
	c *Client
	q *asked
}

// Prepare does the part of [Client.Call] for which nobody has to wait: it checks and encodes a request. Its error is a
// *wire.Refusal with BadRequest.
func (c *Client) Prepare(req planner.Request) (*Prepared, error) {
	q, err := c.ask(&req)
	if err != nil {
		return nil, err
	}
	return &Prepared{c, q}, nil
}

// Call asks, as [Client.Call] does.
func (p *Prepared) Call(ctx context.Context) (Outcome, error) {
	c, q := p.c, p.q
	var out Outcome
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start := time.Now()
	deadline, _ := ctx.Deadline()
	for {
		x := &exchange{transport: c.transport, limit: c.cfg.MaxResponseBytes}
		sendErr := protocols[c.cfg.Provider].send(ctx, c, q.body, x)
		if x.sent {
			out.Attempts++
		}
		out.Status, out.RequestID = x.status, requestID(x.header)
		f := c.outcome(q, x, sendErr, &out)
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return out, fmt.Errorf("asking the provider: %w", ctx.Err())
		case f == nil:
			return out, nil
		case ctx.Err() != nil && x.err != nil && x.status < 300:
			return out, c.told(out, c.timedOut(deadline.Sub(start)).Because(x.err))
		}
		wait, again := c.pause(f, out.Attempts, time.Until(deadline))
		if !again {
			if f.told && f.wait > 0 && f.refusal.Retryable {
				f.refusal = f.refusal.After(f.wait)
			}
			return out, c.told(out, f.refusal)
		}
		if err := sleep(ctx, wait); err != nil {
			return out, fmt.Errorf("asking the provider: %w", err)
		}
	}
}

// outcome judges an exchange and notes what it says in out.
func (c *Client) outcome(q *asked, x *exchange, sendErr error, out *Outcome) *failure {
	if !x.sent {
		// The SDK would not send it. Its words may hold the address, but no body and no key.
		return &failure{refusal: wire.Refuse(wire.Internal, nil).Because(sendErr)}
	}
	if f := q.failed(x); f != nil {
		return f
	}
	a, err := c.readAnswer(x.body)
	out.Usage = a.usage
	out.Model = bounded(a.model, maxRequestIDSize)
	if out.RequestID == "" {
		out.RequestID = bounded(a.id, maxRequestIDSize)
	}
	switch {
	case err != nil:
		detail := fmt.Sprintf("its answer cannot be read: %v, and has the type %q", err, x.header.Get("Content-Type"))
		return &failure{refusal: unreachable(q.quote(detail))}
	case a.fault != nil:
		return q.disguised(a.fault)
	}
	d, refusal := q.judge(&a, c.cfg.Options.maxTokens())
	if refusal != nil {
		return &failure{refusal: refusal}
	}
	out.Decision = d
	return nil
}

// told adds to a refusal what is known of the call.
func (c *Client) told(out Outcome, r *wire.Refusal) *wire.Refusal {
	args := map[string]any{"attempts": out.Attempts}
	if c.cfg.Profile != "" {
		args["profile"] = c.cfg.Profile
	}
	if out.Status != 0 {
		args["provider_status"] = out.Status
	}
	if out.RequestID != "" {
		args["request_id"] = out.RequestID
	}
	return r.With(args)
}

func (c *Client) timedOut(after time.Duration) *wire.Refusal {
	return wire.Refuse(wire.ProviderTimeout, map[string]any{"timeout_ms": after.Milliseconds()})
}

// pause tells how long to wait before the next attempt, and whether there is one.
func (c *Client) pause(f *failure, attempts int, left time.Duration) (time.Duration, bool) {
	if !f.again || attempts >= c.cfg.Options.MaxAttempts {
		return 0, false
	}
	wait := min(firstWait<<(attempts-1), maxWait)
	wait -= rand.N(wait / 4)
	if f.told { // never earlier than asked for; racks that were told the same do not come back as one
		wait = f.wait + rand.N(firstWait/4)
	}
	return wait, wait+min(worthwhile, c.cfg.Timeout/4) <= left
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// requestID is the provider's own name for an answer.
func requestID(h http.Header) string {
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		if id := h.Get(name); id != "" {
			return bounded(id, maxRequestIDSize)
		}
	}
	return ""
}
