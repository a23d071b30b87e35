package perception

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	"phonerack/agent/frame"
)

// keyOf hashes strings on top of a hash, never to 0.
func keyOf(seed uint64, parts ...string) uint64 {
	const prime = 1099511628211 // FNV-1a, 64 bits
	h := seed ^ 14695981039346656037
	for _, s := range parts {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ 0xFF) * prime // no byte of a valid string
	}
	return max(h, 1)
}

// sight is what is compared of a picture: its thumb in 16 shades, so that a
// blinking caret hardly counts.
func (s *Scene) sight() frame.Thumb {
	var t frame.Thumb
	if s.NoTree != "" && s.Picture != nil {
		for i, v := range s.Picture.Thumb {
			t[i] = v >> 4
		}
	}
	return t
}

// hash returns the content hash: what is in front, the size, the keyboard and
// the elements with their places, without the status bar. It covers the image
// of a scene without a tree only.
func (s *Scene) hash() uint64 {
	h := fnv.New64a()
	var number [8]byte
	num := func(values ...int) {
		for _, v := range values {
			binary.LittleEndian.PutUint64(number[:], uint64(v))
			h.Write(number[:])
		}
	}
	str := func(values ...string) {
		for _, v := range values {
			num(len(v))
			h.Write([]byte(v))
		}
	}
	str(s.Package, s.Activity)
	num(s.Width, s.Height, s.Rotation, int(bit(s.Keyboard)), int(bit(s.Locked)))
	if s.NoTree != "" && s.Picture != nil {
		t := s.sight()
		h.Write(t[:])
	}
	for _, e := range s.Elements {
		if s.statusBar(e) {
			continue
		}
		str(e.Role, e.Text, e.Description, e.Hint, e.ID, e.Class, e.Package)
		num(e.Bounds.Min.X, e.Bounds.Min.Y, e.Bounds.Max.X, e.Bounds.Max.Y, int(e.states()))
	}
	return h.Sum64()
}

func bit(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}

// states packs the states of an element.
func (e Element) states() uint16 {
	var v uint16
	for _, on := range []bool{
		e.Clickable, e.LongClickable, e.Scrollable, e.Editable, e.Checkable,
		e.Checked, e.Focused, e.Selected, e.Enabled, e.Password,
	} {
		v = v<<1 | bit(on)
	}
	return v
}

// statusBar reports whether e is part of the status bar, whose clock and icons
// change by themselves: a clock of the system, or whatever the system shows
// within the upper twentieth of the screen.
func (s *Scene) statusBar(e Element) bool {
	return e.Package == "com.android.systemui" &&
		(strings.HasSuffix(e.ID, ":id/clock") || e.Bounds.Max.Y <= s.Height/20)
}

// Change is an element that is in both scenes and differs.
type Change struct {
	Before, After Element
}

// Diff is the difference between two scenes.
type Diff struct {
	Added   []Element // of the new scene
	Removed []Element // of the old scene
	Changed []Change
	Front   bool // another app, activity, size, rotation, keyboard or lock state
	Picture bool // another picture, in scenes without a tree
}

// Empty reports whether nothing differs.
func (d Diff) Empty() bool {
	return len(d.Added) == 0 && len(d.Removed) == 0 && len(d.Changed) == 0 && !d.Front && !d.Picture
}

// Compare returns how new differs from old, without the status bar. Elements
// correspond if role, id, class, text and description are equal, in the order of
// appearance, and otherwise if role, id and class are; an element whose index
// alone differs has not changed. A nil scene is an empty one.
func Compare(old, new *Scene) Diff {
	if old == nil {
		old = &Scene{}
	}
	if new == nil {
		new = &Scene{}
	}
	d := Diff{Front: old.Package != new.Package || old.Activity != new.Activity ||
		old.Width != new.Width || old.Height != new.Height ||
		old.Rotation != new.Rotation || old.Keyboard != new.Keyboard || old.Locked != new.Locked}
	d.Picture = old.sight() != new.sight()
	before, after := old.content(), new.content()
	before, after = d.match(before, after, func(e Element) [5]string {
		return [5]string{e.Role, e.ID, e.Class, e.Text, e.Description}
	})
	before, after = d.match(before, after, func(e Element) [5]string {
		return [5]string{e.Role, e.ID, e.Class}
	})
	d.Removed, d.Added = before, after
	return d
}

// content returns the elements outside the status bar.
func (s *Scene) content() []Element {
	var elements []Element
	for _, e := range s.Elements {
		if !s.statusBar(e) {
			elements = append(elements, e)
		}
	}
	return elements
}

// match pairs the elements of equal key, notes the pairs that differ and
// returns those without a partner.
func (d *Diff) match(before, after []Element, key func(Element) [5]string) (oldRest, newRest []Element) {
	waiting := map[[5]string][]int{}
	for i, e := range before {
		waiting[key(e)] = append(waiting[key(e)], i)
	}
	paired := make([]bool, len(before))
	for _, e := range after {
		k := key(e)
		if len(waiting[k]) == 0 {
			newRest = append(newRest, e)
			continue
		}
		i := waiting[k][0]
		waiting[k] = waiting[k][1:]
		paired[i] = true
		was := before[i]
		was.Index, was.Key = e.Index, e.Key
		if was != e {
			d.Changed = append(d.Changed, Change{Before: before[i], After: e})
		}
	}
	for i, e := range before {
		if !paired[i] {
			oldRest = append(oldRest, e)
		}
	}
	return oldRest, newRest
}
