package power

import (
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/hal/board"
)

// How hardware is asked.
const (
	callLimit  = 2 * time.Second        // one call of a Switch
	retryEvery = 500 * time.Millisecond // while hardware is silent
	firstLook  = 20 * time.Millisecond  // kernels give power back after 10 ms and more (mvp/uhubctl#96)
	lookEvery  = 100 * time.Millisecond // while power is off
	maxOffs    = 3                      // times that power is taken again within one operation
)

// sleep waits, or gives the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// take waits for a token.
func take(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// operate runs one operation on an outlet, alone on its hub. What was automatic and had to wait for its
// turn into a maintenance is not done.
func (s *Supply) operate(ctx context.Context, o *outlet, doing string, by By, f func() error) error {
	hub := s.hubs[o.Hub]
	if err := take(ctx, hub); err != nil {
		return fmt.Errorf("wait for hub %s: %w", o.Hub, err)
	}
	defer func() { <-hub }()
	if by != Person && s.Maintenance() {
		return fmt.Errorf("switch %s: %w", o.Name, ErrMaintenance)
	}
	s.note(o, func() { o.busy = doing })
	err := f()
	s.note(o, func() { o.busy, o.fault = "", err })
	if err != nil {
		return fmt.Errorf("%s of %s: %w", doing, o.Name, err)
	}
	return nil
}

// note changes what is known of an outlet.
func (s *Supply) note(o *outlet, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// turnOn gives an outlet power: not before it was off for long enough, in its turn, and with room for
// its inrush until it has settled.
func (s *Supply) turnOn(ctx context.Context, o *outlet) error {
	if err := sleep(ctx, time.Until(s.earliestOn(o))); err != nil {
		return err
	}
	if err := take(ctx, s.room); err != nil {
		return err
	}
	defer func() { <-s.room }()
	if err := sleep(ctx, time.Until(s.turn())); err != nil {
		return err
	}
	if err := s.set(ctx, o, true); err != nil {
		return err
	}
	return sleep(ctx, o.Settle)
}

// earliestOn is when an outlet has been off for long enough.
func (s *Supply) earliestOn(o *outlet) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.offAt.Add(board.MinOff)
}

// turn takes the next moment at which something may be switched on.
func (s *Supply) turn() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	if s.nextOn.After(at) {
		at = s.nextOn
	}
	s.nextOn = at.Add(s.config.Stagger)
	return at
}

// set tells hardware what to do until it says that it does it. After a cycle a hub may be silent, or
// say that a port is off, for about three seconds (mvp/uhubctl#25).
func (s *Supply) set(ctx context.Context, o *outlet, on bool) error {
	begin := time.Now()
	for {
		err := s.setOnce(ctx, o, on)
		if err == nil {
			s.note(o, func() {
				o.silent = max(o.silent, time.Since(begin))
				if !on {
					o.offAt = time.Now()
				}
			})
			return nil
		}
		if time.Since(begin)+retryEvery > s.config.Silence {
			return err
		}
		if ctxErr := sleep(ctx, retryEvery); ctxErr != nil {
			return errors.Join(ctxErr, err)
		}
	}
}

func (s *Supply) setOnce(ctx context.Context, o *outlet, on bool) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := o.Switch.Set(ctx, on); err != nil {
		return err
	}
	is, err := o.Switch.On(ctx)
	if err == nil && is != on {
		err = fmt.Errorf("%w: it is on: %v, when it was told on: %v", ErrNotSet, is, on)
	}
	return err
}

// isOn asks hardware once; false for ok when it does not say.
func (s *Supply) isOn(ctx context.Context, o *outlet) (on, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	on, err := o.Switch.On(ctx)
	return on, err == nil
}

// turnOff takes the power of an outlet and looks for the effect.
func (s *Supply) turnOff(ctx context.Context, o *outlet) error {
	before := s.config.Phones.Present(o.Slots)
	if err := s.cutOff(ctx, o); err != nil {
		return err
	}
	from := time.Now()
	seen, err := s.watchOff(ctx, o, before, s.config.Leave)
	if err != nil {
		return err
	}
	return s.conclude(ctx, o, before, seen, from, time.Now())
}

// cutOff switches off, with room among what is being switched.
func (s *Supply) cutOff(ctx context.Context, o *outlet) error {
	if err := take(ctx, s.room); err != nil {
		return err
	}
	defer func() { <-s.room }()
	return s.set(ctx, o, false)
}

// cycle takes the power and gives it back.
func (s *Supply) cycle(ctx context.Context, o *outlet) error {
	before := s.config.Phones.Present(o.Slots)
	if err := s.cutOff(ctx, o); err != nil {
		return err
	}
	from := time.Now()
	seen, watchErr := s.watchOff(ctx, o, before, o.OffTime)
	// From here on the outlet is off and must not stay so, whatever has ended.
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), board.MinOff+s.config.Silence+o.Settle+time.Minute)
	defer cancel()
	to := time.Now()
	if err := s.turnOn(finish, o); err != nil {
		return errors.Join(err, watchErr)
	}
	if watchErr != nil {
		return watchErr
	}
	if err := s.awaitReturn(ctx, before); err != nil {
		return err
	}
	return s.conclude(ctx, o, before, seen, from, to)
}

// awaitReturn waits until the phones are back, or could have been.
func (s *Supply) awaitReturn(ctx context.Context, before []int) error {
	end := time.Now().Add(s.config.Return)
	for len(s.config.Phones.Present(before)) < len(before) && time.Now().Before(end) {
		if err := sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
	return nil
}

// seen is what was seen while an outlet was off.
type seen struct {
	left      bool // all phones have left the bus
	repowered int  // times that the power came back
}

// watchOff looks at an outlet that is off for so long, and takes the power again when it comes back.
func (s *Supply) watchOff(ctx context.Context, o *outlet, before []int, d time.Duration) (w seen, err error) {
	end := time.Now().Add(d)
	if err := sleep(ctx, firstLook); err != nil {
		return w, err
	}
	for {
		present := s.config.Phones.Present(before)
		on, ok := s.isOn(ctx, o)
		switch {
		case ok && on, w.left && len(present) > 0:
			w.repowered++
			w.left = false
			if err := s.takeAgain(ctx, o, w.repowered); err != nil {
				return w, err
			}
		case len(present) == 0:
			w.left = true
		}
		if w.repowered >= maxOffs || !time.Now().Before(end) {
			break
		}
		if err := sleep(ctx, min(lookEvery, time.Until(end))); err != nil {
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
	return s.set(ctx, o, false)
}

// conclude says what switching off does, as far as was seen, and remembers it.
func (s *Supply) conclude(ctx context.Context, o *outlet, before []int, w seen, from, to time.Time) error {
	s.mu.Lock()
	r := o.record
	s.mu.Unlock()
	cut := r.Cut
	switch {
	case w.repowered >= maxOffs:
		cut = Repowers
	case len(before) == 0:
	case !w.left:
		cut = NoEffect
	default:
		switch s.config.Phones.Charged(ctx, before, from, to) {
		case Yes:
			cut = DataOnly
		case No:
			cut = Cuts
		case Unknown:
			if cut != Cuts && cut != DataOnly { // what was proved once is not forgotten
				cut = LeavesBus
			}
		}
	}
	if cut != r.Cut {
		s.log.Info("effect of switching off", "outlet", o.Name, "is", cut.String())
		r.Cut = cut
		if err := s.save(o, r); err != nil {
			return err
		}
	}
	if !cut.Works() {
		return &NotCutError{o.Name, cut}
	}
	return nil
}
