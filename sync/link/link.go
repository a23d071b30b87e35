package link

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/sync/wire"
)

// Handler takes what the cloud says by itself. Handlers of one kind run one after
// the other, those of several kinds side by side; ctx is that of Run. A handler
// that is slow delays its kind alone, and what has no room in its queue is
// counted and dropped: whoever sends it says it again.
type Handler func(ctx context.Context, m *wire.Message)

// Link is a rack's connection to its cloud. It is safe for concurrent use.
type Link struct {
	o        Options
	broker   *url.URL
	time     *cloudTime
	numbers  *numbers
	outbox   *Outbox
	counters counters
	seq      atomic.Uint64
	keyTurn  atomic.Uint32           // which of the keys signs a hello
	session  atomic.Pointer[session] // the one that was welcomed
	handlers map[wire.Type]Handler   // fixed once Run is called
	queues   map[wire.Kind]chan *wire.Message
	retry    chan struct{} // capacity 1: Retry to Run

	mu      sync.Mutex // guards what follows
	running bool
	state   State
	since   time.Time
	until   time.Duration // end of the pause, on the boot clock
	number  uint64        // of the newest session
	last    error
	trip    time.Duration
	says    says          // what the retained state says
	changed chan struct{} // closed and replaced when state or says changes
}

// ErrRunning means that Run was called twice.
var ErrRunning = errors.New("the link runs already")

// New checks the options and opens the outbox. Nothing is sent before Run.
func New(o Options) (*Link, error) {
	broker, err := o.check()
	if err != nil {
		return nil, err
	}
	l := &Link{
		o: o, broker: broker, time: &cloudTime{clock: o.Clock, floor: o.Floor},
		handlers: map[wire.Type]Handler{}, queues: map[wire.Kind]chan *wire.Message{}, retry: make(chan struct{}, 1),
		state: Stopped, says: says{presence: wire.Online}, changed: make(chan struct{}),
	}
	if l.numbers, err = openNumbers(&l.o); err != nil {
		return nil, err
	}
	l.time.raise(l.numbers.floor())
	if l.outbox, err = openOutbox(&l.o, l.time); err != nil {
		return nil, err
	}
	l.since, _ = l.time.Now()
	for _, k := range wire.Kinds(wire.Down) {
		l.queues[k] = make(chan *wire.Message, handlerQueue)
	}
	return l, nil
}

// handlerQueue bounds what waits for the handlers of one kind.
const handlerQueue = 64

// Handle registers the handler of a type; before Run. The handler of
// [wire.TypeWelcome] is called once for each session, the one of
// [wire.TypeDesired] at least once for each version and again after each connect.
func (l *Link) Handle(t wire.Type, h Handler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running {
		panic("link: Handle after Run")
	}
	l.handlers[t] = h
}

// Outbox is what must reach the cloud.
func (l *Link) Outbox() *Outbox { return l.outbox }

// Now is the cloud's time, and true, once a welcome has told it in this run; else
// the later of the board's clock and the time floor, and false.
func (l *Link) Now() (now time.Time, trusted bool) { return l.time.Now() }

// SetPresence changes what the retained state says: [wire.Online] or
// [wire.Draining]. Offline is said by the link itself.
func (l *Link) SetPresence(p wire.Presence) {
	if p != wire.Online && p != wire.Draining {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.says.presence != p {
		l.says.presence = p
		l.announce()
	}
}

// SetDesired changes which version of the desired configuration the retained state says is applied.
func (l *Link) SetDesired(version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.says.desired != version {
		l.says.desired = version
		l.announce()
	}
}

// Retry ends the pause that is under way, and begins the counting of failures anew: for a person who has mended what was
// wrong. At any other time it does nothing.
func (l *Link) Retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Waiting {
		return
	}
	select {
	case l.retry <- struct{}{}:
	default: // once is enough
	}
}

// Telemetry sends a body that may be lost. It waits for room in the queue of what
// is sent until ctx ends; without a session it returns [ErrOffline].
func (l *Link) Telemetry(ctx context.Context, body any) error {
	s := l.session.Load()
	if s == nil {
		return ErrOffline
	}
	return s.telemetry(ctx, body)
}

// WaitOnline returns when there is a session, or with the error of ctx.
func (l *Link) WaitOnline(ctx context.Context) error {
	for {
		l.mu.Lock()
		changed, online := l.changed, l.state == Online
		l.mu.Unlock()
		if online {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Status tells how the link does.
func (l *Link) Status() Status {
	now, trusted := l.time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{
		State: l.state, Broker: l.broker.Redacted(), Tenant: l.o.Tenant, Rack: l.o.Rack, Since: l.since,
		Session: l.number, Presence: l.says.presence, Desired: l.says.desired, RoundTrip: l.trip, Time: now, Trusted: trusted,
		Outbox: l.outbox.Status(), Counters: l.counters.all(),
	}
	if trusted {
		s.Offset = now.Sub(l.o.Clock.Now())
	}
	if l.state == Waiting {
		s.NextTry = max(0, l.until-l.o.Clock.Boot())
	}
	if l.last != nil {
		s.LastError = l.last.Error()
	}
	return s
}

// announce tells those who wait that something has changed. The lock is held.
func (l *Link) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link) setState(s State) {
	now, _ := l.time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != s {
		l.state, l.since = s, now
		l.announce()
	}
}

// says is what of a rack's retained state changes within a session.
type says struct {
	presence wire.Presence
	desired  uint64 // version of the configuration that is applied
}

// saysNow is what the state says, and what is closed when it says something else.
func (l *Link) saysNow() (says, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.says, l.changed
}
