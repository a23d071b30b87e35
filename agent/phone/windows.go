package phone

import (
	"fmt"
	"image"
	"regexp"
	"slices"
	"strings"
)

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

var windowsPart = part[State]{
	name: "windows",
	fail: func(s *State, err error) { s.WindowsErr = fmt.Errorf("read windows: %w", err) },
	ways: []way[State]{
		{"windows", []source{windowsSource, displaysSource}, func(a *answers, s *State) error {
			all := a.windowList()
			if all.err != nil {
				return all.err
			}
			focused := focusedWindow(a.text(displaysSource))
			if focused == "" {
				focused = focusedWindow(a.text(windowsSource))
			}
			var err error
			s.Windows, err = all.visible(focused)
			return err
		}},
	},
}

// windowState is a window as the window manager dumps it (WindowState.dump).
type windowState struct {
	id, title, pkg string
	display        string // its number
	kind           string // "BASE_APPLICATION", before Android 9 "1"
	frame, region  image.Rectangle
	insets         image.Point // what the content leaves free at left and top
	shown          tristate
	lesser         tristate // what older versions tell instead of shown
	ready          tristate
}

type tristate uint8

const (
	notTold tristate = iota
	no
	yes
)

func told(s string) tristate {
	if s == "true" {
		return yes
	}
	return no
}

// maxWindows bounds the windows that are read; a phone has 20 to 60.
const maxWindows = 300

var (
	windowHead  = regexp.MustCompile(`^\s*Window #\d+ Window\{([0-9a-f]+) (?:u-?\d+ )?(.*?)(?: EXITING)?\}:$`)
	windowStart = regexp.MustCompile(`^\s*Window #\d+ `)
	windowPlace = regexp.MustCompile(`^\s*mDisplayId=(\d{1,9})\b`)
	windowOwner = regexp.MustCompile(`^\s*(?:.* )?package=([a-zA-Z]\w*(?:\.\w+)*)(?: |$)`)
	windowType  = regexp.MustCompile(`^\s*(?:mAttrs=.*)? ty=(\w+)\b`)
	windowFrame = regexp.MustCompile(`^\s*(?:.* )?m?[fF]rame=\[(-?\d{1,5}),(-?\d{1,5})\]\[(-?\d{1,5}),(-?\d{1,5})\]`)
	givenInsets = regexp.MustCompile(`^\s*mGivenContentInsets=\[(-?\d{1,5}),(-?\d{1,5})\]`)
	touchRegion = regexp.MustCompile(`^\s*touchable region=SkRegion\(((?:\(-?\d{1,5},-?\d{1,5},-?\d{1,5},-?\d{1,5}\)){1,64})\)`)
	regionRect  = regexp.MustCompile(`\((-?\d+),(-?\d+),(-?\d+),(-?\d+)\)`)
	isVisible   = regexp.MustCompile(`^\s*isVisible=(true|false)\b`)
	isReady     = regexp.MustCompile(`\bisReadyForDisplay\(\)=(true|false)\b`)
	viewVisible = regexp.MustCompile(`^\s*mViewVisibility=0x([0-9a-f]{1,8})\b`)
	focusedID   = regexp.MustCompile(`^\s*mCurrentFocus=Window\{([0-9a-f]+) `)
)

// parseWindows reads the dump of all windows, the topmost first. A head that
// lacks its end is of a title with a line break, which could tell anything: then
// no window is believed.
func parseWindows(out string) ([]windowState, error) {
	var all []windowState
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, " \r\n")
		if strings.Contains(line, "Window #") && windowStart.MatchString(line) {
			m := windowHead.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("window %q: %w", excerpt([]byte(line)), ErrMalformed)
			}
			if len(all) == maxWindows {
				break
			}
			all = append(all, windowState{id: m[1], title: excerpt([]byte(m[2])), display: "0"})
			continue
		}
		if len(all) > 0 {
			all[len(all)-1].line(line)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no window: %w", ErrMalformed)
	}
	return all, nil
}

// line reads one line below the head. What a version prints twice counts once:
// the first is the window's own.
func (w *windowState) line(line string) {
	has := func(key string) bool { return strings.Contains(line, key) } // a pattern is slow
	if has("mDisplayId=") {
		if m := windowPlace.FindStringSubmatch(line); m != nil {
			w.display = m[1]
		}
	}
	if w.pkg == "" && has("package=") {
		if m := windowOwner.FindStringSubmatch(line); m != nil {
			w.pkg = m[1]
		}
	}
	if w.kind == "" && has(" ty=") {
		if m := windowType.FindStringSubmatch(line); m != nil {
			w.kind = m[1]
		}
	}
	if w.frame.Empty() && has("rame=[") {
		if m := windowFrame.FindStringSubmatch(line); m != nil {
			w.frame = rect(m[1:])
		}
	}
	w.touch(line, has)
	w.visibility(line, has)
}

// touch reads what of the window takes touches.
func (w *windowState) touch(line string, has func(string) bool) {
	if has("mGivenContentInsets=") {
		if m := givenInsets.FindStringSubmatch(line); m != nil {
			w.insets = image.Pt(number(m[1]), number(m[2]))
		}
	}
	if has("touchable region=") {
		if m := touchRegion.FindStringSubmatch(line); m != nil {
			for _, r := range regionRect.FindAllStringSubmatch(m[1], -1) {
				w.region = w.region.Union(rect(r[1:]))
			}
		}
	}
}

// visibility reads whether the window is visible, in the words of each version.
func (w *windowState) visibility(line string, has func(string) bool) {
	if has("isVisible=") {
		if m := isVisible.FindStringSubmatch(line); m != nil {
			w.shown = told(m[1])
		}
	}
	if has("isReadyForDisplay()=") {
		if m := isReady.FindStringSubmatch(line); m != nil {
			w.ready = told(m[1])
		}
	}
	if has("mViewVisibility=0x") {
		if m := viewVisible.FindStringSubmatch(line); m != nil {
			w.lesser = yes
			if strings.Trim(m[1], "0") != "" {
				w.lesser = no
			}
		}
	}
}

// visible reports whether the window can be seen: isVisible since Android 8,
// before it whether it is ready for display, and what its view wants.
func (w *windowState) visible() tristate {
	switch {
	case w.shown != notTold:
		return w.shown
	case w.lesser == no:
		return no
	case w.ready != notTold:
		return w.ready
	}
	return w.lesser
}

// kindNumbers are types of window (WindowManager.LayoutParams) that are not
// told apart by their range.
var kindNumbers = map[string]WindowKind{
	"1": AppWindow, "3": AppWindow, "BASE_APPLICATION": AppWindow, "APPLICATION_STARTING": AppWindow, "DRAWN_APPLICATION": AppWindow, "4": AppWindow,
	"1001": AppWindow, "1004": AppWindow, "APPLICATION_MEDIA": AppWindow, "APPLICATION_MEDIA_OVERLAY": AppWindow,
	"2": DialogWindow, "APPLICATION": DialogWindow,
	"2011": KeyboardWindow, "INPUT_METHOD": KeyboardWindow,
	"2038": DialogWindow, "APPLICATION_OVERLAY": DialogWindow,
}

// what tells the kind. Types 1 to 99 are an app's windows, up to 1999 those that
// hang on another one, from 2000 on the system's.
func (w *windowState) what() WindowKind {
	if k, ok := kindNumbers[w.kind]; ok {
		return k
	}
	switch {
	case strings.HasPrefix(w.kind, "APPLICATION_"), len(w.kind) == 4 && w.kind[0] == '1':
		return DialogWindow
	case w.kind != "":
		return SystemWindow
	case w.title == "InputMethod":
		return KeyboardWindow
	case component.MatchString(w.title):
		return AppWindow
	}
	return SystemWindow
}

// windowList is the dump of all windows, or why there is none.
type windowList struct {
	all []windowState
	err error
}

// windowList reads the dump of all windows, once for all who ask.
func (a *answers) windowList() *windowList {
	if a.windows == nil {
		l := new(windowList)
		l.all, l.err = parseWindows(a.text(windowsSource))
		if _, asked := a.said[windowsSource.name]; !asked {
			return l
		}
		a.windows = l
	}
	return a.windows
}

// owners returns the packages of windows by their ids.
func (l *windowList) owners() map[string]string {
	m := make(map[string]string, len(l.all))
	for _, w := range l.all {
		m[w.id] = w.pkg
	}
	return m
}

// focusedWindow returns the id of the window that has the focus, "" if none has.
func focusedWindow(out string) string {
	if m := row(out, "mCurrentFocus=", focusedID); m != nil {
		return m[1]
	}
	return ""
}

// visible picks the windows that can be seen on the first display. It fails if
// the phone does not tell which those are.
func (l *windowList) visible(focused string) ([]Window, error) {
	known := slices.ContainsFunc(l.all, func(w windowState) bool { return w.visible() != notTold })
	if !known {
		return nil, fmt.Errorf("no window is called visible or hidden: %w", ErrMalformed)
	}
	list := []Window{}
	for _, w := range l.all {
		if w.display != "0" || w.visible() != yes && (w.id != focused || w.visible() == no) {
			continue
		}
		list = append(list, Window{Package: w.pkg, Title: w.title, Kind: w.what(), Focused: w.id == focused, Bounds: w.frame})
	}
	return list, nil
}
