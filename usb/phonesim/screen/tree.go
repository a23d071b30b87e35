package screen

import (
	"image"
	"slices"
	"strings"

	"phonerack/usb/phonesim/screen/internal/app"
)

// Node is one view as accessibility reports it. Bounds are in pixels of the display as it is now, clipped
// to what can be seen of the view.
type Node struct {
	Class      string
	ResourceID string // "com.phonerack.shop:id/search"
	Text       string // of a password: dots
	Desc       string // content-desc
	Hint       string
	Package    string
	Bounds     image.Rectangle

	Checkable, Checked, Clickable, Enabled, Focusable, Focused bool
	Scrollable, LongClickable, Password, Selected              bool

	Children []*Node
}

// Tree returns the visible nodes of the active window, like getRootInActiveWindow: a dialog hides the
// window below it, and neither the keyboard nor the system's bars are part of it. What lies under the
// keyboard is still reported. It is nil while the display is off.
func (e *Engine) Tree() *Node {
	e.lock()
	defer e.mu.Unlock()
	if !e.on {
		return nil
	}
	return e.current().active().tree()
}

// Trees returns the visible nodes of every window that is to be seen, the topmost first: the status bar, the
// keyboard, dialogs, screens.
func (e *Engine) Trees() []*Node {
	e.lock()
	defer e.mu.Unlock()
	if !e.on {
		return nil
	}
	s := e.current()
	out := []*Node{e.statusTree(s)}
	if s.keyboard != nil {
		out = append(out, s.keyboard.tree())
	}
	for _, l := range slices.Backward(s.layers) {
		out = append(out, l.tree())
	}
	return out
}

func (l *layer) tree() *Node {
	pkg := l.window.owner()
	group := func(class, id string, children ...*Node) *Node {
		return &Node{Class: class, ResourceID: id, Package: pkg, Bounds: l.rect, Enabled: true, Children: children}
	}
	content := group("android.widget.FrameLayout", "android:id/content")
	content.add(l.root, pkg)
	frame := group("android.widget.FrameLayout", "", content)
	if l.window.screen.Dialog {
		return frame
	}
	return group("android.widget.FrameLayout", "", group("android.widget.LinearLayout", "", frame))
}

// KeyboardPackage is the package of the nodes that Trees gives for the keyboard.
const KeyboardPackage = "com.google.android.inputmethod.latin"

func (k *keyboard) tree() *Node {
	root := &Node{Class: "android.widget.FrameLayout", ResourceID: "android:id/inputArea", Package: KeyboardPackage, Bounds: k.rect, Enabled: true}
	for _, key := range k.keys {
		name := key.label
		if name == "" || name == " " {
			name = map[keyAction]string{deleteBack: "Delete", enter: "Enter", shift: "Shift", typeText: "Space"}[key.action]
		}
		root.Children = append(root.Children, &Node{
			Class: "android.inputmethodservice.Keyboard$Key", Desc: name, Package: KeyboardPackage, Bounds: key.rect, Enabled: true, Clickable: true,
		})
	}
	return root
}

func (e *Engine) statusTree(s *scene) *Node {
	bar := image.Rect(0, 0, s.size.X, e.px(statusBarDP))
	clock := &Node{
		Class: "android.widget.TextView", ResourceID: app.SystemUI + ":id/clock", Text: e.now.Format("15:04"), Package: app.SystemUI, Enabled: true,
		Bounds: image.Rect(e.px(16), 0, e.px(64), bar.Max.Y),
	}
	if e.rtl() {
		clock.Bounds = mirrored(clock.Bounds, s.size.X)
	}
	return &Node{
		Class: "android.widget.FrameLayout", ResourceID: app.SystemUI + ":id/status_bar", Package: app.SystemUI, Bounds: bar, Enabled: true,
		Children: []*Node{clock},
	}
}

// add appends the node of v, which belongs to a package, unless nothing of it can be seen.
func (n *Node) add(v *view, pkg string) {
	if v == nil || v.widget.Kind == "spacer" {
		return
	}
	bounds := v.visible()
	if bounds.Empty() {
		return
	}
	w := v.widget
	edit := w.Kind == "edit"
	c := &Node{
		Class: v.class, ResourceID: resourceID(pkg, w.ID), Text: v.text, Desc: v.desc, Hint: v.hint,
		Package: pkg, Bounds: bounds,
		Checkable: w.Kind == "checkbox" || w.Kind == "switch", Checked: v.checked,
		Clickable: v.clickable(), Enabled: v.enabled, LongClickable: v.longClickable(),
		Focused: v.focused, Scrollable: v.scrollable() && v.content > v.viewport(),
		Password: w.Password, Selected: v.selected,
	}
	c.Focusable = c.Clickable || c.Scrollable
	if edit && w.Password {
		c.Text = dots(v.text)
	}
	n.Children = append(n.Children, c)
	if w.Leaf {
		return
	}
	for _, child := range v.children {
		c.add(child, pkg)
	}
}

// resourceID completes the id of an app's own view; "android:id/title" is complete.
func resourceID(pkg, id string) string {
	if id == "" || strings.Contains(id, ":") {
		return id
	}
	return pkg + ":id/" + id
}
