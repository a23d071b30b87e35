package perception

// role is what a class or a node is; its name is one of the Role constants.
type role uint8

const (
	roleNone role = iota
	roleButton
	roleEdit
	roleText
	roleImage
	roleCheckbox
	roleSwitch
	roleList
	roleItem
	roleTab
	roleScroll
	roleWeb
	roleView
	roleSurface // a class that draws by itself what no node describes: a view
	roleTabs    // what holds tabs: a view
	roleClock   // a text that changes by itself
)

var roleNames = [...]string{
	roleNone: RoleView, roleButton: RoleButton, roleEdit: RoleEdit, roleText: RoleText, roleImage: RoleImage,
	roleCheckbox: RoleCheckbox, roleSwitch: RoleSwitch, roleList: RoleList, roleItem: RoleItem, roleTab: RoleTab,
	roleScroll: RoleScroll, roleWeb: RoleWeb, roleView: RoleView, roleSurface: RoleView, roleTabs: RoleView, roleClock: RoleText,
}

// classes maps the ends of class names to roles; the first that fits counts.
// Apps derive their own classes, and their names usually keep the end.
var classes = []struct {
	role role
	ends []string
}{
	{roleEdit, []string{"EditText", "AutoCompleteTextView", "SearchAutoComplete"}},
	{roleSwitch, []string{"Switch", "SwitchCompat", "SwitchMaterial", "ToggleButton"}},
	{roleCheckbox, []string{"CheckBox", "RadioButton", "CheckedTextView"}},
	{roleWeb, []string{"WebView"}},
	{roleList, []string{"ListView", "RecyclerView", "GridView"}},
	{roleScroll, []string{"ScrollView", "ViewPager", "ViewPager2"}},
	{roleTab, []string{"Tab", "TabView"}},
	{roleTabs, []string{"TabWidget"}},
	{roleButton, []string{"Button"}},
	{roleImage, []string{"ImageView", ".Image"}},
	{roleText, []string{"TextView", "Chronometer"}},
	{roleClock, []string{"TextClock", "DigitalClock"}},
	{roleSurface, []string{"SurfaceView", "TextureView"}},
}

func classRole[T string | []byte](class T) role {
	for i := range classes {
		for _, end := range classes[i].ends {
			if ends(class, end) {
				return classes[i].role
			}
		}
	}
	return roleNone
}

// class returns the role of a node's class.
func (t *tree) class(n *node) role { return t.names.list[n.class].role }

// role names what node i is.
func (c *condenser) role(i int32) role {
	n := &c.nodes[i]
	if n.toggle != 0 {
		return c.role(n.toggle) // one level: a toggle stands for nothing else
	}
	r := c.class(n)
	switch {
	case n.has(editable):
		return roleEdit
	case r == roleEdit || r == roleSwitch || r == roleCheckbox || r == roleWeb || r == roleTab:
		return r
	case n.has(checkable):
		return roleCheckbox
	case c.takes(n) && r != roleButton && r != roleList && r != roleScroll && c.row(i, r):
		return roleItem
	case r == roleSurface || r == roleTabs:
		return roleView
	case r != roleNone:
		return r
	case c.takes(n) && c.drawsButton(i):
		return roleButton
	case n.has(scrollable):
		return roleScroll
	case n.text.n > 0 && !c.touchable(n):
		return roleText
	}
	return roleView
}

// row reports whether touchable node i, of a class with role r, is a row of a
// list: a direct child of one, or a container whose nearest touchable ancestor
// is not nearer than the list.
func (c *condenser) row(i int32, r role) bool {
	for p := c.nodes[i].parent; p >= 0; p = c.nodes[p].parent {
		n := &c.nodes[p]
		switch c.class(n) {
		case roleTabs:
			return false
		case roleList:
			return true
		}
		if r != roleNone || c.touchable(n) || n.has(scrollable) {
			return false
		}
	}
	return false
}

// drawsButton reports whether touchable node i has a child of its size that is a
// button, cannot be touched and says nothing: Jetpack Compose writes down what a
// thing is as such a child.
func (c *condenser) drawsButton(i int32) bool {
	n := &c.nodes[i]
	for j, k := i+1, 0; j < n.end && k < maxBeside; j, k = c.nodes[j].end, k+1 {
		if m := &c.nodes[j]; c.class(m) == roleButton && m.bounds == n.bounds && !c.touchable(m) && !c.says(m) {
			return true
		}
	}
	return false
}
