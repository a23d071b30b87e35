package perception

import (
	"image"
	"slices"
	"strings"

	"phonerack/agent/frame"
)

// Limits of condensing a tree to elements.
const (
	minSide     = 6   // pixels; smaller nodes cannot be seen or hit
	maxElements = 500 // elements of one scene
	maxFolded   = 6   // different texts that a touchable row takes from its children
	maxCovering = 400 // touchable nodes that are compared for covering
)

// scene builds the scene of a reading; the caller adds generation and time.
func (r reading) scene() *Scene {
	t := r.tree
	if t == nil {
		t = &tree{rotation: -1}
	}
	s := &Scene{}
	if !r.missing[PartKeyboard] {
		s.Keyboard, s.KeyboardArea = r.state.Keyboard.Shown, r.state.Keyboard.Area
	}
	if r.state.WindowsErr == nil {
		s.Windows = r.state.Windows
	}
	s.Locked = r.state.LockErr == nil && r.state.Lock.Locked
	s.Secure, s.Parts = r.secure, r.parts
	if !r.missing[PartImage] {
		s.Picture = r.image
	}
	if r.missing[PartDisplay] {
		size := t.extent(s.Picture)
		s.Width, s.Height, s.Rotation = size.X, size.Y, max(t.rotation, 0)
	} else {
		s.Width, s.Height, s.Rotation = r.state.Display.Width, r.state.Display.Height, r.state.Display.Rotation
	}
	if r.missing[PartFocus] {
		s.Package = t.pkg()
	} else {
		s.Package, s.Activity = r.state.Focus.Package, r.state.Focus.Activity
	}
	c := newCondenser(t, image.Rect(0, 0, s.Width, s.Height))
	s.Elements = c.elements()
	for _, part := range []string{PartElements, PartMore, PartFocus, PartDisplay, PartKeyboard, PartImage} {
		if r.missing[part] || part == PartMore && c.cut {
			s.Missing = append(s.Missing, part)
		}
	}
	switch {
	case r.missing[PartElements]:
		s.NoTree = NoTreeUnreadable
	case r.tree != nil && s.drawn():
		s.NoTree = NoTreeDrawn
	}
	s.Hash = s.hash()
	return s
}

// maxDrawn is how many things with words or that can be touched a screen may
// have that its app draws itself: a banner over a game, say.
const maxDrawn = 3

// drawn reports whether the tree holds next to nothing of what the app shows:
// something that covers half of the screen has no words, or is a surface, and
// there is hardly anything besides.
func (s *Scene) drawn() bool {
	half := s.Width * s.Height / 2
	useful, blank := 0, len(s.Elements) == 0
	for _, e := range s.Elements {
		large := e.Bounds.Dx()*e.Bounds.Dy() >= half
		switch {
		case large && (opaque(e.Class) || e.Text == "" && e.Description == ""):
			blank = true
		case e.Text != "" || e.Description != "" || e.Clickable || e.LongClickable || e.Checkable || e.Editable:
			useful++
		}
	}
	return blank && useful <= maxDrawn
}

// extent returns the size of the screen as the nodes or the image show it.
func (t *tree) extent(p *frame.Picture) image.Point {
	var all image.Rectangle
	for i := range t.nodes {
		all = all.Union(t.nodes[i].bounds)
	}
	if all.Empty() && p != nil {
		return p.Source
	}
	return image.Pt(max(all.Max.X, 0), max(all.Max.Y, 0))
}

// condenser picks the nodes that a person sees or touches.
type condenser struct {
	nodes  []node
	screen image.Rectangle
	cut    bool

	path   []uint64          // hash of the classes and ids of the ancestors
	rect   []image.Rectangle // bounds on the screen, empty if not visible
	folded []bool            // said by an ancestor, or covered
	label  map[int]string    // text that a touchable node has from its children
	toggle map[int]int       // touchable row -> the checkable child that it stands for
}

func newCondenser(t *tree, screen image.Rectangle) *condenser {
	c := &condenser{
		nodes: t.nodes, screen: screen, cut: t.cut,
		path:   make([]uint64, len(t.nodes)),
		rect:   make([]image.Rectangle, len(t.nodes)),
		folded: make([]bool, len(t.nodes)),
		label:  map[int]string{}, toggle: map[int]int{},
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.parent >= 0 {
			up := &c.nodes[n.parent]
			c.path[i] = keyOf(c.path[n.parent], up.class, up.id)
		}
		if r := n.bounds.Intersect(screen); !n.has(invisible) && r.Dx() >= minSide && r.Dy() >= minSide {
			c.rect[i] = r
		}
	}
	return c
}

// elements condenses the tree, in document order.
func (c *condenser) elements() []Element {
	c.dropCovered()
	for i := range c.nodes {
		if !c.folded[i] && !c.rect[i].Empty() && c.nodes[i].touchable() {
			c.fold(i)
		}
	}
	var elements []Element
	for i := range c.nodes {
		if c.folded[i] || c.rect[i].Empty() {
			continue
		}
		role := c.role(i)
		if !c.nodes[i].worth(role) {
			continue
		}
		if len(elements) == maxElements {
			c.cut = true
			break
		}
		elements = append(elements, c.element(i, role, len(elements)))
	}
	return elements
}

// touchable reports whether a node reacts to a finger.
func (n *node) touchable() bool { return n.has(clickable | longClickable | checkable | editable) }

// worth reports whether a visible node becomes an element.
func (n *node) worth(role string) bool {
	return n.touchable() || n.has(scrollable) || n.text != "" || n.desc != "" || n.hint != "" ||
		role == RoleEdit || role == RoleWeb || opaque(n.class)
}

// opaque reports whether a class draws by itself what no node describes.
func opaque(class string) bool {
	return strings.HasSuffix(class, "SurfaceView") || strings.HasSuffix(class, "TextureView")
}

// fold gives a touchable node without words those of its children, so that a
// row reads as one element, and lets it stand for a checkable child that cannot
// be touched by itself. Children that only repeat a node's own words go as well.
// Nodes that are touchable themselves keep their words.
func (c *condenser) fold(i int) {
	n := &c.nodes[i]
	if n.has(scrollable | editable) {
		return
	}
	own := n.text != "" || n.desc != ""
	var texts []string
	var from []int
	for j := i + 1; j < n.end; {
		m := &c.nodes[j]
		if c.folded[j] || m.has(scrollable) {
			j = m.end
			continue
		}
		if m.touchable() {
			if m.has(checkable) && !m.has(clickable|longClickable) && !n.has(checkable) && !c.rect[j].Empty() {
				if _, taken := c.toggle[i]; !taken {
					c.toggle[i], c.folded[j] = j, true
				}
			}
			j = m.end
			continue
		}
		if word := strings.TrimSpace(firstOf(m.text, m.desc)); word != "" && !c.rect[j].Empty() {
			switch {
			case !own:
				if from = append(from, j); !slices.Contains(texts, word) {
					texts = append(texts, word) // a picture often repeats its caption
				}
			case strings.Contains(n.text, word) || strings.Contains(n.desc, word):
				c.folded[j] = true
			}
		}
		j++
	}
	if len(texts) == 0 || len(texts) > maxFolded {
		return
	}
	c.label[i] = clip(strings.Join(texts, ", "), maxAttr)
	for _, j := range from {
		c.folded[j] = true
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// dropCovered drops touchable nodes, with all below them, that lie fully under
// a touchable node drawn later: a finger never reaches them. A node's own
// ancestors and descendants do not cover it.
func (c *condenser) dropCovered() {
	var candidates []int
	for i := range c.nodes {
		if !c.rect[i].Empty() && c.nodes[i].has(clickable|longClickable) && len(candidates) < maxCovering {
			candidates = append(candidates, i)
		}
	}
	for x, a := range candidates {
		for _, b := range candidates[x+1:] {
			if b < c.nodes[a].end {
				continue
			}
			inA, inB := c.rect[b].In(c.rect[a]), c.rect[a].In(c.rect[b])
			if !inA && !inB {
				continue
			}
			if c.above(b, a) {
				if inB {
					c.drop(a)
				}
			} else if inA {
				c.drop(b)
			}
		}
	}
}

// above reports whether b, which comes later in the document and is no
// descendant of a, is also drawn later.
func (c *condenser) above(b, a int) bool {
	for c.nodes[a].depth > c.nodes[b].depth {
		a = c.nodes[a].parent
	}
	for c.nodes[b].depth > c.nodes[a].depth {
		b = c.nodes[b].parent
	}
	for c.nodes[a].parent != c.nodes[b].parent {
		a, b = c.nodes[a].parent, c.nodes[b].parent
	}
	if orderA, orderB := c.nodes[a].order, c.nodes[b].order; orderA != 0 && orderB != 0 && orderA != orderB {
		return orderB > orderA
	}
	return true
}

func (c *condenser) drop(i int) {
	for j := i; j < c.nodes[i].end; j++ {
		c.folded[j] = true
	}
}

func (c *condenser) element(i int, role string, index int) Element {
	n := &c.nodes[i]
	e := Element{
		Index: index, Role: role,
		Text: n.text, Description: n.desc, Hint: n.hint, ID: n.id, Class: n.class, Package: n.pkg,
		Bounds:    c.rect[i],
		Clickable: n.has(clickable), LongClickable: n.has(longClickable), Scrollable: n.has(scrollable),
		Editable:  n.has(editable) || role == RoleEdit,
		Checkable: n.has(checkable), Checked: n.has(checked),
		Focused: n.has(focused), Selected: n.has(selected), Enabled: !n.has(disabled), Password: n.has(password),
	}
	if label := c.label[i]; label != "" {
		e.Text = label
	}
	if role == RoleEdit && e.Hint != "" && e.Text == e.Hint {
		e.Text = "" // an empty field reports its hint as its text
	}
	if j, ok := c.toggle[i]; ok {
		m := &c.nodes[j]
		e.Checkable, e.Checked = true, m.has(checked)
		e.Text = firstOf(e.Text, m.text)
	}
	e.Key = keyOf(c.path[i], e.Role, e.ID, e.Class, e.Description, e.Hint)
	if !e.Editable {
		e.Key = keyOf(e.Key, e.Text)
	}
	return e
}
