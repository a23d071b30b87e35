package tools_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/perception"
	"phonerack/agent/tools"
)

func verdict(before, typed, shown string, password bool) string {
	was := edit("app:id/field")
	was.Password = password
	is := was
	was.Text, is.Text = before, shown
	return tools.Typed{Field: was, Text: typed}.Verdict(&perception.Scene{Elements: []perception.Element{is}})
}

func TestTypedTextIsVerifiedOnlyWhenItArrived(t *testing.T) {
	const ok, open, bad = tools.TextVerified, tools.TextUnverified, tools.TextFailed
	for _, c := range []struct{ name, before, typed, shown, want string }{
		{"arrived", "", "kettle", "kettle", ok},
		{"arrived behind a draft", "red ", "kettle", "red kettle", ok},
		{"arrived in the middle of a draft", "red blue", "kettle", "red kettleblue", ok},
		{"arrived in the place of the hint or of what was selected", "Search", "kettle", "kettle", ok},
		{"letters that repeat", "aa", "aaa", "aaaaa", ok},
		{"Chinese behind Chinese", "水", "水壶", "水水壶", ok},

		{"the first letter is lost", "", "kettle", "ettle", bad},
		{"the first letter is lost behind a draft", "red ", "kettle", "red ettle", bad},
		{"two letters are swapped", "", "kettle", "ektlte", bad},
		{"two letters are swapped behind a draft", "red ", "kettle", "red ekttle", bad},
		{"a capital", "", "kettle", "Kettle", bad},
		{"a correction", "", "teh cat", "the cat", bad},
		{"a correction of the draft", "teh", " cat", "the cat", bad},
		{"nothing arrived", "", "kettle", "", bad},
		{"nothing arrived behind a draft that holds it", "red kettle", "kettle", "red kettle", bad},
		{"more arrived", "", "kettle", "kettlekettle", bad},
		{"the draft is gone and so is a letter", "red ", "kettle", "ettle", bad},

		{"it was there before", "kettle", "kettle", "kettle", open},
		// The draft and the rest of the text make what was typed.
		{"the draft looks like the letter that was lost", "k", "kettle", "kettle", open},
		// "ba" behind "a", swapped, looks like "ab" before it.
		{"swapped letters look like other places", "a", "ab", "aba", open},
		{"swapped letters at the end look like other places", "b", "ab", "bab", open},
		{"more than is kept of a field", "", strings.Repeat("x", 5000), strings.Repeat("x", 4096), open},

		// Some dumpers write dots for what lies beyond the basic plane.
		{"an emoji that is readable", "", "tea 🍵", "tea 🍵", ok},
		{"an emoji that is not", "", "tea 🍵", "tea ..", open},
		{"an emoji that is not, and a letter is lost", "", "tea 🍵", "ea ..", bad},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := verdict(c.before, c.typed, c.shown, false); got != c.want {
				t.Errorf("%q + %q = %q: %s, want %s", c.before, c.typed, c.shown, got, c.want)
			}
		})
	}
}

func TestPasswordsAreNeverVerifiedByTheirDots(t *testing.T) {
	const ok, open, bad = tools.TextVerified, tools.TextUnverified, tools.TextFailed
	for _, c := range []struct{ name, before, typed, shown, want string }{
		{"the right length", "", "hunter2", "•••••••", open},
		{"the right length behind others", "•••", "hunter2", "••••••••••", open},
		{"the right length in the place of others", "•••", "hunter2", "•••••••", open},
		{"one of seven arrived behind others", "•••", "hunter2", "••••", bad},
		{"the right length, the last letter shown", "", "hunter2", "••••••2", open},
		{"a hint before", "PIN", "123", "•••", open},
		{"dots were typed", "", "•••", "•••", open},
		{"a letter lost", "", "hunter2", "••••••", bad},
		{"nothing arrived", "•••", "hunter2", "•••", bad},
		{"nothing arrived behind as many", "•••••••", "hunter2", "•••••••", bad},
		{"shown in clear", "", "hunter2", "hunter2", ok},
		{"shown in clear, swapped", "", "hunter2", "uhnter2", bad},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := verdict(c.before, c.typed, c.shown, true); got != c.want {
				t.Errorf("%q + %q = %q: %s, want %s", c.before, c.typed, c.shown, got, c.want)
			}
		})
	}
}

func TestTheFieldIsFoundAgain(t *testing.T) {
	pin, name := edit("a:id/row"), edit("a:id/row")
	pin.Key, name.Key = 1, 2
	nameless := edit("")
	focused := func(e perception.Element) perception.Element { e.Focused = true; return e }
	text := func(e perception.Element, s string) perception.Element { e.Text = s; return e }
	elsewhere := at{0, 900, 800, 1000}
	for _, c := range []struct {
		name string
		was  perception.Element
		now  *perception.Scene
		want string
	}{
		{"the only one of its id", edit("a:id/q"), sceneOf(elsewhere, text(edit("a:id/q"), "xyz")), tools.TextVerified},
		{"by its key among rows", pin, sceneOf(elsewhere, text(name, "y"), at{0, 0, 1, 1}, text(pin, "xyz")), tools.TextVerified},
		{"by the cursor among equal rows", focused(pin), sceneOf(elsewhere, text(pin, "y"), at{0, 0, 1, 1}, focused(text(pin, "xyz"))), tools.TextVerified},
		{"gone", edit("a:id/q"), sceneOf(elsewhere, text(edit("a:id/other"), "xyz")), tools.TextUnverified},
		{"without an id, elsewhere", nameless, sceneOf(elsewhere, text(nameless, "xyz")), tools.TextUnverified},
		{"a password field in the place of another", edit("a:id/q"), sceneOf(elsewhere, func() perception.Element {
			e := text(edit("a:id/q"), "xyz")
			e.Password = true
			return e
		}()), tools.TextUnverified},
		{"no field at all", edit("a:id/q"), &perception.Scene{}, tools.TextUnverified},
	} {
		if got := (tools.Typed{Field: c.was, Text: "xyz"}).Verdict(c.now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// FuzzVerdict holds the verdict to what it promises: whatever a phone makes of a
// text, it is verified only if it is the text that arrived.
func FuzzVerdict(f *testing.F) {
	f.Add("red ", "kettle", "ettle", 4)
	f.Add("a", "ab", "ba", 1)
	f.Add("", "x", "", 0)
	f.Add("水", "壶水", "水壶", 3)
	f.Fuzz(func(t *testing.T, before, typed, arrived string, at int) {
		if at < 0 || at > len(before) || typed == "" || len(before)+len(arrived) > 4000 ||
			!utf8.ValidString(before) || !utf8.ValidString(typed) || !utf8.ValidString(arrived) || !utf8.ValidString(before[:at]) {
			return
		}
		shown := before[:at] + arrived + before[at:]
		if v := verdict(before, typed, shown, false); arrived != typed && v == tools.TextVerified {
			t.Errorf("%q with %q in it at %d is verified as %q", before, arrived, at, typed)
		}
	})
}
