package link

import (
	"errors"
	"fmt"
	"time"
)

// Pauses between sessions.
const (
	firstPause = time.Second
	maxPause   = time.Minute     // limit of the random pause after many failures
	slowPause  = time.Minute     // shortest pause where a retry helps only when somebody changes something
	slowSpread = 4 * time.Minute // random addition to it
	lasting    = time.Minute     // a session that lasted so long was a good one
	shortLives = 3               // so many sessions that the broker ended soon are no accident
)

// slowError is one that goes away only when somebody changes something.
type slowError struct{ error }

func (e slowError) Unwrap() error { return e.error }

func slow(err error) error { return slowError{err} }

// ended is how a session went.
type ended struct {
	err      error
	welcomed bool
	lasted   time.Duration // since the welcome
	remote   bool          // the broker closed the connection
}

// backoff chooses the pauses.
type backoff struct {
	failures int
	short    int
	jitter   func(time.Duration) time.Duration
}

// after takes how a session ended and gives the pause before the next one. The
// error comes back with what the link makes of it.
func (b *backoff) after(e ended) (time.Duration, error) {
	switch {
	case e.welcomed && e.lasted >= lasting:
		b.failures, b.short = 0, 0
	case e.welcomed && e.remote:
		b.short++
	case e.welcomed:
		b.short = 0
	}
	if b.short >= shortLives {
		e.err = slow(fmt.Errorf("the broker has closed %d sessions in a row within %s of their welcome: does another board use the same rack id, or does the broker refuse what is sent? %w", b.short, lasting, e.err))
	}
	limit := min(maxPause, firstPause<<min(b.failures, 10))
	b.failures++
	if _, ok := errors.AsType[slowError](e.err); ok {
		return slowPause + b.jitter(slowSpread), e.err
	}
	return b.jitter(limit), e.err
}
