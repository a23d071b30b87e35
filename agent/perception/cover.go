package perception

import "slices"

// Limits of the search for what is covered, which compares pairs of nodes.
const (
	maxTakers = 400 // nodes that take touches or scroll
	maxSheets = 32
	maxSteps  = 1 << 20 // nodes that are looked at in all; a screen takes a few thousand
	maxAbove  = 8       // windows
)

// Shares of the screen that a sheet takes: less is a row or a button, more may
// be glass, such as the controls over a film.
const (
	minSheet = 12 // percent
	maxSheet = 90
)

// dropCovered drops what another window covers, then what lies fully under a
// node that takes touches: what can be touched or scrolled under any, all under
// a sheet. A node's own ancestors and descendants never cover it.
func (c *condenser) dropCovered() {
	c.dropBehind()
	takers := c.work[:0]
	for i := range c.nodes {
		if n := &c.nodes[i]; c.seen(n) && (c.takes(n) || n.has(scrollable)) && len(takers) < maxTakers {
			takers = append(takers, int32(i))
		}
	}
	c.work = takers
	sheets, steps := 0, maxSteps
	for _, b := range takers {
		if n := &c.nodes[b]; !c.seen(n) || !c.takes(n) {
			continue
		}
		sheet := sheets < maxSheets && c.sheet(b)
		if sheet {
			sheets++
		}
		if steps = c.dropUnder(b, takers, sheet, steps); steps < 0 {
			return // it was made to cost: what is left is not known to be covered
		}
	}
}

// dropUnder drops what lies under node b, and takes touches itself unless b is a
// sheet. On the way up from b, what is below it are whole subtrees beside the
// way. It returns what is left of the steps that it may take.
func (c *condenser) dropUnder(b int32, takers []int32, sheet bool, steps int) int {
	cover := c.nodes[b].rect
	for p := b; c.nodes[p].parent >= 0; p = c.nodes[p].parent {
		up := c.nodes[p].parent
		for s := up + 1; s < c.nodes[up].end; s = c.nodes[s].end {
			if steps--; steps < 0 {
				return steps
			}
			if s == p || !c.below(s, p) {
				continue
			}
			if c.dropIn(s, cover, takers, sheet); sheet {
				steps -= int(c.nodes[s].end - s)
			}
		}
	}
	return steps
}

// dropIn drops what of the subtree of s lies within cover.
func (c *condenser) dropIn(s int32, cover box, takers []int32, sheet bool) {
	end := c.nodes[s].end
	first, _ := slices.BinarySearch(takers, s)
	for _, i := range takers[first:] {
		if i >= end {
			break
		}
		switch n := &c.nodes[i]; {
		case !c.seen(n) || !n.rect.in(cover):
		case c.takes(n):
			c.drop(i)
		default:
			n.flags |= folded // a list: its words still show through
		}
	}
	for i := s; sheet && i < end; i++ {
		if n := &c.nodes[i]; c.seen(n) && n.rect.in(cover) {
			n.flags |= folded
		}
	}
}

// below reports whether node a is drawn before its sibling b.
func (c *condenser) below(a, b int32) bool {
	if orderA, orderB := c.nodes[a].order, c.nodes[b].order; orderA != 0 && orderB != 0 && orderA != orderB {
		return orderA < orderB
	}
	return a < b
}

// dropBehind drops what a window above covers the middle of: the windows of a
// tree are listed from the top down.
func (c *condenser) dropBehind() {
	var above [maxAbove]box
	count := 0
	for i := int32(0); i < int32(len(c.nodes)); i = c.nodes[i].end {
		root := &c.nodes[i]
		if root.has(foreign) || root.rect.empty() {
			continue
		}
		for j := i; j < root.end && count > 0; j++ {
			for _, b := range above[:count] {
				if n := &c.nodes[j]; c.seen(n) && n.rect.middle().in(b) {
					n.flags |= folded
				}
			}
		}
		if count < len(above) && c.solid(i) {
			above[count] = root.rect
			count++
		}
	}
}

// solid reports whether the window with root i covers what lies behind it. One
// that holds nothing does not, nor does another app's over all of the screen:
// the app behind it has the focus.
func (c *condenser) solid(i int32) bool {
	root := &c.nodes[i]
	if c.scene.Package != "" && c.pkg(i) != c.scene.Package && root.rect.area()*100 > maxSheet*c.screen.area() {
		return false
	}
	return c.takes(root) || c.says(root) || c.holds(i)
}

func (c *condenser) says(n *node) bool { return n.text.n+n.desc.n > 0 }

// sheet reports whether a node that takes touches is a sheet or a card with
// something on it.
func (c *condenser) sheet(i int32) bool {
	n := &c.nodes[i]
	share := n.rect.area() * 100
	return share >= minSheet*c.screen.area() &&
		share <= maxSheet*c.screen.area() && c.holds(i)
}

// drop drops node i with all below it.
func (c *condenser) drop(i int32) {
	for j := i; j < c.nodes[i].end; j++ {
		c.nodes[j].flags |= folded
	}
}
