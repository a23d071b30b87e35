package firmware_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/store"
	"phonerack/hal/power"
)

func TestWhatAPersonHasSwitchedOffStaysOff(t *testing.T) {
	t.Parallel()
	b, ports := newPorts(t, nil)
	b.health(1, health.Well)
	args := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}
	if err := b.Call(t.Context(), "power_off", args, nil); err != nil {
		t.Fatal(err)
	}
	off := b.health(1, health.Maintenance)
	if off.Power == nil || off.Power.On || off.Left != "power" {
		t.Errorf("off: %+v", off)
	}
	time.Sleep(time.Second) // recovery would have come by now
	if got := ports[1].switched(); got != "false" {
		t.Errorf("switched %s", got)
	}
	if err := b.Call(t.Context(), "power_on", args, nil); err != nil {
		t.Fatal(err)
	}
	if s := b.slots()[0]; s.State == string(health.Resting) || s.State == string(health.Maintenance) {
		t.Errorf("the order has been carried out, and the slot is held to be without power: %+v", s)
	}
	if s := b.health(1, health.Well); s.Left != "" || len(s.Others) > 0 {
		t.Errorf("on: %+v", s)
	}
	if got := ports[1].switched(); got != "false true" {
		t.Errorf("switched %s: recovery did not wait for the phone", got)
	}
}

// TestTheEndOfMaintenanceGivesNoPowerThatAPersonHasTaken: hands come to a slot that is switched off, or it is switched off under
// their hands.
func TestTheEndOfMaintenanceGivesNoPowerThatAPersonHasTaken(t *testing.T) {
	t.Parallel()
	slot := action.RackSlotArgs{Slot: 1}
	off, begin, end := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}, action.MaintenanceArgs{RackSlotArgs: slot}, action.MaintenanceArgs{RackSlotArgs: slot, Off: true}
	for name, calls := range map[string][]string{"off before": {"power_off", "begin", "end"}, "off meanwhile": {"begin", "power_off", "end"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ports := newPorts(t, nil)
			b.health(1, health.Well)
			for _, c := range calls {
				act, args := c, any(off)
				switch c {
				case "begin":
					act, args = "maintenance", begin
				case "end":
					act, args = "maintenance", end
				}
				if err := b.Call(t.Context(), act, args, nil); err != nil {
					t.Fatal(c, err)
				}
			}
			time.Sleep(time.Second) // twenty rounds
			if s := b.health(1, health.Maintenance); s.Left != "power" {
				t.Errorf("left alone: %q", s.Left)
			}
			if got := ports[1].switched(); got != "false" {
				t.Errorf("switched %s", got)
			}
			if err := b.Call(t.Context(), "power_on", off, nil); err != nil {
				t.Fatal(err)
			}
			if s := b.health(1, health.Well); s.Left != "" {
				t.Errorf("left alone: %q", s.Left)
			}
			if got := ports[1].switched(); got != "false true" {
				t.Errorf("switched %s", got)
			}
		})
	}
}

// full is a store of what is wanted that refuses.
type full struct {
	power.Store
	is atomic.Bool
}

// Save implements power.Store.
func (f *full) Save(outlet string, r power.Record) error {
	if f.is.Load() {
		return store.ErrFull
	}
	return f.Store.Save(outlet, r)
}

// TestAnOrderThatTheDiskRefusesLeavesNoSlotDark: that a slot is to be dark is noted before its power is switched; when the one or the
// other cannot be written down, the slot is what it was, also for the next start.
func TestAnOrderThatTheDiskRefusesLeavesNoSlotDark(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		notes int  // that the disk takes
		full  bool // for what is wanted of the outlet
	}{
		"the note of the second slot":              {1, false},
		"what is wanted":                           {1000, true},
		"what is wanted, and the end of the notes": {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hub strip
			var again firmware.Options
			disk := &full{}
			b, ports := newPorts(t, nil, onBoard(t, lineBoard), func(o *firmware.Options) {
				for _, out := range o.Outlets {
					hub.ports = append(hub.ports, out.Switch.(*socket))
				}
				o.Outlets = []power.Outlet{{Name: "hub A", Hub: "A", HubPath: "1-1", Path: "1-1", Slots: []int{1, 2}, Switch: hub, Default: true, Settle: time.Millisecond}}
				o.Wanted = func(s power.Store) power.Store { disk.Store = s; return disk }
				again = *o
			})
			b.health(1, health.Well)
			b.health(2, health.Well)
			firmware.RefuseNotes(b.rack, test.notes)
			disk.is.Store(test.full)
			off := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}, Hub: true}
			if err := b.Call(t.Context(), "power_off", off, nil); err == nil {
				t.Fatal("it is said to be off")
			}
			for round := range 2 {
				for n := 1; n <= 2; n++ {
					if s := b.health(n, health.Well); s.Left != "" || len(s.Acts) != 0 {
						t.Errorf("start %d: slot %d is left alone: %q, %s", round, n, s.Left, acts(s))
					}
				}
				if round == 0 {
					b.stop()
					b.run(again)
					ports[1].plug()
					ports[2].plug()
				}
			}
			if got := ports[1].switched(); got != "" {
				t.Errorf("switched %s", got)
			}
		})
	}
}

// TestASlotThatNothingFeedsAnyMoreIsNotSwitchedOff: by another board file nobody could switch it on again. With the first one it is off
// as before.
func TestASlotThatNothingFeedsAnyMoreIsNotSwitchedOff(t *testing.T) {
	t.Parallel()
	var before firmware.Options
	b, ports := newPorts(t, nil, func(o *firmware.Options) { before = *o })
	b.health(1, health.Well)
	if err := b.Call(t.Context(), "power_off", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	b.stop()
	other := before
	other.Outlets = before.Outlets[1:]
	b.run(other)
	ports[1].plug() // its port has power again, by hand
	if s := b.health(1, health.Well); s.Left != "" {
		t.Errorf("nothing feeds it, and it is left alone: %+v", s)
	}
	b.stop()
	b.run(before)
	if s := b.health(1, health.Maintenance); s.Main.Code != "dark" {
		t.Errorf("with the board file of before: %+v", s)
	}
}

// TestQuarantineAndMaintenanceSurviveAKill copies the state folder of a rack that runs, as a kill -9 or a cut of power leaves it.
func TestQuarantineAndMaintenanceSurviveAKill(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.change = hasty
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	if err := b.Call(t.Context(), "quarantine", action.QuarantineArgs{SlotArgs: action.SlotArgs{Slot: 1}, Seconds: 3600, Reason: "swollen"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Call(t.Context(), "maintenance", action.MaintenanceArgs{RackSlotArgs: action.RackSlotArgs{Slot: 2}}, nil); err != nil {
		t.Fatal(err)
	}
	state := b.config.Rack.State + "-after"
	copyState(t, b.config.Rack.State, state)
	b.stop()
	b.config.Rack.State = state
	b.start()
	s := b.health(1, health.Quarantined)
	if s.Ends < 50*time.Minute || s.Ends > time.Hour || len(s.Others) != 1 || !strings.Contains(s.Others[0].Why, "swollen") {
		t.Errorf("after the kill: %+v", s)
	}
	if s := b.health(2, health.Maintenance); s.Left != "maintenance" {
		t.Errorf("after the kill: %+v", s)
	}
	if err := b.Call(t.Context(), "quarantine_end", action.SlotArgs{Slot: 1}, nil); err != nil {
		t.Fatal(err)
	}
	b.health(1, health.Well)
}

// copyState copies a state folder with the modes of its files.
func copyState(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || e.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, rel), 0o700))
		}
		content, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(filepath.Join(to, rel), content, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
}
