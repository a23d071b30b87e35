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
		l.round()
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
		again, err := l.rest(ctx, pause)
		if err != nil {
			return nil
		}
		if again {
			pauses = backoff{jitter: l.o.Jitter}
		}
	}
}

// rest waits for the end of a pause, or for the wish to try again at once; the error is that of ctx.
func (l *Link) rest(ctx context.Context, pause time.Duration) (again bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	tick := time.NewTicker(roundEvery)
	defer tick.Stop()
	for {
		select {
		case <-timer.C:
			return false, nil
		case <-l.retry:
			return true, nil
		case <-tick.C:
			l.round()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// roundEvery is how often a link that waits tells of it.
const roundEvery = 5 * time.Second

// round tells that the link goes on: with the next try, in a pause, while it greets, and while it watches over a session.
func (l *Link) round() {
	if l.o.Round != nil {
		l.o.Round()
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
