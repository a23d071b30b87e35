package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// turn decides and acts once. It returns the result if the attempt is over.
func (a *attempt) turn(ctx context.Context) *Result {
	before, step := a.scene, a.begin()
	d, err := a.decide(ctx, step)
	if err == nil {
		decided(step, d)
		if err = planner.Validate(d, a.offer); err == nil {
			a.failures, a.malformed = 0, 0
			end := a.act(ctx, step, d)
			a.note(step, before)
			return end
		}
	}
	if ctx.Err() != nil {
		err = a.whyEnded(ctx)
	}
	return a.failedTurn(ctx, step, before, wire.From(err))
}

// act carries out a decision that is valid in form.
func (a *attempt) act(ctx context.Context, step *Step, d planner.Decision) *Result {
	if end := a.repeats(step, d); end != nil {
		return end
	}
	begun := time.Now()
	d, refusal, err := a.refresh(ctx, step, d)
	step.Times.Observe += time.Since(begun).Milliseconds()
	if refusal != nil {
		went(step, record.Refused, refusal)
		return nil
	}
	if err != nil {
		went(step, record.Refused, wire.From(err))
		return a.ended(step.Refusal)
	}
	before := a.scene
	out, err := a.execute(ctx, step, d)
	acted(step, out)
	if err != nil {
		if end := a.refusedAct(ctx, step, out, err); end != nil {
			return end
		}
	}
	switch {
	case out.Finished:
		step.Message = out.Message
		if !out.Success {
			return a.ended(wire.Refuse(wire.TaskFailed, map[string]any{"message": out.Message}))
		}
		return &Result{Outcome: Succeeded, Message: out.Message, Object: out.Object}
	case out.Ask != nil && err == nil:
		return a.ask(ctx, step, *out.Ask)
	}
	a.learn(step, out)
	return a.after(ctx, step, before, out)
}

// repeats notes the act and ends the attempt if it goes round in circles.
func (a *attempt) repeats(step *Step, d planner.Decision) *Result {
	loop := a.loops.seen(d, a.scene)
	switch {
	case loop.times >= a.limits.RepeatsFailed, loop.rounds >= a.limits.CirclesFailed:
		refusal := wire.Refuse(wire.LoopDetected, map[string]any{"tool": loop.tools, "times": max(loop.times, loop.rounds)})
		went(step, record.Refused, refusal)
		return a.ended(refusal)
	case loop.times >= a.limits.RepeatsTold, loop.rounds >= a.limits.CirclesTold:
		a.notes = append(a.notes, loop.note())
	}
	return nil
}

// execute has the tool act, a second time if that is safe and may help.
func (a *attempt) execute(ctx context.Context, step *Step, d planner.Decision) (tools.Outcome, error) {
	begun := time.Now()
	defer func() { step.Times.Act = time.Since(begun).Milliseconds() }()
	looks := a.looks
	out, err := a.tools.Execute(ctx, a.env(), d)
	a.wrote = a.wrote || out.Wrote
	if !a.again(d, out, err, a.looks != looks) || sleep(ctx, lookPause) != nil {
		return out, err
	}
	a.log.Warn("act is repeated", "tool", d.Tool, "err", err)
	step.Retried = true
	wrote := out.Wrote
	out, err = a.tools.Execute(ctx, a.env(), d)
	out.Wrote = out.Wrote || wrote
	out.Settle = out.Settle || wrote
	a.wrote = a.wrote || out.Wrote
	return out, err
}

// env is what a tool acts on in this turn.
func (a *attempt) env() tools.Env {
	return tools.Env{
		Controls: a.Controls, Phone: a.Reads, Scene: a.scene,
		Look: func(ctx context.Context) (*perception.Scene, error) {
			return a.look(ctx, perception.Want{ImageIfThin: true}) // many looks may follow each other
		},
		Permissions: a.task.Permissions, Documents: a.Documents, Keep: a.Keep, Install: a.Install, Result: a.task.Result,
		Slot: a.Slot, Serial: a.Phone,
	}
}

// again tells whether an act that failed may be tried once more: the phone did
// not answer what had to be read, and the act does the same a second time. These
// are the tools that the registry calls idempotent (starting and stopping an
// app, listing apps, reading files...) and the key home. An act of which nobody
// knows whether it happened is never repeated, nor one that has looked at the
// screen itself: its elements are out of date then.
func (a *attempt) again(d planner.Decision, out tools.Outcome, err error, looked bool) bool {
	if out.Unknown || looked || !wire.Is(err, wire.ObservationFailed) && !wire.Is(err, wire.HelperFailed) {
		return false
	}
	for _, t := range a.tools.Tools() {
		if t.Name == d.Tool {
			return t.Annotations.Idempotent || t.Name == "press_key" && canonical(d.Arguments) == `{"key":"home"}`
		}
	}
	return false
}

// refusedAct notes why an act was not, or perhaps not, carried out.
func (a *attempt) refusedAct(ctx context.Context, step *Step, out tools.Outcome, err error) *Result {
	refusal, isRefusal := errors.AsType[*wire.Refusal](err)
	if ctx.Err() != nil && (!isRefusal || !final(refusal.Code)) {
		refusal = a.whyEnded(ctx)
	} else if !isRefusal {
		refusal = wire.From(err)
	}
	outcome := record.Refused
	switch {
	case out.Unknown:
		outcome = record.Unknown
	case out.Wrote || refusal.Code == wire.Internal:
		outcome = record.Partly
	}
	went(step, outcome, refusal)
	if final(refusal.Code) || refusal.Code == wire.Internal || ctx.Err() != nil {
		return a.ended(refusal)
	}
	return nil
}

// after waits for the effect of an act and says what it was.
func (a *attempt) after(ctx context.Context, step *Step, before *perception.Scene, out tools.Outcome) *Result {
	begun := time.Now()
	scene, moving, err := a.settle(ctx, before, out)
	step.Text = out.Text
	step.Times.Settle = time.Since(begun).Milliseconds()
	if err != nil {
		a.scene = nil
		return a.ended(wire.From(err))
	}
	a.scene = scene
	changed := effect(step, before, scene, moving)
	if step.Text == tools.TextFailed {
		a.distrust(step.Tool)
	}
	return a.progress(step, out, changed)
}

// distrust has the phone type, or empty fields, in its next slower way after what
// was read back is not what it should be; *phone.Controls knows such ways.
func (a *attempt) distrust(tool string) {
	c, ok := a.Controls.(interface{ Distrust(phone.Act) bool })
	act := phone.Typing
	if tool == "clear_text" {
		act = phone.Clearing
	}
	if ok && c.Distrust(act) {
		a.notes = append(a.notes, fmt.Sprintf("the phone goes about %s more slowly from now on; it may succeed if it is tried again", act))
	}
}

// progress counts the acts in a row that change nothing.
func (a *attempt) progress(step *Step, out tools.Outcome, changed bool) *Result {
	switch {
	case changed:
		a.still = 0
		return nil
	case step.Outcome == record.Refused, out.Result != "", step.Kind == record.Popup:
		return nil // nothing was done, or something was read
	}
	a.still++
	switch {
	case a.still >= a.limits.NoChangeFailed:
		return a.ended(wire.Refuse(wire.NoProgress, map[string]any{"times": a.still}))
	case a.still >= a.limits.NoChangeTold:
		a.notes = append(a.notes, noChangeNote(a.still))
	}
	return nil
}
