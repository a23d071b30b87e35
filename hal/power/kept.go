package power

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrKept means that the kernel keeps a hub to itself. It does so while it tries a phone that does not answer, up to 85 s, and a call
// that waits for the hub cannot be called off.
var ErrKept = errors.New("the kernel does not give the hub")

// BusyError says that a port's call waits in the kernel. It wraps ErrKept and the error of the context that has ended.
type BusyError struct {
	Hub  string
	Port int
	Over <-chan struct{} // closed when the kernel has let the call go
	Late bool            // it switches, and may do so yet

	cause error
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("port %d of the hub at %s: %v: %v", e.Port, e.Hub, ErrKept, e.cause)
}

// Unwrap implements the interface of errors.Is.
func (e *BusyError) Unwrap() []error { return []error{ErrKept, e.cause} }

// running are the calls to the kernel that have not ended.
type running struct {
	mu    sync.Mutex
	calls map[*call]bool // guarded by mu
}

func (r *running) note(c *call, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !is {
		delete(r.calls, c)
		return
	}
	if r.calls == nil {
		r.calls = map[*call]bool{}
	}
	r.calls[c] = true
}

// Wait waits for the calls that the kernel has not let go. It ends with ctx, with ErrKept.
func (u *USB) Wait(ctx context.Context) error {
	u.running.mu.Lock()
	all := slices.Collect(maps.Keys(u.running.calls))
	u.running.mu.Unlock()
	for _, c := range all {
		select {
		case <-c.over:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrKept, ctx.Err())
		}
	}
	return nil
}

// calls are those to the kernel about one port, one after the other: a late one must not meet the next.
type calls struct {
	running *running // of all ports

	mu   sync.Mutex
	last *call // guarded by mu; nil when none runs
}

type call struct {
	over   chan struct{} // closed when it has ended
	err    error         // then
	writes atomic.Bool   // it has asked, and switches
}

// do runs f and waits for it as long as ctx lasts. A call that has not ended by then is waited for by the next.
func (c *calls) do(ctx context.Context, f func(*call) error) error {
	for {
		mine, begun := c.begin(f)
		select {
		case <-mine.over:
		case <-ctx.Done():
			select {
			case <-mine.over: // both at once
			default:
				return &BusyError{Over: mine.over, Late: mine.writes.Load(), cause: ctx.Err()}
			}
		}
		if begun {
			return mine.err
		}
	}
}

// begin starts a call, or gives the one that runs.
func (c *calls) begin(f func(*call) error) (running *call, begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		return c.last, false
	}
	mine := &call{over: make(chan struct{})}
	c.last = mine
	c.running.note(mine, true)
	go func() {
		mine.err = f(mine)
		c.mu.Lock()
		c.last = nil
		c.mu.Unlock()
		c.running.note(mine, false)
		close(mine.over)
	}()
	return mine, true
}
