package phonesim

import (
	"context"
	"sync"
	"time"
)

// outbox is an unbounded queue with one goroutine that empties it, so that whoever puts something in
// never waits for the host.
type outbox struct {
	mu    sync.Mutex // guards what follows
	items []func(context.Context) error
	ended bool
	wake  chan struct{} // has room for one; never closed
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1)}
}

// put queues a write.
func (o *outbox) put(write func(context.Context) error) {
	o.mu.Lock()
	o.items = append(o.items, write)
	o.mu.Unlock()
	o.notify()
}

// end lets run return when it has written what is there.
func (o *outbox) end() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.notify()
}

func (o *outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run writes until a write fails, the queue is ended and empty, or ctx ends.
func (o *outbox) run(ctx context.Context) error {
	for {
		o.mu.Lock()
		items, ended := o.items, o.ended
		o.items = nil
		o.mu.Unlock()
		for _, write := range items {
			if err := write(ctx); err != nil {
				return err
			}
		}
		if len(items) > 0 {
			continue
		}
		if ended {
			return nil
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
