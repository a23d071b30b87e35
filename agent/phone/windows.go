package phone

import (
	"fmt"
	"image"
	"regexp"
	"slices"
	"strconv"
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

// told reads what stands behind "is...=".
func told(s string) tristate {
	switch {
	case strings.HasPrefix(s, "true"):
		return yes
	case strings.HasPrefix(s, "false"):
		return no
	}
	return notTold
}

// maxWindows bounds the windows that are read; a phone has 20 to 60.
const maxWindows = 300

// parseWindows reads the dump of all windows, the topmost first. A head that
// lacks its end is of a title with a line break, which could tell anything: then
// no window is believed. It is read without patterns, as it is long and read
// with every look at the screen.
func parseWindows(out string) ([]windowState, error) {
	var all []windowState
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "Window #") {
			if len(all) > 0 {
				all[len(all)-1].line(line)
			}
			continue
		}
		w, ok := windowHead(line)
		if !ok {
			return nil, fmt.Errorf("window %q: %w", excerpt([]byte(line)), ErrMalformed)
		}
		if len(all) == maxWindows {
			break
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no window: %w", ErrMalformed)
	}
	return all, nil
}

// windowHead reads "Window #N Window{ID USER TITLE}:".
func windowHead(line string) (windowState, bool) {
	_, name, ok := strings.Cut(line, " Window{")
	name, whole := strings.CutSuffix(name, "}:")
	id, title, named := strings.Cut(name, " ")
	if !ok || !whole || !named || !isHex(id) {
		return windowState{}, false
	}
	if user, rest, ok := strings.Cut(title, " "); ok && isUser(user) {
		title = rest
	}
	return windowState{id: id, title: excerpt([]byte(strings.TrimSuffix(title, " EXITING"))), display: "0"}, true
}

func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

// isUser reports whether s names a user of the phone: "u0", "u10", "u-1".
func isUser(s string) bool {
	number, ok := strings.CutPrefix(s, "u")
	return ok && number != "" && strings.Trim(number, "-0123456789") == ""
}

// line reads one line below the head. What a version prints twice counts once:
// the first is the window's own.
func (w *windowState) line(line string) {
	if place, ok := strings.CutPrefix(line, "mDisplayId="); ok {
		w.display = upTo(place, "0123456789")
	}
	if w.pkg == "" {
		if name, ok := valueOf(line, "package="); ok && upTo(name, "0123456789_.") == "" {
			w.pkg = upTo(name, packageLetters)
		}
	}
	if w.kind == "" {
		if kind, ok := valueOf(line, "ty="); ok {
			w.kind = upTo(kind, packageLetters)
		}
	}
	if w.frame.Empty() {
		for _, key := range []string{"frame=", "mFrame="} {
			if at, ok := valueOf(line, key); ok && w.frame.Empty() {
				w.frame, _ = cornerRect(at)
			}
		}
	}
	if at, ok := strings.CutPrefix(line, "mGivenContentInsets="); ok {
		w.insets, _, _ = corner(at)
	}
	if region, ok := strings.CutPrefix(line, "touchable region=SkRegion("); ok {
		w.region = regionBounds(region)
	}
	switch is, ok := strings.CutPrefix(line, "isVisible="); {
	case ok:
		w.shown = told(is)
	case strings.HasPrefix(line, "mViewVisibility=0x"):
		w.lesser = no
		if strings.Trim(upTo(line[len("mViewVisibility=0x"):], "0123456789abcdef"), "0") == "" {
			w.lesser = yes
		}
	}
	if is, ok := valueOf(line, "isReadyForDisplay()="); ok {
		w.ready = told(is)
	}
}

const packageLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

// upTo returns the beginning of s that consists of letters.
func upTo(s, letters string) string {
	return s[:len(s)-len(strings.TrimLeft(s, letters))]
}

// valueOf returns what follows key in line, where key begins a word.
func valueOf(line, key string) (string, bool) {
	for from := 0; ; {
		at := strings.Index(line[from:], key)
		if at < 0 {
			return "", false
		}
		if at += from; at == 0 || line[at-1] == ' ' {
			return line[at+len(key):], true
		}
		from = at + len(key)
	}
}

// corner reads "[x,y]" and returns what follows it.
func corner(s string) (p image.Point, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "[")
	inner, rest, closed := strings.Cut(s, "]")
	x, y, two := strings.Cut(inner, ",")
	if !ok || !closed || !two || len(inner) > 12 {
		return image.Point{}, "", false
	}
	p.X, p.Y, ok = coordinates(x, y)
	return p, rest, ok
}

// coordinates reads two numbers of at most five digits.
func coordinates(x, y string) (int, int, bool) {
	a, errA := strconv.Atoi(x)
	b, errB := strconv.Atoi(y)
	return a, b, errA == nil && errB == nil && max(a, -a, b, -b) < 100_000
}

// cornerRect reads "[x1,y1][x2,y2]". One without area is empty.
func cornerRect(s string) (image.Rectangle, bool) {
	from, rest, ok := corner(s)
	if !ok {
		return image.Rectangle{}, false
	}
	to, _, ok := corner(rest)
	return area(image.Rectangle{Min: from, Max: to}), ok
}

func area(r image.Rectangle) image.Rectangle {
	if r.Empty() {
		return image.Rectangle{}
	}
	return r
}

// maxRegion bounds the rectangles of a region.
const maxRegion = 64

// regionBounds reads rectangles, "(x1,y1,x2,y2)" each, as Skia prints a region,
// and returns what holds them all.
func regionBounds(s string) image.Rectangle {
	var all image.Rectangle
	for range maxRegion {
		var inner string
		var ok bool
		if s, ok = strings.CutPrefix(s, "("); !ok {
			break
		}
		if inner, s, ok = strings.Cut(s, ")"); !ok || len(inner) > 32 {
			break
		}
		part := strings.Split(inner, ",")
		if len(part) != 4 {
			break
		}
		x1, y1, ok1 := coordinates(part[0], part[1])
		x2, y2, ok2 := coordinates(part[2], part[3])
		if !ok1 || !ok2 {
			break
		}
		all = all.Union(area(image.Rectangle{Min: image.Pt(x1, y1), Max: image.Pt(x2, y2)}))
	}
	return all
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

var focusedID = regexp.MustCompile(`^\s*mCurrentFocus=Window\{([0-9a-f]+) `)

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
