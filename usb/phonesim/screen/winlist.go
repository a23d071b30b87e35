package screen

import (
	"image"
	"slices"

	"phonerack/usb/phonesim/screen/internal/app"
)

// WindowKind says what a Window is.
type WindowKind uint8

// Kinds of windows.
const (
	AppWindow          WindowKind = iota
	DialogWindow                  // of an app
	SystemDialogWindow            // of the phone itself
	KeyboardWindow
	StatusBarWindow
	NavigationBarWindow
	LockWindow
)

// Window is what the window manager knows of a window. Lengths are pixels of the display as it is now.
type Window struct {
	Kind              WindowKind
	Package, Activity string
	Title             string // of a system dialog, else empty
	Frame             image.Rectangle
	// Touchable is where a touch reaches it. A keyboard's frame is the display below the status bar; its keys are
	// what is touchable. Empty: nowhere.
	Touchable image.Rectangle
	Visible   bool
	Focused   bool
	Secure    bool // not in screenshots
}

// Windows returns all windows, the topmost first: bars, lock screen, keyboard (visible or not), dialogs and
// screens in front, and the screens of apps that run behind.
func (e *Engine) Windows() []Window {
	e.lock()
	defer e.mu.Unlock()
	s := e.current()
	display := image.Rectangle{Max: s.size}
	locked := e.isLocked()
	out := []Window{
		bar(NavigationBarWindow, image.Rect(0, s.size.Y-e.px(navigationBarDP), s.size.X, s.size.Y), e.on),
		bar(StatusBarWindow, image.Rect(0, 0, s.size.X, e.px(statusBarDP)), e.on),
	}
	lock := Window{Kind: LockWindow, Package: app.SystemUI, Frame: display, Visible: locked && e.on, Focused: locked}
	if locked {
		lock.Touchable = display
		lock.Activity = e.active().screen.Activity
	}
	out = append(out, lock, e.keyboardWindow(s))
	active := e.active()
	seen := map[*window]bool{}
	for _, l := range slices.Backward(s.layers) {
		if seen[l.window] = true; l.window.process.app.Package != app.SystemUI {
			out = append(out, e.windowOf(l.window, l.rect, e.on, l.window == active && !e.moving()))
		}
	}
	behind := append([]string{app.System}, e.running()...)
	for _, name := range behind {
		p := e.processes[name]
		if p == nil {
			continue
		}
		for _, w := range slices.Backward(p.windows) {
			if !seen[w] {
				out = append(out, e.windowOf(w, display, false, false))
			}
		}
	}
	return out
}

func bar(kind WindowKind, r image.Rectangle, visible bool) Window {
	return Window{Kind: kind, Package: app.SystemUI, Frame: r, Touchable: r, Visible: visible}
}

func (e *Engine) keyboardWindow(s *scene) Window {
	w := Window{Kind: KeyboardWindow, Frame: image.Rect(0, e.px(statusBarDP), s.size.X, s.size.Y)}
	if s.keyboard != nil && e.on {
		w.Visible, w.Touchable = true, s.keyboard.rect
	}
	return w
}

func (e *Engine) windowOf(w *window, frame image.Rectangle, visible, focused bool) Window {
	out := Window{
		Kind: AppWindow, Package: w.owner(), Activity: w.screen.Activity, Frame: frame,
		Visible: visible, Focused: focused, Secure: w.screen.Secure,
	}
	if visible {
		out.Touchable = frame
	}
	switch {
	case out.Package == app.System:
		out.Kind, out.Title = SystemDialogWindow, w.screen.Title.Eval(e.scope(w))
	case w.screen.Dialog:
		out.Kind = DialogWindow
	}
	return out
}
