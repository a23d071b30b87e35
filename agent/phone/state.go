package phone

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// State is what surrounds the elements of a screen. Each part has an error of
// its own: what could not be read is zero.
type State struct {
	Focus       Focus
	FocusErr    error
	Display     Display
	DisplayErr  error
	Keyboard    Keyboard
	KeyboardErr error
	Windows     []Window // the topmost first
	WindowsErr  error
	Lock        Lock
	LockErr     error
}

// Time allowed for one reading, and between attempts while a window opens.
const (
	readTimeout     = 8 * time.Second
	transitionLimit = 3 * time.Second
	transitionPause = 250 * time.Millisecond
)

// Sources of the parts of State. What is not needed is left out on the phone:
// the dumps have hundreds of kilobytes. The input method's comes last in State,
// with a bound of its own, because the service asks the keyboard's app, which
// may hang.
var (
	displaysSource = source{"displays", "dumpsys window displays | grep -E " +
		"'Display: mDisplayId=|init=|mCurrentFocus=|mFocusedApp=|mTopFocusedDisplayId=|^ *mRotation=|mCurrentRotation=|DisplayFrames|InsetsSource .*type=(ITYPE_IME|ime) '"}
	windowsSource = source{"windows", "dumpsys window windows | grep -E " +
		"'Window #|mDisplayId=|package=| ty=|mViewVisibility=|mHasSurface=|isReadyForDisplay|isVisible=|[fF]rame=|mGivenContentInsets=|touchable region=" +
		"|mCurrentFocus=|mFocusedApp=|mTopFocusedDisplayId=|^ *mRotation=|mCurrentRotation='"}
	policySource = source{"policy", "dumpsys window policy | grep -E " +
		"'howing=|howingLockscreen=|mSimSecure=|secure=|screenState=|interactiveState=|mAwake='"}
	methodSource = source{"input_method", "dumpsys -t 4 input_method | grep -E 'mInputShown=|mIsInputViewShown='"}
)

// parts are the parts of State, each with its ways.
func parts() []part[State] {
	return []part[State]{focusPart, displayPart, windowsPart, lockPart, keyboardPart}
}

// State reads what surrounds the elements: the focus, the display, the keyboard,
// the windows and the lock, in one round trip unless the phone prints something
// in a form that is not known. While one window gives way to another it looks
// again for up to three seconds; then FocusErr is ErrInTransition. It blocks
// until the phone has answered or ctx ends, at most for 27.25 seconds: the last
// look begins transitionLimit and a transitionPause after the first, and then
// the activity manager and wm are asked, each of the three for readTimeout.
func (p *Phone) State(ctx context.Context) State {
	s := p.settled(ctx, parts())
	if s.DisplayErr == nil {
		d := s.Display
		p.display.Store(&d)
	}
	return s
}

// patience is how often in a row nothing was in front for as long as was waited,
// until it is no longer waited for: such a phone tells its focus in another form.
const patience = 2

// settled reads parts of the state, the focus among them, and again while the
// screen is on and nothing is in front, or the display turns.
func (p *Phone) settled(ctx context.Context, parts []part[State]) State {
	hasLock := slices.ContainsFunc(parts, func(p part[State]) bool { return p.name == lockPart.name })
	for start := time.Now(); ; {
		s := p.readState(ctx, parts)
		focus, turn := errors.Is(s.FocusErr, ErrInTransition), errors.Is(s.DisplayErr, ErrInTransition)
		if s.FocusErr == nil && s.Focus.Package != "" {
			p.nowhere.Store(0)
		}
		if !focus && !turn {
			return s
		}
		vain := hasLock && s.LockErr == nil && !s.Lock.Awake || focus && p.nowhere.Load() >= patience
		if !vain && time.Since(start) < transitionLimit && pause(ctx, transitionPause) == nil {
			continue
		}
		if focus {
			if !vain && ctx.Err() == nil {
				p.nowhere.Add(1)
			}
			p.focusByActivity(ctx, &s)
		}
		if turn {
			p.displayByTool(ctx, &s)
		}
		return s
	}
}

// readState reads parts of the state once.
func (p *Phone) readState(ctx context.Context, parts []part[State]) State {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var s State
	read(ctx, p, newAnswers(), &s, parts)
	return s
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// number converts digits that a pattern has bounded already.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
