package api

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"phonerack/cloud/catalog"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

// DecideFunc brings one planner request to its end, as cloud/planner does. accepted tells how long that may take and
// must not block.
type DecideFunc func(ctx context.Context, c enroll.Caller, req wire.PlanRequest, screen []byte, accepted func(time.Duration)) (wire.PlanDecision, error)

// Calls is what racks may ask, by type: the one table of both transports.
type Calls struct {
	fleet  *fleet.Fleet
	skills *catalog.Catalog
	decide DecideFunc
	table  map[wire.Type]handler
}

// request is one call of a rack that has proved who it is.
type request struct {
	caller  enroll.Caller
	id      string // of the message
	body    []byte // JSON, of the call's type
	picture []byte // the attachment "screen"
	// interim sends an answer before the last one. It does not block. nil: it is not wanted.
	interim func(t wire.Type, body any)
}

// answer is what goes back. Without a type there is none.
type answer struct {
	t    wire.Type
	body any
	data []byte // the attachment wire.BlobAttachment of a blob's part
}

type handler func(ctx context.Context, r *request) (answer, error)

// NewCalls makes the table.
func NewCalls(f *fleet.Fleet, skills *catalog.Catalog, decide DecideFunc) *Calls {
	c := &Calls{fleet: f, skills: skills, decide: decide}
	c.table = map[wire.Type]handler{
		wire.TypeHello:         always(wire.TypeWelcome, f.Hello),
		wire.TypePlanRequest:   on(c.plan),
		wire.TypeClaim:         on(c.claim),
		wire.TypeRenew:         always(wire.TypeRenewed, f.Renew),
		wire.TypeRelease:       always(wire.TypeTaskAck, f.Release),
		wire.TypeHeartbeat:     whole(always(wire.TypeSync, f.Heartbeat), "slots", "running", "skills_version"),
		wire.TypeQuestion:      always(wire.TypeTaskAck, f.Ask),
		wire.TypeResult:        always(wire.TypeTaskAck, f.Result),
		wire.TypeSkillChanges:  always(wire.TypeSkillManifest, skills.Changes),
		wire.TypeBlobGet:       on(c.blob),
		wire.TypePending:       always(wire.TypeCommands, f.Pending),
		wire.TypeCommandStatus: on(c.status),
		wire.TypeEvent:         on(c.event),
		wire.TypeState:         on(c.state),
		wire.TypeTelemetry:     func(context.Context, *request) (answer, error) { return answer{}, nil }, // nobody wants it yet
	}
	return c
}

// run looks a call up and runs it. Errors are refusals.
func (c *Calls) run(ctx context.Context, t wire.Type, r *request) (answer, error) {
	h, ok := c.table[t]
	if !ok {
		return answer{}, wire.Refuse(wire.Unsupported, map[string]any{"what": string(t)})
	}
	a, err := guarded(ctx, h, r)
	if err != nil {
		return answer{}, wire.From(err)
	}
	return a, nil
}

// guarded keeps a fault in one call from ending the process.
func guarded(ctx context.Context, h handler, r *request) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = wire.Refuse(wire.Internal, nil).Because(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return h(ctx, r)
}

// on reads the body strictly before a handler sees it.
func on[B any](h func(context.Context, *request, B) (answer, error)) handler {
	return func(ctx context.Context, r *request) (answer, error) {
		var b B
		if err := wire.Unmarshal(r.body, &b); err != nil {
			return answer{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()}).Because(err)
		}
		return h(ctx, r, b)
	}
}

// whole refuses a body without some of its keys: one that left them out would say that there is nothing, and all that a rack has and
// does would be gone for the cloud. null says that too, and means it.
func whole(h handler, keys ...string) handler {
	return func(ctx context.Context, r *request) (answer, error) {
		var has map[string]json.RawMessage
		if err := json.Unmarshal(r.body, &has); err == nil { // else h says what is wrong
			for _, key := range keys {
				if _, ok := has[key]; !ok {
					return answer{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the key " + key + " is missing"})
				}
			}
		}
		return h(ctx, r)
	}
}

// always is on for a call with one type of answer.
func always[B, A any](t wire.Type, h func(context.Context, enroll.Caller, B) (A, error)) handler {
	return on(func(ctx context.Context, r *request, b B) (answer, error) {
		a, err := h(ctx, r.caller, b)
		return answer{t: t, body: a}, err
	})
}

func (c *Calls) claim(ctx context.Context, r *request, b wire.Claim) (answer, error) {
	lease, none, err := c.fleet.Claim(ctx, r.caller, b)
	if lease != nil {
		return answer{t: wire.TypeLease, body: lease}, err
	}
	return answer{t: wire.TypeNone, body: none}, err
}

func (c *Calls) status(ctx context.Context, r *request, b wire.CommandStatus) (answer, error) {
	a, err := c.fleet.CommandStatus(ctx, r.caller, b, r.picture)
	return answer{t: wire.TypeCommandAck, body: a}, err
}

// blob serves bodies of skills and files of tasks: a rack knows what it asks for, and what is neither is not found.
func (c *Calls) blob(ctx context.Context, r *request, b wire.BlobGet) (answer, error) {
	d, part, err := c.skills.Blob(ctx, r.caller, b)
	if wire.Is(err, wire.NotFound) {
		d, part, err = c.fleet.FilePart(ctx, r.caller, b)
	}
	return answer{t: wire.TypeBlobData, body: d, data: part}, err
}

func (c *Calls) event(ctx context.Context, r *request, b wire.Event) (answer, error) {
	a, err := c.fleet.Event(ctx, r.caller, r.id, b)
	return answer{t: wire.TypeEventAck, body: a}, err
}

func (c *Calls) state(ctx context.Context, r *request, b wire.State) (answer, error) {
	_, err := c.fleet.State(ctx, r.caller, b)
	return answer{}, err
}

// plan asks for a decision. A failure is an answer of its own type, with the request's id.
func (c *Calls) plan(ctx context.Context, r *request, b wire.PlanRequest) (answer, error) {
	d, err := c.decision(ctx, r, b)
	if err != nil {
		return answer{t: wire.TypePlanFailure, body: wire.PlanFailure{RequestID: b.RequestID, Error: wire.From(err)}}, nil
	}
	return answer{t: wire.TypePlanDecision, body: d}, nil
}

func (c *Calls) decision(ctx context.Context, r *request, b wire.PlanRequest) (wire.PlanDecision, error) {
	if b.HostID != r.caller.Rack {
		return wire.PlanDecision{}, wire.Refuse(wire.HostMismatch, map[string]any{"host": b.HostID})
	}
	if c.decide == nil {
		return wire.PlanDecision{}, wire.Refuse(wire.Unsupported, map[string]any{"what": string(wire.TypePlanRequest)})
	}
	accepted := func(d time.Duration) {
		if r.interim != nil {
			r.interim(wire.TypePlanAccepted, wire.PlanAccepted{RequestID: b.RequestID, DeadlineMS: d.Milliseconds()})
		}
	}
	return c.decide(ctx, r.caller, b, r.picture, accepted)
}
