package screen

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Typing is what becomes of typed keys on their way into a field. The zero value lets them through.
type Typing struct {
	// Composing holds letters in the input method: the field has them when SPACE or ENTER commits them, which
	// do nothing else then, or when another character follows. Digits pass. What is still held when
	// the keyboard goes or another field gets the focus is lost.
	Composing bool
	// Capitalize makes the first letter of a sentence a capital, Autocorrect replaces some words when a
	// space follows. Both leave passwords alone.
	Capitalize, Autocorrect bool
	// NoKeys is an input method that shows no keyboard.
	NoKeys bool
	// Delay is over what time the characters of one Type arrive, one after another.
	Delay time.Duration
}

// arrival is a typed key that has not reached the field.
type arrival struct {
	due  time.Time
	what func()
}

// SetTyping changes what becomes of keys that are typed from now on.
func (e *Engine) SetTyping(t Typing) {
	e.lock()
	defer e.mu.Unlock()
	if e.typing = t; !t.Composing {
		e.compose("")
	}
	e.version++
}

// Typing reports that a field has the focus and wants a keyboard, whether or not the input method shows one.
func (e *Engine) Typing() bool {
	e.lock()
	defer e.mu.Unlock()
	w, v := e.focused()
	return e.on && v != nil && w.typing
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
	if t := e.typing; t == (Typing{NoKeys: t.NoKeys}) {
		// As one change of the field for each line: an app that counts changes is none of ours.
		for line := range strings.Lines(text) {
			line, ends := strings.CutSuffix(line, "\n")
			e.arrive(0, func() {
				if line != "" {
					e.insert(line)
				}
				if ends {
					e.enter()
				}
			})
		}
		return nil
	}
	chars := []rune(text)
	for i, r := range chars {
		e.arrive(e.typing.Delay*time.Duration(i+1)/time.Duration(len(chars)), func() { e.character(r) })
	}
	return nil
}

// Commit puts text into the focused edit as an input method does: nothing is composed, corrected or
// delayed. A character that no font has is drawn as a box. The error is ErrNoCJKFont.
func (e *Engine) Commit(text string) error {
	e.lock()
	defer e.mu.Unlock()
	if err := e.readFonts(text); err != nil {
		return err
	}
	if e.on {
		e.insert(text)
	}
	return nil
}

// readFonts reads the fonts that a text needs. That no font has a character is no error.
func (e *Engine) readFonts(text string) error {
	for _, r := range text {
		if err := e.text.Check(string(r)); err != nil && !errors.Is(err, ErrNoGlyph) {
			return err
		}
	}
	return nil
}

// maxArrivals bounds the keys that are on their way.
const maxArrivals = 20000

// arrive does something after a time, and after all that is on its way already.
func (e *Engine) arrive(after time.Duration, what func()) {
	if n := len(e.arrivals); n > 0 || after > 0 {
		due := e.now.Add(after)
		if n > 0 && e.arrivals[n-1].due.After(due) {
			due = e.arrivals[n-1].due
		}
		if n < maxArrivals {
			e.arrivals = append(e.arrivals, arrival{due, what})
		}
		return
	}
	what()
}

// character types one.
func (e *Engine) character(r rune) {
	if e.typing.Composing && e.holds(r) {
		return
	}
	switch {
	case r == '\n':
		e.enter()
	default:
		e.correct(r)
		e.insert(string(e.capital(r)))
	}
}

// holds lets the input method compose; false means that the character goes into the field.
func (e *Engine) holds(r rune) bool {
	_, v := e.focused()
	switch {
	case v == nil || v.widget.Password:
		return false
	case r < unicode.MaxASCII && unicode.IsLetter(r):
		e.compose(e.composition + string(r))
		return true
	case e.composition == "" || unicode.IsDigit(r):
		return false
	}
	e.insert(e.composition)
	e.compose("")
	return r == ' ' || r == '\n'
}

// compose changes what the input method shows above its keys.
func (e *Engine) compose(text string) {
	if text != e.composition {
		e.composition = text
		e.version++
	}
}

// capital is a letter as it stands at the beginning of a sentence, if the caret is at one.
func (e *Engine) capital(r rune) rune {
	_, v := e.focused()
	if !e.typing.Capitalize || v == nil || v.widget.Password {
		return r
	}
	before := strings.TrimRight(string([]rune(v.text)[:v.cursor]), " ")
	if before == "" || v.cursor > len([]rune(before)) && strings.ContainsAny(before[len(before)-1:], ".!?") {
		return unicode.ToUpper(r)
	}
	return r
}

// corrections are words that Autocorrect replaces.
var corrections = map[string]string{
	"adn": "and", "cant": "can't", "dont": "don't", "i": "I", "im": "I'm", "recieve": "receive", "teh": "the", "wont": "won't",
}

// correct replaces the word before the caret when a space is about to follow it.
func (e *Engine) correct(next rune) {
	w, v := e.focused()
	if !e.typing.Autocorrect || next != ' ' || v == nil || v.widget.Password {
		return
	}
	text := []rune(v.text)
	start := v.cursor
	for start > 0 && !unicode.IsSpace(text[start-1]) {
		start--
	}
	if better, ok := corrections[string(text[start:v.cursor])]; ok {
		e.edit(w, v, slices.Concat(text[:start], []rune(better), text[v.cursor:]), start+len([]rune(better)))
	}
}
