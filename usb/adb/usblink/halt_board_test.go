//go:build board

package usblink

import (
	"context"
	"errors"
	"testing"
	"time"

	"phonerack/usb/bus"
)

// TestBoardEndpointsThatAreNotHaltedAreLeftAlone asks each phone through the kernel. That nothing was cleared is what the
// simulated phones say: they hold it against the host.
func TestBoardEndpointsThatAreNotHaltedAreLeftAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	devices, err := bus.Scan("")
	if err != nil || len(devices) == 0 {
		t.Fatalf("%d phones, %v", len(devices), err)
	}
	host, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	for _, d := range devices {
		if err := host.ClearHalt(ctx, d); !errors.Is(err, ErrNotHalted) {
			t.Errorf("%v: %v, want %v", d, err, ErrNotHalted)
		}
	}
}
