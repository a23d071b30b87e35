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

// calls are those to the kernel that have not ended: one for each port, as a late one must not meet the next. Each is a goroutine, which
// ends when the kernel lets it; USB.Wait waits for them.
type calls struct {
	mu      sync.Mutex
	running map[*usbPort]*call // guarded by mu
}

type call struct {
	over   chan struct{} // closed when it has ended
	err    error         // then
	writes atomic.Bool   // it has asked, and switches
}

// Wait waits for the calls that the kernel has not let go. It ends with ctx, with ErrKept.
func (u *USB) Wait(ctx context.Context) error {
	u.calls.mu.Lock()
	all := slices.Collect(maps.Values(u.calls.running))
	u.calls.mu.Unlock()
	for _, c := range all {
		select {
		case <-c.over:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrKept, ctx.Err())
		}
	}
	return nil
}

// call has the kernel do something about the port, and waits for it as long as ctx lasts. A call that has not ended by then is waited
// for by the next.
func (p *usbPort) call(ctx context.Context, f func(*call) error) error {
	for {
		c, begun := p.usb.calls.begin(p, f)
		select {
		case <-c.over:
		case <-ctx.Done():
			select {
			case <-c.over: // both at once
			default:
				return &BusyError{Hub: p.hub, Port: p.port, Over: c.over, Late: c.writes.Load(), cause: ctx.Err()}
			}
		}
		if begun {
			return c.err
		}
	}
}

// begin starts a port's call, or gives the one that runs.
func (all *calls) begin(p *usbPort, f func(*call) error) (c *call, begun bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if c := all.running[p]; c != nil {
		return c, false
	}
	c = &call{over: make(chan struct{})}
	if all.running == nil {
		all.running = map[*usbPort]*call{}
	}
	all.running[p] = c
	go func() {
		c.err = f(c)
		all.mu.Lock()
		delete(all.running, p)
		all.mu.Unlock()
		close(c.over)
	}()
	return c, true
}
