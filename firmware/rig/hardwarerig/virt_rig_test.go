//go:build rig

package hardwarerig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
)

// TestHardwareFromOutside is one board from its start on; each part goes on from the one before.
// All the while the hubs' lines have no edge that nobody has asked for, and the watchdog leaves the board alone.
func TestHardwareFromOutside(t *testing.T) {
	b := boot(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"hubs get their power once at the start", func(*testing.T, *bench) {}},
		{"a line off takes the phones away, and the slots say so within 2 s", lineOff},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			began := time.Now()
			part.run(t, b)
			b.edges(t)
			if n := b.watchdogs(); n > 0 {
				t.Errorf("the watchdog has acted %d times", n)
			}
			t.Logf("took %v", time.Since(began).Round(100*time.Millisecond))
		})
		if !ok {
			t.FailNow() // what follows builds upon it
		}
	}
}

// saysWithin is how soon after a line went off the slots say so.
const saysWithin = 2 * time.Second

// slowness is how many times the bound on an idle machine the board may take: 1 while rackctl answers within a second, which
// takes half of one there.
func (b *bench) slowness(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	b.slots(t)
	if took := time.Since(began); took > time.Second {
		return 2 * (took/time.Second + 1)
	}
	return 1
}

func lineOff(t *testing.T, b *bench) {
	slow := b.slowness(t)
	n := len(b.relays.Changes(line(hub1)))
	b.ask(edge{hub1, false})
	off := make(chan string, 1)
	go func() {
		out, exit, err := b.Run(b.ctx, "exec 2>&1; rackctl power off --hub 2")
		off <- fmt.Sprintf("%s, exit code %d, error %v", strings.TrimSpace(out), exit, err)
	}()
	edge1, err := b.relays.Wait(b.ctx, n, line(hub1))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(edge1.At.Add(saysWithin * slow)))
	for slot, s := range b.slots(t) {
		dark := slot <= 3
		if dark != (s.Adb == action.Empty) || dark != (s.Left == "power") || dark != (s.State == string(health.Maintenance)) {
			t.Errorf("%v after the line went off slot %d is %+v", saysWithin*slow, slot, s)
		}
	}
	if got := <-off; !strings.HasSuffix(got, ", exit code 0, error <nil>") {
		t.Errorf("rackctl power off: %s", got)
	}
	b.ask(edge{hub1, true})
	b.ctl(t, "power", "on", "--hub", "2")
	b.well(t, 1, 2, 3)
}

// well waits until slots are well and their phones there: a slot counts as well from the moment it has its power back.
func (b *bench) well(t *testing.T, slots ...int) map[int]action.SlotHealth {
	t.Helper()
	return b.until(t, fmt.Sprintf("slots %v are well", slots), func(all map[int]action.SlotHealth) bool {
		return !slices.ContainsFunc(slots, func(n int) bool {
			s := all[n]
			return s.State != string(health.Well) || s.Adb != action.Ready && s.Adb != action.Limited
		})
	})
}
