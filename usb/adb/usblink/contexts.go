package usblink

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/gousb"
)

// newContext makes a libusb context; gousb panics where libusb fails.
func newContext() (c *gousb.Context, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("usblink: libusb does not start: %v", r)
		}
	}()
	return gousb.NewContext(), nil
}

// contexts shares libusb contexts between devices. One is made at first and serves until a device
// is asked for that it does not list: libusb lists the bus when a context begins and then believes
// netlink alone, which misses devices where no udev runs, or when a message is lost (libusb#1571).
// Then a fresh context takes its place, and the old one ends with its last device.
//
// A context for each device would do without that, but listing the bus takes about a second of a
// small board's time and ten contexts that begin at once take ten (measured on the emulated board).
type contexts struct {
	mu      sync.Mutex // guards the fields below, and all counts
	current *sharedContext
	closed  bool
}

// sharedContext is a context with a count of those who use it.
type sharedContext struct {
	*gousb.Context
	users int
}

// take returns the context in use, or a fresh one if that is stale, and counts a user. Whoever says
// that a context is stale is a user of it.
func (cs *contexts) take(stale *sharedContext) (*sharedContext, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return nil, errClosed
	}
	if cs.current == nil || cs.current == stale {
		c, err := newContext()
		if err != nil {
			return nil, err
		}
		cs.current = &sharedContext{Context: c}
	}
	cs.current.users++
	return cs.current, nil
}

// give returns a context; one that has been replaced ends with its last user.
func (cs *contexts) give(c *sharedContext) error {
	cs.mu.Lock()
	c.users--
	last := c.users == 0 && c != cs.current
	cs.mu.Unlock()
	if !last {
		return nil
	}
	return c.Close()
}

// close ends the context in use, at once or with its last user.
func (cs *contexts) close() error {
	cs.mu.Lock()
	c := cs.current
	cs.current, cs.closed = nil, true
	unused := c != nil && c.users == 0
	cs.mu.Unlock()
	if !unused {
		return nil
	}
	return c.Close()
}

// openDevice opens exactly the device at a bus and address, looking at the bus anew if libusb does
// not list it. Other devices that cannot be described or opened do not matter.
func (cs *contexts) openDevice(listed func(*gousb.DeviceDesc) bool) (*device, error) {
	c, err := cs.take(nil)
	if err != nil {
		return nil, err
	}
	dev, err := c.open(listed)
	if errors.Is(err, ErrGone) {
		fresh, freshErr := cs.take(c)
		if freshErr != nil {
			return nil, errors.Join(freshErr, cs.give(c))
		}
		if err := cs.give(c); err != nil {
			return nil, errors.Join(err, cs.give(fresh))
		}
		c = fresh
		dev, err = c.open(listed)
	}
	if err != nil {
		return nil, errors.Join(err, cs.give(c))
	}
	return &device{Device: dev, context: c, contexts: cs}, nil
}

// open opens the one device that is wanted.
func (c *sharedContext) open(wanted func(*gousb.DeviceDesc) bool) (*gousb.Device, error) {
	seen := false
	devices, err := c.OpenDevices(func(d *gousb.DeviceDesc) bool {
		is := wanted(d)
		seen = seen || is
		return is
	})
	if len(devices) == 1 {
		return devices[0], nil
	}
	for _, extra := range devices {
		_ = extra.Close()
	}
	if !seen || err == nil {
		return nil, fmt.Errorf("%w: no such device at this port", ErrGone)
	}
	return nil, mapError(err)
}
