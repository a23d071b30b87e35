package tools

import (
	"slices"
	"strings"
	"unicode/utf8"

	"phonerack/agent/perception"
)

// Typed is what a field should hold after typing.
type Typed struct {
	Field perception.Element // as it was before, with the cursor in it
	Text  string             // that was typed
}

// Verdicts on typed text.
const (
	TextVerified   = "verified"   // the field shows it, and it was not there before
	TextUnverified = "unverified" // the field does not tell
	TextFailed     = "failed"     // the field shows something else
)

// verdict compares the field, as a later scene shows it, with what was typed.
// Letters may arrive late: only the last of several looks condemns.
//
// It is verified if the field was empty and shows exactly the text, or if it
// shows what it held with exactly the text in one place, and no other text of
// that length in any other place would look the same: typing "ab" behind "a"
// makes "aab", but the faulty "ba" before it makes "baa" and behind it "aba",
// which "ab" before it makes too. It is also verified if the text has taken the
// place of what was there, which was the hint or was selected.
//
// A password is at best unverified, and is so if its length is right: dots tell
// nothing of the letters. One that is shown in clear is a text as any other.
func (t Typed) verdict(scene *perception.Scene) string {
	v, _ := t.judge(scene)
	return v
}

// judge also tells whether looking again may make the verdict better.
func (t Typed) judge(scene *perception.Scene) (verdict string, better bool) {
	field := sameField(scene, t.Field)
	if field == nil {
		return TextUnverified, true
	}
	if field.Password && masked(field.Text) {
		n, before, added := utf8.RuneCountInString(field.Text), utf8.RuneCountInString(t.Field.Text), utf8.RuneCountInString(t.Text)
		if n == before+added || n == added && field.Text != t.Field.Text { // before may have been the hint
			return TextUnverified, false
		}
		verdict = TextFailed
	} else {
		verdict = arrived(t.Field.Text, t.Text, field.Text)
	}
	return verdict, verdict != TextVerified
}

// masked reports whether a password is shown as dots, but for the letter that
// some phones show for a moment.
func masked(s string) bool {
	clear := 0
	for _, r := range s {
		if r != '•' && r != '*' && r != '●' && r != '∙' {
			clear++
		}
	}
	return clear <= 1
}

// readable is how many bytes of a field's text perception keeps at least.
const readable = 4096 - utf8.UTFMax

// arrived compares what a field shows with what it held before and what was
// typed into it since.
func arrived(before, typed, shown string) string {
	switch {
	case shown == before && before == typed:
		return TextUnverified // it was there before: nothing tells whether anything arrived
	case shown == before:
		return TextFailed
	case len(shown) >= readable:
		return TextUnverified
	}
	added := len(shown) - len(before)
	once, other := false, false
	if added >= 0 {
		// The places where shown may be before with something put in.
		first, last := len(before)-commonSuffix(before, shown), commonPrefix(before, shown)
		for k := first; k <= last; k++ {
			if k < len(before) && !utf8.RuneStart(before[k]) {
				continue
			}
			if shown[k:k+added] == typed {
				once = true
			} else {
				other = true
			}
		}
	}
	switch {
	case once && !other:
		return TextVerified
	case once:
		return TextUnverified
	case shown == typed && !other:
		return TextVerified // in the place of the hint, or of what was selected
	case shown == typed || readsLike(shown, before, typed):
		return TextUnverified
	}
	return TextFailed
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// readsLike reports whether shown may be the text with its characters beyond the
// basic plane, such as emoji, replaced: the dumpers of some Android versions
// write "." or ".." for them.
func readsLike(shown, before, typed string) bool {
	if !strings.ContainsFunc(before+typed, astral) {
		return false
	}
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if astral(r) || r == '.' || r == utf8.RuneError {
				return -1
			}
			return r
		}, s)
	}
	got := plain(shown)
	return got == plain(before+typed) || got == plain(typed)
}

func astral(r rune) bool { return r > 0xFFFF }

// garbled reports whether characters were lost on the way into the field, or
// changed places, so that another way of typing may do better. Fields that change
// what they take, or take only so much, are not that.
func garbled(before, typed, shown string) bool {
	if shown == before {
		return true
	}
	got, ok := strings.CutPrefix(shown, before)
	if !ok || strings.HasPrefix(typed, got) {
		return false
	}
	sorted := func(s string) []rune {
		r := []rune(s)
		slices.Sort(r)
		return r
	}
	return rest(got, typed) || slices.Equal(sorted(got), sorted(typed))
}
