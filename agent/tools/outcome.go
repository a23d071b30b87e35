package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"time"

	"phonerack/agent/perception"
	"phonerack/sync/wire"
)

// MaxResult bounds Outcome.Result, in characters.
const MaxResult = 4000

// Outcome is what an execution came to, also one that failed.
type Outcome struct {
	Tool     string
	Finished bool                // the task is over
	Success  bool                // with Finished: the goal is reached
	Message  string              // with Finished: what the planner reports
	Object   json.RawMessage     // with Finished: the result object, nil if there is none
	Target   *perception.Element // the element that was acted on, or found
	Points   []image.Point       // where the screen was touched last: one point, or the two ends of a swipe
	Wrote    bool                // something was sent to the phone, or may have been
	Unknown  bool                // whether the act happened is not known
	Text     string              // the verdict on a field that the tool has read back; "" if there was none
	Settle   bool                // the screen may change now: wait until it rests

	Scene      *perception.Scene // the tool's own newest look, nil if it has written since: no other look is needed
	Ask        *Question         // the attempt waits until a person has answered
	Result     string            // what a reading tool brought: untrusted text of at most MaxResult characters
	Screenshot bool              // show the picture of the screen in the next turn
}

// Question is asked of a person.
type Question struct {
	Text    string
	Options []string // answers to choose from; none: any answer
}

// result keeps what a reading tool brought. If it has to be cut, more says how
// to get the rest.
func (o *Outcome) result(text, more string) {
	cut, n := len(text), 0
	tail := fmt.Sprintf(" … (cut; %s)", more)
	room := MaxResult - len([]rune(tail))
	for i := range text {
		if n == room {
			cut = i
		}
		n++
	}
	if n > MaxResult {
		text = text[:cut] + tail
	}
	o.Result = text
}

// look observes the screen and keeps the scene in the outcome.
func (o *Outcome) look(ctx context.Context, env Env) (*perception.Scene, error) {
	if env.Look == nil {
		return nil, unsupported(o.Tool + " without looks of its own")
	}
	o.Scene = nil // out of date from now on
	scene, err := env.Look(ctx)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	o.Scene = scene
	return scene, nil
}

// lookGrace is how long a look that has begun may outlast the limit of watch.
const lookGrace = 10 * time.Second

// watch looks until enough is satisfied or limit is over, with pauses between.
// A look that fails is no more than a look in vain, unless the last one does.
func (o *Outcome) watch(ctx context.Context, env Env, limit, pause time.Duration, enough func(*perception.Scene) bool) (bool, error) {
	begun := time.Now()
	// With the cause, since who looks may say why it ended: this is not the end of the task.
	bounded, cancel := context.WithTimeoutCause(ctx, limit+lookGrace, tooLong(env))
	defer cancel()
	for {
		scene, err := o.look(bounded, env)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil && enough(scene):
			return true, nil
		case err == nil && bounded.Err() != nil:
			return false, nil
		case bounded.Err() != nil:
			return false, tooLong(env).Because(err)
		case err != nil && !wire.Is(err, wire.ObservationFailed):
			return false, lookFailed(env, err)
		}
		left := limit - time.Since(begun)
		switch {
		case left > 0:
			if err := sleep(ctx, min(pause, left)); err != nil {
				return false, err
			}
		case err != nil:
			return false, lookFailed(env, err)
		default:
			return false, nil
		}
	}
}

func tooLong(env Env) *wire.Refusal {
	return wire.Refuse(wire.ObservationFailed, map[string]any{"detail": "a look took too long"}).With(env.place())
}

// How a look that has to be proved is bounded: a helper app may be started anew
// for it, or be given up for the phone's own dumper.
const (
	proofLimit = 30 * time.Second
	maxProofs  = 2 // the first may show no more than that the screen goes on changing
)

// proved looks again after a watch in vain, before that is held against an act:
// the tree may have been an old one. It reports whether enough is satisfied now.
func (o *Outcome) proved(ctx context.Context, env Env, enough func(*perception.Scene) bool) (bool, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, proofLimit, tooLong(env))
	defer cancel()
	for range maxProofs {
		if env.Controls == nil || !env.Controls.Doubt() {
			return false, nil
		}
		scene, err := o.look(bounded, env)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && bounded.Err() != nil:
			return false, tooLong(env).Because(err)
		case err != nil:
			return false, lookFailed(env, err)
		case enough(scene):
			return true, nil
		}
	}
	return false, nil
}

// insist is watch, and proved if it was in vain.
func (o *Outcome) insist(ctx context.Context, env Env, limit, pause time.Duration, enough func(*perception.Scene) bool) (bool, error) {
	ok, err := o.watch(ctx, env, limit, pause, enough)
	if ok || err != nil {
		return ok, err
	}
	return o.proved(ctx, env, enough)
}

// lookFailed makes a refusal of what a look failed with.
func lookFailed(env Env, err error) error {
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		return r.With(env.place())
	}
	return wire.Refuse(wire.ObservationFailed, map[string]any{"detail": err.Error()}).With(env.place()).Because(err)
}

// sleep blocks for d or until ctx ends.
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
