package firmware

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"phonerack/firmware/health"
	"phonerack/usb/adb"
)

// TestWhatErrorsShow: an error shows what was seen and no more, so that a link that broke is never a phone that hangs.
func TestWhatErrorsShow(t *testing.T) {
	of := func(err error) error { return fmt.Errorf("usb 1-1.1: open: %w (libusb)", err) }
	other := errors.New("something else")
	for _, c := range []struct {
		err   error
		open  health.Open
		greet health.Greet
		shell health.Shell
	}{
		{nil, health.OpenOK, health.GreetOK, health.ShellOK},
		{of(adb.ErrHeld), health.OpenHeld, "", ""},
		{of(adb.ErrDenied), health.OpenDenied, "", ""},
		{of(adb.ErrDisconnected), "", "", health.ShellLost},
		{other, health.OpenFailed, "", ""},
		{fmt.Errorf("greet: %w", adb.ErrUnauthorized), health.OpenFailed, health.GreetAsked, ""},
		{adb.ErrTimeout, health.OpenFailed, health.GreetSilent, health.ShellSilent},
		{adb.ErrProtocol, health.OpenFailed, health.GreetGarbled, ""},
		{adb.ErrTLS, health.OpenFailed, health.GreetGarbled, ""},
		{fmt.Errorf("%w: %w", adb.ErrDisconnected, adb.ErrStall), "", health.GreetStalled, health.ShellLost},
		{adb.ErrRefused, health.OpenFailed, "", health.ShellRefused},
		{context.DeadlineExceeded, health.OpenFailed, "", health.ShellSilent},
	} {
		if got := openSeen(c.err); got != c.open {
			t.Errorf("opening fails with %v: %q, want %q", c.err, got, c.open)
		}
		if got := greetSeen(c.err); got != c.greet {
			t.Errorf("greeting fails with %v: %q, want %q", c.err, got, c.greet)
		}
		if got := shellSeen(c.err); got != c.shell {
			t.Errorf("the command fails with %v: %q, want %q", c.err, got, c.shell)
		}
	}
}

func TestWhetherAdbdListensOnTCP(t *testing.T) {
	for text, want := range map[string]bool{
		"\n\n": false, "-1\n\n": false, "0\n0\n": false, "0\n5555\n": false, "5555\n0\n": true, "5555\n\n": true, "\r\n5555\r\n": true, "": false, "getprop: not found\n": false,
	} {
		if got := listens(adb.Result{Stdout: []byte(text)}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAnErrandThatNobodyWaitsForIsNotDone(t *testing.T) {
	s := &slot{errands: make(chan errand)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.send(ctx, health.Reopen); !errors.Is(err, context.Canceled) {
		t.Errorf("an owner that does not come to it: %v", err)
	}
	e := errand{health.Resync, ctx, make(chan error, 1)}
	if s.carry(t.Context(), e); s.anew || len(e.done) > 0 {
		t.Error("it was done although its sender is gone")
	}
	e.ctx = t.Context()
	if s.carry(t.Context(), e); !s.anew || <-e.done != nil {
		t.Error("a resync does not have the next link read what is left over")
	}
	e.rung = health.ClearHalt
	if s.carry(t.Context(), e); !errors.Is(<-e.done, errNoStall) {
		t.Error("nothing has stalled, and it was not said")
	}
}
