package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// errAnswer means that the cloud answered with something else than was asked.
var errAnswer = errors.New("an answer of another type")

// request asks for an answer of one type.
func (f *Fleet) request(ctx context.Context, kind wire.Kind, t wire.Type, body any, want wire.Type, into any) (sent time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	m, sent, err := f.o.Link.Ask(ctx, link.Call{Kind: kind, Type: t, Body: body})
	if err != nil {
		return sent, err
	}
	if m.Type != want {
		return sent, fmt.Errorf("%s: %w: %.40q", t, errAnswer, string(m.Type))
	}
	return sent, m.Decode(into)
}

// final tells whether the cloud has said a no that stays.
func final(err error) (*wire.Refusal, bool) {
	r, ok := errors.AsType[*wire.Refusal](err)
	return r, ok && !r.Retryable && r.Code != wire.Internal
}

// insist repeats what is to be said of an attempt until it is acknowledged (nil),
// refused for good or the attempt over (a *wire.Refusal), or ctx ends.
func (f *Fleet) insist(ctx context.Context, a *attempt, t wire.Type, body any) error {
	again := f.backOff(time.Second, 30*time.Second)
	for !a.isGone() {
		_, err := f.request(ctx, wire.KindTask, t, body, wire.TypeTaskAck, new(wire.Ack))
		if err == nil {
			return nil
		}
		if r, ok := final(err); ok {
			return r
		}
		if !pause(ctx, again.after(err), a.gone) {
			return ctx.Err()
		}
	}
	return attemptOver(a.ref())
}

// backOff is the pause between tries: twice as long each time, up to a limit, a
// half of it random.
type backOff struct {
	first, limit time.Duration
	tries        int
	jitter       func(time.Duration) time.Duration
}

func (f *Fleet) backOff(first, limit time.Duration) *backOff {
	return &backOff{first: first, limit: limit, jitter: f.o.Jitter}
}

// after is the pause after a failed try. A refusal may ask for a longer one.
func (b *backOff) after(err error) time.Duration {
	d := min(b.first<<min(b.tries, 20), b.limit)
	b.tries++
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		d = max(d, min(r.RetryAfter(), maxRetryAfter))
	}
	return d/2 + b.jitter(d/2)
}

func (b *backOff) reset() { b.tries = 0 }

// maxRetryAfter bounds how long the cloud can make the rack wait, by one answer.
const maxRetryAfter = 5 * time.Minute

// pause waits until d is over or c says something, and tells false if ctx ended.
func pause(ctx context.Context, d time.Duration, c <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}
