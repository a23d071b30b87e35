package popup

import (
	"image"
	"slices"
	"strings"
	"unicode"

	"phonerack/agent/perception"
)

// Watcher knows one sort of popup.
type Watcher struct {
	Name     string   // for the record
	Packages []string // whose popup it is; none: any app's
	Says     []string // some text of it holds one of these; none: its button tells
	IDs      []string // of the button, without the package; the first that is there is pressed
	Buttons  []string // texts of the button, compared whole
	Page     bool     // it may fill the screen, as tours of an app do; never where something is to be filled in
	Consent  bool     // the button accepts something
}

// Bounds of what counts as a popup: how many elements it has, and how much of the
// screen's height they span, in percent.
const (
	maxElements = 24
	maxSpan     = 85
)

// Find returns the first watcher that knows what is on the scene, and the button
// to press. Watchers with Consent are asked only if consent is set.
func Find(s *perception.Scene, consent bool) (*Watcher, *perception.Element) {
	if s.Locked || s.NoTree != "" {
		return nil, nil
	}
	shown := content(s)
	if len(shown) == 0 || len(shown) > maxElements {
		return nil, nil
	}
	pop := span(shown)*100 <= s.Height*maxSpan || s.Dialog() != ""
	form := slices.ContainsFunc(shown, func(e *perception.Element) bool { return e.Editable })
	texts := make([]string, 0, 2*len(shown))
	for _, e := range shown {
		texts = append(texts, fold(e.Text), fold(e.Description))
	}
	for i := range watchers {
		w := &watchers[i]
		if w.Consent && !consent || !pop && (!w.Page || form) {
			continue
		}
		if button := w.button(shown, texts); button != nil {
			return w, button
		}
	}
	return nil, nil
}

// content returns the elements without those of the status and navigation bars.
// A popup of the system itself stands away from both.
func content(s *perception.Scene) []*perception.Element {
	bar := max(s.Height/16, 1)
	var shown []*perception.Element
	for i := range s.Elements {
		e := &s.Elements[i]
		if e.Package == "com.android.systemui" && (e.Bounds.Max.Y <= bar || e.Bounds.Min.Y >= s.Height-bar) {
			continue
		}
		shown = append(shown, e)
	}
	return shown
}

// span is the height that the elements take together, in pixels.
func span(elements []*perception.Element) int {
	var r image.Rectangle
	for _, e := range elements {
		r = r.Union(e.Bounds)
	}
	return r.Dy()
}

// button returns what to press if the popup is the watcher's.
func (w *Watcher) button(shown []*perception.Element, texts []string) *perception.Element {
	if len(w.Says) > 0 && !slices.ContainsFunc(texts, func(t string) bool {
		return slices.ContainsFunc(w.Says, func(say string) bool { return strings.Contains(t, say) })
	}) {
		return nil
	}
	pressable := func(e *perception.Element) bool {
		return e.Enabled && e.Clickable && !e.Editable && (len(w.Packages) == 0 || slices.Contains(w.Packages, e.Package))
	}
	for _, id := range w.IDs {
		for _, e := range shown {
			if _, name, ok := strings.Cut(e.ID, ":id/"); ok && name == id && pressable(e) {
				return e
			}
		}
	}
	for _, e := range shown {
		label := e.Text
		if label == "" {
			label = e.Description
		}
		if pressable(e) && slices.Contains(w.Buttons, fold(label)) {
			return e
		}
	}
	return nil
}

// fold makes texts comparable: small letters, single spaces, no marks of
// direction and no punctuation at the ends; Arabic without its vowel signs.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x061C, r == 0xFEFF,
			r >= 0x064B && r <= 0x0652:
			return -1
		case r == '’' || r == 'ʼ':
			return '\''
		}
		return unicode.ToLower(r)
	}, s)
	return strings.TrimFunc(strings.Join(strings.Fields(s), " "), func(r rune) bool { return unicode.IsPunct(r) || r == ' ' })
}
