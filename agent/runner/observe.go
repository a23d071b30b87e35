package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// look observes, and again a few times if that fails: looking is safe. Its error
// is a *wire.Refusal.
func (a *attempt) look(ctx context.Context, want perception.Want) (*perception.Scene, error) {
	for n := 1; ; n++ {
		scene, err := a.Observer.Observe(ctx, want)
		if ctx.Err() != nil {
			return nil, a.whyEnded(ctx)
		}
		if err == nil {
			return scene, nil
		}
		if r, ok := errors.AsType[*wire.Refusal](err); ok && final(r.Code) {
			return nil, r
		}
		a.log.Warn("observation failed", "try", n, "error", err)
		if n >= a.limits.Observations {
			return nil, wire.Refuse(wire.ObservationFailed, map[string]any{"slot": a.Slot, "serial": a.Phone, "detail": err.Error()}).Because(err)
		}
		if err := sleep(ctx, lookPause*time.Duration(n)); err != nil {
			return nil, a.whyEnded(ctx)
		}
	}
}

// settle observes until two looks in a row are equal, or the limit is spent; the
// last scene then counts. A screen that is as it was before gets some time to
// react. Without wait one look is enough.
func (a *attempt) settle(ctx context.Context, before *perception.Scene, wait bool) (*perception.Scene, error) {
	begun := time.Now()
	scene, err := a.look(ctx, perception.Want{Image: !wait})
	if err != nil || !wait {
		return scene, err
	}
	for {
		if err := sleep(ctx, pollPause); err != nil {
			return nil, a.whyEnded(ctx)
		}
		next, err := a.look(ctx, perception.Want{Image: true})
		if err != nil {
			return nil, err
		}
		took := time.Since(begun)
		rests := next.Hash == scene.Hash && (next.Hash != before.Hash || took >= reactionTime)
		if rests || took >= a.limits.Settle {
			return next, nil
		}
		scene = next
	}
}

// How often a field is read after typing: letters may arrive late.
const (
	readBacks     = 3
	readBackPause = 300 * time.Millisecond
)

// readBack compares the field with what was typed and returns the scene that it
// looked at last.
func (a *attempt) readBack(ctx context.Context, scene *perception.Scene, typed tools.Typed) (string, *perception.Scene, error) {
	for n := 1; ; n++ {
		verdict := typed.Verdict(scene)
		if verdict != tools.TextFailed || n == readBacks {
			return verdict, scene, nil
		}
		if err := sleep(ctx, readBackPause); err != nil {
			return verdict, scene, a.whyEnded(ctx)
		}
		next, err := a.look(ctx, perception.Want{Image: true})
		if err != nil {
			return verdict, scene, err
		}
		scene = next
	}
}

// effect describes a difference in a few words.
func effect(d perception.Diff) string {
	if d.Empty() {
		return "no change"
	}
	return fmt.Sprintf("screen changed: +%d -%d ~%d", len(d.Added), len(d.Removed), len(d.Changed))
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
