package tools

import (
	"strings"
	"unicode/utf8"

	"phonerack/agent/perception"
)

// Typed is what a field should hold after typing.
type Typed struct {
	Field  perception.Element // as it was before
	Text   string             // that was typed
	Submit bool               // the field may be gone after it
}

// Verdicts on typed text.
const (
	TextVerified   = "verified"   // the field shows it
	TextUnverified = "unverified" // the field is not there to be read, or showed it before
	TextFailed     = "failed"     // the field shows something else
)

// Verdict compares the field, as a later scene shows it, with what was typed. Letters may arrive late: only the last of
// several looks condemns.
func (t Typed) Verdict(scene *perception.Scene) string {
	field := sameField(scene, t.Field)
	if field == nil {
		return TextUnverified
	}
	shown := field.Text
	ok := strings.Contains(shown, t.Text)
	if field.Password {
		n, before, added := utf8.RuneCountInString(shown), utf8.RuneCountInString(t.Field.Text), utf8.RuneCountInString(t.Text)
		ok = n == added || n == before+added // before may have been the hint
	}
	switch {
	case ok && shown == t.Field.Text:
		return TextUnverified // it was there before: nothing tells whether anything arrived
	case ok:
		return TextVerified
	case t.Submit:
		return TextUnverified // sending empties many fields
	}
	return TextFailed
}

// sameField finds the field again: by its id, else by where it was, else the one
// that has the cursor.
func sameField(scene *perception.Scene, was perception.Element) *perception.Element {
	for _, same := range []func(perception.Element) bool{
		func(e perception.Element) bool { return was.ID != "" && e.ID == was.ID && e.Class == was.Class },
		func(e perception.Element) bool { return was.ID == "" && e.Bounds == was.Bounds },
		func(e perception.Element) bool { return was.ID == "" && e.Focused },
	} {
		for i, e := range scene.Elements {
			if e.Editable && same(e) {
				return &scene.Elements[i]
			}
		}
	}
	return nil
}
