package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"phonerack/sync/wire"
)

// Errors of requests. A refusal by the cloud is a *wire.Refusal.
var (
	// ErrOffline means that there is no session, or that it ended before the answer.
	// The request may have arrived.
	ErrOffline = errors.New("the cloud cannot be reached")
	// ErrTimeout means that no answer came in time. The request may have arrived.
	ErrTimeout = errors.New("the cloud did not answer in time")
)

// maxInFlight bounds the requests that wait for an answer at the same time;
// another one waits until one of them is over.
const maxInFlight = 64

// maxAnswers bounds the answers of one exchange that nobody has fetched yet.
const maxAnswers = 8

// Call is a request as its sender has it.
type Call struct {
	Kind        wire.Kind
	Type        wire.Type
	Body        any
	Attachments []wire.Attachment // Name, Type and Data; size and hash are computed
	ID          string            // ULID; empty for a fresh one. The same one is the same request
}

// Exchange is a request and the answers to it, as they come.
type Exchange struct {
	id      string
	sent    time.Duration // on the boot clock
	answers chan *wire.Message
	ended   <-chan struct{} // the session is over
	once    sync.Once
	release func()
}

// Request sends a request and waits for its one answer: until ctx ends, for
// [wire.MaxLife] at most. An answer of type error comes back as *wire.Refusal;
// otherwise the errors are [ErrOffline], [ErrTimeout], that of ctx if it was
// cancelled, and those of a request that cannot be sent at all.
func (l *Link) Request(ctx context.Context, c Call) (*wire.Message, error) {
	x, err := l.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	return x.Next(ctx)
}

// Open sends a request to which several answers may come. It returns when the
// request is on its way. The caller must close the exchange.
func (l *Link) Open(ctx context.Context, c Call) (*Exchange, error) {
	ctx, cancel := context.WithTimeout(ctx, wire.MaxLife)
	defer cancel()
	s := l.session.Load()
	if s == nil {
		return nil, ErrOffline
	}
	return s.open(ctx, c)
}

// ID is the request's, the corr of its answers.
func (x *Exchange) ID() string { return x.id }

// Sent is when the request went out, on the clock of [Clock.Boot]; leases count from it.
func (x *Exchange) Sent() time.Duration { return x.sent }

// Next waits for the next answer: until ctx ends, for [wire.MaxLife] at most. The
// errors are those of [Link.Request].
func (x *Exchange) Next(ctx context.Context) (*wire.Message, error) {
	wait := time.NewTimer(wire.MaxLife)
	defer wait.Stop()
	select {
	case m := <-x.answers:
		return answer(m)
	default:
	}
	select {
	case m := <-x.answers:
		return answer(m)
	case <-x.ended:
		select {
		case m := <-x.answers: // it was here before
			return answer(m)
		default:
		}
		return nil, ErrOffline
	case <-ctx.Done():
		return nil, late(ctx)
	case <-wait.C:
		return nil, ErrTimeout
	}
}

// Close forgets the request; answers that come later are counted and dropped.
func (x *Exchange) Close() { x.once.Do(x.release) }

// answer turns an answer of type error into what it says.
func answer(m *wire.Message) (*wire.Message, error) {
	if m.Type != wire.TypeError {
		return m, nil
	}
	var r wire.Refusal
	if err := m.Decode(&r); err != nil {
		return nil, fmt.Errorf("a refusal that cannot be read: %w", err)
	}
	return nil, &r
}

// late says why a context ended.
func late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrTimeout
	}
	return ctx.Err()
}
