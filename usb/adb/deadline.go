package adb

import (
	"sync"
	"time"
)

// deadline is a moment that ends waiting and may be moved at any time, also
// while someone waits.
type deadline struct {
	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	expired chan struct{} // closed when the moment has passed
}

func newDeadline() *deadline { return &deadline{expired: make(chan struct{})} }

// set moves the deadline; the zero time removes it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if isClosed(d.expired) {
		d.expired = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	expired := d.expired
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { d.expire(expired) })
		return
	}
	close(expired)
}

// expire closes the channel that was current when the timer was set; a later
// set may have replaced or closed it.
func (d *deadline) expire(expired chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expired == expired && !isClosed(expired) && d.timer != nil {
		close(expired)
	}
}

// passed is closed when the deadline has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expired
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
