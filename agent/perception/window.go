package perception

import (
	"bytes"

	"phonerack/agent/phone"
)

// systemUI is the package of the status bar, the navigation bar and the shade.
const systemUI = "com.android.systemui"

// inputArea is the id that Android itself gives to the place of the keys in the
// window of every keyboard.
const inputArea = "android:id/inputArea"

// keyboards are words in the names of packages that are keyboards.
var keyboards = []string{"inputmethod", "keyboard", "honeyboard", "swiftkey"}

// barShare is the part of the screen that a bar of the system takes at most, as
// a divisor.
const barShare = 10

// keysShare is the part of the screen that a keyboard takes at most, in quarters:
// what is larger is the window that it stands in.
const keysShare = 3

// windows sets apart the windows that are not the app's: a tree may hold those
// of the system and of the keyboard, before the app's or behind them. What is in
// front is never set apart.
func (c *condenser) windows() {
	var area box
	for i := int32(0); i < int32(len(c.nodes)); {
		root := &c.nodes[i]
		kind := flags(0)
		if pkg := string(c.text(root.pkg)); pkg != c.scene.Package {
			switch {
			case pkg == systemUI && c.bar(root.bounds.intersect(c.screen)):
				kind = foreign
			case c.keyboard(i):
				kind = foreign
				area = area.union(c.keyArea(i))
			}
		}
		for end := root.end; i < end; i++ {
			c.nodes[i].flags = c.nodes[i].flags&^foreign | kind
		}
	}
	if c.scene.Keyboard && c.scene.KeyboardArea.Empty() && !area.empty() {
		c.scene.KeyboardArea = area.rectangle()
	}
	c.keys = boxOf(c.scene.KeyboardArea).intersect(c.screen)
	if !c.scene.Keyboard || c.keys.empty() || c.keys.h()*4 > c.screen.h()*keysShare {
		c.keys = box{}
	}
	for i := range c.nodes {
		if n := &c.nodes[i]; n.has(focused) && !n.has(foreign) && c.class(n) == roleEdit && n.bounds.in(c.keys) {
			c.keys = box{} // people see what they type: the area is not to be believed
		}
	}
}

// bar reports whether a window of the system is a bar along an edge.
func (c *condenser) bar(b box) bool {
	s := c.screen
	return b.h() <= s.h()/barShare && (b.y0 <= s.y0 || b.y1 >= s.y1) ||
		b.w() <= s.w()/barShare && (b.x0 <= s.x0 || b.x1 >= s.x1)
}

// keyboard reports whether the window with root i is the keyboard's: the window
// manager lists it as such, its package is named so, or it has the place for
// keys.
func (c *condenser) keyboard(i int32) bool {
	pkg := c.text(c.nodes[i].pkg)
	for _, w := range c.scene.Windows {
		if w.Kind == phone.KeyboardWindow && w.Package == string(pkg) {
			return true
		}
	}
	for _, word := range keyboards {
		if bytes.Contains(pkg, []byte(word)) {
			return true
		}
	}
	for j := i; j < c.nodes[i].end; j++ {
		if string(c.text(c.nodes[j].id)) == inputArea {
			return true
		}
	}
	return false
}

// keyArea returns the place of the keys in the window with root i: that of its
// input area, else of all that has words.
func (c *condenser) keyArea(i int32) box {
	var all box
	for j := i; j < c.nodes[i].end; j++ {
		n := &c.nodes[j]
		if string(c.text(n.id)) == inputArea {
			return n.bounds.intersect(c.screen)
		}
		if n.text.n+n.desc.n > 0 {
			all = all.union(n.bounds.intersect(c.screen))
		}
	}
	return all
}

// underKeyboard takes what the keyboard covers off a node, and reports whether
// that is all of it. Only a keyboard as wide as the screen cuts nodes: what a
// floating one leaves of them is no rectangle.
func (c *condenser) underKeyboard(n *node) bool {
	if c.keys.empty() || n.rect.empty() {
		return false
	}
	if n.rect.in(c.keys) {
		return true
	}
	if c.keys.w()*barShare >= c.screen.w()*(barShare-1) && n.rect.y0 < c.keys.y0 && n.rect.y1 > c.keys.y0 && n.rect.y1 <= c.keys.y1 {
		n.rect.y1 = c.keys.y0
	}
	return false
}

// front returns the package of the largest window of an app, where nobody told
// what is in front.
func (t *tree) front() string {
	best, most := "", int64(-1)
	for i := 0; i < len(t.nodes); i = int(t.nodes[i].end) {
		n := &t.nodes[i]
		if a := n.bounds.area(); !n.has(foreign) && a > most {
			if pkg := t.pkg(int32(i)); pkg != "" {
				best, most = pkg, a
			}
		}
	}
	return best
}

// pkg returns the first package that is named in the window with root i.
func (t *tree) pkg(i int32) string {
	for j := i; j < t.nodes[i].end; j++ {
		if t.nodes[j].pkg != 0 {
			return string(t.text(t.nodes[j].pkg))
		}
	}
	return ""
}

// shows reports whether a window of the tree is of that package, or no window
// tells whose it is.
func (t *tree) shows(pkg string) bool {
	told := false
	for i := 0; i < len(t.nodes); i = int(t.nodes[i].end) {
		p := t.pkg(int32(i))
		if p == pkg {
			return true
		}
		told = told || p != ""
	}
	return !told
}
