package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"image"
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// attempt is the state of one Run.
type attempt struct {
	*Runner
	limits  Limits
	task    Task
	tools   *tools.Registry
	offer   []planner.Tool
	log     *slog.Logger
	now     func() time.Time
	started time.Time
	diary   *trajectory

	scene     *perception.Scene // to decide on; nil: look first
	past      []string          // lines of the prompt
	notes     []string          // for the next prompt only
	loops     loopDetector
	failures  int // turns in a row without an answer
	malformed int // turns in a row with an answer that cannot be used
	steps     int
	wrote     bool
}

func (a *attempt) fillIn() {
	a.tools = cmp.Or(a.Registry, defaultTools)
	a.offer = a.tools.Offer()
	a.now = a.Clock
	if a.now == nil {
		a.now = time.Now
	}
	a.started = a.now()
	a.log = a.Logger
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.log = a.log.With("slot", a.Slot, "phone", a.Phone, "task", a.task.ID, "attempt", a.task.Attempt)
}

var defaultTools = tools.Default()

// loop takes turns until the attempt ends.
func (a *attempt) loop(ctx context.Context) Result {
	for a.steps < a.limits.Steps {
		if a.scene == nil {
			scene, err := a.look(ctx, perception.Want{Image: true})
			if err != nil {
				return a.result(a.ended(wire.From(err)))
			}
			a.scene = scene
		}
		a.steps++
		step := Step{N: a.steps, At: a.now()}
		picture := shot{scene: a.scene}
		end := a.turn(ctx, &step, &picture)
		a.note(&step, picture)
		if end != nil {
			return a.result(end)
		}
		if step.pause > 0 {
			if err := sleep(ctx, step.pause); err != nil {
				return a.result(a.ended(a.whyEnded(ctx)))
			}
		}
	}
	return a.result(a.ended(wire.Refuse(wire.BudgetSpent, map[string]any{"steps": a.limits.Steps})))
}

func (a *attempt) result(r *Result) Result {
	r.Steps, r.Wrote = a.steps, a.wrote
	return *r
}

// note records the turn and tells OnStep.
func (a *attempt) note(step *Step, picture shot) {
	step.DurationMS = a.now().Sub(step.At).Milliseconds()
	a.past = append(a.past, step.line())
	a.diary.add(step, picture)
	a.log.Info("step", "n", step.N, "tool", step.Tool, "outcome", step.Outcome, "effect", step.Effect, "code", step.code())
	if a.OnStep != nil {
		a.OnStep(*step)
	}
}

// turn decides and acts once. It returns the result if the attempt is over.
func (a *attempt) turn(ctx context.Context, step *Step, picture *shot) *Result {
	before := a.scene
	step.see(before)
	d, err := a.decide(ctx)
	if err == nil {
		step.decided(d)
		if err = planner.Validate(d, a.offer); err == nil {
			a.failures, a.malformed = 0, 0
			return a.act(ctx, step, d, picture)
		}
	}
	if ctx.Err() != nil {
		refusal := a.whyEnded(ctx)
		step.went(outcomeFailed, refusal)
		return a.ended(refusal)
	}
	return a.failedTurn(step, err)
}

// decide asks the planner.
func (a *attempt) decide(ctx context.Context) (planner.Decision, error) {
	req := planner.Request{
		TaskID: a.task.ID, Attempt: a.task.Attempt, RequestID: ulid.Make().String(),
		SystemPrompt: systemPrompt, UserPrompt: a.userPrompt(), Tools: a.offer,
	}
	a.notes = nil
	if a.Screens && a.scene.Picture != nil {
		req.Screen = a.scene.Picture.JPEG
	}
	ctx, cancel := context.WithTimeout(ctx, a.limits.Decide)
	defer cancel()
	d, err := a.Planner.Decide(ctx, req)
	if err == nil {
		return d, nil
	}
	if _, ok := errors.AsType[*wire.Refusal](err); ok {
		return d, err
	}
	if ctx.Err() != nil {
		return d, wire.Refuse(wire.PlannerTimeout, map[string]any{"timeout_ms": a.limits.Decide.Milliseconds()}).Because(err)
	}
	return d, wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": err.Error()}).Because(err)
}

// failedTurn counts a turn without a usable decision. Nothing is done in its
// place; the screen is looked at again before the next one.
func (a *attempt) failedTurn(step *Step, err error) *Result {
	refusal := wire.From(err)
	step.went(outcomeFailed, refusal)
	a.scene = nil
	limit, count := a.limits.PlannerFailures, &a.failures
	switch refusal.Code {
	case wire.NoToolCall, wire.MultipleToolCalls, wire.UnknownTool, wire.BadArguments, wire.Truncated:
		limit, count = a.limits.Malformed, &a.malformed
	}
	*count++
	if !refusal.Retryable || *count >= limit || final(refusal.Code) {
		return a.ended(refusal)
	}
	step.pause = min(max(backOff<<min(a.failures+a.malformed-1, 10), refusal.RetryAfter()), maxBackOff)
	return nil
}

// act carries out a decision that is valid in form.
func (a *attempt) act(ctx context.Context, step *Step, d planner.Decision, picture *shot) *Result {
	before := a.scene
	switch times := a.loops.seen(d, before.Hash); {
	case times >= a.limits.RepeatsFailed:
		refusal := wire.Refuse(wire.LoopDetected, map[string]any{"tool": d.Tool, "times": times})
		step.went(outcomeRefused, refusal)
		return a.ended(refusal)
	case times >= a.limits.RepeatsTold:
		a.notes = append(a.notes, repeatNote(d.Tool, times))
	}
	out, err := a.tools.Execute(ctx, tools.Env{Controls: a.Controls, Scene: before, Slot: a.Slot, Serial: a.Phone}, d)
	a.wrote = a.wrote || out.Wrote
	picture.points = out.Points
	step.acted(out)
	if err != nil {
		if end := a.refusedAct(ctx, step, out, err); end != nil {
			return end
		}
	}
	if out.Finished {
		step.Message = out.Message
		if out.Success {
			return &Result{Outcome: Succeeded, Message: out.Message}
		}
		return a.ended(wire.Refuse(wire.TaskFailed, map[string]any{"message": out.Message}))
	}
	return a.after(ctx, step, before, out)
}

// refusedAct notes why an act was not, or perhaps not, carried out.
func (a *attempt) refusedAct(ctx context.Context, step *Step, out tools.Outcome, err error) *Result {
	refusal, isRefusal := errors.AsType[*wire.Refusal](err)
	if ctx.Err() != nil && (!isRefusal || !final(refusal.Code)) {
		refusal = a.whyEnded(ctx)
	} else if !isRefusal {
		refusal = wire.From(err)
	}
	outcome := outcomeRefused
	switch {
	case out.Unknown:
		outcome = outcomeUnknown
	case out.Wrote || refusal.Code == wire.Internal:
		outcome = outcomeFailed
	}
	step.went(outcome, refusal)
	if final(refusal.Code) || refusal.Code == wire.Internal || ctx.Err() != nil {
		return a.ended(refusal)
	}
	return nil
}

// after waits for the effect of an act and says what it was.
func (a *attempt) after(ctx context.Context, step *Step, before *perception.Scene, out tools.Outcome) *Result {
	a.scene = nil
	scene, err := a.settle(ctx, before, out.Settle)
	if err == nil && out.Typed != nil {
		step.Text, scene, err = a.readBack(ctx, scene, *out.Typed)
	}
	if err != nil {
		return a.ended(wire.From(err))
	}
	if step.Text == tools.TextFailed && step.Refusal == nil {
		step.went(outcomeFailed, wire.Refuse(wire.TextDiffers, map[string]any{"slot": a.Slot, "serial": a.Phone}))
	}
	step.Effect = effect(perception.Compare(before, scene))
	a.scene = scene
	return nil
}

// shot is the picture of a step.
type shot struct {
	scene  *perception.Scene
	points []image.Point
}

// canonical returns arguments without the scene's generation and with their keys
// in order, so that equal acts on equal screens are equal.
func canonical(args json.RawMessage) string {
	var m map[string]any
	if err := json.Unmarshal(args, &m); err != nil {
		return string(args)
	}
	delete(m, "generation")
	b, err := json.Marshal(m)
	if err != nil {
		return string(args)
	}
	return string(b)
}
