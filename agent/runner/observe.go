package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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

// Verdicts on typed text.
const (
	textVerified   = "verified"   // the field shows it
	textUnverified = "unverified" // the field is not there to be read
	textFailed     = "failed"     // the field shows something else
)

// readBack compares the field with what was typed and returns the scene that it
// looked at last.
func (a *attempt) readBack(ctx context.Context, scene *perception.Scene, typed tools.Typed) (string, *perception.Scene, error) {
	for n := 1; ; n++ {
		verdict := textVerdict(scene, typed)
		if verdict != textFailed || n == readBacks {
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

func textVerdict(scene *perception.Scene, typed tools.Typed) string {
	field := sameField(scene, typed.Field)
	if field == nil {
		return textUnverified
	}
	shown := field.Text
	ok := strings.Contains(shown, typed.Text)
	if field.Password {
		n, before, added := utf8.RuneCountInString(shown), utf8.RuneCountInString(typed.Field.Text), utf8.RuneCountInString(typed.Text)
		ok = n == added || n == before+added // before may have been the hint
	}
	switch {
	case ok:
		return textVerified
	case typed.Submit:
		return textUnverified // sending empties many fields
	}
	return textFailed
}

// sameField finds the field again: by its id, else by where it was, else the one
// that has the cursor.
func sameField(scene *perception.Scene, was perception.Element) *perception.Element {
	for _, same := range []func(perception.Element) bool{
		func(e perception.Element) bool { return was.ID != "" && e.ID == was.ID && e.Class == was.Class },
		func(e perception.Element) bool { return was.ID == "" && e.Bounds == was.Bounds },
		func(e perception.Element) bool { return was.ID == "" && e.Focused },
	} {
		for i, e := range scene.Elements {
			if e.Editable && same(e) {
				return &scene.Elements[i]
			}
		}
	}
	return nil
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
