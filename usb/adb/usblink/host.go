package usblink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

const (
	retries    = 3
	retryPause = 200 * time.Millisecond
	// openPatience bounds one attempt to open or reset a device.
	openPatience = 10 * time.Second
)

// Host opens phones. Its methods may be called from any goroutine.
type Host struct {
	contexts contexts

	mu     sync.Mutex // guards the fields below
	links  map[*link]struct{}
	closed bool
}

// New checks that libusb works and returns a Host. It lists the bus, which takes up to a second or
// so on a small board.
func New() (*Host, error) {
	h := &Host{links: make(map[*link]struct{})}
	c, err := h.contexts.take(nil)
	if err != nil {
		return nil, err
	}
	return h, h.contexts.give(c)
}

// Open claims the ADB interface of the phone at d.Bus and d.Address and returns
// a link; nothing is sent to the phone. The device must still be the one that d
// describes: same port path, same configuration, else ErrGone.
//
// ErrBusy and ErrAccess are retried three times, 200 ms apart, because they may
// pass by themselves. Open blocks for about ten seconds at most, or until ctx
// ends; an attempt given up then is undone in the background. Errors are
// *[Error] and name the port path.
func (h *Host) Open(ctx context.Context, d bus.Device) (adb.Link, error) {
	return h.OpenWith(ctx, d, adb.BulkOptions{})
}

// OpenWith is Open with options for the bulk transfers. A MaxPacket of 0 is
// taken from d.
func (h *Host) OpenWith(ctx context.Context, d bus.Device, o adb.BulkOptions) (adb.Link, error) {
	if o.MaxPacket == 0 {
		o.MaxPacket = d.MaxPacket
	}
	if h.isClosed() {
		return nil, &Error{d.Path, "opening", errClosed}
	}
	ep, err := retry(ctx, d, "opening", func() (*endpoints, error) { return h.contexts.openEndpoints(d) }, func(ep *endpoints) { _ = ep.Close() })
	if err != nil {
		return nil, err
	}
	bulk, err := adb.NewBulkLink(ep, o)
	if err != nil {
		_ = ep.Close()
		return nil, &Error{d.Path, "opening", err}
	}
	l := &link{Link: bulk, host: h, path: d.Path}
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.links[l] = struct{}{}
	}
	h.mu.Unlock()
	if closed {
		_ = bulk.Close()
		return nil, &Error{d.Path, "opening", errClosed}
	}
	return l, nil
}

// Reset resets the port of a phone, for one that stalls or does not answer
// CNXN. Its link must be closed first; another process's claim does not stop
// it. The phone usually comes back with a new address, so look for it on the
// bus again; that it changed during the reset counts as success. Blocking and
// errors are those of Open.
func (h *Host) Reset(ctx context.Context, d bus.Device) error {
	if h.isClosed() {
		return &Error{d.Path, "resetting", errClosed}
	}
	_, err := retry(ctx, d, "resetting", func() (struct{}, error) { return struct{}{}, h.contexts.resetDevice(d) }, func(struct{}) {})
	return err
}

// Close closes all links. It blocks for as long as the slowest link's Close.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	links := make([]*link, 0, len(h.links))
	for l := range h.links {
		links = append(links, l)
	}
	h.mu.Unlock()
	errs := make([]error, len(links))
	var wait sync.WaitGroup
	for i, l := range links {
		wait.Go(func() { errs[i] = l.Close() })
	}
	wait.Wait()
	return errors.Join(errors.Join(errs...), h.contexts.close())
}

func (h *Host) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// link is a bulk link that its host knows of.
type link struct {
	adb.Link
	host *Host
	path string
}

// Close implements adb.Link.
func (l *link) Close() error {
	err := l.Link.Close()
	l.host.mu.Lock()
	delete(l.host.links, l)
	l.host.mu.Unlock()
	if err != nil {
		return &Error{l.path, "closing", err}
	}
	return nil
}

// retry runs f, which cannot be interrupted, until it succeeds or fails for
// good. A result that comes after ctx has ended goes to undo.
func retry[T any](ctx context.Context, d bus.Device, op string, f func() (T, error), undo func(T)) (T, error) {
	var none T
	for attempt := 0; ; attempt++ {
		v, err := bounded(ctx, f, undo)
		switch {
		case err == nil:
			return v, nil
		case !worthRetrying(err) || attempt == retries:
			return none, &Error{d.Path, op, err}
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return none, &Error{d.Path, op, fmt.Errorf("%w: %w", ctx.Err(), err)}
		}
	}
}

func bounded[T any](ctx context.Context, f func() (T, error), undo func(T)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	timer := time.NewTimer(openPatience)
	defer timer.Stop()
	var err error
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = adb.ErrTimeout
	}
	go func() {
		if r := <-done; r.err == nil {
			undo(r.v)
		}
	}()
	var none T
	return none, err
}
