package led

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// IdentifyFor is how long a light identifies at most; a person who still looks asks again.
const IdentifyFor = time.Minute

// Grace is how long a lamp that ends by itself stays lit when nobody lights it again.
const Grace = 4 * time.Second

// rewrite is how often a lamp is set anew without a change: it feeds lamps that end by themselves, and brings back one
// that somebody else switched.
const rewrite = Grace / 4

// A Lamp is one colour of a light.
type Lamp interface {
	// Set switches the lamp and checks that it took, where the lamp can tell.
	Set(on bool) error
	// Ends tells whether the lamp goes off by itself when it was not set for Grace, or when its process dies.
	Ends() bool
	// Name is what the board calls it.
	Name() string
}

// A Light is the light of a rack. It is safe for concurrent use.
type Light struct {
	green, red Lamp // red is nil with one colour
	log        *slog.Logger
	changed    chan struct{} // holds one note that what is true has changed; never closed

	mu       sync.Mutex // guards what follows
	is       [conditions]bool
	asked    []*time.Time // when it ends for each who wants to see which rack this is
	feedback Feedback
	since    time.Time // when the present pattern began
	shown    shown
	failed   map[string]string // lamp to its fault: told once each
}

// shown is what a pattern is chosen by.
type shown struct {
	condition Condition
	feedback  Feedback
}

// New returns a light of one lamp, or of a green and a red one; red may be nil.
func New(green, red Lamp, log *slog.Logger) *Light {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Light{
		green: green, red: red, log: log, changed: make(chan struct{}, 1),
		shown: shown{condition: conditions}, failed: map[string]string{},
	}
}

// Set notes whether a condition is true. Identify has a method of its own and is ignored here.
func (l *Light) Set(c Condition, is bool) {
	if c <= Identify || c >= conditions {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is[c] != is {
		l.is[c] = is
		l.note()
	}
}

// Identify shows for d, at most IdentifyFor, which rack this is; end ends it before. Several may ask at once, each for a time of their
// own.
func (l *Light) Identify(d time.Duration) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.asked = slices.DeleteFunc(l.asked, func(ends *time.Time) bool { return !now.Before(*ends) })
	mine := now.Add(min(d, IdentifyFor))
	l.asked = append(l.asked, &mine)
	l.note()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		mine = time.Time{}
		l.note()
	}
}

// identifies is when the last who asks has seen enough; long ago if nobody asks. l.mu is held.
func (l *Light) identifies() time.Time {
	var last time.Time
	for _, ends := range l.asked {
		if ends.After(last) {
			last = *ends
		}
	}
	return last
}

// Feedback shows how far a held button is; NoFeedback ends it.
func (l *Light) Feedback(f Feedback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f < 0 || f >= feedbacks || l.feedback == f {
		return
	}
	l.feedback = f
	l.note()
}

// Shows is the condition that is shown, or would be if no button were held. Its String is "off" if none is true.
func (l *Light) Shows() Condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.condition(time.Now())
}

// note wakes Run. l.mu is held.
func (l *Light) note() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// condition picks the most urgent one. l.mu is held.
func (l *Light) condition(now time.Time) Condition {
	if now.Before(l.identifies()) {
		return Identify
	}
	for c := Identify + 1; c < conditions; c++ {
		if l.is[c] {
			return c
		}
	}
	return conditions
}

// Run drives the lamps until ctx ends, then switches them off. A lamp that fails is told once and tried again; only
// the last switching off gives an error.
func (l *Light) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.off()
		case <-timer.C:
		case <-l.changed:
		}
		colour, stays := l.step(time.Now())
		l.show(colour)
		timer.Reset(stays)
	}
}

// step gives what is to be shown now, and when to ask again.
func (l *Light) step(now time.Time) (Colour, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := shown{l.condition(now), l.feedback}
	if want != l.shown {
		l.shown, l.since = want, now
	}
	colour, stays := Dark, time.Duration(0)
	if p := l.pattern(want); p != nil {
		colour, stays = p.at(now.Sub(l.since))
	}
	if stays == 0 || stays > rewrite {
		stays = rewrite
	}
	if want.condition == Identify {
		stays = min(stays, l.identifies().Sub(now))
	}
	return colour, stays
}

func (l *Light) pattern(s shown) pattern {
	switch {
	case s.feedback != NoFeedback:
		return feedbackPatterns[s.feedback]
	case s.condition >= conditions:
		return nil
	case s.condition == Identify && l.red != nil:
		return identifyTwo
	case s.condition == Well && !l.green.Ends():
		return alive
	}
	return patterns[s.condition]
}

// show sets the lamps.
func (l *Light) show(c Colour) {
	if l.red == nil {
		l.tell(l.green, l.green.Set(c != Dark))
		return
	}
	l.tell(l.green, l.green.Set(c == Green || c == Amber))
	l.tell(l.red, l.red.Set(c == Red || c == Amber))
}

// tell logs a lamp's fault when it appears, changes or goes.
func (l *Light) tell(lamp Lamp, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if l.failed[lamp.Name()] == text {
		return
	}
	l.failed[lamp.Name()] = text
	if err != nil {
		l.log.Warn("the lamp does not show what it should", "lamp", lamp.Name(), "err", err)
		return
	}
	l.log.Info("the lamp works again", "lamp", lamp.Name())
}

func (l *Light) off() error {
	errs := []error{l.green.Set(false)}
	if l.red != nil {
		errs = append(errs, l.red.Set(false))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("switch the light off: %w", err)
	}
	return nil
}
