package phone

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Lock says whether the phone is awake and locked.
type Lock struct {
	Awake  bool
	Locked bool // the keyguard is in front
	Secure bool // and asks for a PIN, a pattern or a password
}

var lockPart = part[State]{
	name: "lock",
	fail: func(s *State, err error) { s.LockErr = fmt.Errorf("read lock: %w", err) },
	ways: []way[State]{
		lockFrom("policy", policySource),
		lockFrom("power", policySource, wakefulSource),
		lockFrom("window", allWindowSource, wakefulSource),
		{"trust", []source{trustSource, wakefulSource}, func(a *answers, s *State) error {
			l, err := parseTrust(a.text(trustSource))
			if err != nil {
				return err
			}
			awake, ok := parseAwake(a.text(wakefulSource))
			if !ok {
				return fmt.Errorf("not told whether the phone is awake: %w", ErrMalformed)
			}
			l.Awake = awake
			s.Lock = l
			return nil
		}},
	},
}

var (
	wakefulSource   = source{"power", "dumpsys power | grep -E 'mWakefulness=|Display Power: state='"}
	trustSource     = source{"trust", "dumpsys trust | grep -E 'deviceLocked='"}
	allWindowSource = source{"window", "dumpsys window | grep -E 'howing=|howingLockscreen=|mSimSecure=|secure=|screenState=|interactiveState=|mAwake='"}
)

// lockFrom reads the keyguard's state from dumps of the window manager.
func lockFrom(name string, from ...source) way[State] {
	return way[State]{name, from, func(a *answers, s *State) error {
		var out strings.Builder
		for _, f := range from {
			out.WriteString(a.text(f))
		}
		l, err := parseLock(out.String())
		if err == nil {
			s.Lock = l
		}
		return err
	}}
}

// Lock reads whether the phone is awake and locked.
func (p *Phone) Lock(ctx context.Context) (Lock, error) {
	s := p.readState(ctx, []part[State]{lockPart})
	return s.Lock, s.LockErr
}

var (
	// The keyguard is told of by KeyguardServiceDelegate and KeyguardStateMonitor,
	// since Android 13 by isKeyguardShowing too, before 9 by mShowingLockscreen.
	keyguardShown = regexp.MustCompile(`\b(?:mIsShowing|isKeyguardShowing|mShowingLockscreen)=(true|false)\b|^\s*showing=(true|false)\b`)
	keyguardAsks  = regexp.MustCompile(`^\s*(?:secure|mSimSecure)=(true|false)\b`)

	// What tells best whether the phone is awake stands first.
	awakeLines = []struct {
		key     string
		pattern *regexp.Regexp
	}{
		{"mWakefulness=", regexp.MustCompile(`\bmWakefulness=(Awake|Asleep|Dozing|Dreaming)\b`)},
		{"interactiveState=", regexp.MustCompile(`\binteractiveState=INTERACTIVE_STATE_(AWAKE|WAKING|SLEEP|GOING_TO_SLEEP)\b`)},
		{"mAwake=", regexp.MustCompile(`\bmAwake=(true|false)\b`)},
		{"screenState=", regexp.MustCompile(`\bscreenState=SCREEN_STATE_(ON|TURNING_ON|OFF|TURNING_OFF)\b`)},
	}
	deviceLocked = regexp.MustCompile(`\bdeviceLocked=([01])\b`)
)

// parseAwake reads whether the phone is awake; a screen saver counts as awake,
// an always-on display does not.
func parseAwake(out string) (awake, ok bool) {
	for _, is := range awakeLines {
		if m := row(out, is.key, is.pattern); m != nil {
			switch m[1] {
			case "Awake", "Dreaming", "AWAKE", "WAKING", "true", "ON", "TURNING_ON":
				return true, true
			}
			return false, true
		}
	}
	return false, false
}

// parseLock reads the state of the keyguard. One line that says it is shown
// suffices: a locked phone must not pass for an open one.
func parseLock(out string) (Lock, error) {
	var l Lock
	told := false
	for _, key := range []string{"howing=", "howingLockscreen="} {
		for line := range rows(out, key) {
			if m := keyguardShown.FindStringSubmatch(line); m != nil {
				told = true
				l.Locked = l.Locked || m[1] == "true" || m[2] == "true"
			}
		}
	}
	if !told {
		return Lock{}, fmt.Errorf("no keyguard: %w", ErrMalformed)
	}
	for line := range rows(out, "ecure=") {
		if m := keyguardAsks.FindStringSubmatch(line); m != nil {
			l.Secure = l.Secure || m[1] == "true"
		}
	}
	l.Secure = l.Secure && l.Locked
	var ok bool
	if l.Awake, ok = parseAwake(out); !ok {
		return Lock{}, fmt.Errorf("not told whether the phone is awake: %w", ErrMalformed)
	}
	return l, nil
}

// parseTrust reads the trust manager, which calls a phone locked only if a
// secret opens it. The present user's line counts.
func parseTrust(out string) (Lock, error) {
	told, locked := false, false
	for line := range rows(out, "deviceLocked=") {
		m := deviceLocked.FindStringSubmatch(line)
		current := strings.Contains(line, "(current)")
		if m == nil || told && !current {
			continue
		}
		told, locked = true, m[1] == "1"
		if current {
			break
		}
	}
	if !told {
		return Lock{}, fmt.Errorf("no lock: %w", ErrMalformed)
	}
	return Lock{Locked: locked, Secure: locked}, nil
}
