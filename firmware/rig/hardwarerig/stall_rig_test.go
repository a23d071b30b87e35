//go:build rig && soak

package hardwarerig_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"phonerack/firmware/health"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/hal/watchdog"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

// slotBound is how long the owner of a slot may be without progress (firmware/progress.go).
const slotBound = 3 * time.Minute

// TestSoakAnyCriticalLoopThatIsBlockedHasTheBoardReset stops one loop after the other, each in a rackd that was built with
// places for it (tag stall). The watchdog acts when the loop's own bound and its timeout are over, and not before; the machine
// is paused then, and goes on with the next. A phone that nothing helps does not do that. With the last loop the board is
// really reset. It takes a quarter of an hour, of which nearly all is waiting.
func TestSoakAnyCriticalLoopThatIsBlockedHasTheBoardReset(t *testing.T) {
	b := boot(t, time.Hour, stalling(t))
	for _, part := range []struct {
		name  string
		bound time.Duration
	}{
		{"bus", 30 * time.Second},
		{"store", time.Minute},
		{"link", 2 * time.Minute},
	} {
		t.Run(part.name, func(t *testing.T) { b.blocked(t, part.name, part.bound) })
	}
	t.Run("a phone that hangs for ever", func(t *testing.T) {
		b.phones[6].Hopeless.Store(true)
		b.phones[6].USB.SetFaults(phonesim.Faults{Hang: true})
		before := b.watchdogs()
		time.Sleep(slotBound + watchdog.DefaultTimeout + resetWithin)
		if n := b.watchdogs(); n > before {
			t.Errorf("the watchdog has acted")
		}
		if s := b.well(t, 1, 2, 3, 4, 5)[6]; s.State == string(health.Well) || len(s.Acts) == 0 {
			t.Errorf("slot 6 was to hang: %+v", s)
		}
	})
	t.Run("owner of slot 3", func(t *testing.T) { b.reset(t, "owner of slot 3", slotBound) })
}

// stalling has a board whose rackd has places where its loops can be stopped, and a link to a cloud that is not there. Its kernel
// says its first line on the console.
func stalling(t *testing.T) func(*rackrig.BoardSpec) {
	t.Helper()
	dir := t.TempDir()
	rackd, identity := filepath.Join(dir, "rackd"), filepath.Join(dir, "identity.json")
	if err := rig.Build(t.Context(), rackd, "build", "-trimpath", "-ldflags=-s -w", "-tags", "stall", "phonerack/cmd/rackd"); err != nil {
		t.Fatal(err)
	}
	bundle, err := wire.Bundle{
		V: 1, Rack: "r1", Tenant: "acme", Bearer: "b", KID: "k1", MACSecret: base64.StdEncoding.EncodeToString(make([]byte, 32)), Broker: "tcp://127.0.0.1:9",
	}.File()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(identity, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(s *rackrig.BoardSpec) {
		s.Files["/bin/rackd"], s.Bundle = rackd, identity
		s.Append = []string{"loglevel=6"} // notices too: the first line is one
		s.Config += fmt.Sprintf("[cloud]\nidentity = %q\n", rackrig.GuestBundle)
	}
}

// actsBy is when the watchdog has to have acted on a loop that is stopped now.
func actsBy(bound time.Duration) time.Time {
	return time.Now().Add(bound + watchdog.DefaultTimeout + resetWithin)
}

// stop stops a loop and sees the watchdog act in time.
func (b *bench) stop(t *testing.T, name string, bound time.Duration) {
	t.Helper()
	before := b.watchdogs()
	b.sh(t, "touch "+rackrig.Quote("/run/rackd/stall-"+name))
	began, limit := time.Now(), actsBy(bound)
	for b.watchdogs() == before {
		if time.Now().After(limit) {
			t.Fatalf("the watchdog does not act: %v", b.names())
		}
		time.Sleep(100 * time.Millisecond)
	}
	took := time.Since(began)
	fmt.Printf("soak blocked %s: the watchdog acted after %v\n", name, took.Round(100*time.Millisecond))
	if took < bound {
		t.Errorf("it acted before the part's bound of %v", bound)
	}
}

// blocked stops a loop, sees the watchdog act in time, and has the machine go on with a new rackd.
func (b *bench) blocked(t *testing.T, name string, bound time.Duration) {
	b.stop(t, name, bound)
	if err := b.Monitor(b.ctx, "cont", nil, nil); err != nil {
		t.Fatal(err)
	}
	b.sh(t, "rm "+rackrig.Quote("/run/rackd/stall-"+name))
	b.end(t, "KILL")
	b.sh(t, "echo V >/dev/watchdog0") // QEMU's has disarmed itself, of which the driver knows nothing
	b.restartRackd(t)
	b.well(t, 1, 2, 3, 4, 5, 6)
}

var kernelsFirst = regexp.MustCompile(`^\[ +0\.0+\] Linux version `)

// reset stops a loop, and sees the watchdog reset the board and a new kernel begin, in the time that the watchdog has. It is the
// last thing that is done with the board.
func (b *bench) reset(t *testing.T, name string, bound time.Duration) {
	// The rig has a board end that reboots (-no-reboot), which this undoes.
	if err := b.Monitor(b.ctx, "set-action", map[string]string{"watchdog": "reset", "reboot": "reset"}, nil); err != nil {
		t.Fatal(err)
	}
	resets, lines := b.happened("RESET"), b.Lines()
	ctx, cancel := context.WithDeadline(b.ctx, actsBy(bound))
	defer cancel()
	b.stop(t, name, bound)
	for b.happened("RESET") == resets {
		select {
		case <-ctx.Done():
			t.Fatalf("the board is not reset: %v", b.names())
		case <-time.After(100 * time.Millisecond):
		}
	}
	if _, err := b.WaitLineAfter(ctx, lines, kernelsFirst); err != nil {
		t.Fatalf("no new kernel begins: %v", err)
	}
}
