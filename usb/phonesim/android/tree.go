package android

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"phonerack/usb/phonesim/screen"
)

// treeWriter writes a tree the way Android's node dumper and its XML serializer do: the order of attributes,
// quotes and character references are theirs.
type treeWriter struct {
	version  int
	rotation int
	b        strings.Builder
}

// maxTreeDepth bounds the depth of what is written.
const maxTreeDepth = 200

func (t *treeWriter) document(root *screen.Node) string {
	fmt.Fprintf(&t.b, "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"%d\">", t.rotation)
	t.node(root, 0, 0)
	t.b.WriteString("</hierarchy>")
	return t.b.String()
}

func (t *treeWriter) node(n *screen.Node, index, depth int) {
	if depth > maxTreeDepth {
		return
	}
	t.b.WriteString("<node")
	if notFriendly(n) {
		t.attr("NAF", "true")
	}
	t.attr("index", strconv.Itoa(index))
	t.attr("text", shownText(n))
	t.attr("resource-id", n.ResourceID)
	t.attr("class", n.Class)
	t.attr("package", n.Package)
	t.attr("content-desc", n.Desc)
	t.flag("checkable", n.Checkable)
	t.flag("checked", n.Checked)
	t.flag("clickable", n.Clickable)
	t.flag("enabled", n.Enabled)
	t.flag("focusable", n.Focusable)
	t.flag("focused", n.Focused)
	t.flag("scrollable", n.Scrollable)
	t.flag("long-clickable", n.LongClickable)
	t.flag("password", n.Password)
	t.flag("selected", n.Selected)
	b := n.Bounds
	t.attr("bounds", fmt.Sprintf("[%d,%d][%d,%d]", b.Min.X, b.Min.Y, b.Max.X, b.Max.Y))
	if t.version >= 14 {
		t.attr("drawing-order", strconv.Itoa(index+1))
		t.attr("hint", n.Hint)
		t.attr("display-id", "0")
	}
	// A child that cannot be seen is left out, but counted.
	shown := false
	for i, c := range n.Children {
		if c == nil || c.Bounds.Empty() {
			continue
		}
		if !shown {
			t.b.WriteByte('>')
			shown = true
		}
		t.node(c, i, depth+1)
	}
	if shown {
		t.b.WriteString("</node>")
		return
	}
	t.b.WriteString(" />")
}

// shownText is what getText gives: the hint of an empty field, dots for a password.
func shownText(n *screen.Node) string {
	switch {
	case n.Text == "" && strings.HasSuffix(n.Class, "EditText"):
		return n.Hint
	case n.Password:
		return strings.Repeat("\u2022", len([]rune(n.Text)))
	}
	return n.Text
}

// containers are left out of the check for accessible names.
var containers = []string{"GridView", "ListView", "RecyclerView", "TableLayout", "GridLayout"}

// notFriendly is Android's check of accessibility: something that can be clicked but has no name, nor
// has anything inside it.
func notFriendly(n *screen.Node) bool {
	for _, c := range containers {
		if strings.HasSuffix(n.Class, c) {
			return false
		}
	}
	return n.Clickable && n.Enabled && !named(n, 0)
}

func named(n *screen.Node, depth int) bool {
	if shownText(n) != "" || n.Desc != "" {
		return true
	}
	for _, c := range n.Children {
		if c != nil && depth < maxTreeDepth && named(c, depth+1) {
			return true
		}
	}
	return false
}

func (t *treeWriter) flag(name string, v bool) { t.attr(name, strconv.FormatBool(v)) }

// attr writes an attribute. A value with a double quote stands between single ones.
func (t *treeWriter) attr(name, value string) {
	quote := byte('"')
	if strings.IndexByte(value, '"') >= 0 {
		quote = '\''
	}
	t.b.WriteString(" " + name + "=")
	t.b.WriteByte(quote)
	units := utf16.Encode([]rune(value))
	for i := 0; i < len(units); i++ {
		u := units[i]
		if high := u >= 0xd800 && u < 0xdc00; high && i+1 < len(units) {
			t.surrogates(u, units[i+1])
			i++
			continue
		}
		t.unit(u, quote)
	}
	t.b.WriteByte(quote)
}

// surrogates writes a character beyond the first plane. Android 7 writes two references to half a character,
// which is no XML; Android 9 two dots; later ones a proper reference.
func (t *treeWriter) surrogates(high, low uint16) {
	switch {
	case t.version < 9:
		fmt.Fprintf(&t.b, "&#%d;&#%d;", high, low)
	case t.version < 11:
		t.b.WriteString("..")
	default:
		fmt.Fprintf(&t.b, "&#%d;", utf16.DecodeRune(rune(high), rune(low)))
	}
}

func (t *treeWriter) unit(u uint16, quote byte) {
	switch {
	case u == '\n' || u == '\r' || u == '\t':
		fmt.Fprintf(&t.b, "&#%d;", u)
	case u == '&':
		t.b.WriteString("&amp;")
	case u == '<':
		t.b.WriteString("&lt;")
	case u == '>':
		t.b.WriteString("&gt;")
	case u == '\'' && quote == '\'':
		t.b.WriteString("&apos;")
	case u < 0x20, u >= 0x7f && u <= 0x84, u >= 0x86 && u <= 0x9f, u >= 0xd800 && u < 0xe000, u >= 0xfdd0 && u <= 0xfddf, u >= 0xfffe:
		t.b.WriteByte('.')
	default:
		t.b.WriteRune(rune(u))
	}
}
