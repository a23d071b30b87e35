package usblink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// haltable is a device's file of a phone some of whose endpoints are halted. Like usb/phonesim it is unforgiving: a healthy
// endpoint that is cleared is dead.
type haltable struct {
	halt    map[byte]bool
	dead    map[byte]bool
	busy    error
	mute    error
	refused error
	claimed int
	log     []string
}

func (h *haltable) claim(number int) error {
	h.claimed = number
	return h.busy
}

func (h *haltable) halted(endpoint byte) (bool, error) { return h.halt[endpoint], h.mute }

func (h *haltable) clearHalt(endpoint byte) error {
	h.log = append(h.log, fmt.Sprintf("%#02x", endpoint))
	if !h.halt[endpoint] {
		h.dead[endpoint] = true
	}
	h.halt[endpoint] = false
	return h.refused
}

func (h *haltable) close() error { return nil }

func TestOnlyAHaltThatIsThereIsCleared(t *testing.T) {
	d := bus.Device{Path: "1-1.2", Interface: 3, In: 0x81, Out: 0x02}
	for _, test := range []struct {
		name    string
		phone   haltable
		cleared []string
		want    error
	}{
		{"to the phone", haltable{halt: map[byte]bool{0x02: true}}, []string{"0x02"}, nil},
		{"to the host", haltable{halt: map[byte]bool{0x81: true}}, []string{"0x81"}, nil},
		{"both", haltable{halt: map[byte]bool{0x81: true, 0x02: true}}, []string{"0x81", "0x02"}, nil},
		{"none", haltable{halt: map[byte]bool{}}, nil, ErrNotHalted},
		{"held by another", haltable{halt: map[byte]bool{0x81: true}, busy: syscall.EBUSY}, nil, ErrBusy},
		{"it does not say", haltable{halt: map[byte]bool{0x81: true}, mute: syscall.ETIMEDOUT}, nil, adb.ErrTimeout},
		{"unplugged", haltable{halt: map[byte]bool{0x81: true}, mute: syscall.ENODEV}, nil, ErrGone},
		{"it does not let itself be cleared", haltable{halt: map[byte]bool{0x81: true}, refused: syscall.EPIPE}, []string{"0x81"}, adb.ErrStall},
		{"not permitted", haltable{busy: syscall.EACCES}, nil, ErrAccess},
		{"something else", haltable{busy: io.ErrClosedPipe}, nil, io.ErrClosedPipe},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.phone.dead = map[byte]bool{}
			if err := mapErrno(clearHalts(&test.phone, d)); !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if !slices.Equal(test.phone.log, test.cleared) || len(test.phone.dead) > 0 || test.phone.claimed != 3 {
				t.Errorf("cleared %v, want %v; broke %v; claimed %d", test.phone.log, test.cleared, test.phone.dead, test.phone.claimed)
			}
		})
	}
}

// The requests are those of linux/usbdevice_fs.h on a 64-bit machine.
func TestRequestsOfTheKernel(t *testing.T) {
	for name, is := range map[string][2]uintptr{
		"USBDEVFS_CLAIMINTERFACE": {claimInterface, 0x8004550f},
		"USBDEVFS_CLEAR_HALT":     {clearHaltOf, 0x80045515},
		"USBDEVFS_CONTROL":        {controlTransfer, 0xc0185500},
	} {
		if is[0] != is[1] {
			t.Errorf("%s is %#x, want %#x", name, is[0], is[1])
		}
	}
}

func TestClearHaltOfWhatIsNotThere(t *testing.T) {
	h, err := New()
	if err != nil {
		if !strings.Contains(err.Error(), "libusb does not start") {
			t.Error(err)
		}
		return
	}
	d := bus.Device{Path: "99-9", Bus: 99, Address: 9, Config: 1, MaxPacket: 512, In: 0x81, Out: 1}
	if err := h.ClearHalt(t.Context(), d); !errors.Is(err, ErrGone) {
		t.Errorf("no such phone: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := h.ClearHalt(t.Context(), d); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
