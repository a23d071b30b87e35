package usblink

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/gousb"

	"phonerack/usb/adb"
)

// Errors that callers decide on, by errors.Is.
var (
	// ErrBusy: another process holds the ADB interface, or a kernel driver does.
	ErrBusy = adb.ErrHeld
	// ErrAccess: this process may not open the device.
	ErrAccess = adb.ErrDenied
	// ErrGone: the device left the bus, or came back as another one. It is an
	// adb.ErrDisconnected.
	ErrGone = fmt.Errorf("the USB device is gone: %w", adb.ErrDisconnected)
	// ErrStuck: the kernel did not give a cancelled transfer back in time.
	ErrStuck = errors.New("a USB transfer could not be cancelled")
	// ErrDescriptor: the device does not have the interface or endpoints that
	// were seen on the bus before.
	ErrDescriptor = errors.New("the USB descriptors do not match the device that was seen")
)

// Error is a failure to open or reset a phone, or to close it.
type Error struct {
	Path string // port path, "1-1.2"
	Op   string // what was being done
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("usb %s: %s: %v", e.Path, e.Op, e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// errorCode finds a libusb code in an error's text: gousb formats most errors
// with %v, so that errors.As does not reach the code (v1.1.3).
var errorCode = regexp.MustCompile(`\[code (-\d+)\]`)

// mapError translates errors of gousb. It returns others as they are.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if status, ok := errors.AsType[gousb.TransferStatus](err); ok {
		return mapStatus(status)
	}
	code, ok := errors.AsType[gousb.Error](err)
	if !ok {
		if strings.HasPrefix(err.Error(), "gousb_alloc_transfer_and_buffer") {
			return fmt.Errorf("%w: %w", adb.ErrNoMemory, err)
		}
		m := errorCode.FindStringSubmatch(err.Error())
		if m == nil {
			return err
		}
		n, _ := strconv.Atoi(m[1])
		code = gousb.Error(n)
	}
	if mapped := mapCode(code); mapped != nil {
		return fmt.Errorf("%w (%w)", mapped, err)
	}
	return err
}

func mapCode(code gousb.Error) error {
	switch code {
	case gousb.ErrorBusy:
		return ErrBusy
	case gousb.ErrorAccess:
		return ErrAccess
	case gousb.ErrorNoDevice, gousb.ErrorNotFound:
		return ErrGone
	case gousb.ErrorNoMem:
		return adb.ErrNoMemory
	case gousb.ErrorPipe:
		return adb.ErrStall
	case gousb.ErrorOverflow:
		return adb.ErrOverflow
	case gousb.ErrorTimeout:
		return adb.ErrTimeout
	}
	return nil
}

func mapStatus(status gousb.TransferStatus) error {
	switch status {
	case gousb.TransferNoDevice:
		return ErrGone
	case gousb.TransferStall:
		return adb.ErrStall
	case gousb.TransferOverflow:
		return adb.ErrOverflow
	case gousb.TransferTimedOut:
		return adb.ErrTimeout
	}
	return status
}

// worthRetrying reports whether an error may pass by itself: udev sets
// permissions a little after the kernel shows a device, and a process that ends
// lets go of its interfaces a little later.
func worthRetrying(err error) bool { return errors.Is(err, ErrBusy) || errors.Is(err, ErrAccess) }
