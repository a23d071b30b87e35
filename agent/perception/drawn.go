package perception

// maxDrawn is how many things to name a screen may have that its app draws
// itself: a banner over a game, say.
const maxDrawn = 3

// drawn reports whether the tree holds next to nothing of what the app shows:
// one thing that takes no touches covers half of the screen and has nothing to name
// in it, and there is hardly anything besides.
func (c *condenser) drawn() bool {
	half := c.screen.area() / 2
	named, largest, ground := 0, box{}, false
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.has(foreign) || n.rect.empty() {
			continue
		}
		if n.rect.area() > largest.area() {
			largest = n.rect
		}
		if n.has(folded) || !c.worth(int32(i)) {
			continue
		}
		switch r := c.class(n); {
		case n.rect.area() < half:
			named++
		case r == roleText || r == roleEdit || r == roleList || r == roleScroll:
			return false // a page of text, or a list that is empty
		case r == roleSurface || !c.takes(n) && !c.holds(int32(i)):
			ground = true
		case c.says(n) || n.label.n > 0:
			named++
		}
	}
	if largest.area() < half || half == 0 {
		return false
	}
	return named <= maxDrawn && (ground || named == 0)
}

// holds reports whether there is something to name within node i.
func (c *condenser) holds(i int32) bool {
	for j := i + 1; j < c.nodes[i].end; j++ {
		if c.seen(&c.nodes[j]) && c.worth(j) {
			return true
		}
	}
	return false
}
