package runner

import (
	"context"
	"errors"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// Pauses between looks.
const (
	lookPause    = time.Second             // before a failed look is repeated, times the attempt
	pollPause    = 300 * time.Millisecond  // from the beginning of a look at a screen that settles to the next look
	reactionTime = 1200 * time.Millisecond // given to a screen that does not change at all
)

// How much of a picture may differ, by its thumb, from 0 to 1. A blinking caret
// is about a ten-thousandth, a spinner a thousandth, a popup a tenth.
const (
	stillPicture   = 0.005  // at most: the screen rests
	changedDrawing = 0.001  // at least: an app that draws itself shows something else
	changedPicture = 0.02   // at least: so does one whose elements stayed the same
	samePicture    = 0.0002 // at most: nothing but a caret
)

// look observes, and again a few times if that fails: looking is safe. All
// attempts have one deadline. Its error is a *wire.Refusal.
func (a *attempt) look(ctx context.Context, want perception.Want) (*perception.Scene, error) {
	inner, cancel := context.WithTimeout(ctx, a.limits.Look)
	defer cancel()
	for n := 1; ; n++ {
		a.looks++
		a.began = time.Now()
		scene, err := a.Observer.Observe(inner, want)
		a.seen = time.Now()
		if ctx.Err() != nil {
			return nil, a.whyEnded(ctx)
		}
		if err == nil {
			return scene, nil
		}
		if r, ok := errors.AsType[*wire.Refusal](err); ok && final(r.Code) {
			return nil, r
		}
		a.log.Warn("observation failed", "try", n, "err", err)
		if n >= a.limits.Observations || sleep(inner, lookPause*time.Duration(n)) != nil {
			if ctx.Err() != nil {
				return nil, a.whyEnded(ctx)
			}
			return nil, wire.Refuse(wire.ObservationFailed, map[string]any{"slot": a.Slot, "serial": a.Phone, "detail": err.Error()}).Because(err)
		}
	}
}

// settle observes until the screen rests, or the limit is spent; the last scene
// then counts, and moving is set. A screen rests when two looks in a row show the
// same tree, or pictures that hardly differ: two in a row where there is no tree
// to go by, three where trees differ, as under a clock that ticks. A screen that is as it
// was before gets some time to react; if only its elements are, it is looked at once
// more, for they may be old ones. An act that changes nothing needs one look,
// its own if that brought a picture.
func (a *attempt) settle(ctx context.Context, before *perception.Scene, out tools.Outcome) (scene *perception.Scene, moving bool, err error) {
	a.scene = nil
	begun := time.Now()
	if scene = out.Scene; scene == nil || !out.Settle && scene.Picture == nil {
		// The picture of the first look is not needed: equal trees are enough.
		if scene, err = a.look(ctx, perception.Want{Image: !out.Settle, ImageIfThin: true}); err != nil {
			return nil, false, err
		}
	}
	if !out.Settle {
		return scene, false, nil
	}
	doubted := false
	for calm := 0; ; {
		if sleep(ctx, pollPause-time.Since(a.began)) != nil { // looking takes longer on most phones
			return nil, false, a.whyEnded(ctx)
		}
		next, err := a.look(ctx, perception.Want{Image: true})
		if err != nil {
			return nil, false, err
		}
		trees := scene.NoTree == "" && next.NoTree == "" || scene.Picture == nil || next.Picture == nil
		calm++
		if !alike(scene, next) {
			calm = 0
		}
		rests := trees && scene.Hash == next.Hash || calm >= 2 || calm >= 1 && !trees
		took := time.Since(begun)
		if rests && (took >= reactionTime || differs(before, next)) && a.expected(2, next) {
			if doubted || !a.doubts(before, next) {
				return next, false, nil
			}
			doubted, scene = true, next // the next look is at what is proved
			continue
		}
		if took >= a.limits.Settle {
			return next, !rests, nil
		}
		scene = next
	}
}

// doubts tells whether the elements after an act are those from before although
// the picture, or the app in front, is not seen to be the same, and another look
// would tell more.
func (a *attempt) doubts(before, after *perception.Scene) bool {
	if a.Controls == nil || before.NoTree != "" || after.NoTree != "" {
		return false
	}
	d := perception.Compare(before, after)
	if len(d.Added)+len(d.Removed)+len(d.Changed) > 0 {
		return false
	}
	same := before.Picture != nil && after.Picture != nil && before.Picture.Distance(after.Picture) <= samePicture
	return (d.Front || !same) && a.Controls.Doubt()
}

// expected tells whether a scene is the one that is waited for, for the step that
// is so many after the last one of the record.
func (a *attempt) expected(after int, scene *perception.Scene) bool {
	return a.Expect == nil || a.Expect(a.steps+after, scene)
}

// lookAnew looks at what the next step is decided on, and again for as long as it
// is not what is waited for.
func (a *attempt) lookAnew(ctx context.Context) (*perception.Scene, error) {
	for begun := time.Now(); ; {
		scene, err := a.look(ctx, perception.Want{Image: true})
		if err != nil || a.expected(1, scene) || time.Since(begun) >= a.limits.Settle {
			return scene, err
		}
		if sleep(ctx, pollPause-time.Since(a.began)) != nil {
			return nil, a.whyEnded(ctx)
		}
	}
}

// alike tells whether the pictures hardly differ.
func alike(s, t *perception.Scene) bool {
	return s.Picture != nil && t.Picture != nil && s.Picture.Distance(t.Picture) <= stillPicture
}

// differs tells whether something has happened between two scenes.
func differs(s, t *perception.Scene) bool {
	if s.NoTree != "" && t.NoTree != "" && s.Picture != nil && t.Picture != nil {
		return s.Picture.Distance(t.Picture) >= changedDrawing || s.Package != t.Package || s.Activity != t.Activity
	}
	return s.Hash != t.Hash
}

// sleep blocks for d, not at all if that is not above 0, or until ctx ends.
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
