package firmware_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// dmesg is a kernel's log that a test writes.
type dmesg struct {
	mu    sync.Mutex
	lines []string
}

func (d *dmesg) say(lines ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, lines...)
}

// Record implements bus.Records.
func (d *dmesg) Record() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lines) == 0 {
		return nil, io.EOF
	}
	defer func() { d.lines = d.lines[1:] }()
	return []byte("3,1,1,-;" + d.lines[0]), nil
}

// finds waits until a slot's main finding has a code.
func (b *bench) finds(slot int, code string) action.SlotHealth {
	b.t.Helper()
	var last action.SlotHealth
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, s := range b.slots() {
			if s.Slot == slot {
				last = s
			}
		}
		if last.Main.Code == code {
			return last
		}
	}
	b.t.Fatalf("slot %d is %+v, and not %s", slot, last, code)
	return last
}

// TestAPhoneThatTheKernelCannotTalkToIsNotCalledGone: its plug is in, so its port is cycled, and the sentence is about the cable.
func TestAPhoneThatTheKernelCannotTalkToIsNotCalledGone(t *testing.T) {
	t.Parallel()
	kernel := &dmesg{}
	b, ports := newPorts(t, nil, func(o *firmware.Options) { o.Kernel = kernel })
	b.health(1, health.Well)
	kernel.say("usb 1-1.1: device descriptor read/64, error -71", "usb 1-1-port1: unable to enumerate USB device")
	ports[1].phone.Unplug()
	ports[1].c.events <- bus.Event{Kind: bus.Removed, Device: ports[1].device}
	if s := b.finds(1, "not_enumerated"); !strings.Contains(s.Main.Why, "cannot talk to it") {
		t.Errorf("said: %+v", s.Main)
	}
	if s := b.health(1, health.Well); acts(s) != "port_cycle done" {
		t.Errorf("helped by %s", acts(s))
	}
	if got := ports[2].switched(); got != "" {
		t.Errorf("the neighbour's port was switched %s", got)
	}
}

// TestAUSBControllerThatIsFullIsSaid (UH#276, openstf#966): of the slot and of the rack, and no power is switched for it.
func TestAUSBControllerThatIsFullIsSaid(t *testing.T) {
	t.Parallel()
	kernel := &dmesg{}
	kernel.say("xhci_hcd 0000:01:00.0: Max number of devices this xHCI host supports is 32.", "usb 1-1-port2: couldn't allocate usb_device")
	var left *socket
	b, ports := newPorts(t, nil, func(o *firmware.Options) {
		o.Kernel = kernel
		o.Outlets[1].Switch.(*socket).absent, left = true, o.Outlets[0].Switch.(*socket)
	})
	if s := b.finds(2, "controller_full"); s.State != string(health.NeedsHands) {
		t.Errorf("the slot is %+v", s)
	}
	b.health(1, health.Well)
	var rack action.RackStatus
	if err := b.Call(t.Context(), "rack_status", nil, &rack); err != nil || !strings.Contains(fmt.Sprint(rack.Findings), "32") {
		t.Errorf("the rack says %+v, %v", rack.Findings, err)
	}
	time.Sleep(500 * time.Millisecond) // ten rounds
	if got := ports[2].switched() + left.switched(); got != "" {
		t.Errorf("power was switched: %s", got)
	}
}

// taken is a bus on which somebody else holds all phones.
type taken struct{ *cable }

func (taken) Open(_ context.Context, d bus.Device) (adb.Link, error) {
	return nil, fmt.Errorf("usb %s: opening: %w", d.Path, adb.ErrHeld)
}

// TestAProgramThatHoldsAPhoneIsNamed (adb_shell#213, #225).
func TestAProgramThatHoldsAPhoneIsNamed(t *testing.T) {
	t.Parallel()
	b, _ := newPorts(t, nil, func(o *firmware.Options) {
		o.Dialer = taken{o.Dialer.(*cable)}
		o.Holder = func(_ context.Context, d bus.Device) string { return "adb (pid 812) of " + d.Path }
	})
	if s := b.finds(1, "held"); s.State != string(health.NeedsHands) || !strings.Contains(s.Main.Why, "adb (pid 812) of 1-1.1") {
		t.Errorf("said: %+v", s)
	}
	if state := b.await(2, action.Failed); !strings.Contains(state.Reason, "adb (pid 812) of 1-1.2") {
		t.Errorf("phones say %q", state.Reason)
	}
}
