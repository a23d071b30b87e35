//go:build rig

package controllerrig_test

import (
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/rig"
)

// TestUSBThroughTheRealKernel is one board from its start on; each part goes on from the one before.
func TestUSBThroughTheRealKernel(t *testing.T) {
	began := time.Now()
	b := boot(t)
	t.Logf("the board runs after %v", time.Since(began).Round(100*time.Millisecond))
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"a power-up of 40 ports keeps to the board file's concurrency and stagger", fortyPorts},
		{"a full controller is named", fullController},
		{"a halt is cleared through the kernel", haltCleared},
	} {
		began := time.Now()
		if !t.Run(part.name, func(t *testing.T) { part.run(t, b) }) {
			t.FailNow() // what follows builds upon it
		}
		t.Logf("%s: took %v", part.name, time.Since(began).Round(100*time.Millisecond))
	}
}

// fullController fills the controller up, with devices that are none of the rack's, until one phone finds no room.
func fullController(t *testing.T, b *bench) {
	b.fill(t)
	if err := b.StartRackd(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.devices(t, addresses-2)
	for _, n := range []int{1, 3} {
		if err := b.PlugPhone(b.ctx, b.phones[n]); err != nil {
			t.Fatal(err)
		}
	}
	b.devices(t, addresses)
	late, err := b.Plug(b.ctx, ports[2], b.phones[2].USB)
	if err != nil {
		t.Fatal(err)
	}
	b.Plugged[ports[2]] = late
	all := b.until(t, "slot 2 says that the controller is full, and its neighbours are well", func(all map[int]action.SlotHealth) bool {
		return all[2].Main.Code == string(health.ControllerFull) && well(all, 1, 3)
	})
	if s := all[2]; s.State != string(health.NeedsHands) || !strings.Contains(s.Main.Why, "slot 2") || len(s.Acts) > 0 {
		t.Errorf("slot 2 says %+v", s)
	}
	b.untilRackSays(t, "usb_full", func(why string) bool {
		return strings.Contains(why, " "+ports[2]+")") && strings.Contains(why, ": 64.")
	})

	mouse := b.mice[len(b.mice)-1]
	if err := b.Monitor(b.ctx, "device_del", map[string]string{"id": name(strings.TrimPrefix(mouse, "1-"))}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.WaitUnplugged(b.ctx, mouse); err != nil {
		t.Fatal(err)
	}
	if err := late.Replug(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.until(t, "all slots are well", func(all map[int]action.SlotHealth) bool { return well(all, 1, 2, 3) })
	b.untilRackSays(t, "usb_full", func(why string) bool { return why == "" })
	b.devices(t, addresses)
	b.honest(t)
}

// devices waits until the kernel sees so many devices, hubs included, and fails when it sees more.
func (b *bench) devices(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		devices, err := b.USB(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(devices) == want {
			return
		}
		if len(devices) > want || time.Now().After(end) {
			t.Fatalf("%d devices, want %d: %v", len(devices), want, paths(devices))
		}
	}
}

func paths(devices []rig.USBDevice) (all []string) {
	for _, d := range devices {
		all = append(all, d.Path)
	}
	return all
}

// untilRackSays waits until the sentence of a finding about the rack, "" when there is none, is as wanted: rackd looks at its controller
// less often than at the slots.
func (b *bench) untilRackSays(t *testing.T, code string, wanted func(why string) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		var rack action.RackStatus
		b.ctl(t, &rack, "status")
		why := ""
		for _, f := range rack.Findings {
			if f.Code == code {
				why = f.Why
			}
		}
		if wanted(why) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the rack says %q of %s", why, code)
		}
	}
}
