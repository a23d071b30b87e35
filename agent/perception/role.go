package perception

import "strings"

// classes maps the ends of class names to roles; the first that fits counts.
// Apps derive their own classes, and their names usually keep the end.
var classes = []struct {
	role string
	ends []string
}{
	{RoleEdit, []string{"EditText", "AutoCompleteTextView", "SearchAutoComplete"}},
	{RoleSwitch, []string{"Switch", "SwitchCompat", "SwitchMaterial", "ToggleButton"}},
	{RoleCheckbox, []string{"CheckBox", "RadioButton", "CheckedTextView"}},
	{RoleWeb, []string{"WebView"}},
	{RoleList, []string{"ListView", "RecyclerView", "GridView"}},
	{RoleScroll, []string{"ScrollView", "ViewPager", "ViewPager2"}},
	{RoleTab, []string{"Tab", "TabView"}},
	{RoleButton, []string{"Button"}},
	{RoleImage, []string{"ImageView", ".Image"}},
	{RoleText, []string{"TextView", "TextClock", "Chronometer"}},
}

func classRole(class string) string {
	for _, c := range classes {
		for _, end := range c.ends {
			if strings.HasSuffix(class, end) {
				return c.role
			}
		}
	}
	return ""
}

// role names what node i is.
func (c *condenser) role(i int) string {
	n := &c.nodes[i]
	if j, ok := c.toggle[i]; ok {
		return c.role(j) // one level: a toggle stands for nothing else
	}
	role := classRole(n.class)
	switch {
	case n.has(editable):
		return RoleEdit
	case role == RoleEdit || role == RoleSwitch || role == RoleCheckbox || role == RoleWeb || role == RoleTab:
		return role
	case n.has(checkable):
		return RoleCheckbox
	case n.has(clickable|longClickable) && role != RoleButton && role != RoleList && role != RoleScroll && c.row(i, role):
		return RoleItem
	case role != "":
		return role
	case n.has(scrollable):
		return RoleScroll
	case n.text != "" && !n.touchable():
		return RoleText
	}
	return RoleView
}

// row reports whether touchable node i is a row of a list: a direct child of
// one, or a container whose nearest touchable ancestor is not nearer than the
// list.
func (c *condenser) row(i int, role string) bool {
	for p := c.nodes[i].parent; p >= 0; p = c.nodes[p].parent {
		n := &c.nodes[p]
		if strings.HasSuffix(n.class, "TabWidget") {
			return false
		}
		if classRole(n.class) == RoleList {
			return true
		}
		if role != "" || n.touchable() || n.has(scrollable) {
			return false
		}
	}
	return false
}
