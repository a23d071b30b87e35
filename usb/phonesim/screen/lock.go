package screen

import (
	"time"

	"phonerack/usb/phonesim/screen/internal/app"
)

// Keyguard is the lock screen. The zero value is a phone without one.
type Keyguard struct {
	On  bool
	PIN string // digits; empty: a swipe up unlocks
}

// The screens of the system's user interface that make up the lock screen.
const (
	keyguardScreen = "keyguard"
	bouncerScreen  = "bouncer"
)

// After so many wrong PINs in a row none is taken for a while.
const (
	maxWrongPINs = 5
	lockout      = 30 * time.Second
)

// SetKeyguard changes the lock screen and locks the phone, if it has one now. It locks again whenever the
// display goes off.
func (e *Engine) SetKeyguard(k Keyguard) {
	e.lock()
	defer e.mu.Unlock()
	e.unlocked()
	e.keyguard = k
	e.lockUp()
}

// Keyguard returns the lock screen.
func (e *Engine) Keyguard() Keyguard {
	e.lock()
	defer e.mu.Unlock()
	return e.keyguard
}

// Locked reports that the lock screen is shown, or would be if the display were on.
func (e *Engine) Locked() bool {
	e.lock()
	defer e.mu.Unlock()
	return e.isLocked()
}

// DismissKeyguard unlocks a phone without a PIN and asks for the PIN of others.
func (e *Engine) DismissKeyguard() {
	e.lock()
	defer e.mu.Unlock()
	if e.isLocked() {
		e.tryPIN("")
	}
}

func (e *Engine) isLocked() bool {
	p := e.processes[app.SystemUI]
	return p != nil && len(p.windows) > 0
}

// lockUp shows the lock screen.
func (e *Engine) lockUp() {
	if !e.keyguard.On {
		return
	}
	p := e.process(app.SystemUI)
	p.windows = nil
	p.starting = true // it cannot be stopped from within
	e.open(p, p.app.FindScreen(keyguardScreen, false), nil, new(budget))
	p.starting = false
	e.compose("")
	e.finger = nil
}

// unlocked takes the lock screen away.
func (e *Engine) unlocked() {
	if e.isLocked() {
		e.processes[app.SystemUI].windows = nil
		e.wrongPINs = 0
		e.move(0)
	}
}

// tryPIN unlocks if the PIN is right. An empty one brings the bouncer up if there is one to get past.
func (e *Engine) tryPIN(pin string) {
	p := e.process(app.SystemUI)
	switch {
	case !e.isLocked():
	case e.keyguard.PIN == "":
		e.unlocked()
	case pin == "":
		if bouncer := p.app.FindScreen(bouncerScreen, false); len(p.windows) == 1 {
			e.move(0)
			e.open(p, bouncer, nil, new(budget))
		}
	case e.lockedOut():
	case pin == e.keyguard.PIN:
		e.unlocked()
	default:
		if e.wrongPINs++; e.wrongPINs%maxWrongPINs == 0 {
			e.barred = e.now.Add(lockout)
		}
	}
}

func (e *Engine) lockedOut() bool { return e.now.Before(e.barred) }
