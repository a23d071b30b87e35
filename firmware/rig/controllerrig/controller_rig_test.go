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
	if full := b.rackSays(t, "usb_full"); !strings.Contains(full, " "+ports[2]+")") || !strings.Contains(full, ": 64.") {
		t.Errorf("the rack says %q", full)
	}

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
	if full := b.rackSays(t, "usb_full"); full != "" {
		t.Errorf("with room for all the rack says %q", full)
	}
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

// rackSays is the sentence of a finding about the rack; "" when there is none.
func (b *bench) rackSays(t *testing.T, code string) string {
	t.Helper()
	var rack action.RackStatus
	b.ctl(t, &rack, "status")
	for _, f := range rack.Findings {
		if f.Code == code {
			return f.Why
		}
	}
	return ""
}
