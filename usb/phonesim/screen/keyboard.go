package screen

import (
	"image"
	"strings"
)

// keyboard is the on-screen keyboard of a scene.
type keyboard struct {
	rect image.Rectangle
	keys []softKey
	edit *view // that it types into

	composition string // shown above the keys
}

// softKey is one key: it types text, or does what its action says.
type softKey struct {
	rect    image.Rectangle
	label   string // shown; empty: the picture
	picture string
	text    string
	action  keyAction
}

type keyAction uint8

const (
	typeText keyAction = iota
	deleteBack
	enter
	shift
	symbols
)

// page is what the keys show.
type page uint8

const (
	letters page = iota
	capitals
	figures
)

// keyRows are the characters of a page, without the keys at the edges.
var keyRows = map[string][]string{
	"latin":   {"q w e r t y u i o p", "a s d f g h j k l", "z x c v b n m"},
	"arabic":  {"ض ص ث ق ف غ ع ه خ ح ج", "ش س ي ب ل ا ت ن م ك ط", "ذ ء ؤ ر ى ة و ز ظ د"},
	"figures": {"1 2 3 4 5 6 7 8 9 0", "@ # $ _ & - + ( ) /", "* \" ' : ; ! ?"},
}

// Heights of the keyboard in dp, and the most of the display that it takes.
const (
	keyRowDP         = 54
	keyboardMarginDP = 6
	keyboardShare    = 0.55
)

// keyboardFor returns the keyboard of a scene whose active window has a focused edit and wants it.
func (e *Engine) keyboardFor(s *scene) *keyboard {
	l := s.active()
	if e.typing.NoKeys || !l.window.typing || l.window.screen.Keyboard == "none" {
		return nil
	}
	edit := l.root.find(func(v *view) bool { return v.focused })
	if edit == nil {
		return nil
	}
	row := e.px(keyRowDP)
	nav, margin := e.px(navigationBarDP), e.px(keyboardMarginDP)
	row = min(row, (int(float64(s.size.Y)*keyboardShare)-nav-2*margin)/4)
	top := s.size.Y - nav - 2*margin - 4*row
	k := &keyboard{rect: image.Rect(0, top, s.size.X, s.size.Y), edit: edit, composition: e.composition}
	if k.composition != "" {
		k.rect.Min.Y -= row // the strip that shows it
	}
	name := "latin"
	switch {
	case e.page == figures:
		name = "figures"
	case e.rtl():
		name = "arabic"
	}
	for i, chars := range keyRows[name] {
		var keys []weighted
		for c := range strings.FieldsSeq(chars) {
			if e.page == capitals {
				c = strings.ToUpper(c)
			}
			keys = append(keys, weighted{softKey{label: c, text: c}, 1})
		}
		if i == 2 {
			if name == "latin" {
				keys = append([]weighted{{softKey{picture: "shift", action: shift}, 1.5}}, keys...)
			}
			keys = append(keys, weighted{softKey{picture: "backspace", action: deleteBack}, 1.5})
		}
		k.addRow(keys, top+margin+i*row, row, e.px(3))
	}
	toggle, comma := "?123", ","
	if e.page == figures {
		toggle = "ABC"
		if e.rtl() {
			toggle = "أبج"
		}
	}
	if e.rtl() {
		comma = "،"
	}
	k.addRow([]weighted{
		{softKey{label: toggle, action: symbols}, 1.5},
		{softKey{label: comma, text: comma}, 1},
		{softKey{label: " ", text: " "}, 5},
		{softKey{label: ".", text: "."}, 1},
		{softKey{picture: imePicture(edit.ime), action: enter}, 1.5},
	}, top+margin+3*row, row, e.px(3))
	return k
}

func imePicture(ime string) string {
	switch ime {
	case "search", "send", "go", "next":
		return "key_" + ime
	}
	return "key_done"
}

// weighted is a key and its width relative to a letter's.
type weighted struct {
	softKey
	weight float64
}

// addRow spreads keys over the width; a row of few letters keeps the width of ten and is centred.
func (k *keyboard) addRow(keys []weighted, y, height, gap int) {
	total := 0.0
	for _, key := range keys {
		total += key.weight
	}
	width := float64(k.rect.Dx()-2*gap) / max(total, 10)
	x := float64(k.rect.Dx())/2 - width*total/2
	for _, key := range keys {
		r := image.Rect(int(x), y, int(x+width*key.weight), y+height)
		key.rect = image.Rect(r.Min.X+gap, r.Min.Y+gap, r.Max.X-gap, r.Max.Y-gap)
		k.keys = append(k.keys, key.softKey)
		x += width * key.weight
	}
}

// press does what the key at a point does. A point between keys belongs to none.
func (e *Engine) press(k *keyboard, at image.Point) {
	for _, key := range k.keys {
		if !at.In(key.rect) {
			continue
		}
		e.version++
		switch key.action {
		case typeText:
			e.arrive(0, func() { e.character([]rune(key.text)[0]) })
			if e.page == capitals {
				e.page = letters
			}
		case deleteBack:
			e.arrive(0, func() { e.deleteChar(-1) })
		case enter:
			e.arrive(0, func() { e.character('\n') })
		case shift:
			e.page = map[page]page{letters: capitals, capitals: letters}[e.page]
		case symbols:
			e.page = map[page]page{letters: figures, capitals: figures, figures: letters}[e.page]
		}
		return
	}
}
