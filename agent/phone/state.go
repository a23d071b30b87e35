package phone

import (
	"context"
	"errors"
	"fmt"
	"image"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Focus is the window that has the input.
type Focus struct {
	Package  string
	Activity string // class name, ".Main" if it lies in Package; a window's name if it is no activity
}

// Display is the screen as it is turned now.
type Display struct {
	Width, Height int // pixels, an override counted in
	Rotation      int // quarter turns anticlockwise from the natural position, 0 to 3
	Density       int // dots per inch, an override counted in
}

// statusBar is the height of Android's status bar, in density-independent pixels.
const statusBar = 24

// StatusBar is the height of the status bar, in pixels.
func (d Display) StatusBar() int { return (statusBar*d.Density + 159) / 160 }

// Keyboard is the on-screen keyboard.
type Keyboard struct {
	Shown bool
	Area  image.Rectangle // in pixels of the display; empty if it is not known
}

// Window is one window of the screen, as the window manager lists it.
type Window struct {
	Package string
	Title   string // its name: a component, or such as "StatusBar"
	Kind    WindowKind
	Focused bool
	Bounds  image.Rectangle // in pixels of the display; empty if it is not known
}

// WindowKind says what a window is for.
type WindowKind string

// Kinds of window.
const (
	AppWindow      WindowKind = "app"
	DialogWindow   WindowKind = "dialog" // above an app, of its own or another package
	KeyboardWindow WindowKind = "keyboard"
	SystemWindow   WindowKind = "system" // status bar, navigation bar, lock screen, alerts
)

// Lock says whether the phone is awake and locked.
type Lock struct {
	Awake  bool
	Locked bool // the keyguard is in front
	Secure bool // and asks for a PIN, a pattern or a password
}

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

// errNotRead marks parts that this version does not read yet.
var errNotRead = errors.ErrUnsupported

// State reads what surrounds the elements.
func (p *Phone) State(ctx context.Context) State {
	var (
		s  = State{WindowsErr: errNotRead, LockErr: errNotRead}
		wg sync.WaitGroup
	)
	wg.Go(func() { s.Focus, s.FocusErr = p.Focus(ctx) })
	wg.Go(func() { s.Display, s.DisplayErr = p.Display(ctx) })
	wg.Go(func() { s.Keyboard.Shown, s.KeyboardErr = p.Keyboard(ctx) })
	wg.Wait()
	return s
}

// Time allowed for one reading, and between attempts while a window opens.
const (
	readTimeout     = 8 * time.Second
	transitionLimit = 3 * time.Second
	transitionPause = 250 * time.Millisecond
)

var (
	focusLine  = regexp.MustCompile(`(?m)^.*?\b(mCurrentFocus|mFocusedApp)=(.*)$`)
	resumed    = regexp.MustCompile(`(?m)^.*?\b(?:topResumedActivity|mResumedActivity|ResumedActivity)\b[:=](.*)$`)
	component  = regexp.MustCompile(`\b([a-zA-Z]\w*(?:\.\w+)*)/([\w.$]+)`)
	systemName = regexp.MustCompile(`\bu\d+ (NotificationShade|StatusBar|Keyguard|VolumeDialog\w*|GlobalActions\w*)\b`)
	alertName  = regexp.MustCompile(`\bu\d+ (Application (?:Not Responding|Error))\b`)
	sizeLine   = regexp.MustCompile(`(?m)^(Physical|Override) size: (\d{1,5})x(\d{1,5})\s*$`)
	denseLine  = regexp.MustCompile(`(?m)^(Physical|Override) density: (\d{1,5})\s*$`)
	turnedLine = regexp.MustCompile(`\b(?:mCurrentRotation|mRotation|SurfaceOrientation|mCurrentOrientation)[=:] *(?:ROTATION_)?(\d{1,3})\b`)
	packageRow = regexp.MustCompile(`(?m)^package:([a-zA-Z]\w*(?:\.\w+)*)\s*$`)
	inputShown = regexp.MustCompile(`\bmInputShown=(true|false)\b`)
	viewShown  = regexp.MustCompile(`\bmIsInputViewShown=(true|false)\b`)
)

// Focus returns what is in front. While one window gives way to another it asks
// again for up to three seconds, then fails with ErrInTransition.
func (p *Phone) Focus(ctx context.Context) (Focus, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	dump := "displays"
	if p.info.SDK < 29 {
		dump = "windows"
	}
	cmd := "dumpsys window " + dump + " | grep -E 'mCurrentFocus|mFocusedApp'"
	for waited := time.Duration(0); ; waited += transitionPause {
		out, err := p.conn.text(ctx, cmd)
		if err != nil {
			return Focus{}, fmt.Errorf("read focus: %w", err)
		}
		if f, ok := parseFocus(out); ok {
			return f, nil
		}
		if !focusLine.MatchString(out) || waited >= transitionLimit {
			break
		}
		if err := pause(ctx, transitionPause); err != nil {
			return Focus{}, fmt.Errorf("read focus: %w", err)
		}
	}
	out, err := p.conn.text(ctx, "dumpsys activity activities | grep -E 'ResumedActivity'")
	if err != nil {
		return Focus{}, fmt.Errorf("read focus: %w", err)
	}
	if m := resumed.FindStringSubmatch(out); m != nil {
		if f, ok := parseComponent(m[1]); ok {
			return f, nil
		}
	}
	return Focus{}, fmt.Errorf("read focus: %w", ErrInTransition)
}

// parseFocus picks the focus among the lines of all displays. A window that is
// also the focused app wins; then any window with a component; then a window or
// an alert of the system; then, for a popup, the focused app. Only null means
// that one window gives way to another.
func parseFocus(out string) (Focus, bool) {
	var windows, apps []Focus
	var system Focus
	open := false
	for _, m := range focusLine.FindAllStringSubmatch(out, 64) {
		f, ok := parseComponent(m[2])
		switch {
		case m[1] == "mFocusedApp":
			if ok {
				apps = append(apps, f)
			}
		case ok:
			windows = append(windows, f)
		case strings.HasPrefix(m[2], "Window{"):
			open = true
			if s := systemName.FindStringSubmatch(m[2]); s != nil {
				system = Focus{Package: "com.android.systemui", Activity: s[1]}
			} else if s := alertName.FindStringSubmatch(m[2]); s != nil {
				system = Focus{Package: "android", Activity: s[1]}
			}
		}
	}
	for _, w := range windows {
		for _, a := range apps {
			if w == a {
				return w, true
			}
		}
	}
	switch {
	case len(windows) > 0:
		return windows[0], true
	case system.Package != "":
		return system, true
	case open && len(apps) > 0:
		return apps[0], true
	}
	return Focus{}, false
}

// parseComponent finds "package/class" in s. Which user runs it does not matter.
func parseComponent(s string) (Focus, bool) {
	m := component.FindStringSubmatch(s)
	if m == nil || len(m[0]) > 512 {
		return Focus{}, false
	}
	f := Focus{Package: m[1], Activity: m[2]}
	if short, ok := strings.CutPrefix(f.Activity, f.Package+"."); ok {
		f.Activity = "." + short
	}
	return f, true
}

// turnedBy are the places where versions of Android tell the rotation, the most
// common first. The window manager's is asked together with the size.
var turnedBy = []string{
	"dumpsys window displays | grep -E '^ *mRotation=|mCurrentRotation='",
	"dumpsys input | grep SurfaceOrientation",
	"dumpsys display | grep mCurrentOrientation",
}

// Display returns the size and the rotation of the screen as they are now.
func (p *Phone) Display(ctx context.Context) (Display, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	d, err := p.readDisplay(ctx)
	if err != nil {
		return Display{}, fmt.Errorf("read display: %w", err)
	}
	p.display.Store(&d)
	return d, nil
}

func (p *Phone) readDisplay(ctx context.Context) (Display, error) {
	var d Display
	for i, cmd := range turnedBy {
		if i == 0 {
			cmd = "wm size; wm density; " + cmd
		}
		out, err := p.conn.text(ctx, cmd)
		if err != nil {
			return Display{}, err
		}
		if i == 0 {
			if d, err = parseDisplay(out); err != nil {
				return Display{}, err
			}
		}
		if turn, ok := parseRotation(out); ok {
			d.Rotation = turn
			if turn%2 == 1 {
				d.Width, d.Height = d.Height, d.Width
			}
			return d, nil
		}
	}
	return Display{}, fmt.Errorf("no rotation: %w", ErrMalformed)
}

// parseDisplay reads what wm prints: the natural size, not turned.
func parseDisplay(out string) (Display, error) {
	var d Display
	for _, m := range sizeLine.FindAllStringSubmatch(out, 8) {
		if w, h := number(m[2]), number(m[3]); d.Width == 0 || m[1] == "Override" {
			d.Width, d.Height = w, h
		}
	}
	for _, m := range denseLine.FindAllStringSubmatch(out, 8) {
		if d.Density == 0 || m[1] == "Override" {
			d.Density = number(m[2])
		}
	}
	if d.Width < 1 || d.Height < 1 || d.Width > maxEdge || d.Height > maxEdge {
		return Display{}, fmt.Errorf("size %dx%d: %w", d.Width, d.Height, ErrMalformed)
	}
	return d, nil
}

// parseRotation reads quarter turns, which newer versions print in degrees.
func parseRotation(out string) (int, bool) {
	m := turnedLine.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	turn := number(m[1])
	if turn >= 90 && turn%90 == 0 {
		turn /= 90
	}
	return turn, turn <= 3
}

// number converts digits that a pattern has bounded already.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// Keyboard reports whether the on-screen keyboard is shown.
func (p *Phone) Keyboard(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out, err := p.conn.text(ctx, "dumpsys input_method | grep -E 'mInputShown|mIsInputViewShown'")
	if err != nil {
		return false, fmt.Errorf("read keyboard: %w", err)
	}
	for _, line := range []*regexp.Regexp{inputShown, viewShown} {
		if all := line.FindAllStringSubmatch(out, 16); all != nil {
			for _, m := range all {
				if m[1] == "true" {
					return true, nil
				}
			}
			return false, nil
		}
	}
	return false, fmt.Errorf("read keyboard: %w", ErrMalformed)
}

// maxPackages bounds Packages; a phone has 200 to 600.
const maxPackages = 5000

// Packages returns the names of the installed apps, as the phone orders them.
func (p *Phone) Packages(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out, err := p.conn.text(ctx, "pm list packages")
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	rows := packageRow.FindAllStringSubmatch(out, maxPackages)
	if len(rows) == 0 {
		return nil, fmt.Errorf("list apps: %w", ErrMalformed)
	}
	names := make([]string, len(rows))
	for i, m := range rows {
		names[i] = m[1]
	}
	return names, nil
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
