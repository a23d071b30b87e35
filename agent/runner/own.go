package runner

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// calmer are Controls that can stop a phone's animations, waker those that can
// switch its screen on and open a lock that asks for nothing; *phone.Controls
// does both.
type (
	calmer interface {
		StopAnimations(ctx context.Context) error
	}
	waker interface {
		Wake(ctx context.Context) error
	}
)

// maxWakes bounds how often a phone is woken in an attempt.
const maxWakes = 5

// prepareScreen wakes a phone that sleeps or is locked, and stops the animations
// of one whose screen does not come to rest and therefore has no tree, once in an
// attempt. Each is a step of its own, and no turn of the planner. Animations are
// restored by whoever cleans up after the attempt.
func (a *attempt) prepareScreen(ctx context.Context) (done bool, end *Result) {
	switch {
	case (a.scene.Asleep || a.scene.Locked) && a.wakes < maxWakes:
		if w, ok := a.Controls.(waker); ok {
			a.wakes++
			err := w.Wake(ctx)
			if err != nil {
				a.wakes = maxWakes // a phone that asks for a PIN is left to the planner
			}
			return true, a.own(ctx, record.Wake, "wake", err)
		}
	case restless(a.scene) && !a.calmed:
		if c, ok := a.Controls.(calmer); ok {
			a.calmed = true
			return true, a.own(ctx, record.Calm, "stop_animations", c.StopAnimations(ctx))
		}
	}
	return false, nil
}

// own records something that the runner did of its own accord.
func (a *attempt) own(ctx context.Context, kind, name string, err error) (end *Result) {
	before, step := a.scene, a.begin()
	step.Kind, step.Tool, step.Arguments = kind, name, json.RawMessage(`{}`)
	out := tools.Outcome{Unknown: errors.Is(err, phone.ErrUnknownOutcome)}
	out.Wrote = err == nil || out.Unknown || errors.Is(err, phone.ErrRejected) ||
		errors.Is(err, phone.ErrLocked) && before.Asleep // it was switched on before it asked for a PIN
	a.wrote = a.wrote || out.Wrote
	if err != nil {
		if refusal, ok := errors.AsType[*wire.Refusal](err); ok {
			err = refusal.With(map[string]any{"slot": a.Slot, "serial": a.Phone})
		} else {
			code := wire.PhoneRejected
			if out.Unknown {
				code = wire.OutcomeUnknown
			}
			err = wire.Refuse(code, map[string]any{
				"slot": a.Slot, "serial": a.Phone, "what": strings.ReplaceAll(name, "_", " "), "detail": err.Error(),
			}).Because(err)
		}
		end = a.refusedAct(ctx, step, out, err)
	}
	a.note(step, before)
	a.scene = nil
	return end
}

// restless tells whether the tree could not be read because the screen moves.
func restless(s *perception.Scene) bool {
	return s.NoTree == perception.NoTreeUnreadable && slices.ContainsFunc(s.Parts, func(p perception.Part) bool {
		return p.Name == perception.PartElements && errors.Is(p.Err, phone.ErrNotIdle)
	})
}
