package screen

import "phonerack/usb/phonesim/screen/internal/app"

// Android's key codes that Key knows. Digits (7 to 16) and letters (29 to 54) type themselves; any other
// code does nothing.
const (
	KeyHome       = 3
	KeyBack       = 4
	KeyLeft       = 21
	KeyRight      = 22
	KeyPower      = 26
	KeyTab        = 61
	KeySpace      = 62
	KeyEnter      = 66
	KeyMenu       = 82
	KeyDel        = 67
	KeyEscape     = 111
	KeyForwardDel = 112
	KeyMoveHome   = 122
	KeyMoveEnd    = 123
	KeyNumEnter   = 160
	KeyAppSwitch  = 187
	KeySleep      = 223
	KeyWakeup     = 224
	KeyPaste      = 279

	key0 = 7
	keyA = 29
)

// recentsScreen is the launcher's screen that the key APP_SWITCH shows.
const recentsScreen = "recents"

// Key presses and releases a key. While the display is off only POWER and WAKEUP do something.
func (e *Engine) Key(code int) {
	e.lock()
	defer e.mu.Unlock()
	switch code {
	case KeyPower:
		e.setOn(!e.on)
	case KeyWakeup:
		e.setOn(true)
	case KeySleep:
		e.setOn(false)
	default:
		if e.on {
			e.key(code)
		}
	}
}

// Shortcut presses a key while CTRL is held: A selects all of the focused edit, C, X and V copy, cut and paste.
func (e *Engine) Shortcut(code int) {
	e.lock()
	defer e.mu.Unlock()
	if !e.on {
		return
	}
	e.arrive(0, func() {
		w, v := e.focused()
		if v == nil {
			return
		}
		switch code {
		case keyA:
			w.cursor, w.marked = len([]rune(v.text)), len([]rune(v.text))
			e.version++
		case keyA + 2, keyA + 23:
			from, to := w.selection()
			if from == to || v.widget.Password {
				return // nothing is selected, or it must not be copied
			}
			e.clipboard = string([]rune(v.text)[from:to])
			if code == keyA+23 {
				e.insert("")
			}
		case keyA + 21:
			e.insert(e.clipboard)
		}
	})
}

// key does what a key is for. What types waits for what was typed before it.
func (e *Engine) key(code int) {
	switch {
	case code >= key0 && code <= key0+9:
		e.arrive(0, func() { e.character(rune('0' + code - key0)) })
		return
	case code >= keyA && code <= keyA+25:
		e.arrive(0, func() { e.character(rune('a' + code - keyA)) })
		return
	}
	switch code {
	case KeyEnter, KeyNumEnter:
		e.arrive(0, func() { e.character('\n') })
	case KeySpace:
		e.arrive(0, func() { e.character(' ') })
	case KeyTab:
		e.arrive(0, e.focusNext)
	case KeyDel:
		e.arrive(0, func() { e.deleteChar(-1) })
	case KeyForwardDel:
		e.arrive(0, func() { e.deleteChar(1) })
	case KeyLeft, KeyRight, KeyMoveHome, KeyMoveEnd:
		e.arrive(0, func() { e.moveCaret(code) })
	case KeyPaste:
		e.arrive(0, func() { e.insert(e.clipboard) })
	default:
		e.systemKey(code)
	}
}

func (e *Engine) systemKey(code int) {
	w := e.active()
	if e.isLocked() && (code == KeyHome || code == KeyAppSwitch) {
		return
	}
	switch code {
	case KeyMenu:
		if e.isLocked() {
			e.tryPIN("")
		}
	case KeyHome:
		e.hideSystem()
		e.home()
	case KeyBack:
		if e.current().keyboard != nil {
			e.hideKeyboard(w)
			return
		}
		e.back(w)
	case KeyEscape:
		if e.current().keyboard != nil {
			e.hideKeyboard(w)
		} else if w.screen.Dialog {
			e.back(w)
		}
	case KeyAppSwitch:
		e.recents()
	}
}

func (e *Engine) hideKeyboard(w *window) {
	e.compose("")
	w.typing = false
	e.version++
}

// hideSystem closes the system's dialogs that a person may leave.
func (e *Engine) hideSystem() {
	if sys := e.processes[app.System]; sys != nil && len(sys.windows) > 0 {
		e.close(sys.windows[0])
	}
}

func (e *Engine) recents() {
	launcher := e.bundle.Apps[app.Launcher]
	s := launcher.FindScreen(recentsScreen, false)
	w := e.active()
	if s == nil || w.screen == s {
		return
	}
	if e.front.app != launcher {
		e.show(app.Launcher, -1)
	}
	if p := e.front; p.windows[len(p.windows)-1].screen != s {
		e.open(p, s, nil, new(budget))
	}
	e.move(0)
}

func (e *Engine) moveCaret(code int) {
	w, v := e.focused()
	if v == nil {
		return
	}
	last := len([]rune(v.text))
	switch code {
	case KeyLeft:
		w.cursor--
	case KeyRight:
		w.cursor++
	case KeyMoveHome:
		w.cursor = 0
	case KeyMoveEnd:
		w.cursor = last
	}
	w.cursor = min(max(w.cursor, 0), last)
	w.marked = 0
	e.version++
}
