package firmware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/phone"
	"phonerack/agent/phone/appium"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/keyring"
	"phonerack/firmware/lease"
	"phonerack/firmware/phonebook"
	"phonerack/hal/watchdog"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// How a slot waits before it tries a phone again.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	streamPause  = 2 * time.Second  // between looks at a stream that nobody serves
	provenAfter  = 30 * time.Second // a session that lasted so long is followed by the first pause again
)

// A slot owns what sits at one place of the rack. Only its owner, Serve, opens and closes phones.
type slot struct {
	number    int
	label     string
	source    source
	hello     adb.Options // what each phone is greeted with
	book      *phonebook.Book
	keys      *keyring.Ring
	holder    func(context.Context, bus.Device) string // who holds a phone's interface
	leases    *lease.Table
	helpers   string     // folder of the helper apps; "" if there is none
	documents *documents // nil if documents cannot be read
	changed   func()     // called when a phone has become ready
	events    *events    // hears of the slot's states
	log       *slog.Logger

	// saw takes each look at the phone, measured what it tells of itself, and left that it has left the bus; all are set before Serve.
	saw      func(slot int, l health.Look)
	measured func(slot int, m measures)
	left     func(slot int)
	every    time.Duration  // between two readings of the battery
	patience time.Duration  // that a phone has for the answer to a harmless question
	asked    chan struct{}  // a look is due; takes one signal, never closed
	errands  chan errand    // of recovery; never closed
	progress *watchdog.Part // is told while the owner works and waits; nil without a watchdog

	// Of the owner alone.
	look     health.Look      // what was seen of the phone, as far as it was come
	anew     bool             // the next link is taken for one with leftovers
	examined time.Time        // when measures were taken last
	beat     <-chan time.Time // when progress is due; nil without a watchdog

	mu    sync.Mutex
	state action.PhoneState // guarded by mu, as is live
	live  *live             // set while state is ready or limited
	torn  context.Context   // the last attachment whose link has ended because the phone left; guarded by mu
	said  said              // of the state, in the log; guarded by mu
}

// live is one connection to one phone.
type live struct {
	conn      *adb.Conn
	phone     *phone.Phone // nil if only shell and files work
	serial    string
	eyes      *perception.Observer // of which everybody who looks has a view; nil as phone
	hand      *hand                // the eyes of people; a task has its own; nil as phone
	hands     hands                // the eyes of those who call tools
	documents *documents           // nil if documents cannot be read
	helper    *appium.Helper       // drives the helper apps, if there are any; nil as phone
	starting  <-chan struct{}      // closed when the start of the helpers on arrival is over; nil if there was none
	helpers   string               // folder of the helper apps; "" if there is none
	entry     *phonebook.Entry     // what is remembered of the phone; nil as phone, or if the database gave none
}

func newSlot(number int, label string, src source, r *Rack, hello adb.Options) *slot {
	s := &slot{number: number, label: label, source: src, hello: hello, book: r.book, leases: r.leases, helpers: r.config.Helpers.Folder, changed: r.slotsChanged, events: r.events, log: r.log.With("slot", number)}
	s.asked, s.errands = make(chan struct{}, 1), make(chan errand)
	s.every = time.Duration(r.config.Health.Battery.Interval)
	s.hello.Logger = s.log
	s.hello.OnPrompt = func() { s.become(action.Unauthorized, "accept the debugging prompt on the phone") }
	s.state = action.PhoneState{Slot: number, Label: label, Port: src.port(), State: action.Empty, Since: time.Now()}
	return s
}

// String implements fmt.Stringer for the supervisor's log.
func (s *slot) String() string { return fmt.Sprintf("owner of slot %d", s.number) }

// Serve implements suture.Service: it tries phones until ctx ends.
func (s *slot) Serve(ctx context.Context) error {
	defer s.forget()
	if s.progress != nil {
		beat := time.NewTicker(beatEvery)
		defer beat.Stop()
		s.beat = beat.C
	}
	pause := firstPause
	var attached context.Context // of the phone that was there last
	for {
		if attached != nil && attached.Err() != nil { // it was pulled out in a pause
			s.become(action.Empty, "")
		}
		var serial string
		var err error
		s.patiently(func() { attached, serial, err = s.source.wait(ctx) })
		if err != nil {
			return err
		}
		began := time.Now()
		err = s.session(ctx, attached, serial)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if e, ok := errors.AsType[errErrand](err); ok {
			s.carry(ctx, e.errand)
			continue // and opens the phone anew
		}
		if attached.Err() == nil {
			s.answer()
		}
		if attached.Err() != nil || errors.Is(err, errUnplugged) {
			s.become(action.Empty, "")
		}
		if time.Since(began) > provenAfter {
			pause = firstPause
		}
		switch {
		case attached.Err() != nil:
			pause = firstPause
			continue // wait for the next phone
		case errors.Is(err, errUnplugged):
			pause = streamPause
		}
		if err := s.rest(ctx, attached, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// rest waits for about the pause, or until the plug is moved.
func (s *slot) rest(ctx, attached context.Context, pause time.Duration) error {
	jittered := pause*3/4 + rand.N(pause/2)
	timer := time.NewTimer(jittered)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-attached.Done():
		case <-s.source.replugged():
		case <-s.asked: // the look is the next try
			s.owe()
		case e := <-s.errands:
			s.carry(ctx, e)
		case <-s.beat:
			s.progress.Progress()
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
}

// patiently runs what may take as long as a person or a phone takes, and reports progress meanwhile: the owner waits, which
// is its work. What is bounded by itself needs none of this. A panic in there is the owner's, who is started anew; on a
// goroutine of its own it would end rackd.
func (s *slot) patiently(fn func()) {
	if s.progress == nil {
		fn()
		return
	}
	done := make(chan struct{})
	var panicked any // guarded by done
	go func() {
		defer close(done)
		defer func() {
			if panicked = recover(); panicked != nil {
				s.log.Error("the owner of a slot panicked", "panic", panicked, "stack", string(debug.Stack()))
			}
		}()
		fn()
	}()
	for {
		select {
		case <-done:
			if panicked != nil {
				panic(panicked)
			}
			s.progress.Progress()
			return
		case <-s.beat:
			s.snapshot() // a slot whose state cannot be asked for makes no progress
			s.progress.Progress()
		}
	}
}

// owe keeps a look due that was asked for.
func (s *slot) owe() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// become enters a state that has no usable phone.
func (s *slot) become(state action.State, reason string) {
	left := false
	defer func() { // without the lock
		if left && s.left != nil {
			s.left(s.number)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = nil
	if s.state.State == state && s.state.Reason == reason {
		return
	}
	s.state.State, s.state.Reason, s.state.Since = state, reason, time.Now()
	serial := s.state.Serial
	if left = state == action.Empty; left {
		s.state.Serial, s.state.Model, s.state.Android = "", "", ""
	}
	s.announce(slog.LevelInfo, "reason", reason)
	s.events.slot(s.state, serial)
}

// announce logs the slot's state. s.mu is held. That a phone is tried once more, and fails as it did before, is only for those who
// ask for everything: a phone that is ill is tried at each look.
func (s *slot) announce(level slog.Level, attrs ...any) {
	is := said{s.state.State, s.state.Reason, s.state.Serial}
	switch {
	case is.state == action.Connecting, is == s.said:
		level = slog.LevelDebug
	default:
		s.said = is
	}
	s.log.Log(context.Background(), level, "slot changed", append([]any{"state", string(s.state.State), "phone", s.state.Serial}, attrs...)...)
}

// said is what was logged of a slot.
type said struct {
	state          action.State
	reason, serial string
}

// ready enters the state in which the phone can be used.
func (s *slot) ready(l *live) {
	info := l.phone.Info()
	defer s.changed() // without the lock: who hears of it asks the slot
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = l
	s.state.State, s.state.Reason, s.state.Since = action.Ready, "", time.Now()
	s.state.Serial, s.state.Model, s.state.Android = l.serial, info.Model, info.Release
	s.announce(slog.LevelInfo, "model", info.Model, "android", info.Release)
	s.events.slot(s.state, l.serial)
}

// limited enters the state in which only shell and files can be used.
func (s *slot) limited(l *live, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = l
	if s.state.State == action.Limited && s.state.Reason == reason {
		return
	}
	banner := l.conn.Banner()
	s.state.State, s.state.Reason, s.state.Since = action.Limited, reason, time.Now()
	s.state.Serial, s.state.Model, s.state.Android = l.serial, banner.Model, ""
	s.announce(slog.LevelWarn, "kind", banner.Type, "reason", reason)
	s.events.slot(s.state, l.serial)
}

func (s *slot) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = nil
	s.state.State, s.state.Reason = action.Empty, ""
}

// named notes whose link is being opened. A byte stream does not tell: then the phone that was there counts, until the
// slot is empty.
func (s *slot) named(serial string) {
	if serial == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Serial = serial
}

func (s *slot) snapshot() (action.PhoneState, *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.live
}
