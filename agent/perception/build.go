package perception

import (
	"image"

	"phonerack/agent/frame"
)

// missable are the parts that Scene.Missing may name, in their order.
var missable = [...]string{PartElements, PartMore, PartFocus, PartDisplay, PartKeyboard, PartImage}

// misses reports whether a part was asked for and is not there.
func (r reading) misses(part string) bool {
	for i := range r.parts {
		if r.parts[i].Name == part {
			return r.parts[i].Err != nil
		}
	}
	return false
}

// scene builds the scene of a reading; the caller adds generation and time. The
// scene holds nothing of the dump.
func (r reading) scene() *Scene {
	t := r.tree
	if t == nil {
		t = &tree{rotation: -1}
		t.names.reset()
	}
	s := &Scene{Parts: r.parts, Secure: r.secure, Hints: t.hints}
	if r.state.LockErr == nil {
		s.Asleep, s.Locked = !r.state.Lock.Awake, r.state.Lock.Locked
	}
	if !r.misses(PartKeyboard) {
		s.Keyboard, s.KeyboardArea = r.state.Keyboard.Shown, r.state.Keyboard.Area
	}
	if r.state.WindowsErr == nil {
		s.Windows = r.state.Windows
	}
	if !r.misses(PartImage) {
		s.Picture = r.image
	}
	if r.misses(PartDisplay) {
		size := t.extent(s.Picture)
		s.Width, s.Height, s.Rotation = size.X, size.Y, max(t.rotation, 0)
	} else {
		s.Width, s.Height, s.Rotation = r.state.Display.Width, r.state.Display.Height, r.state.Display.Rotation
	}
	if !r.misses(PartFocus) {
		s.Package, s.Activity = r.state.Focus.Package, r.state.Focus.Activity
	}
	c := condenser{tree: t, scene: s, screen: boxOf(image.Rect(0, 0, s.Width, s.Height)), cut: t.cut}
	c.condense()
	if r.misses(PartFocus) {
		s.Package = c.front()
	}
	for _, part := range missable {
		if r.misses(part) || part == PartMore && c.cut {
			s.Missing = append(s.Missing, part)
		}
	}
	switch {
	case r.misses(PartElements):
		s.NoTree = NoTreeUnreadable
	case r.tree != nil && c.drawn():
		s.NoTree = NoTreeDrawn
	}
	s.Hash = s.hash()
	return s
}

// extent returns the size of the screen as the root, the nodes or the image show
// it.
func (t *tree) extent(p *frame.Picture) image.Point {
	if t.size.X > 0 && t.size.Y > 0 {
		return t.size
	}
	var all box
	for i := range t.nodes {
		all = all.union(t.nodes[i].bounds)
	}
	if all.empty() && p != nil {
		return p.Source
	}
	return image.Pt(int(max(all.x1, 0)), int(max(all.y1, 0)))
}
