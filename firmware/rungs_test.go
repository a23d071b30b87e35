package firmware_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/health"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
)

// workshop is a bus whose host can reset phones and clear halts, as usblink.Host can.
type workshop struct {
	*cable
	heal func() // what a reset does for the phone at 1-1.1

	mu      sync.Mutex
	halted  bool // the endpoints of the phone at 1-1.1 are, until they are cleared
	resets  int
	cleared int
}

// Open implements firmware.Dialer.
func (w *workshop) Open(ctx context.Context, d bus.Device) (adb.Link, error) {
	link, err := w.cable.Open(ctx, d)
	if err != nil || d.Path != "1-1.1" {
		return link, err
	}
	return halting{link, w}, nil
}

func (w *workshop) stalls() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.halted
}

// Reset is usblink.Host's.
func (w *workshop) Reset(context.Context, bus.Device) error {
	w.mu.Lock()
	w.resets++
	w.mu.Unlock()
	w.heal()
	return nil
}

// ClearHalt is usblink.Host's.
func (w *workshop) ClearHalt(context.Context, bus.Device) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleared++
	if !w.halted {
		return errors.New("a healthy endpoint was cleared, which breaks phones")
	}
	w.halted = false
	return nil
}

// halting is a link whose endpoints can be halted.
type halting struct {
	adb.Link
	w *workshop
}

func (h halting) WritePacket(ctx context.Context, p adb.Packet) error {
	if h.w.stalls() {
		return adb.ErrStall
	}
	return h.Link.WritePacket(ctx, p)
}

// stuck is an Android whose shell answers nothing while it is frozen; adbd goes on.
type stuck struct {
	*android.Device
	frozen atomic.Bool
}

// Run implements phonesim.System.
func (s *stuck) Run(ctx context.Context, cmd string, stdin io.Reader, stdout, stderr io.Writer) int {
	if s.frozen.Load() {
		<-ctx.Done()
		return 1
	}
	return s.Device.Run(ctx, cmd, stdin, stdout, stderr)
}

// TestRungsOnTheLink: each act on the link to a phone, when it is done and when it is not. All phones were well before.
func TestRungsOnTheLink(t *testing.T) {
	t.Parallel()
	hang := phonesim.Faults{Hang: true}
	for _, test := range []struct {
		name            string
		models          []string // that survive a USB reset
		ill             func(p *simPhone, s *stuck, w *workshop)
		acts            string
		resets, cleared int
	}{
		{"a stall is cleared", nil, func(p *simPhone, _ *stuck, w *workshop) { w.halted = true; p.Unplug() }, "reopen done, resync done, clear_halt done", 0, 1},
		{"a phone that hangs, of a model that survives a reset", []string{"Sim Phone"}, func(p *simPhone, _ *stuck, _ *workshop) { p.SetFaults(hang); p.Unplug() }, "reopen done, resync done, usb_reset done", 1, 0},
		{"a phone that hangs, of another model", []string{"Pixel 9"}, func(p *simPhone, _ *stuck, _ *workshop) { p.SetFaults(hang); p.Unplug() }, "reopen done, resync done, port_cycle done", 0, 0},
		{"a phone behind whose adbd nothing answers", nil, func(_ *simPhone, s *stuck, _ *workshop) { s.frozen.Store(true) }, "reopen done, resync done, reboot done", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w, s := &workshop{}, &stuck{}
			b, ports := newPorts(t, nil, func(o *firmware.Options) {
				w.cable = o.Dialer.(*cable)
				o.Dialer, o.Patience = w, 600*time.Millisecond
				o.Config.Health.Ladder.ResetModels = test.models
				o.Config.Health.Ladder.Reboot.Settle = health.Duration(2 * time.Second)
				port := o.Outlets[0].Switch.(*socket)
				s.Device = port.phone.device
				thaw := func(string) { s.frozen.Store(false) }
				var err error
				if port.phone.Phone, err = phonesim.New(phonesim.Config{Android: 14, Serial: "PHONE1", System: s, RebootDelay: 100 * time.Millisecond, OnReboot: thaw}); err != nil {
					t.Fatal(err)
				}
				w.heal = func() { port.phone.SetFaults(phonesim.Faults{}) }
			})
			before := b.health(1, health.Well)
			if before.Main.Code != "fine" {
				t.Fatalf("before: %+v", before)
			}
			w.mu.Lock()
			test.ill(ports[1].phone, s, w)
			w.mu.Unlock()
			b.health(1, health.Recovering)
			if got := acts(b.health(1, health.Well)); got != test.acts {
				t.Errorf("the ladder did %s, want %s", got, test.acts)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.resets != test.resets || w.cleared != test.cleared {
				t.Errorf("%d resets and %d halts cleared, want %d and %d", w.resets, w.cleared, test.resets, test.cleared)
			}
			if got := ports[2].switched(); got != "" {
				t.Errorf("the neighbour's port was switched %s", got)
			}
		})
	}
}
