package phone

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Focus is the window that has the input.
type Focus struct {
	Package  string
	Activity string // class name, ".Main" if it lies in Package; a window's name if it is no activity
}

var focusPart = part[State]{
	name: "focus",
	fail: func(s *State, err error) { s.FocusErr = fmt.Errorf("read focus: %w", err) },
	ways: []way[State]{
		{"window", []source{displaysSource, windowsSource}, func(a *answers, s *State) (err error) {
			s.Focus, err = parseFocus(a.text(displaysSource)+a.text(windowsSource), a.windowList().owners())
			return err
		}},
		{"activities", []source{activitiesSource}, func(a *answers, s *State) (err error) {
			s.Focus, err = parseResumed(a.text(activitiesSource))
			return err
		}},
	},
}

var activitiesSource = source{"activities", "dumpsys activity activities | grep -E 'ResumedActivity'"}

// maxComponent bounds "package/class", in bytes.
const maxComponent = 512

var (
	// The lines begin with what they tell: the title of a window, which an app
	// chooses, stands further behind.
	focusLine   = regexp.MustCompile(`^\s*(mCurrentFocus|mFocusedApp)=(.*)$`)
	focusValue  = regexp.MustCompile(`^(?:null|\w+\{.*\})$`)
	windowValue = regexp.MustCompile(`^Window\{([0-9a-f]+) `)
	displayRow  = regexp.MustCompile(`(?m)^\s*Display: mDisplayId=(\d{1,9})\b`)
	topDisplay  = regexp.MustCompile(`^\s*mTopFocusedDisplayId=(\d{1,9})\b`)
	resumed     = regexp.MustCompile(`^\s*(?:topResumedActivity|mResumedActivity|ResumedActivity)\s*[:=](.*)$`)
	component   = regexp.MustCompile(`\b([a-zA-Z]\w*(?:\.\w+)*)/([\w.$]+)`)
	systemName  = regexp.MustCompile(`\bu-?\d+ (NotificationShade|StatusBar|Keyguard|VolumeDialog\w*|GlobalActions\w*)\b`)
	alertName   = regexp.MustCompile(`\bu-?\d+ (Application (?:Not Responding|Error))\b`)
)

// Focus returns what is in front. While one window gives way to another it asks
// again for up to three seconds, then fails with ErrInTransition.
func (p *Phone) Focus(ctx context.Context) (Focus, error) {
	s := p.settled(ctx, []part[State]{focusPart, lockPart})
	return s.Focus, s.FocusErr
}

// focusByActivity asks the activity manager, which knows what is resumed when
// the window manager has no window with the focus.
func (p *Phone) focusByActivity(ctx context.Context, s *State) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a := newAnswers()
	if p.ask(ctx, a, []source{activitiesSource}) != nil {
		return
	}
	if f, err := parseResumed(a.text(activitiesSource)); err == nil {
		s.Focus, s.FocusErr = f, nil
	}
}

// focuses are the windows and apps that one display, or a summary of all, calls
// focused.
type focuses struct {
	display       string // its number; "" in a summary
	windows, apps []Focus
	system        Focus // a window or an alert of the system
	open          bool  // some window has the focus
}

// parseFocus picks the focus among those of all displays. Within a display, or
// within all of them, a window that is also the focused app wins; then any
// window with a component; then a window or an alert of the system; then, for a
// popup, the focused app. The display that has the input goes first. Only null
// is ErrInTransition: one window gives way to another. No such line at all is
// ErrMalformed.
//
// owners are the packages of windows by their ids, as far as they are known. A
// window is called what its app likes, also after another app.
func parseFocus(out string, owners map[string]string) (Focus, error) {
	all, top, err := readFocuses(out, owners)
	if err != nil {
		return Focus{}, err
	}
	if len(all) == 0 {
		return Focus{}, fmt.Errorf("no window has the focus: %w", ErrMalformed)
	}
	for _, f := range all {
		if top != "" && f.display == top {
			if got, ok := f.pick(); ok {
				return got, nil
			}
		}
	}
	var one focuses
	for _, f := range all {
		one.windows, one.apps = append(one.windows, f.windows...), append(one.apps, f.apps...)
		one.open = one.open || f.open
		if one.system.Package == "" {
			one.system = f.system
		}
	}
	if got, ok := one.pick(); ok {
		return got, nil
	}
	return Focus{}, ErrInTransition
}

// maxFocusLines bounds what is read of a dump.
const maxFocusLines = 64

// readFocuses reads the focus of each display. A value without its end is of a
// title with a line break, which could tell anything: nothing is believed then.
func readFocuses(out string, owners map[string]string) (all []focuses, top string, err error) {
	now := focuses{}
	lines := 0
	keep := func() {
		if lines > 0 {
			all = append(all, now)
		}
		now, lines = focuses{}, 0
	}
	seen := 0
	for line := range strings.Lines(out) {
		// Every line of interest has one of these words.
		if !strings.Contains(line, "Focus") && !strings.Contains(line, "Display: ") {
			continue
		}
		line = strings.TrimRight(line, " \r\n")
		if m := displayRow.FindStringSubmatch(line); m != nil {
			keep()
			now.display = m[1]
		} else if m := topDisplay.FindStringSubmatch(line); m != nil {
			keep()
			top = m[1]
		} else if m := focusLine.FindStringSubmatch(line); m != nil {
			if !focusValue.MatchString(m[2]) {
				return nil, "", fmt.Errorf("focus %q: %w", excerpt([]byte(m[2])), ErrMalformed)
			}
			if seen++; seen > maxFocusLines {
				break
			}
			lines++
			now.add(m[1] == "mFocusedApp", m[2], owners)
		}
	}
	keep()
	return all, top, nil
}

func (f *focuses) add(app bool, name string, owners map[string]string) {
	c, ok := parseComponent(name)
	if m := windowValue.FindStringSubmatch(name); m != nil && ok {
		if owner := owners[m[1]]; owner != "" && owner != c.Package {
			c = Focus{Package: owner}
		}
	}
	switch {
	case app && ok:
		f.apps = append(f.apps, c)
	case app:
	case ok:
		f.windows = append(f.windows, c)
	case strings.HasPrefix(name, "Window{"):
		f.open = true
		if s := systemName.FindStringSubmatch(name); s != nil {
			f.system = Focus{Package: "com.android.systemui", Activity: s[1]}
		} else if s := alertName.FindStringSubmatch(name); s != nil {
			f.system = Focus{Package: "android", Activity: s[1]}
		}
	}
}

func (f *focuses) pick() (Focus, bool) {
	for _, w := range f.windows {
		if slices.Contains(f.apps, w) {
			return w, true
		}
	}
	switch {
	case len(f.windows) > 0:
		return f.windows[0], true
	case f.system.Package != "":
		return f.system, true
	case f.open && len(f.apps) > 0:
		return f.apps[0], true
	}
	return Focus{}, false
}

// parseResumed reads what the activity manager has resumed.
func parseResumed(out string) (Focus, error) {
	for line := range rows(out, "ResumedActivity") {
		if m := resumed.FindStringSubmatch(line); m != nil {
			if f, ok := parseComponent(m[1]); ok {
				return f, nil
			}
		}
	}
	return Focus{}, fmt.Errorf("no activity is resumed: %w", ErrMalformed)
}

// parseComponent finds "package/class" in s. Which user runs it does not matter.
func parseComponent(s string) (Focus, bool) {
	m := component.FindStringSubmatch(s)
	if m == nil || len(m[0]) > maxComponent {
		return Focus{}, false
	}
	f := Focus{Package: m[1], Activity: m[2]}
	if short, ok := strings.CutPrefix(f.Activity, f.Package+"."); ok {
		f.Activity = "." + short
	}
	return f, true
}
