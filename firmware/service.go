package firmware

import (
	"context"
	"time"
)

// Names of parts in the tree whose loggers are made elsewhere.
const (
	busPart    = "watcher of the bus"
	carePart   = "health of the slots"
	linkPart   = "link to the cloud"
	fleetPart  = "tasks and commands of the cloud"
	powerPart  = "power of the phones"
	mcpPart    = "MCP over HTTP"
	skillsPart = "finder of Agent Skills"
)

// service is a function under the supervisor.
type service struct {
	name string
	run  func(ctx context.Context) error
}

func (s service) Serve(ctx context.Context) error { return s.run(ctx) }
func (s service) String() string                  { return s.name }

func every(d time.Duration, f func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			f()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}
}

// within runs f and tells whether it ended in time; if not it goes on alone.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
