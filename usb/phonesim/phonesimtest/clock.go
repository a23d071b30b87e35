package phonesimtest

import (
	"context"
	"sync"
	"time"
)

// Clock is a phone's own time, in which waiting is all that passes: who sleeps has slept at once.
type Clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// NewClock starts a clock.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep lets d pass at once, and returns the context's error if that has ended.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

// Set puts the clock forward; it never goes back.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}
