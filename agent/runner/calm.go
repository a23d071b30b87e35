package runner

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// calmer are Controls that can stop a phone's animations; *phone.Controls does.
// Whoever cleans up after the attempt restores them.
type calmer interface {
	StopAnimations(ctx context.Context) error
}

// calm stops the phone's animations, once in an attempt, if the screen does not
// come to rest and therefore has no tree. It is a step of its own, and no turn of
// the planner.
func (a *attempt) calm(ctx context.Context) (calmed bool, end *Result) {
	c, ok := a.Controls.(calmer)
	if !ok || a.calmed || !restless(a.scene) {
		return false, nil
	}
	a.calmed = true
	before, step := a.scene, a.begin()
	step.Kind, step.Tool, step.Arguments = record.Calm, "stop_animations", json.RawMessage(`{}`)
	err := c.StopAnimations(ctx)
	out := tools.Outcome{Wrote: err == nil || errors.Is(err, phone.ErrUnknownOutcome), Unknown: errors.Is(err, phone.ErrUnknownOutcome)}
	a.wrote = a.wrote || out.Wrote
	if err != nil {
		if _, ok := errors.AsType[*wire.Refusal](err); !ok {
			code := wire.PhoneRejected
			if out.Unknown {
				code = wire.OutcomeUnknown
			}
			err = wire.Refuse(code, map[string]any{
				"slot": a.Slot, "serial": a.Phone, "what": "stop of animations", "detail": err.Error(),
			}).Because(err)
		}
		end = a.refusedAct(ctx, step, out, err)
	}
	a.note(step, before)
	a.scene = nil
	return true, end
}

// restless tells whether the tree could not be read because the screen moves.
func restless(s *perception.Scene) bool {
	return s.NoTree == perception.NoTreeUnreadable && slices.ContainsFunc(s.Parts, func(p perception.Part) bool {
		return p.Name == perception.PartElements && errors.Is(p.Err, phone.ErrNotIdle)
	})
}
