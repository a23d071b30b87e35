package phone

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"
)

// Bounds of a touch. One that lasts longer than a second can be broken off on
// phones that take single motions.
const (
	minTouch   = time.Millisecond
	maxTouch   = 10 * time.Second
	shortTouch = time.Second
)

// motionSDK is the first Android that takes single motions without the start of
// a virtual machine for each: Android 11.
const motionSDK = 30

// Pace of single motions.
const (
	moveEvery = 100 * time.Millisecond
	liftTime  = 5 * time.Second // to lift the finger, whatever has ended
)

// Tap touches the point (x, y) of the display.
func (c *Controls) Tap(ctx context.Context, x, y int) error {
	if err := c.onScreen(ctx, x, y); err != nil {
		return fmt.Errorf("tap: %w", err)
	}
	return c.input(ctx, "tap", 0, "input tap", x, y)
}

// DoubleTap touches the point (x, y) twice, quickly: Android takes two touches
// for one act if 40 to 300 ms lie between them.
func (c *Controls) DoubleTap(ctx context.Context, x, y int) error {
	if err := c.onScreen(ctx, x, y); err != nil {
		return fmt.Errorf("double tap: %w", err)
	}
	tap := fmt.Sprintf("input tap %d %d", x, y)
	twice := tap + " && sleep 0.05 && " + tap
	if c.phone.info.SDK < motionSDK {
		// Each command starts a virtual machine, which takes too long: they overlap.
		twice = tap + " & sleep 0.1; " + tap + "; wait"
	}
	return c.input(ctx, "double tap", 0, twice)
}

// LongPress touches the point (x, y) for d, 1 ms to 10 s. Android takes half a
// second for a long press unless the user has changed that. See Swipe for what
// ends it early.
func (c *Controls) LongPress(ctx context.Context, x, y int, d time.Duration) error {
	return c.touch(ctx, "long press", image.Pt(x, y), image.Pt(x, y), d)
}

// Swipe drags from (x1, y1) to (x2, y2) within d, 1 ms to 10 s. Up to a second,
// and before Android 11, it is one command that is let end whatever becomes of
// ctx. A longer one goes motion by motion, each under the fence: when ctx or the
// lease ends it is cancelled and the error wraps ErrUnknownOutcome, because the
// app has seen a part of it. The finger is lifted in any case; that needs no
// lease and its own few seconds.
func (c *Controls) Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	return c.touch(ctx, "swipe", image.Pt(x1, y1), image.Pt(x2, y2), d)
}

func (c *Controls) touch(ctx context.Context, what string, from, to image.Point, d time.Duration) error {
	if d < minTouch || d > maxTouch {
		return fmt.Errorf("%s for %s, not within %s and %s: %w", what, d, minTouch, maxTouch, ErrBadArgument)
	}
	if err := c.onScreen(ctx, from.X, from.Y, to.X, to.Y); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if d > shortTouch && c.phone.info.SDK >= motionSDK {
		return c.drag(ctx, what, from, to, d)
	}
	// Before Android 11 a program moves the finger: killed halfway it leaves it on the display.
	return finish(what)(c.writeWhole(ctx, d, fmt.Sprintf("input swipe %d %d %d %d %d", from.X, from.Y, to.X, to.Y, d.Milliseconds())))
}

// drag puts a finger down, moves it and lifts it.
func (c *Controls) drag(ctx context.Context, what string, from, to image.Point, d time.Duration) error {
	err := c.input(ctx, what, 0, "input motionevent DOWN", from.X, from.Y)
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		return err // nothing was sent, or it was refused: no finger is down
	}
	at := from
	if err == nil {
		at, err = c.move(ctx, what, from, to, d)
	}
	if err == nil {
		if err = c.lift(ctx, "UP", to); err == nil {
			return nil
		}
		err = fmt.Errorf("%s: %w", what, err)
	}
	if lift := c.lift(ctx, "CANCEL", at); lift != nil {
		err = fmt.Errorf("%w; the finger may still be down: %w", err, lift)
	}
	if errors.Is(err, ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: it was broken off: %w", ErrUnknownOutcome, err)
}

// move moves a finger that is down and returns where it is. It takes d, or as
// long as the phone takes for the motions.
func (c *Controls) move(ctx context.Context, what string, from, to image.Point, d time.Duration) (image.Point, error) {
	start := time.Now()
	at := from
	for {
		if err := pause(ctx, min(moveEvery, max(0, d-time.Since(start)))); err != nil {
			return at, fmt.Errorf("%s: %w", what, err)
		}
		done := time.Since(start) >= d
		next := to
		if !done {
			next = from.Add(to.Sub(from).Mul(int(time.Since(start) / time.Millisecond)).Div(int(d / time.Millisecond)))
		}
		if next == at {
			err := c.fence.Check() // a resting finger sends nothing that asks it
			if err != nil {
				return at, fmt.Errorf("%s: %w", what, err)
			}
		} else {
			if err := c.input(ctx, what, 0, "input motionevent MOVE", next.X, next.Y); err != nil {
				return at, err
			}
			at = next
		}
		if done {
			return at, nil
		}
	}
}

// lift lifts the finger, under no lease and whatever has become of ctx.
func (c *Controls) lift(ctx context.Context, action string, at image.Point) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liftTime)
	defer cancel()
	r, err := c.send(ctx, fmt.Sprintf("input motionevent %s %d %d", action, at.X, at.Y))
	if err == nil {
		err = silent(r)
	}
	return err
}

// onScreen checks pairs of coordinates against the display as it was read last,
// and reads it again before it refuses: the phone may have been turned.
func (c *Controls) onScreen(ctx context.Context, xy ...int) error {
	d := *c.phone.display.Load()
	for fresh := false; ; fresh = true {
		off := -1
		for i := 0; i < len(xy); i += 2 {
			if xy[i] < 0 || xy[i] >= d.Width || xy[i+1] < 0 || xy[i+1] >= d.Height {
				off = i
			}
		}
		if off < 0 {
			return nil
		}
		if fresh {
			return fmt.Errorf("(%d, %d) is not on %dx%d: %w", xy[off], xy[off+1], d.Width, d.Height, ErrOffScreen)
		}
		var err error
		if d, err = c.phone.Display(ctx); err != nil {
			return err
		}
	}
}
