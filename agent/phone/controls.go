package phone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"phonerack/usb/adb"
)

// Fence says whether its holder may still write to the phone; a lease
// implements it.
type Fence interface {
	// Check returns nil while the lease is live, else why it is not.
	Check() error
}

// Controls changes a phone under one fence. Each method sends at most one write
// at a time, asks the fence immediately before it, and never repeats one.
type Controls struct {
	phone *Phone
	fence Fence
}

// Bounds of a touch.
const (
	minTouch = time.Millisecond
	maxTouch = 10 * time.Second
)

// Tap touches the point (x, y) of the display.
func (c *Controls) Tap(ctx context.Context, x, y int) error {
	if err := c.onScreen(ctx, x, y); err != nil {
		return fmt.Errorf("tap: %w", err)
	}
	return c.input(ctx, "tap", 0, "input tap", x, y)
}

// LongPress touches the point (x, y) for d, 1 ms to 10 s. Android takes half a
// second for a long press unless the user has changed that.
func (c *Controls) LongPress(ctx context.Context, x, y int, d time.Duration) error {
	return c.touch(ctx, "long press", x, y, x, y, d)
}

// Swipe drags from (x1, y1) to (x2, y2) within d, 1 ms to 10 s. It cannot be
// stopped once it was sent.
func (c *Controls) Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error {
	return c.touch(ctx, "swipe", x1, y1, x2, y2, d)
}

func (c *Controls) touch(ctx context.Context, what string, x1, y1, x2, y2 int, d time.Duration) error {
	if d < minTouch || d > maxTouch {
		return fmt.Errorf("%s for %s, not within %s and %s: %w", what, d, minTouch, maxTouch, ErrBadArgument)
	}
	if err := c.onScreen(ctx, x1, y1, x2, y2); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return c.input(ctx, what, d, "input swipe", x1, y1, x2, y2, int(d.Milliseconds()))
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

func (c *Controls) input(ctx context.Context, what string, lasts time.Duration, cmd string, args ...int) error {
	for _, a := range args {
		cmd += " " + strconv.Itoa(a)
	}
	r, err := c.write(ctx, lasts, cmd)
	if err == nil {
		err = silent(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Key presses a key by name; [Keys] lists the names.
func (c *Controls) Key(ctx context.Context, name string) error {
	code, ok := keyCodes[name]
	if !ok {
		return fmt.Errorf("press key: %.40q is no key: %w", name, ErrBadArgument)
	}
	return c.input(ctx, "press "+name, 0, "input keyevent", code)
}

// write asks the fence and sends cmd, which takes about lasts by itself. Errors
// of the fence come as they are. A phone that refuses to open the service has
// not run cmd; after any other failure it may have.
func (c *Controls) write(ctx context.Context, lasts time.Duration, cmd string) (adb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.phone.options.WriteTimeout+lasts)
	defer cancel()
	if c.fence == nil {
		return adb.Result{}, ErrNoFence
	}
	if err := ctx.Err(); err != nil {
		return adb.Result{}, err
	}
	if err := c.fence.Check(); err != nil {
		return adb.Result{}, err
	}
	r, err := c.phone.conn.shell(ctx, cmd)
	switch {
	case errors.Is(err, adb.ErrRefused):
		return adb.Result{}, fmt.Errorf("%w: %w", ErrRejected, err)
	case err != nil:
		return adb.Result{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return r, complaint(r)
}

// complaint finds the exceptions that commands print with exit code 0.
func complaint(r adb.Result) error {
	for _, out := range [][]byte{r.Stderr, r.Stdout} {
		switch {
		case bytes.Contains(out, []byte("INJECT_EVENTS")):
			return ErrDeviceSetup
		case bytes.Contains(out, []byte("SecurityException")):
			return fmt.Errorf("not permitted, %q: %w", excerpt(out), ErrRejected)
		}
	}
	return nil
}

// silent accepts only the answer of a command that prints nothing when it
// succeeds. Warnings of the dynamic linker do not count.
func silent(r adb.Result) error {
	said := bytes.Join([][]byte{r.Stdout, r.Stderr}, []byte("\n"))
	failed := r.ExitCode != 0
	for line := range bytes.Lines(said) {
		failed = failed || bytes.Contains(line, []byte("Exception")) ||
			bytes.HasPrefix(line, []byte("Error")) || bytes.HasPrefix(bytes.TrimSpace(line), []byte("Usage:"))
	}
	if !failed {
		return nil
	}
	return fmt.Errorf("exit code %d, %q: %w", r.ExitCode, excerpt(said), ErrRejected)
}
