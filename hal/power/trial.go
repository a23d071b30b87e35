package power

import (
	"context"
	"errors"
	"time"

	"phonerack/hal/board"
)

// Power is taken and its effect is looked for.

// A trial is one taking of an outlet's power, of which its phones have not said yet whether it reached them.
type trial struct {
	slots    []int // of the phones that said how they were before
	from, to time.Time

	slow int // times that asking them took long and told nothing; guarded by Supply.mu
}

const (
	trialBound = 10 * time.Minute // after the power is back: a phone that has not said it by then is not waited for
	askEvery   = 500 * time.Millisecond
	askLimit   = 8 * time.Second // of one time that phones are asked: two readings of a slow one
	slowAsk    = 2 * time.Second // a phone that hangs takes longer, and says nothing
	maxSlow    = 3               // of these in one trial: such a phone is not waited for
	markLimit  = 5 * time.Second // of what phones say before their power is taken
)

// turnOff takes the power of an outlet and looks for the effect. What the phones' batteries made of it is told when they are back.
func (s *Supply) turnOff(ctx context.Context, o *outlet, by By) error {
	before, hub, err := s.takePower(ctx, o, by)
	if err != nil {
		return err
	}
	seen, err := s.watchOff(ctx, o, hub, before, s.config.Leave)
	if err != nil {
		return err
	}
	return s.conclude(o, before, seen, Unknown)
}

// takePower has the phones that are there say how they are, takes the power of an outlet, and begins the trial of it. It gives
// those phones, and which one of its hub's the outlet was behind: the hub may go with its port.
func (s *Supply) takePower(ctx context.Context, o *outlet, by By) (before []int, hub enumeration, err error) {
	before, hub = s.config.Phones.Present(o.Slots), s.hubOf(o)
	marked := s.mark(ctx, before)
	if err := s.cutOff(ctx, o, by); err != nil && !errors.Is(err, errHubGone) {
		return nil, hub, err
	}
	s.begin(o, marked)
	return before, hub, nil
}

// mark has the phones say how their batteries are. Those that do not are no reason to wait for long.
func (s *Supply) mark(ctx context.Context, slots []int) []int {
	if len(slots) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, markLimit)
	defer cancel()
	return s.config.Phones.Mark(ctx, slots)
}

// begin begins a trial when the power was just taken from phones that can tell of it. Without any an earlier one goes on:
// the outlet may have been off before.
func (s *Supply) begin(o *outlet, marked []int) {
	if len(marked) > 0 {
		s.note(o, func() { o.trial = &trial{slots: marked, from: time.Now()} })
	}
}

// powered notes that the power comes back, which ends what a trial is about.
func (s *Supply) powered(o *outlet) {
	s.note(o, func() {
		if o.trial != nil && o.trial.to.IsZero() {
			ended := *o.trial
			ended.to = time.Now()
			o.trial = &ended
		}
	})
}

// cutOff switches off, with room among what is being switched. By then hands may be inside.
func (s *Supply) cutOff(ctx context.Context, o *outlet, by By) error {
	if err := take(ctx, s.room); err != nil {
		return err
	}
	defer func() { <-s.room }()
	if err := s.still(by); err != nil {
		return err
	}
	return s.set(ctx, o, false)
}

// cycle takes the power and gives it back.
func (s *Supply) cycle(ctx context.Context, o *outlet, by By) error {
	before, hub, err := s.takePower(ctx, o, by)
	if err != nil {
		return err
	}
	seen, watchErr := s.watchOff(ctx, o, hub, before, o.OffTime)
	// From here on the outlet is off and must not stay so, whatever has ended.
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), board.MinOff+s.config.Silence+o.Settle+time.Minute)
	defer cancel()
	if err := s.turnOn(finish, o, Person); err != nil { // in maintenance too
		return errors.Join(err, watchErr)
	}
	if watchErr != nil {
		return watchErr
	}
	told, err := s.awaitReturn(ctx, o, before)
	if err != nil {
		return err
	}
	if now := s.hubOf(o); hub.came(now) {
		seen.reset = true // by the power that came back
	}
	return s.conclude(o, before, seen, told)
}

// awaitReturn waits until the phones are back and have told whether they had power, or could have been.
func (s *Supply) awaitReturn(ctx context.Context, o *outlet, before []int) (Answer, error) {
	end := time.Now().Add(s.config.Return)
	for len(s.config.Phones.Present(before)) < len(before) && time.Now().Before(end) {
		if err := sleep(ctx, lookEvery); err != nil {
			return Unknown, err
		}
	}
	asked, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for {
		told, over := s.told(asked, o)
		if over || !time.Now().Before(end) {
			return told, nil
		}
		if err := sleep(ctx, askEvery); err != nil {
			return Unknown, err
		}
	}
}

// told asks the phones of a trial whose power is back; over when there is nothing more to come.
func (s *Supply) told(ctx context.Context, o *outlet) (a Answer, over bool) {
	s.mu.Lock()
	t := o.trial
	s.mu.Unlock()
	if t == nil || t.to.IsZero() {
		return Unknown, true
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	a, over = s.config.Phones.Charged(ctx, t.slots, t.from, t.to)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.trial != t { // its power was taken again meanwhile
		return Unknown, true
	}
	if a == Unknown && time.Since(began) >= slowAsk {
		t.slow++
	}
	if over = over || t.slow >= maxSlow || time.Since(t.to) > trialBound; over {
		o.trial = nil
	}
	return a, over
}

// hear takes what phones say later than their cycle has waited, or after they were off for long. It takes its time: a phone that hangs is
// asked too.
func (s *Supply) hear(ctx context.Context) {
	for _, o := range s.outlets {
		s.mu.Lock()
		skip := o.trial == nil || o.trial.to.IsZero() || o.busy != ""
		s.mu.Unlock()
		if skip {
			continue
		}
		cut := Unseen
		a, _ := s.told(ctx, o)
		s.mu.Lock()
		again := o.busy != "" // phones have been marked anew, and what they say is not of the time that was asked for
		s.mu.Unlock()
		switch {
		case again, a == Unknown:
			continue
		case a == Yes:
			cut = DataOnly
		case a == No:
			cut = Cuts
		}
		if err := s.found(o, cut); err != nil {
			s.log.Warn("phones say what switching off did", "outlet", o.Name, "err", err)
		}
	}
}

// enumeration is which one of its hub's an outlet is behind.
type enumeration struct {
	number int
	there  bool
}

func (s *Supply) hubOf(o *outlet) enumeration {
	n, ok := s.config.Hubs.Generation(o.HubPath)
	return enumeration{n, ok}
}

// came reports whether the hub has come anew.
func (e enumeration) came(now enumeration) bool {
	return e.there && now.there && e.number != now.number
}

// seen is what was seen while an outlet was off.
type seen struct {
	left      bool // all phones have left the bus
	repowered int  // times that the power came back
	reset     bool // the hub of a port has enumerated anew
	away      bool // the hub was gone at the last look: nothing is said
}

// watchOff looks at an outlet that is off for so long, and takes the power again when it comes back. Once it did, it is watched
// for as long as it takes to do so again. Phones have Config.Leave to leave, however short that is.
func (s *Supply) watchOff(ctx context.Context, o *outlet, hub enumeration, before []int, d time.Duration) (w seen, err error) {
	taken := time.Now()
	end := taken.Add(d)
	if err := sleep(ctx, firstLook); err != nil {
		return w, err
	}
	for {
		now := s.hubOf(o)
		if o.isPort() && hub.came(now) {
			w.reset = true
			return w, nil
		}
		present := s.config.Phones.Present(before)
		on, ok := s.isOn(ctx, o)
		if w.away = o.isPort() && hub.there && !now.there; w.away && end.Before(taken.Add(s.config.Silence)) {
			end = taken.Add(s.config.Silence) // until it is known whether it comes back
		}
		switch {
		case w.away:
		case ok && on, w.left && len(present) > 0:
			w.repowered++
			w.left = false
			if err := s.takeAgain(ctx, o, w.repowered); err != nil {
				return w, err
			}
			took := time.Since(taken)
			if taken = time.Now(); w.repowered < maxOffs && end.Before(taken.Add(took+2*lookEvery)) {
				end = taken.Add(took + 2*lookEvery)
			}
		case len(present) == 0:
			w.left = true
		}
		until := end
		if leave := taken.Add(s.config.Leave); !w.left && len(before) > 0 && until.Before(leave) {
			until = leave
		}
		if w.repowered >= maxOffs || !time.Now().Before(until) {
			break
		}
		if err := sleep(ctx, min(lookEvery, time.Until(until))); err != nil {
			return w, err
		}
	}
	return w, sleep(ctx, time.Until(end))
}

func (s *Supply) takeAgain(ctx context.Context, o *outlet, times int) error {
	s.note(o, func() { o.repowered++ })
	s.log.Warn("power came back by itself", "outlet", o.Name, "times", times)
	if times >= maxOffs {
		return nil
	}
	if err := s.set(ctx, o, false); !errors.Is(err, errHubGone) {
		return err
	}
	return nil // the next look tells
}

// conclude says what switching off does, as far as was seen and phones have told, and remembers it.
func (s *Supply) conclude(o *outlet, before []int, w seen, told Answer) error {
	cut := s.recordOf(o).Cut
	w.reset = w.reset && o.isPort() // the hub itself comes anew after each cycle of it
	if w.reset || w.repowered >= maxOffs || !w.left {
		s.note(o, func() { o.trial = nil }) // whoever had power meanwhile has nothing to tell
	}
	switch {
	case w.reset:
		s.note(o, func() { o.resets++ })
		cut = ResetsHub
	case w.repowered >= maxOffs:
		cut = Repowers
	case w.away:
		return errHubGone
	case len(before) == 0:
	case !w.left:
		cut = NoEffect
	case told == Yes:
		cut = DataOnly
	case told == No:
		cut = Cuts
	case cut != Cuts && cut != DataOnly: // what was proved once is not forgotten
		cut = LeavesBus
	}
	return s.found(o, cut)
}
