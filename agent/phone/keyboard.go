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
		{"input_method", []source{methodSource, windowsSource, displaysSource}, func(a answers, s *State) error {
			shown, err := parseShown(a.text(methodSource))
			if err != nil {
				return err
			}
			s.Keyboard = Keyboard{Shown: shown}
			if shown {
				s.Keyboard.Area = keyboardArea(a.text(windowsSource), a.text(displaysSource))
			}
			return nil
		}},
		{"window", []source{windowsSource, displaysSource}, func(a answers, s *State) error {
			all, err := parseWindows(a.text(windowsSource))
			if err != nil {
				return err
			}
			w := inputMethod(all)
			if w == nil {
				s.Keyboard = Keyboard{} // it has never been opened
				return nil
			}
			switch w.visible() {
			case notTold:
				return fmt.Errorf("the keyboard is neither called visible nor hidden: %w", ErrMalformed)
			case yes:
				s.Keyboard = Keyboard{Shown: true, Area: keyboardArea(a.text(windowsSource), a.text(displaysSource))}
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
	insetsSource = regexp.MustCompile(`(?m)^\s*InsetsSource (?:id=\w+ )?type=(?:ITYPE_IME|ime) frame=\[(-?\d{1,5}),(-?\d{1,5})\]\[(-?\d{1,5}),(-?\d{1,5})\].* visible=true\b`)
)

// parseShown reads whether the input method service shows its keyboard, or, on
// some versions, whether the input method itself does.
func parseShown(out string) (bool, error) {
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
	return false, ErrMalformed
}

// inputMethod finds the keyboard's window, nil if there is none.
func inputMethod(all []windowState) *windowState {
	for i := range all {
		if all[i].what() == KeyboardWindow && all[i].display == "0" {
			return &all[i]
		}
	}
	return nil
}

// keyboardArea finds where a shown keyboard lies. What is touched of its window
// tells best; a window that leaves the upper part free for the app says how
// much; else the space that apps have to leave counts, and last the window's
// frame, unless it fills the display as that of most keyboards does.
func keyboardArea(windows, displays string) image.Rectangle {
	screen := image.Rect(0, 0, maxEdge, maxEdge)
	if m := initLine.FindStringSubmatch(firstDisplay(displays)); m != nil {
		screen = image.Rect(0, 0, number(m[7]), number(m[8]))
	}
	all, _ := parseWindows(windows)
	w := inputMethod(all)
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
	if m := insetsSource.FindStringSubmatch(firstDisplay(displays)); m != nil {
		if area := rect(m[1:]).Intersect(screen); !area.Empty() {
			return area
		}
	}
	if w != nil && w.visible() == yes && w.frame.Min.Y > screen.Max.Y/4 {
		return w.frame.Intersect(screen)
	}
	return image.Rectangle{}
}
