package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"phonerack/agent/planner/provider"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// Records is what the proxy needs of a [store.Store].
type Records interface {
	Begin(ctx context.Context, sc store.Scope, r store.PlanRequest) (store.Begun, error)
	Finish(ctx context.Context, sc store.Scope, f store.Finish) (store.Decision, error)
	Fail(ctx context.Context, sc store.Scope, f store.Failure) error
	Profile(ctx context.Context, sc store.Scope, id string) (store.Profile, error)
	Reserve(ctx context.Context, sc store.Scope, profile string, tokens int64) (store.Reservation, error)
	Settle(ctx context.Context, sc store.Scope, r store.Reservation, spent store.Spent) error
	System() *store.System
}

// Opener opens sealed credentials, as a [vault.Vault] does.
type Opener interface {
	Open(b vault.Binding, sealed []byte) (vault.Secret, error)
}

// Options of New.
type Options struct {
	Store Records
	Vault Opener
	// Owner names this process in request rows. It must be unique for each start; at most 100 bytes.
	Owner string

	Clock   func() time.Time // nil: time.Now
	Logger  *slog.Logger     // nil: slog.Default
	Metrics *Metrics         // nil: not counted
	Pool    *provider.Pool   // connections to providers; nil: one that the process shares

	// RulesDir holds the rule files that profiles of the provider "scripted" may name. Empty: they have the shipped rules.
	RulesDir string
	// LooseRate is how many requests outside of a task a rack may send in a minute, to this replica; 0 means 30.
	LooseRate int
	// Margin is what the ownership of a request lasts beyond the profile's timeout: time for the database to write the
	// answer. 0 means 15 s.
	Margin time.Duration
	// Failpoint is called at each Point, in tests of what a kill leaves behind. nil in production.
	Failpoint func(Point)
}

// Point is a place at which a replica may die, for Options.Failpoint.
type Point string

// The points, in their order.
const (
	AfterRequest  Point = "request" // the request's row is committed
	AfterReply    Point = "reply"   // the provider has answered, nothing is written
	AfterCommit   Point = "commit"  // decision or failure is committed
	BeforePublish Point = "publish" // Decide returns the answer
)

const (
	defaultMargin    = 15 * time.Second
	defaultLooseRate = 30
	maxOwner         = 100
)

// Caller is who asks, as the transport has proved it.
type Caller struct {
	Tenant string
	Host   string
}

func (c Caller) scope() store.Scope { return store.Scope{Tenant: c.Tenant, Actor: "rack:" + c.Host} }

// Proxy answers requests for decisions. It is safe for concurrent use, starts nothing and needs no closing.
type Proxy struct {
	o     Options
	loose looseLimit
	calls atomic.Int64 // numbers the owners of request rows
}

// New checks the options.
func New(o Options) (*Proxy, error) {
	switch {
	case o.Store == nil || o.Vault == nil:
		return nil, errors.New("planner proxy: it needs a store and a vault")
	case o.Owner == "" || len(o.Owner) > maxOwner:
		return nil, fmt.Errorf("planner proxy: the owner must have 1 to %d bytes", maxOwner)
	case o.LooseRate < 0 || o.Margin < 0:
		return nil, errors.New("planner proxy: rate and margin must not be negative")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	o.LooseRate = cmp.Or(o.LooseRate, defaultLooseRate)
	o.Margin = cmp.Or(o.Margin, defaultMargin)
	p := &Proxy{o: o}
	p.loose.perMinute = o.LooseRate
	return p, nil
}

func (p *Proxy) at(point Point) {
	if p.o.Failpoint != nil {
		p.o.Failpoint(point)
	}
}

// Decide brings one request to its end. The screen is a JPEG or nil; it belongs to the caller again when Decide returns.
//
// accepted is called as soon as it is known how long the answer may take at most, counted from the call: never for a
// request that is refused or answered at once, and a second time if the replica that worked on the request is gone and
// the call starts anew. It must not block; nil is allowed.
//
// Every error is a *wire.Refusal. Decide returns by the profile's timeout and the Margin at the latest, twice that for a
// request that was taken over. The end of ctx ends it only as long as no row of the request is owned by this call.
func (p *Proxy) Decide(ctx context.Context, c Caller, req wire.PlanRequest, screen []byte, accepted func(deadline time.Duration)) (wire.PlanDecision, error) {
	if accepted == nil {
		accepted = func(time.Duration) {}
	}
	p.o.Metrics.inFlight.Inc()
	defer p.o.Metrics.inFlight.Dec()
	t := &turn{Proxy: p, caller: c, req: &req, screen: screen, accepted: accepted, log: p.logger(c, &req)}
	d, refusal := t.run(ctx)
	p.at(BeforePublish)
	if refusal != nil {
		p.o.Metrics.requests.WithLabelValues(string(refusal.Code)).Inc()
		return wire.PlanDecision{}, refusal
	}
	p.o.Metrics.requests.WithLabelValues("decision").Inc()
	return d, nil
}

// logger has what names a request, bounded.
func (p *Proxy) logger(c Caller, req *wire.PlanRequest) *slog.Logger {
	l := p.o.Logger.With("tenant", c.Tenant, "host", c.Host, "request", bounded(req.RequestID))
	if req.TaskID != "" {
		l = l.With("task", bounded(req.TaskID), "attempt", req.Attempt)
	}
	return l
}
