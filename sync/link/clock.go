package link

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Clock is where the time comes from.
type Clock interface {
	Now() time.Time      // the board's wall clock, which may be wrong
	Boot() time.Duration // rises steadily, also while the board sleeps: CLOCK_BOOTTIME
}

func jitter(limit time.Duration) time.Duration { return rand.N(max(1, limit)) }

// cloudTime is the cloud's time, carried on by the boot clock.
type cloudTime struct {
	clock Clock
	mu    sync.Mutex // guards what follows
	known bool
	at    time.Time     // the cloud's time...
	boot  time.Duration // ...when the boot clock showed this
	floor time.Time
}

// Now is the cloud's time, and true, once a welcome has told it; else the later
// of the board's clock and the time floor, and false.
func (c *cloudTime) Now() (now time.Time, trusted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return c.at.Add(c.clock.Boot() - c.boot), true
	}
	if now = c.clock.Now(); now.Before(c.floor) {
		now = c.floor
	}
	return now, false
}

// set takes what the cloud has just said.
func (c *cloudTime) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.at, c.boot = true, now, c.clock.Boot()
}

// raise moves the floor up, never down.
func (c *cloudTime) raise(floor time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if floor.After(c.floor) {
		c.floor = floor
	}
}
