//go:build board

package power

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBoardPort runs on the emulated board: a phone is at 1-1.3, on one of QEMU's hubs, whose ports can be switched.
// Both ways of switching are tried on the real kernel.
func TestBoardPort(t *testing.T) {
	onlyNumbers := t.TempDir() // a sysfs without the attribute "disable": the hub itself has to be asked
	devices := filepath.Join(onlyNumbers, "bus/usb/devices")
	if err := os.MkdirAll(devices, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/sys/bus/usb/devices/1-1", filepath.Join(devices, "1-1")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		usb   *USB
		leave bool
	}{
		"by the kernel": {&USB{}, true},
		// QEMU's hub does not tell the kernel that a port has lost its power, so the phone stays listed.
		"by requests": {&USB{Sysfs: onlyNumbers}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			port := c.usb.Port("1-1", "", 3)
			for _, on := range []bool{false, true} {
				if err := port.Set(ctx, on); err != nil {
					t.Fatal(err)
				}
				for _, after := range []time.Duration{0, 2 * time.Second} {
					if err := sleep(ctx, after); err != nil {
						t.Fatal(err)
					}
					if is, err := port.On(ctx); is != on || err != nil {
						t.Errorf("told %v: %v later it is %v, %v", on, after, is, err)
					}
				}
				for present() != on && (on || c.leave) {
					if err := sleep(ctx, 50*time.Millisecond); err != nil {
						t.Fatalf("told %v: the phone has not followed: %v", on, err)
					}
				}
				t.Logf("on %v: the phone is listed: %v", on, present())
			}
		})
	}
	if n, ok, err := (&USB{}).OverCurrent("1-1", 3); n != 0 || !ok || err != nil {
		t.Errorf("over-current %d, %v, %v", n, ok, err)
	}
	if _, ok := (&USB{}).Generation("1-1"); !ok {
		t.Error("the hub has no number")
	}
	if err := (&USB{}).Port("1-1", "", 99).Set(t.Context(), false); err == nil {
		t.Error("a port that is not there was switched")
	}
}

func present() bool {
	_, err := os.Stat("/sys/bus/usb/devices/1-1.3")
	return err == nil
}
