package catalog

import (
	"context"
	"errors"
	"time"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Pauses between two tries.
const (
	firstPause = 5 * time.Second
	hintPause  = time.Second      // hints come in swarms
	failPause  = 30 * time.Second // the longest that a hint waits for after a failure, unless the platform wants more
)

// Run polls until ctx ends, and returns nil. The first poll is at once.
func (c *Catalog) Run(ctx context.Context) error {
	for failures := 0; ; {
		wait, least := c.o.Every-c.o.Every/10+c.o.Jitter(c.o.Every/10), hintPause
		err := c.o.Ready(ctx)
		if err == nil {
			err = c.Sync(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
		default:
			wait = min(c.o.Every, firstPause<<min(failures, 12))
			wait = wait/2 + c.o.Jitter(wait/2)
			least = min(wait, failPause)
			if r, ok := errors.AsType[*wire.Refusal](err); ok {
				least = max(least, min(r.RetryAfter(), c.o.Every))
			}
			failures++
			if errors.Is(err, link.ErrOffline) {
				c.log.Debug("the catalog of skills cannot be looked at", "err", err)
			} else {
				c.log.Warn("the catalog of skills stays as it was", "err", err)
			}
		}
		if !c.sleep(ctx, least, wait) {
			return nil
		}
	}
}

// sleep waits, and ends early, but not before least, when a poll is wanted. It
// reports whether to go on.
func (c *Catalog) sleep(ctx context.Context, least, wait time.Duration) bool {
	for _, t := range []struct {
		length time.Duration
		kick   <-chan struct{}
	}{{least, nil}, {wait - least, c.kick}} {
		timer := time.NewTimer(t.length)
		select {
		case <-timer.C:
		case <-t.kick:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
	return true
}
