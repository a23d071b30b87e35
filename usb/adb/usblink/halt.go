package usblink

import (
	"context"
	"errors"
	"fmt"

	"phonerack/usb/bus"
)

// ErrNotHalted: neither endpoint of the ADB interface is halted, so nothing was cleared.
var ErrNotHalted = errors.New("no endpoint of the ADB interface is halted")

// ClearHalt clears the halt of the endpoints of a phone that say that they are halted, as libusb_clear_halt does; for one whose
// link has ended with adb.ErrStall. Each endpoint is asked first: clearing a healthy one breaks bulk transfers on several phones
// (Samsung S20 to S24, AOSP issue 404741058). The link must be closed first. ErrNotHalted if there was nothing to clear.
// Blocking and further errors are those of Open.
func (h *Host) ClearHalt(ctx context.Context, d bus.Device) error {
	if h.isClosed() {
		return &Error{d.Path, "clearing a halt", errClosed}
	}
	_, err := retry(ctx, d, "clearing a halt", func() (struct{}, error) { return struct{}{}, h.contexts.clearHalt(d) }, func(struct{}) {})
	return err
}

// clearHalt makes sure that the device is the one that d describes. gousb has no call for the rest, so the kernel is asked itself.
func (cs *contexts) clearHalt(d bus.Device) error {
	dev, err := cs.openDevice(at(d))
	if err != nil {
		return err
	}
	f, err := openUSBFS(d)
	if err == nil {
		err = errors.Join(clearHalts(f, d), f.close())
	}
	return errors.Join(mapErrno(err), dev.close())
}

// usbfs is a device's file of the kernel.
type usbfs interface {
	claim(number int) error // of an interface; close gives it back
	halted(endpoint byte) (bool, error)
	clearHalt(endpoint byte) error
	close() error
}

func clearHalts(f usbfs, d bus.Device) error {
	if err := f.claim(d.Interface); err != nil {
		return fmt.Errorf("claim interface %d: %w", d.Interface, err)
	}
	cleared := 0
	for _, endpoint := range []byte{d.In, d.Out} {
		switch halted, err := f.halted(endpoint); {
		case err != nil:
			return fmt.Errorf("ask whether endpoint %#02x is halted: %w", endpoint, err)
		case !halted:
			continue
		}
		if err := f.clearHalt(endpoint); err != nil {
			return fmt.Errorf("endpoint %#02x: %w", endpoint, err)
		}
		cleared++
	}
	if cleared == 0 {
		return ErrNotHalted
	}
	return nil
}
