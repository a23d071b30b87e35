package perception

import (
	"fmt"
	"image"
	"strings"
)

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

	screen string // the new scene's line, if Front
}

// empty reports whether nothing differs.
func (d Diff) empty() bool {
	return len(d.Added) == 0 && len(d.Removed) == 0 && len(d.Changed) == 0 && !d.Front && !d.Picture
}

// Compare returns how new differs from old, without what changes by itself:
// clocks and the status bar. Elements correspond if all of them is equal, else if
// role, id, class, text and description are, else if role, id and class are, each
// time in the order of appearance; one whose index or key alone differs has not
// changed. A nil scene is an empty one.
func Compare(old, new *Scene) Diff {
	if old == nil {
		old = &Scene{}
	}
	if new == nil {
		new = &Scene{}
	}
	d := Diff{Picture: old.sight() != new.sight()}
	if old.front() != new.front() {
		d.Front, d.screen = true, new.screen()
	}
	before, after := trim(old.content(), new.content())
	if len(before)+len(after) == 0 {
		return d
	}
	before, after = d.match(before, after, whole)
	before, after = d.match(before, after, func(e Element) Element {
		return Element{Role: e.Role, ID: e.ID, Class: e.Class, Text: e.Text, Description: e.Description}
	})
	before, after = d.match(before, after, func(e Element) Element {
		return Element{Role: e.Role, ID: e.ID, Class: e.Class}
	})
	d.Removed, d.Added = before, after
	return d
}

// front is what a scene shows besides elements.
type front struct {
	app, activity    string
	size             image.Point
	rotation         int
	keyboard, locked bool
}

func (s *Scene) front() front {
	return front{s.Package, s.Activity, image.Pt(s.Width, s.Height), s.Rotation, s.Keyboard, s.Locked}
}

// whole is an element without what belongs to its scene.
func whole(e Element) Element {
	e.Index, e.Key = 0, 0
	return e
}

// content returns the elements that do not change by themselves.
func (s *Scene) content() []Element {
	var elements []Element
	for i := range s.Elements {
		if e := &s.Elements[i]; !s.ticks(e) {
			if elements == nil {
				elements = make([]Element, 0, len(s.Elements)-i)
			}
			elements = append(elements, *e)
		}
	}
	return elements
}

// trim takes the equal elements off both ends, which are most.
func trim(before, after []Element) (oldRest, newRest []Element) {
	for len(before) > 0 && len(after) > 0 && whole(before[0]) == whole(after[0]) {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && whole(before[len(before)-1]) == whole(after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	return before, after
}

// match pairs the elements of equal key, notes the pairs that differ and
// returns those without a partner.
func (d *Diff) match(before, after []Element, key func(Element) Element) (oldRest, newRest []Element) {
	waiting := make(map[Element][]int, len(before))
	for i, e := range before {
		k := key(e)
		waiting[k] = append(waiting[k], i)
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
		if whole(before[i]) != whole(e) {
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

// Lines describes the difference on at most limit lines, as the prompt describes
// the screen: no text can forge one.
//
//	~ screen app com.phonerack.shop activity .Basket size 1080x2400 keyboard hidden
//	~ picture
//	~ [3] switch "Dark theme" clickable checkable checked was unchecked
//	+ [7] text "Saved"
//	- button "Save" id="com.phonerack.shop:id/save" clickable
//
// Added and changed elements are those of the new scene, with their index;
// after "was" stands what a changed one said before: its text, desc and hint, a
// state that it has lost, one that it has gained with "un" before it (or
// enabled), and moved.
// If there are more, the last line is "... and N more". Without a difference the
// only line is "no change".
func (d Diff) Lines(limit int) []string {
	limit = max(limit, 0)
	if d.empty() {
		return []string{"no change"}[:min(limit, 1)]
	}
	all := len(d.Added) + len(d.Removed) + len(d.Changed) + int(bit(d.Front)) + int(bit(d.Picture))
	lines := make([]string, 0, min(all, limit))
	add := func(write func(b *strings.Builder)) {
		switch {
		case len(lines) == limit:
		case len(lines) == limit-1 && all > limit:
			lines = append(lines, fmt.Sprintf("... and %d more", all-limit+1))
		default:
			var b strings.Builder
			write(&b)
			lines = append(lines, b.String())
		}
	}
	if d.Front {
		add(func(b *strings.Builder) { b.WriteString("~ screen" + d.screen) })
	}
	if d.Picture {
		add(func(b *strings.Builder) { b.WriteString("~ picture") })
	}
	for i := range d.Changed {
		add(d.Changed[i].line)
	}
	for i := range d.Added {
		add(func(b *strings.Builder) {
			fmt.Fprintf(b, "+ [%d] ", d.Added[i].Index)
			d.Added[i].describe(b)
		})
	}
	for i := range d.Removed {
		add(func(b *strings.Builder) {
			b.WriteString("- ")
			d.Removed[i].describe(b)
		})
	}
	return lines
}

// line describes a changed element.
func (c *Change) line(b *strings.Builder) {
	fmt.Fprintf(b, "~ [%d] ", c.After.Index)
	c.After.describe(b)
	b.WriteString(" was")
	old, now := &c.Before, &c.After
	if old.Text != now.Text {
		b.WriteByte(' ')
		quoteTo(b, old.Text)
	}
	for i, part := range old.labels() {
		if part.value != now.labels()[i].value {
			b.WriteString(part.name)
			quoteTo(b, part.value)
		}
	}
	for i, state := range old.stateWords() {
		switch after := now.stateWords()[i]; {
		case state.on && !after.on:
			b.WriteString(" " + state.word)
		case !state.on && after.on && state.word == "disabled":
			b.WriteString(" enabled")
		case !state.on && after.on:
			b.WriteString(" un" + state.word)
		}
	}
	if old.Bounds != now.Bounds {
		b.WriteString(" moved")
	}
}
