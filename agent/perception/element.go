package perception

// dot stands for each character of a password.
const dot = "•"

// elements makes the elements of the nodes that are worth one, in document
// order. Their strings share one allocation.
func (c *condenser) elements() []Element {
	for i := range c.names.list {
		c.names.list[i].out = notPlaced
	}
	chosen, size := c.work[:0], 0
	for i := range c.nodes {
		n := &c.nodes[i]
		if !c.seen(n) || !c.worth(int32(i)) {
			continue
		}
		if len(chosen) == maxElements {
			c.cut = true
			break
		}
		chosen = append(chosen, int32(i))
		size += c.size(n)
	}
	c.work = chosen
	if len(chosen) == 0 {
		return nil
	}
	c.strings.Grow(size)
	elements := make([]Element, len(chosen))
	for index, i := range chosen {
		elements[index].Index = index
		c.fill(&elements[index], i)
	}
	return elements
}

// Names that do not stand among the strings of the scene yet.
const (
	notPlaced int32 = -1
	counted   int32 = -2 // in its size
)

// size returns how many bytes of strings an element takes, those of names that
// were counted before left out.
func (c *condenser) size(n *node) int {
	size := n.text.n + n.desc.n + n.hint.n + n.label.n
	if n.has(password) {
		size += n.text.n * int32(len(dot)-1)
	}
	if n.toggle != 0 {
		size += c.nodes[n.toggle].text.n
	}
	for _, i := range [...]int32{n.id, n.class, n.pkg} {
		if name := &c.names.list[i]; name.out == notPlaced {
			name.out = counted
			size += name.at.n
		}
	}
	return int(size)
}

// fill makes the element of node i.
func (c *condenser) fill(e *Element, i int32) {
	n := &c.nodes[i]
	r := c.role(i)
	e.Role = roleNames[r]
	e.ID, e.Class, e.Package = c.named(n.id), c.named(n.class), c.named(n.pkg)
	e.Bounds = n.rect.rectangle()
	e.Clickable, e.LongClickable, e.Scrollable = n.has(clickable), n.has(longClickable), n.has(scrollable)
	e.Editable = n.has(editable) || r == roleEdit
	e.Checkable, e.Checked = n.has(checkable), n.has(checked)
	e.Focused, e.Selected, e.Enabled, e.Password = n.has(focused), n.has(selected), !n.has(disabled), n.has(password)

	text, hint := n.text, n.hint
	switch {
	case n.label.n > 0:
		text = n.label
	case n.has(hinting):
		if hint.n == 0 {
			hint = text
		}
		text = span{}
	case e.Editable && !n.has(notHinting) && hint.n > 0 && string(c.bytes(hint)) == string(c.bytes(text)):
		text = span{} // an empty field reports its hint as its text
	}
	if n.toggle != 0 {
		m := &c.nodes[n.toggle]
		e.Checkable, e.Checked = true, m.has(checked)
		if text.n == 0 {
			text = m.text
		}
	}
	desc := n.desc
	if string(c.bytes(desc)) == string(c.bytes(text)) {
		desc = span{}
	}
	e.Key = c.key(n, text, desc, hint, e.Editable)
	e.Description, e.Hint = c.put(desc), c.put(hint)
	if e.Password {
		e.Text = c.dots(text)
	} else {
		e.Text = c.put(text)
	}
}

// key hashes what an element is known by in another scene. A field's text is not
// in it, its hint is: people write into fields.
func (c *condenser) key(n *node, text, desc, hint span, field bool) uint64 {
	names := c.names.list
	h := mix(mix(n.path, names[n.class].hash), names[n.id].hash)
	if field {
		text = hint
	}
	return max(1, hashText(hashText(h, c.bytes(text)), c.bytes(desc)))
}

// put copies a string to those of the scene.
func (c *condenser) put(s span) string {
	if s.n == 0 {
		return ""
	}
	start := c.strings.Len()
	c.strings.Write(c.bytes(s))
	return c.strings.String()[start:]
}

// dots hides a password, of which only the length is anybody's business.
func (c *condenser) dots(s span) string {
	start := c.strings.Len()
	for range string(c.bytes(s)) {
		c.strings.WriteString(dot)
	}
	return c.strings.String()[start:]
}

// named copies a name to the strings of the scene, once.
func (c *condenser) named(i int32) string {
	name := &c.names.list[i]
	if name.out < 0 {
		name.out = int32(c.strings.Len())
		c.strings.Write(c.bytes(name.at))
	}
	return c.strings.String()[name.out : name.out+name.at.n]
}
