// Package watchdogtest has a watchdog that resets nothing: a double for tests, on the clock of a synctest bubble.
package watchdogtest

import (
	"errors"
	"sync"
	"time"
)

// ErrClosed means that the device was closed.
var ErrClosed = errors.New("watchdogtest: the device is closed")

// Device implements watchdog.Device. It is armed from New on.
type Device struct {
	// Stays makes it run on when it is closed to be disarmed, as nowayout does.
	Stays bool

	mu      sync.Mutex
	timeout time.Duration
	timer   *time.Timer // of the reset
	expired bool        // guarded by mu, as are the following
	feeds   int
	closed  bool
}

// New returns a device that expires when it was not fed for a timeout.
func New(timeout time.Duration) *Device {
	d := &Device{timeout: timeout}
	d.timer = time.AfterFunc(timeout, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.expired = true
	})
	return d
}

// Feed implements watchdog.Device.
func (d *Device) Feed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.feeds++
	d.timer.Reset(d.timeout)
	return nil
}

// Timeout implements watchdog.Device.
func (d *Device) Timeout() time.Duration { return d.timeout }

// Close implements watchdog.Device.
func (d *Device) Close(disarm bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.closed = true
	if disarm && !d.Stays {
		d.timer.Stop()
	}
	return nil
}

// Expired tells whether a board would have been reset.
func (d *Device) Expired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expired
}

// Feeds counts the feeds.
func (d *Device) Feeds() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.feeds
}
