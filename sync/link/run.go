package link

import (
	"context"
	"sync"
	"time"

	"phonerack/sync/wire"
)

// Run keeps sessions up until ctx ends; then it says goodbye to the cloud, waits
// for everything that it started, and returns nil. Its only error is [ErrRunning].
func (l *Link) Run(ctx context.Context) error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return ErrRunning
	}
	l.running = true
	l.mu.Unlock()
	defer func() {
		l.setState(Stopped)
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for _, queue := range l.queues {
		workers.Go(func() { l.handle(ctx, queue) })
	}
	pauses := backoff{jitter: l.o.Jitter}
	for {
		end := l.hold(ctx)
		if ctx.Err() != nil {
			return nil
		}
		pause, err := pauses.after(end)
		l.counters.add("sessions_ended")
		select {
		case <-l.retry: // came as the last pause ended
		default:
		}
		l.pause(pause, err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-l.retry:
			timer.Stop()
			pauses = backoff{jitter: l.o.Jitter}
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// pause tells everybody that the link waits, and why.
func (l *Link) pause(d time.Duration, err error) {
	level := l.o.Logger.Warn
	if _, ok := err.(slowError); ok {
		level = l.o.Logger.Error
	}
	level("no session with the cloud", "rack", l.o.Rack, "broker", l.broker.Redacted(), "err", err, "next_try", d)
	l.mu.Lock()
	l.last, l.until = err, l.o.Clock.Boot()+d
	l.mu.Unlock()
	l.setState(Waiting)
}

// handle calls the handlers of one kind, one after the other.
func (l *Link) handle(ctx context.Context, queue <-chan *wire.Message) {
	for {
		select {
		case m := <-queue:
			l.handlers[m.Type](ctx, m)
		case <-ctx.Done():
			return
		}
	}
}

// dispatch queues what has a handler and tells whether it has one.
func (l *Link) dispatch(k wire.Kind, m *wire.Message) bool {
	if l.handlers[m.Type] == nil {
		return false
	}
	select {
	case l.queues[k] <- m:
	default:
		l.counters.add("refused_overflow")
		l.o.Logger.Warn("a message of the cloud was dropped: the handlers of its kind are behind", "type", m.Type, "id", m.ID)
	}
	return true
}

// topic is one of the rack's own.
func (l *Link) topic(k wire.Kind) wire.Topic {
	return wire.Topic{Tenant: l.o.Tenant, Rack: l.o.Rack, Direction: wire.Up, Kind: k}
}

// tryNextKey lets the next hello be signed with another key: an enrolment may be
// ahead of the cloud, or behind it.
func (l *Link) tryNextKey() { l.keyTurn.Add(1) }

// keepFloor moves the time floor up to the cloud's time.
func (l *Link) keepFloor() error {
	now, trusted := l.time.Now()
	if !trusted {
		return nil
	}
	l.time.raise(now)
	return l.numbers.raiseFloor(now)
}
