package power

import (
	"cmp"
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
	maxOffs    = 3                      // times that power comes back within one operation, until that is its habit
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

// operate runs one operation on an outlet, alone on its hub, which leaves it on or off. What was automatic and had to wait for its
// turn into a maintenance is not done, nor what is not wanted any more.
func (s *Supply) operate(ctx context.Context, o *outlet, doing string, by By, on bool, f func() error) error {
	hub := s.hubs[o.Hub]
	if err := take(ctx, hub); err != nil {
		return fmt.Errorf("wait for hub %s: %w", o.Hub, err)
	}
	defer func() { <-hub }()
	if err := s.still(by); err != nil {
		return fmt.Errorf("switch %s: %w", o.Name, err)
	}
	if s.wanted(o) != on {
		return fmt.Errorf("%s of %s: %w", doing, o.Name, ErrOvertaken)
	}
	s.note(o, func() { o.busy = doing })
	err := f()
	s.note(o, func() {
		if o.busy = ""; !errors.Is(err, ErrMaintenance) { // which is no fault of the outlet's
			o.fault = err
		}
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", doing, o.Name, err)
	}
	return nil
}

// still gives ErrMaintenance to what nobody has asked for.
func (s *Supply) still(by By) error {
	if by != Person && s.Maintenance() {
		return ErrMaintenance
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
// its inrush until it has settled. By then hands may be inside.
func (s *Supply) turnOn(ctx context.Context, o *outlet, by By) error {
	if err := sleep(ctx, time.Until(s.earliestOn(o))); err != nil {
		return err
	}
	if err := take(ctx, s.room); err != nil {
		return err
	}
	if err := cmp.Or(s.turn(ctx), s.still(by)); err != nil {
		<-s.room
		return err
	}
	s.powered(o)
	err := s.set(ctx, o, true)
	s.keepApart()
	s.settle(o, err)
	if err != nil {
		return err
	}
	return sleep(ctx, o.Settle)
}

// settle gives back the room of an outlet that was switched on when its inrush is over: it goes on when nobody waits any more, or the
// hardware did not say. A call that waits in the kernel may yet switch it on, and has its inrush then.
func (s *Supply) settle(o *outlet, err error) {
	leave := func() { time.AfterFunc(o.Settle, func() { <-s.room }) }
	kept, ok := errors.AsType[*BusyError](err)
	if !ok || !kept.Late {
		leave()
		return
	}
	go func() { // as long as the call
		<-kept.Over
		leave()
	}()
}

// earliestOn is when an outlet has been off for long enough.
func (s *Supply) earliestOn(o *outlet) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.offAt.Add(board.MinOff)
}

// turn waits until something may be switched on. Who wakes late, or after something else was late, looks again.
func (s *Supply) turn(ctx context.Context) error {
	for {
		s.mu.Lock()
		wait := time.Until(s.nextOn)
		if wait <= 0 {
			s.nextOn = time.Now().Add(s.config.Stagger)
		}
		s.mu.Unlock()
		if wait <= 0 {
			return ctx.Err()
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// keepApart has the next thing wait from now on, when something was switched on that took its time: a kernel that tries a phone
// keeps its hub to itself. A call that takes longer than the stagger holds up nothing else.
func (s *Supply) keepApart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextOn = time.Now().Add(s.config.Stagger)
}

// errHubGone means that the hub of a port has left, or started anew, when the port was switched off.
var errHubGone = errors.New("its hub has left the bus")

// set tells hardware what to do until it says that it does it. After a cycle a hub may be silent, or
// say that a port is off, for about three seconds (mvp/uhubctl#25). A hub that went when its port was switched off is not told
// again: that would be the next reset.
func (s *Supply) set(ctx context.Context, o *outlet, on bool) error {
	begin, hub := time.Now(), s.hubOf(o)
	for {
		err := s.setOnce(ctx, o, on)
		if err == nil {
			s.note(o, func() {
				o.silent = max(o.silent, time.Since(begin))
				o.setAt = time.Now()
				if !on {
					o.offAt = o.setAt
				}
			})
			return nil
		}
		if now := s.hubOf(o); !on && o.isPort() && hub.there && (!now.there || hub.came(now)) {
			s.note(o, func() {
				o.setAt = time.Now()
				o.offAt = o.setAt
			})
			return errors.Join(errHubGone, err)
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
