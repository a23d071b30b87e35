package perception

import (
	"bytes"
	"strings"
)

// Limits of condensing a tree to elements.
const (
	minSide     = 6   // pixels; smaller nodes cannot be seen or hit
	maxElements = 500 // elements of one scene
	maxFolded   = 6   // different texts that a touchable row takes from its children
	maxBeside   = 8   // siblings that are compared for saying the same
)

// condenser picks the nodes that a person sees or touches; docs/perception.md
// has its rules and the reasons for them.
type condenser struct {
	*tree
	scene   *Scene // what is known of the screen; takes the elements and the keyboard's area
	screen  box
	keys    box  // the keyboard, where it is known
	remote  bool // a remote control moves the focus: nothing can be touched
	cut     bool
	strings strings.Builder // of the elements
}

// condense fills the scene's elements.
func (c *condenser) condense() {
	c.side = c.side[:c.parsed]
	c.windows()
	c.place()
	c.dropCovered()
	for i := range c.nodes {
		if n := &c.nodes[i]; c.seen(n) && c.touchable(n) {
			c.fold(int32(i))
		}
	}
	for i := range c.nodes {
		if n := &c.nodes[i]; c.seen(n) && (c.repeats(n) || c.page(int32(i))) {
			n.flags |= folded
		}
	}
	c.scene.Elements = c.elements()
}

// place finds where each node is on the screen.
func (c *condenser) place() {
	touchable, focusables := false, 0
	for i := range c.nodes {
		n := &c.nodes[i]
		n.label, n.toggle, n.path, n.clip = span{}, 0, 0, c.screen
		n.flags &^= inWeb | folded
		if n.parent >= 0 {
			up := &c.nodes[n.parent]
			n.path, n.clip = mix(mix(up.path, c.names.list[up.class].hash), c.names.list[up.id].hash), up.clip
			if up.has(inWeb) || c.class(up) == roleWeb {
				n.flags |= inWeb
			}
		}
		n.rect = n.bounds.intersect(n.clip)
		if c.clips(n) {
			n.clip = n.rect
		}
		if n.has(foreign) || n.has(invisible) && !n.has(inWeb) || c.underKeyboard(n) || n.rect.w() < minSide || n.rect.h() < minSide {
			n.rect = box{}
			continue
		}
		touchable = touchable || n.has(clickable|longClickable|checkable|editable)
		if n.has(focusable) {
			focusables++
		}
	}
	c.remote = !touchable && focusables > 1
}

// clips reports whether a node shows its children within its bounds only.
func (c *condenser) clips(n *node) bool {
	r := c.class(n)
	return !n.bounds.empty() && (n.has(scrollable) || r == roleList || r == roleScroll || r == roleWeb)
}

// seen reports whether a node can be seen and still speaks for itself.
func (c *condenser) seen(n *node) bool { return !n.rect.empty() && !n.has(folded) }

// takes reports whether a node takes a touch, or the press of a remote control.
func (c *condenser) takes(n *node) bool {
	return n.has(clickable|longClickable) || c.remote && n.has(focusable)
}

// touchable reports whether a node reacts to a finger.
func (c *condenser) touchable(n *node) bool { return c.takes(n) || n.has(checkable|editable) }

// worth reports whether a node that is seen becomes an element.
func (c *condenser) worth(i int32) bool {
	n := &c.nodes[i]
	r := c.class(n)
	return c.touchable(n) || n.has(scrollable) || n.text.n+n.desc.n+n.hint.n > 0 || r == roleEdit || r == roleWeb || r == roleSurface
}

// fold gives a touchable node without words those of its children, so that a
// row reads as one element, and lets it stand for a checkable child that cannot
// be touched by itself. Children that only repeat a node's own words go as well.
// Nodes that are touchable themselves keep their words, and so do clocks. What
// takes half of the screen is a page and no row.
func (c *condenser) fold(i int32) {
	n := &c.nodes[i]
	if n.has(scrollable|editable) || n.rect.area()*2 >= c.screen.area() {
		return
	}
	own := n.text.n+n.desc.n > 0
	var said [maxFolded + 1][]byte
	count, from := 0, c.work[:0]
	for j := i + 1; j < n.end; {
		m := &c.nodes[j]
		switch {
		case m.has(folded | scrollable):
			j = m.end
			continue
		case c.touchable(m):
			if n.toggle == 0 && m.has(checkable) && !c.takes(m) && !n.has(checkable) && !m.rect.empty() {
				n.toggle = j
				m.flags |= folded
			}
			j = m.end
			continue
		}
		if word := bytes.TrimSpace(c.word(m)); len(word) > 0 && !m.rect.empty() && c.class(m) != roleClock {
			switch {
			case own:
				if speaks(c.bytes(n.text), word) || speaks(c.bytes(n.desc), word) {
					m.flags |= folded
				}
			case count <= maxFolded:
				from = append(from, j)
				if !among(said[:count], word) { // a picture often repeats its caption
					said[count] = word
					count++
				}
			}
		}
		j++
	}
	c.work = from
	if count == 0 || count > maxFolded {
		return
	}
	n.label = c.join(said[:count])
	for _, j := range from {
		c.nodes[j].flags |= folded
	}
}

// word is what a node says.
func (c *condenser) word(n *node) []byte {
	if n.text.n > 0 {
		return c.bytes(n.text)
	}
	return c.bytes(n.desc)
}

func among(said [][]byte, word []byte) bool {
	for _, s := range said {
		if string(s) == string(word) {
			return true
		}
	}
	return false
}

// join makes one string of several.
func (c *condenser) join(said [][]byte) span {
	start := len(c.side)
	for i, word := range said {
		if i > 0 {
			c.side = append(c.side, ", "...)
		}
		c.side = append(c.side, word...)
	}
	c.side = c.side[:start+clipped(c.side[start:], maxAttr)]
	return span{^int32(start), int32(len(c.side) - start)}
}

// speaks reports whether said holds word, and not as a part of a longer one: "3"
// is not said by "13 items".
func speaks(said, word []byte) bool {
	for at := 0; ; at++ {
		next := bytes.Index(said[at:], word)
		if next < 0 {
			return false
		}
		at += next
		end := at + len(word)
		if (at == 0 || !joined(said[at-1], word[0])) && (end == len(said) || !joined(word[len(word)-1], said[end])) {
			return true
		}
	}
}

// joined reports whether two bytes that follow each other are in one word.
func joined(a, b byte) bool { return alphanumeric(a) && alphanumeric(b) }

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// repeats reports whether a node that only speaks says what the node around it
// says, or, as a picture, what is written beside it.
func (c *condenser) repeats(n *node) bool {
	word := c.word(n)
	if len(word) == 0 || n.parent < 0 || c.touchable(n) || n.has(scrollable) {
		return false
	}
	up := &c.nodes[n.parent]
	if !up.rect.empty() && (string(c.bytes(up.text)) == string(word) || string(c.bytes(up.desc)) == string(word)) {
		return true
	}
	if c.class(n) != roleImage {
		return false
	}
	for j, k := n.parent+1, 0; j < up.end && k < maxBeside; j, k = c.nodes[j].end, k+1 {
		if m := &c.nodes[j]; m != n && !m.rect.empty() && c.class(m) != roleImage && string(c.word(m)) == string(word) {
			return true
		}
	}
	return false
}

// page reports whether a touchable node without words is only the ground of what
// stands on it: it covers the screen, and there is something to name.
func (c *condenser) page(i int32) bool {
	n := &c.nodes[i]
	if !c.touchable(n) || n.has(scrollable|checkable|editable) || n.text.n+n.desc.n+n.label.n > 0 ||
		n.rect.area()*10 < c.screen.area()*9 {
		return false
	}
	for j := i + 1; j < n.end; j++ {
		if c.seen(&c.nodes[j]) && c.worth(j) {
			return true
		}
	}
	return false
}
