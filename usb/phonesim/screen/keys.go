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

func (e *Engine) key(code int) {
	switch {
	case code >= key0 && code <= key0+9:
		e.insert(string(rune('0' + code - key0)))
		return
	case code >= keyA && code <= keyA+25:
		e.insert(string(rune('a' + code - keyA)))
		return
	}
	w := e.active()
	switch code {
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
	case KeyEnter, KeyNumEnter:
		e.enter()
	case KeyTab:
		e.focusNext()
	case KeySpace:
		e.insert(" ")
	case KeyDel:
		e.deleteChar(-1)
	case KeyForwardDel:
		e.deleteChar(1)
	case KeyLeft, KeyRight, KeyMoveHome, KeyMoveEnd:
		e.moveCaret(code)
	case KeyPaste:
		e.insert(e.clipboard)
	}
}

func (e *Engine) hideKeyboard(w *window) {
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
	e.version++
}

// Type types text into the focused edit; a line feed presses ENTER. Without a focused edit the text is
// lost, as on a phone. A character that cannot be shown loses the whole text: the error is ErrNoCJKFont
// or ErrNoGlyph.
func (e *Engine) Type(text string) error {
	e.lock()
	defer e.mu.Unlock()
	if err := e.text.Check(text); err != nil {
		return err
	}
	if !e.on {
		return nil
	}
	start := 0
	for i, r := range text {
		if r == '\n' {
			e.insert(text[start:i])
			e.enter()
			start = i + 1
		}
	}
	if start < len(text) {
		e.insert(text[start:])
	}
	return nil
}
