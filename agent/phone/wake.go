package phone

import (
	"context"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

// Waits of Wake.
const (
	wakeTime  = 3 * time.Second // for the phone to react to a write
	wakePause = 200 * time.Millisecond
)

// Wake switches the screen on and dismisses a lock that asks for nothing. It
// sends nothing to a phone that is awake and open. It fails with a *wire.Refusal
// of code wire.PhoneLocked if the phone asks for a PIN, a pattern or a password,
// and never makes it show where that is typed.
func (c *Controls) Wake(ctx context.Context) error {
	l, err := c.phone.Lock(ctx)
	if err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	if !l.Awake {
		if err := c.Key(ctx, "wakeup"); err != nil {
			return fmt.Errorf("wake: %w", err)
		}
		if l, err = c.phone.lockUntil(ctx, func(l Lock) bool { return l.Awake }); err != nil {
			return fmt.Errorf("wake: %w", err)
		}
		if !l.Awake {
			return fmt.Errorf("wake: the screen stays off: %w", ErrRejected)
		}
	}
	for _, open := range []func(context.Context) error{c.dismissKeyguard, c.swipeUp} {
		if !l.Locked {
			return nil
		}
		if l.Secure {
			break
		}
		if err := open(ctx); err != nil {
			return fmt.Errorf("wake: %w", err)
		}
		if l, err = c.phone.lockUntil(ctx, func(l Lock) bool { return !l.Locked || l.Secure }); err != nil {
			return fmt.Errorf("wake: %w", err)
		}
	}
	if l.Locked {
		return wire.Refuse(wire.PhoneLocked, nil).Because(ErrLocked)
	}
	return nil
}

// dismissKeyguard opens a lock that asks for nothing.
func (c *Controls) dismissKeyguard(ctx context.Context) error {
	return c.input(ctx, "dismiss the lock", 0, "wm dismiss-keyguard")
}

// swipeUp opens a lock as a finger does, on phones that ignore dismissKeyguard.
func (c *Controls) swipeUp(ctx context.Context) error {
	d := c.phone.display.Load()
	return c.Swipe(ctx, d.Width/2, d.Height*4/5, d.Width/2, d.Height/5, 300*time.Millisecond)
}

// lockUntil reads the lock until done likes it, for as long as a phone needs to
// react. It returns what it read last.
func (p *Phone) lockUntil(ctx context.Context, done func(Lock) bool) (Lock, error) {
	for waited := time.Duration(0); ; waited += wakePause {
		l, err := p.Lock(ctx)
		if err != nil || done(l) || waited >= wakeTime {
			return l, err
		}
		if err := pause(ctx, wakePause); err != nil {
			return l, err
		}
	}
}
