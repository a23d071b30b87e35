// Package remote asks the cloud's planner proxy for decisions.
//
// A question travels with its request id, and the proxy answers a repeated id
// with the answer that it gave: so a question whose answer was lost with the
// connection is asked again, and costs nothing more. The proxy says at once how
// long its provider may take (plan.accepted); until then the rack waits, and then
// the turn has failed. The package decides nothing by itself and keeps nothing.
package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Requester sends questions to the cloud; firmware joins it with the link.
type Requester interface {
	// Ask sends one plan.request, with a screen if there is one, and returns when it is on its way. A rack that is
	// offline refuses with planner_unreachable.
	Ask(ctx context.Context, q wire.PlanRequest, screen []byte) (Answers, error)
	// Online returns when the cloud can be reached, or with the error of ctx.
	Online(ctx context.Context) error
}

// Answers are the answers to one question, as they come.
type Answers interface {
	// Next waits for an answer until ctx ends. A refusal by the cloud and a lost connection (planner_unreachable) are
	// *wire.Refusal.
	Next(ctx context.Context) (*wire.Message, error)
	Close()
}

// Bounds of the waiting.
const (
	acceptWait  = 10 * time.Second // for plan.accepted
	transport   = 5 * time.Second  // that an answer may take on its way after the proxy's own deadline
	maxDeadline = 15 * time.Minute // more than this no proxy is believed
)

// Longest is the longest that Decide can take.
const Longest = acceptWait + maxDeadline + transport

// Planner asks over a Requester. It is safe for concurrent use.
type Planner struct {
	host string
	link Requester
}

// New makes a planner for the rack with the id host.
func New(host string, link Requester) *Planner { return &Planner{host: host, link: link} }

// Decide implements planner.Planner. It blocks until the proxy has answered, has
// let its own deadline pass, is out of reach, or ctx ends. Failures are
// *wire.Refusal with the planner codes.
func (p *Planner) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	q := wire.PlanRequest{
		RequestID: req.RequestID, HostID: p.host, TaskID: req.TaskID, Attempt: req.Attempt,
		SystemPrompt: req.SystemPrompt, UserPrompt: req.UserPrompt, Tools: make([]wire.PlanTool, len(req.Tools)),
	}
	for i, t := range req.Tools {
		q.Tools[i] = wire.PlanTool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}
	}
	wait := &patience{until: time.Now().Add(acceptWait)}
	for {
		d, err := p.ask(ctx, q, req.Screen, wait)
		if err == nil || !wait.accepted || !wire.Is(err, wire.PlannerUnreachable) {
			return d, err
		}
		// The proxy has the question, and the connection is gone: the answer is fetched by asking it again.
		if err := p.reach(ctx, wait); err != nil {
			return planner.Decision{}, err
		}
	}
}

// patience is how long a turn waits.
type patience struct {
	until    time.Time
	accepted bool
	limit    time.Duration // that the proxy has told
}

// spent says why the turn has failed when the waiting is over.
func (w *patience) spent(err error) error {
	if !w.accepted {
		return wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": "the cloud did not take the question"}).Because(err)
	}
	return wire.Refuse(wire.PlannerTimeout, map[string]any{"timeout_ms": w.limit.Milliseconds()}).Because(err)
}

// reach waits until the cloud is there again, within the turn's patience.
func (p *Planner) reach(ctx context.Context, wait *patience) error {
	inner, cancel := context.WithDeadline(ctx, wait.until)
	defer cancel()
	if err := p.link.Online(inner); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return wait.spent(err)
	}
	return nil
}

// ask sends the question once and waits for what comes of it.
func (p *Planner) ask(ctx context.Context, q wire.PlanRequest, screen []byte, wait *patience) (planner.Decision, error) {
	asking, cancel := context.WithDeadline(ctx, wait.until)
	defer cancel()
	answers, err := p.link.Ask(asking, q, screen)
	if err != nil {
		return planner.Decision{}, failed(ctx, asking, err, wait)
	}
	defer answers.Close()
	for {
		m, err := next(ctx, answers, wait)
		if err != nil {
			return planner.Decision{}, err
		}
		if m.Type != wire.TypePlanAccepted {
			return decided(m, q.RequestID)
		}
		var a wire.PlanAccepted
		if err := read(m, &a, &a.RequestID, q.RequestID); err != nil {
			return planner.Decision{}, err
		}
		if !wait.accepted { // the same question again does not buy more time
			wait.accepted, wait.limit = true, min(max(0, time.Duration(a.DeadlineMS)*time.Millisecond), maxDeadline)
			wait.until = time.Now().Add(wait.limit + transport)
		}
	}
}

// next waits for one answer, within the turn's patience.
func next(ctx context.Context, answers Answers, wait *patience) (*wire.Message, error) {
	inner, cancel := context.WithDeadline(ctx, wait.until)
	defer cancel()
	m, err := answers.Next(inner)
	if err != nil {
		return nil, failed(ctx, inner, err, wait)
	}
	return m, nil
}

// failed tells a wait that is over from what the link says.
func failed(ctx, inner context.Context, err error, wait *patience) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case inner.Err() != nil:
		return wait.spent(err)
	}
	if _, ok := errors.AsType[*wire.Refusal](err); ok {
		return err
	}
	return wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": err.Error()}).Because(err)
}

// decided reads the answer that ends a turn.
func decided(m *wire.Message, request string) (planner.Decision, error) {
	switch m.Type {
	case wire.TypePlanDecision:
		var d wire.PlanDecision
		if err := read(m, &d, &d.RequestID, request); err != nil {
			return planner.Decision{}, err
		}
		return planner.Decision{StepIndex: d.StepIndex, Tool: d.ToolName, Arguments: d.Arguments, Tokens: max(0, d.Tokens)}, nil
	case wire.TypePlanFailure:
		var f wire.PlanFailure
		if err := read(m, &f, &f.RequestID, request); err != nil {
			return planner.Decision{}, err
		}
		if f.Error == nil || f.Error.Code == "" {
			return planner.Decision{}, confused(errors.New("the failure has no reason"))
		}
		return planner.Decision{}, f.Error
	}
	return planner.Decision{}, confused(fmt.Errorf("the answer is of type %s", m.Type))
}

// read decodes an answer and holds it to the question.
func read(m *wire.Message, body any, id *string, request string) error {
	if err := m.Decode(body); err != nil {
		return confused(err)
	}
	if *id != request {
		return confused(fmt.Errorf("the answer is to another question, %.40q", *id))
	}
	return nil
}

// confused is for an answer that no proxy gives. It is a failed turn like any other.
func confused(err error) error {
	return wire.Refuse(wire.Internal, nil).Because(fmt.Errorf("planner proxy: %w", err))
}
