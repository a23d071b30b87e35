package screen

import (
	"testing"
	"time"
)

// field opens the shop's search with a way of typing and returns a reader of its text.
func field(t *testing.T, typing Typing) (d *driver, text func() string) {
	t.Helper()
	d = drive(t, Config{})
	d.open("com.phonerack.shop")
	if d.has("clear") {
		d.tap("clear")
	}
	d.tap("search")
	d.SetTyping(typing)
	return d, func() string {
		if n := d.all("search"); len(n) > 0 {
			return n[0].Text
		}
		return "(gone)"
	}
}

func TestComposingHoldsLettersUntilTheyAreCommitted(t *testing.T) {
	for _, test := range []struct {
		name  string
		lead  func(d *driver)
		want  string
		shown string
	}{
		{"letters", func(d *driver) { d.typeText("ni") }, "", "ni"},
		{"keys", func(d *driver) { d.Key(keyA); d.Key(keyA + 1) }, "", "ab"},
		{"digits pass", func(d *driver) { d.typeText("a1b2") }, "12", "ab"},
		{"space", func(d *driver) { d.typeText("nihao ") }, "nihao", ""},
		{"enter commits and does not submit", func(d *driver) { d.typeText("kettle"); d.Key(KeyEnter) }, "kettle", ""},
		{"punctuation", func(d *driver) { d.typeText("ab,c") }, "ab,", "c"},
		{"backspace", func(d *driver) { d.typeText("abc"); d.Key(KeyDel) }, "", "ab"},
		{"hidden keyboard", func(d *driver) { d.typeText("abc"); d.Key(KeyBack) }, "", ""},
		{"another method", func(d *driver) { d.typeText("abc"); d.SetTyping(Typing{}) }, "", ""},
		{"committed by the method", func(d *driver) {
			if err := d.Commit("abc"); err != nil {
				d.Fatal(err)
			}
		}, "abc", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, text := field(t, Typing{Composing: true})
			before := d.Display().KeyboardTop
			test.lead(d)
			if got := text(); got != test.want {
				t.Errorf("field holds %q, want %q", got, test.want)
			}
			if d.composition != test.shown {
				t.Errorf("composition %q, want %q", d.composition, test.shown)
			}
			if (d.Display().KeyboardTop < before) != (test.shown != "") {
				t.Errorf("keyboard's edge went from %d to %d", before, d.Display().KeyboardTop)
			}
			d.Render()
		})
	}
}

func TestTypedTextArrivesLate(t *testing.T) {
	d, text := field(t, Typing{Delay: time.Second})
	d.typeText("kett")
	d.Key(keyA + 11) // l
	for _, want := range []string{"", "k", "ke", "ket", "kettl"} {
		if got := text(); got != want {
			t.Errorf("field holds %q, want %q", got, want)
		}
		d.wait(250 * time.Millisecond)
	}
	d.Key(KeyDel)
	if got := text(); got != "kett" {
		t.Errorf("field holds %q", got)
	}
}

func TestKeyboardCorrects(t *testing.T) {
	for typed, want := range map[string]string{
		"hello": "Hello", "one. two": "One. Two", "one.two": "One.two", "it is teh end": "It is the end", "i dont ": "I don't ",
	} {
		d, text := field(t, Typing{Capitalize: true, Autocorrect: true})
		d.typeText(typed)
		if got := text(); got != want {
			t.Errorf("%q became %q, want %q", typed, got, want)
		}
	}
}

func TestSelectionIsReplaced(t *testing.T) {
	d, text := field(t, Typing{})
	d.typeText("old text")
	d.Shortcut(keyA)
	d.typeText("new")
	if got := text(); got != "new" {
		t.Errorf("field holds %q", got)
	}
	d.Shortcut(keyA)
	d.Shortcut(keyA + 2)
	d.Key(KeyMoveEnd)
	d.Shortcut(keyA + 21)
	if got := text(); got != "newnew" {
		t.Errorf("field holds %q", got)
	}
	d.Shortcut(keyA)
	d.Key(KeyDel)
	if got := text(); got != "" {
		t.Errorf("field holds %q", got)
	}
	d.Shortcut(keyA + 21)
	d.Shortcut(keyA)
	d.Shortcut(keyA + 23)
	if got := text(); got != "" || d.Clipboard() != "new" {
		t.Errorf("field holds %q, clipboard %q", got, d.Clipboard())
	}
}
