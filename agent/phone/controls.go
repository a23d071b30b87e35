package phone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"phonerack/sync/wire"
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

func (c *Controls) input(ctx context.Context, what string, lasts time.Duration, cmd string, args ...int) error {
	for _, a := range args {
		cmd += " " + strconv.Itoa(a)
	}
	return finish(what)(c.write(ctx, lasts, cmd))
}

// finish makes the error of a command that says nothing when it succeeds.
func finish(what string) func(adb.Result, error) error {
	return func(r adb.Result, err error) error {
		if err == nil {
			err = silent(r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
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
	if err := permitted(ctx, c.fence); err != nil {
		return adb.Result{}, err
	}
	return c.send(ctx, cmd)
}

// through asks the fence and has do write, which takes about lasts by itself.
// What do calls rejected, or refuses, has not happened; after any other failure
// it may have.
func (c *Controls) through(ctx context.Context, lasts time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.phone.options.WriteTimeout+lasts)
	defer cancel()
	if err := permitted(ctx, c.fence); err != nil {
		return err
	}
	defer c.phone.acted()
	return outcome(do(ctx))
}

// outcome is what is known after a write that is not one command: what its error
// calls rejected, or refuses, has not happened, and what it calls partly typed
// has to a part; after any other error it may have happened.
func outcome(err error) error {
	if _, refused := errors.AsType[*wire.Refusal](err); err == nil || refused {
		return err
	}
	for _, known := range []error{ErrRejected, ErrPartlyTyped, ErrUnknownOutcome, ErrNoFence} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// permitted asks the fence: the last thing before a write.
func permitted(ctx context.Context, f Fence) error {
	if f == nil {
		return ErrNoFence
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.Check()
}

// writeWhole is write for a command that must not be cut off. It is let end when
// ctx does, for as long as it lasts and liftTime.
func (c *Controls) writeWhole(ctx context.Context, lasts time.Duration, cmd string) (adb.Result, error) {
	if err := permitted(ctx, c.fence); err != nil {
		return adb.Result{}, err
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.phone.options.WriteTimeout+lasts)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		late := time.NewTimer(lasts + liftTime)
		defer late.Stop()
		select {
		case <-late.C:
			cancel()
		case <-whole.Done():
		}
	})()
	return c.send(whole, cmd)
}

// send sends a write without asking the fence.
func (c *Controls) send(ctx context.Context, cmd string) (adb.Result, error) {
	r, err := c.phone.conn.shell(ctx, cmd)
	c.phone.acted()
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
			return &rejection{r.ExitCode, out}
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
	return &rejection{r.ExitCode, said}
}

// rejection is a phone's no to a command. It is ErrRejected.
type rejection struct {
	exit int
	said []byte
}

func (c *rejection) Error() string {
	return fmt.Sprintf("exit code %d, %q: %v", c.exit, excerpt(c.said), ErrRejected)
}

func (c *rejection) Unwrap() error { return ErrRejected }

var exceptionName = regexp.MustCompile(`\b[A-Za-z.]{1,80}Exception\b`)

// discreet tells of a complaint's words only which exception it was: phones repeat what they were told to type, which may
// be a password.
func (c *rejection) discreet() error {
	name := exceptionName.Find(c.said)
	if name == nil {
		return fmt.Errorf("exit code %d: %w", c.exit, ErrRejected)
	}
	return fmt.Errorf("exit code %d, %s: %w", c.exit, name, ErrRejected)
}
