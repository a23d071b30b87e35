package runner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/runner/record"
	"phonerack/sync/wire"
)

// Pauses after failed turns.
const (
	backOff    = time.Second // after a failed turn, doubled for each in a row
	maxBackOff = 30 * time.Second
)

// question is what was asked of the planner last.
type question struct {
	request planner.Request
	scene   *perception.Scene // that it is about
	tokens  int               // estimated
	again   bool              // it may be asked again as it is: no answer came
	paid    bool              // its tokens are counted
}

// outage is a time in which the planner is out of reach.
type outage struct {
	since time.Time
	tries int // questions without an answer
}

// prepare makes the question of this turn. It is the same question as before,
// with the same id, if the planner never answered that and the screen is still
// the one it was about. It ends the attempt if a skill of the task was withdrawn,
// or if the question costs more than is left.
func (a *attempt) prepare() *Result {
	if a.task.Allowed != nil {
		if err := a.task.Allowed(); err != nil {
			return a.ended(wire.From(err))
		}
	}
	if !a.asked.again || a.asked.scene != a.scene {
		a.asked = a.newQuestion()
	}
	if limit := a.limits.Tokens; limit > 0 && a.tokens+a.asked.tokens > limit {
		return a.ended(wire.Refuse(wire.TokensSpent, map[string]any{"tokens": limit}))
	}
	return nil
}

func (a *attempt) newQuestion() question {
	q := question{scene: a.scene, request: planner.Request{
		TaskID: a.task.ID, Attempt: a.task.Attempt, RequestID: ulid.Make().String(),
		SystemPrompt: a.system, UserPrompt: a.userPrompt(), Tools: a.offer,
	}}
	q.tokens = a.fixed + perception.Tokens(q.request.UserPrompt)
	all := a.Pictures == PicturesAlways || a.Pictures == PicturesMarked
	if p := a.scene.Picture; p != nil && (all || a.show || a.scene.NoTree != "") {
		q.request.Screen = a.picture()
		q.tokens += pictureTokens(p.Size)
	}
	a.notes, a.show = nil, false
	return q
}

// picture is that of the scene as the planner is sent it. Whatever is drawn on
// it, its pixels are those of Scene.Picture.
func (a *attempt) picture() []byte {
	if a.Pictures != PicturesMarked {
		return a.scene.Picture.JPEG
	}
	var touchable []perception.Element
	for _, e := range a.scene.Elements {
		if e.Touchable() {
			touchable = append(touchable, e)
		}
	}
	marked, err := a.scene.Marked(touchable)
	if err != nil {
		a.log.Warn("nothing is drawn on the picture", "err", err)
		return a.scene.Picture.JPEG
	}
	return marked
}

// decide asks the planner and counts what that costs.
func (a *attempt) decide(ctx context.Context, step *Step) (planner.Decision, error) {
	begun := time.Now()
	defer func() { step.Times.Decide = time.Since(begun).Milliseconds() }()
	inner, cancel := context.WithTimeout(ctx, a.limits.Decide)
	defer cancel()
	d, err := a.Planner.Decide(inner, a.asked.request)
	if err != nil {
		if _, ok := errors.AsType[*wire.Refusal](err); !ok {
			code, args := wire.PlannerUnreachable, map[string]any{"detail": err.Error()}
			if inner.Err() != nil {
				code, args = wire.PlannerTimeout, map[string]any{"timeout_ms": a.limits.Decide.Milliseconds()}
			}
			err = wire.Refuse(code, args).Because(err)
		}
	}
	if !wire.Is(err, wire.PlannerUnreachable) { // which never got the question
		a.pay(step, d)
	}
	if a.down != nil && (err == nil || !outOfReach(wire.From(err))) {
		step.Times.Paused = begun.Sub(a.down.since).Milliseconds()
		a.down = nil
		a.tell(Running)
	}
	return d, err
}

// pay counts what the question and its answer cost. Asked again as it is, a
// question costs nothing more: the planner's log has it.
func (a *attempt) pay(step *Step, d planner.Decision) {
	step.Tokens = d.Tokens
	if step.Tokens <= 0 {
		step.Tokens = perception.Tokens(string(d.Arguments))
		if !a.asked.paid {
			step.Tokens += a.asked.tokens
		}
	}
	a.asked.paid = true
	a.tokens += step.Tokens
}

// outOfReach tells whether the planner may answer the next question as well as
// this one: nothing is wrong with the question.
func outOfReach(r *wire.Refusal) bool {
	switch r.Code {
	case wire.PlannerUnreachable, wire.PlannerTimeout, wire.ProviderTimeout, wire.ProviderRateLimited,
		wire.ProviderOverloaded, wire.ProviderUnreachable, wire.LimitExceeded:
		return r.Retryable
	}
	return false
}

// failedTurn counts a turn without a usable decision. Nothing is done in its
// place; the screen is looked at again before the next one.
func (a *attempt) failedTurn(ctx context.Context, step *Step, scene *perception.Scene, refusal *wire.Refusal) *Result {
	step.Kind = record.Failed
	went(step, record.Partly, refusal)
	if ctx.Err() == nil && outOfReach(refusal) {
		return a.pause(ctx, step, scene, refusal)
	}
	a.note(step, scene)
	if ctx.Err() != nil {
		return a.ended(refusal)
	}
	a.scene, a.asked = nil, question{}
	limit, count := a.limits.PlannerFailures, &a.failures
	switch refusal.Code {
	case wire.NoToolCall, wire.MultipleToolCalls, wire.UnknownTool, wire.BadArguments, wire.Truncated:
		limit, count = a.limits.Malformed, &a.malformed
	}
	*count++
	if !refusal.Retryable || *count >= limit || final(refusal.Code) {
		return a.ended(refusal)
	}
	wait := min(max(backOff<<min(a.failures+a.malformed-1, 10), refusal.RetryAfter()), maxBackOff)
	if sleep(ctx, wait) != nil {
		return a.ended(a.whyEnded(ctx))
	}
	return nil
}

// pause waits before a planner that is out of reach is asked again. An outage is
// one failed turn, however long it is. What has been asked is asked again as it
// is only while its screen is fresh and no answer came: after an answer, which a
// failure of the provider is, the same question would get the same answer.
func (a *attempt) pause(ctx context.Context, step *Step, scene *perception.Scene, refusal *wire.Refusal) *Result {
	if a.down == nil {
		a.down = &outage{since: time.Now()}
		a.note(step, scene)
		a.tell(Paused)
	}
	a.down.tries++
	wait := jitter(min(backOff<<min(a.down.tries-1, 10), maxBackOff))
	wait = max(wait, refusal.RetryAfter())
	if time.Since(a.down.since)+wait > a.limits.Outage {
		return a.ended(refusal)
	}
	a.log.Info("the planner is out of reach", "code", refusal.Code, "tries", a.down.tries, "wait", wait)
	if sleep(ctx, wait) != nil {
		return a.ended(a.whyEnded(ctx))
	}
	a.asked.again = refusal.Code == wire.PlannerUnreachable || refusal.Code == wire.PlannerTimeout
	if !a.asked.again || time.Since(a.seen) > a.limits.Fresh {
		a.scene = nil
	}
	return nil
}

// jitter spreads d, so that the phones of many racks do not come back at the
// same moment.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
