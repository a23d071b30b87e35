package firmware

import (
	"context"
	"sync"
	"time"

	"phonerack/firmware/status"
)

// lookForChange is the time between two looks whether the rack is another one. Together with what the page waits, a change is
// told within 2 s.
const lookForChange = 500 * time.Millisecond

// sight is what a page may show: the rack and the number of its last event.
type sight struct {
	rack   status.Snapshot
	events uint64
}

func (s sight) same(as sight) bool { return s.events == as.events && status.Same(s.rack, as.rack) }

// changes tells those who wait that the rack is not what it was. It looks only while somebody waits: a page that nobody has
// open costs nothing.
type changes struct {
	look func() sight
	wake chan struct{} // somebody waits now; takes one signal, never closed

	mu    sync.Mutex
	told  chan struct{} // closed at the next change, and replaced; guarded by mu, as is what follows
	since *sight        // what the rack was when somebody began to wait; nil while nobody waits
}

func newChanges(look func() sight) *changes {
	return &changes{look: look, wake: make(chan struct{}, 1), told: make(chan struct{})}
}

// next is closed when the rack differs from what it is now.
func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		now := c.look()
		c.since = &now
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return c.told
}

// Run looks until ctx ends. Who went away in the meantime is waited for until the next change.
func (c *changes) Run(ctx context.Context) error {
	tick := time.NewTicker(lookForChange)
	defer tick.Stop()
	c.mu.Lock()
	if c.since == nil { // else an earlier Run has failed, and whoever waits has said so to that
		tick.Stop()
	}
	c.mu.Unlock()
	for {
		select {
		case <-c.wake:
			tick.Reset(lookForChange)
		case <-tick.C:
			if c.compare() {
				tick.Stop()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// compare tells of a change, and reports whether there was one.
func (c *changes) compare() bool {
	now := c.look() // without the lock: whoever begins to wait meanwhile does not wait for it
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil || c.since.same(now) {
		return c.since == nil
	}
	close(c.told)
	c.told, c.since = make(chan struct{}), nil
	return true
}
