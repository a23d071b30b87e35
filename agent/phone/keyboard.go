package phone

import (
	"context"
	"fmt"
	"image"
	"regexp"
)

// Keyboard is the on-screen keyboard.
type Keyboard struct {
	Shown bool
	Area  image.Rectangle // in pixels of the display; empty if it is not known
}

var keyboardPart = part[State]{
	name: "keyboard",
	fail: func(s *State, err error) { s.KeyboardErr = fmt.Errorf("read keyboard: %w", err) },
	ways: []way[State]{
		{"input_method", []source{methodSource, windowsSource, displaysSource}, func(a *answers, s *State) error {
			shown, err := parseShown(a.text(methodSource))
			if err != nil {
				return err
			}
			s.Keyboard = Keyboard{Shown: shown}
			if shown {
				s.Keyboard.Area = keyboardArea(a.windowList(), a.text(displaysSource))
			}
			return nil
		}},
		{"window", []source{windowsSource, displaysSource}, func(a *answers, s *State) error {
			all := a.windowList()
			if all.err != nil {
				return all.err
			}
			w := all.inputMethod()
			if w == nil {
				s.Keyboard = Keyboard{} // it has never been opened
				return nil
			}
			switch w.visible() {
			case notTold:
				return fmt.Errorf("the keyboard is neither called visible nor hidden: %w", ErrMalformed)
			case yes:
				s.Keyboard = Keyboard{Shown: true, Area: keyboardArea(all, a.text(displaysSource))}
			case no:
				s.Keyboard = Keyboard{}
			}
			return nil
		}},
	},
}

// Keyboard reads whether the on-screen keyboard is shown, and where.
func (p *Phone) Keyboard(ctx context.Context) (Keyboard, error) {
	s := p.readState(ctx, []part[State]{keyboardPart})
	return s.Keyboard, s.KeyboardErr
}

var (
	inputShown = regexp.MustCompile(`\bmInputShown=(true|false)\b`)
	viewShown  = regexp.MustCompile(`\bmIsInputViewShown=(true|false)\b`)

	// insetsSource is where the keyboard pushes apps away (InsetsSource.dump): as
	// of Android 11, and since 14 with an id.
	insetsSource = regexp.MustCompile(`^\s*InsetsSource (?:id=\w+ )?type=(?:ITYPE_IME|ime) frame=(\S+).* visible=true\b`)
)

// parseShown reads whether the input method service shows its keyboard, or, on
// some versions, whether the input method itself does.
func parseShown(out string) (bool, error) {
	for _, is := range []struct {
		key     string
		pattern *regexp.Regexp
	}{{"mInputShown=", inputShown}, {"mIsInputViewShown=", viewShown}} {
		told := false
		for line := range rows(out, is.key) {
			m := is.pattern.FindStringSubmatch(line)
			if m != nil && m[1] == "true" {
				return true, nil
			}
			told = told || m != nil
		}
		if told {
			return false, nil
		}
	}
	return false, ErrMalformed
}

// inputMethod finds the keyboard's window, nil if there is none.
func (l *windowList) inputMethod() *windowState {
	for i := range l.all {
		if l.all[i].what() == KeyboardWindow && l.all[i].display == "0" {
			return &l.all[i]
		}
	}
	return nil
}

// keyboardArea finds where a shown keyboard lies. What is touched of its window
// tells best; a window that leaves the upper part free for the app says how
// much; else the space that apps have to leave counts, and last the window's
// frame, unless it fills the display as that of most keyboards does.
func keyboardArea(windows *windowList, displays string) image.Rectangle {
	displays = firstDisplay(displays)
	screen := image.Rect(0, 0, maxEdge, maxEdge)
	if m := row(displays, "init=", initLine); m != nil {
		screen = image.Rect(0, 0, number(m[7]), number(m[8]))
	}
	w := windows.inputMethod()
	if w != nil && w.visible() != no {
		area := w.region
		if area.Empty() && w.insets.Y > 0 && !w.frame.Empty() {
			area = w.frame
			area.Min.Y += w.insets.Y
		}
		if area = area.Intersect(screen); !area.Empty() {
			return area
		}
	}
	if m := row(displays, "InsetsSource ", insetsSource); m != nil {
		if area, ok := cornerRect(m[1]); ok && !area.Intersect(screen).Empty() {
			return area.Intersect(screen)
		}
	}
	if w != nil && w.visible() == yes && w.frame.Min.Y > screen.Max.Y/4 {
		return w.frame.Intersect(screen)
	}
	return image.Rectangle{}
}
