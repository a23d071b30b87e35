package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// pushTime bounds a push: whoever caused it waits no longer.
const pushTime = 3 * time.Second

// Pusher carries a message to a rack. nil means that the broker has it, not that the rack has it. A message of
// [wire.TypeDesired] is kept for a rack that is away, and one with a nil body removes it; all others are for a rack with a session.
type Pusher interface {
	Push(ctx context.Context, to enroll.Caller, t wire.Type, body any) error
}

// Operator is who acts in a tenant without being a rack.
type Operator struct {
	Tenant string
	Name   string // "local", "token"
}

// Scope is in whose name the operator's requests run.
func (o Operator) Scope() store.Scope { return store.Scope{Tenant: o.Tenant, Actor: "admin:" + o.Name} }

// Options of [New]. Store is needed.
type Options struct {
	Store *store.Store
	Push  Pusher // nil: nothing is pushed
	KIDs  func(ctx context.Context, c enroll.Caller) ([]string, error)
	Clock func() time.Time
	Log   *slog.Logger
}

// Fleet serves racks and operators. Its methods may be called from any goroutine.
type Fleet struct {
	store    *store.Store
	push     Pusher
	kids     func(ctx context.Context, c enroll.Caller) ([]string, error)
	clock    func() time.Time
	log      *slog.Logger
	pictures *Pictures
}

// New makes a fleet.
func New(o Options) *Fleet {
	f := &Fleet{store: o.Store, push: o.Push, kids: o.KIDs, clock: o.Clock, log: o.Log}
	if f.clock == nil {
		f.clock = time.Now
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.kids == nil {
		f.kids = func(context.Context, enroll.Caller) ([]string, error) { return []string{}, nil }
	}
	f.pictures = newPictures(f.clock)
	return f
}

// tell pushes to a rack and takes its time for it; that it failed is no news for the caller.
func (f *Fleet) tell(ctx context.Context, to enroll.Caller, t wire.Type, body any) {
	if f.push == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushTime)
	defer cancel()
	if err := f.push.Push(ctx, to, t, body); err != nil {
		f.log.Debug("a push was not sent, the rack's next heartbeat brings it", "rack", to.Rack, "type", t, "error", err)
	}
}

// ofRack turns an error of the store into what a rack is told of its request about an attempt.
func ofRack(err error, task string, attempt int) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotYourTask), errors.Is(err, store.ErrNotFound) && task != "":
		return wire.Refuse(wire.NotYourTask, map[string]any{"task": task}).Because(err)
	case errors.Is(err, store.ErrAttemptOver):
		return wire.Refuse(wire.AttemptOver, map[string]any{"task": task, "attempt": attempt}).Because(err)
	case errors.Is(err, store.ErrNotFound): // the rack itself: revoked, or gone with a restored database
		return wire.Refuse(wire.Unauthenticated, nil).Because(err)
	}
	return Refusal(err)
}

// fullWait is what a rack is told to wait while the cloud's disk is full.
const fullWait = 30 * time.Second

// Refusal turns an error of the store into the refusal that its caller is told; nil for nil. Where no record is named,
// the sentences of not_found and conflict are general.
func Refusal(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*wire.Refusal](err); ok {
		return err
	}
	if limit, ok := errors.AsType[*store.LimitError](err); ok {
		return wire.Refuse(wire.LimitExceeded, map[string]any{"what": limit.Limit}).After(time.Until(limit.RetryAt)).Because(err)
	}
	switch {
	case errors.Is(err, store.ErrInvalid):
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()}).Because(err)
	case errors.Is(err, store.ErrNotFound):
		return wire.Refuse(wire.NotFound, nil).Because(err)
	case errors.Is(err, store.ErrRequestConflict):
		return wire.Refuse(wire.RequestConflict, nil).Because(err)
	case errors.Is(err, store.ErrConflict):
		return wire.Refuse(wire.Conflict, map[string]any{"reason": err.Error()}).Because(err)
	}
	// A fault of the database may pass, and what a rack has to tell must not be lost to it.
	r := wire.Refuse(wire.Internal, nil).Because(err)
	r.Retryable = true
	if errors.Is(err, store.ErrFull) {
		r = r.After(fullWait)
	}
	return r
}

// Named is Refusal for an operator's request about one record.
func Named(err error, what, id string) error {
	switch {
	case errors.Is(err, store.ErrNotFound) && what == "task":
		return wire.Refuse(wire.TaskUnknown, map[string]any{"task": id}).Because(err)
	case errors.Is(err, store.ErrNotFound):
		return wire.Refuse(wire.NotFound, map[string]any{"what": what, "id": id}).Because(err)
	}
	return Refusal(err)
}

// bad is a refusal of what an operator or a rack wrote.
func bad(format string, args ...any) error {
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(format, args...)})
}

// Expire ends what ran out of time, every so often until ctx ends. Any number of replicas may do so.
func (f *Fleet) Expire(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		e, err := f.store.System().Expire(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			f.log.Error("looking for what has run out of time failed", "error", err)
		case len(e.Lost)+len(e.Late)+len(e.Commands) > 0:
			f.log.Info("ran out of time", "attempts", len(e.Lost), "requeued", len(e.Requeued), "tasks", len(e.Late), "commands", len(e.Commands))
		}
		f.pictures.sweep()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
