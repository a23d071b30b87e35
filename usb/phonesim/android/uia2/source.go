package uia2

import (
	"context"
	"fmt"
	"image"
	"net/http"
	"strconv"
	"strings"
	"time"

	"phonerack/usb/phonesim/screen"
)

// Waiting for a window that has a root.
const (
	rootTimeout = 10 * time.Second
	rootPoll    = 250 * time.Millisecond
)

// source writes the page source.
func (s *Server) source(ctx context.Context, _ []byte) (any, *failure) {
	if f := s.waitIdle(ctx); f != nil {
		return nil, f
	}
	if f := s.automation(); f != nil {
		return nil, f
	}
	s.mu.Lock()
	old := s.last
	s.mu.Unlock()
	if s.phone.Faults().Stale && old != "" {
		return old, nil
	}
	roots, f := s.roots(ctx)
	if f != nil {
		return nil, f
	}
	depth, _ := s.setting("snapshotMaxDepth").(float64)
	w := &writer{api: s.config.API, depth: int(min(max(depth, 1), maxDepth)), area: s.area()}
	text := w.document(roots, s.phone.Display())
	s.mu.Lock()
	s.last = text
	s.mu.Unlock()
	return text, nil
}

func (s *Server) area() image.Rectangle {
	d := s.phone.Display()
	return image.Rect(0, 0, d.Width, d.Height)
}

// roots are those of the active window, or of all if the setting says so.
func (s *Server) roots(ctx context.Context) ([]*screen.Node, *failure) {
	if all, _ := s.setting("enableMultiWindows").(bool); all {
		return s.phone.Trees(), nil
	}
	for waited := time.Duration(0); waited < rootTimeout; waited += rootPoll {
		if root := s.phone.Tree(); root != nil {
			return []*screen.Node{root}, nil
		}
		if err := s.phone.Wait(ctx, rootPoll); err != nil {
			break
		}
	}
	return nil, fail(http.StatusInternalServerError, "unknown error", exceptions+"UiAutomator2Exception",
		"Timed out after %dms waiting for the root AccessibilityNodeInfo in the active window. Make sure the active window is not constantly "+
			"hogging the main UI thread (e.g. the application is being idle long enough), so the accessibility manager could do its work",
		(rootTimeout + 18*time.Millisecond).Milliseconds())
}

// maxDepth bounds the setting snapshotMaxDepth.
const maxDepth = 500

// Levels of Android that brought attributes.
const (
	apiP = 28
	apiQ = 29
)

// writer writes a source as the server's serializer does: with indentation, and with attributes in the server's
// order.
type writer struct {
	api   int
	depth int
	area  image.Rectangle
	b     strings.Builder
}

func (w *writer) document(roots []*screen.Node, d screen.Display) string {
	w.b.WriteString("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\r\n")
	fmt.Fprintf(&w.b, `<hierarchy index="0" class="hierarchy" rotation="%d" width="%d" height="%d"`, d.Rotation, d.Width, d.Height)
	if len(roots) == 0 {
		w.b.WriteString(" />")
		return w.b.String()
	}
	w.b.WriteByte('>')
	for i, n := range roots {
		w.node(n, i, 1)
	}
	w.b.WriteString("\r\n</hierarchy>")
	return w.b.String()
}

func (w *writer) indent(level int) { w.b.WriteString("\r\n" + strings.Repeat("  ", level)) }

func (w *writer) node(n *screen.Node, index, level int) {
	w.indent(level)
	tag := tagName(n.Class)
	w.b.WriteString("<" + tag)
	w.attributes(n, index)
	shown := false
	for i, c := range n.Children {
		if c == nil || c.Bounds.Empty() || level >= w.depth {
			continue
		}
		if !shown {
			w.b.WriteByte('>')
			shown = true
		}
		w.node(c, i, level+1)
	}
	if !shown {
		w.b.WriteString(" />")
		return
	}
	w.indent(level)
	w.b.WriteString("</" + tag + ">")
}

// tagName makes a name of an element of a class name.
func tagName(class string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("$@#&", r) {
			return '.'
		}
		return r
	}, class)
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	if name = strings.Trim(name, "."); name == "" {
		return "android.view.View"
	}
	return name
}

func (w *writer) attributes(n *screen.Node, index int) {
	edit := strings.HasSuffix(n.Class, "EditText")
	text, hinted := n.Text, false
	if edit && text == "" && n.Hint != "" {
		text, hinted = n.Hint, true
	}
	w.attr("index", strconv.Itoa(index))
	w.attr("package", n.Package)
	w.attr("class", n.Class)
	w.attr("text", text)
	w.optional("content-desc", n.Desc)
	w.optional("resource-id", n.ResourceID)
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"checkable", n.Checkable},
		{"checked", n.Checked},
		{"clickable", n.Clickable},
		{"enabled", n.Enabled},
		{"focusable", n.Focusable},
		{"focused", n.Focused},
		{"long-clickable", n.LongClickable},
		{"password", n.Password},
		{"scrollable", n.Scrollable},
		{"selected", n.Selected},
	} {
		w.flag(f.name, f.on)
	}
	b := n.Bounds.Intersect(w.area)
	w.attr("bounds", fmt.Sprintf("[%d,%d][%d,%d]", b.Min.X, b.Min.Y, b.Max.X, b.Max.Y))
	w.flag("displayed", true)
	w.optional("hint", n.Hint)
	w.flag("a11y-important", true)
	if w.api >= apiP {
		w.flag("screen-reader-focusable", false)
	}
	if edit {
		w.attr("input-type", map[bool]string{true: "129", false: "1"}[n.Password])
	}
	w.attr("drawing-order", strconv.Itoa(index+1))
	w.flag("showing-hint", hinted)
	if w.api >= apiQ {
		w.flag("text-entry-key", false)
	}
	w.flag("dismissable", false)
	w.flag("a11y-focused", false)
	if w.api >= apiP {
		w.flag("heading", false)
	}
	w.attr("live-region", "0")
	w.flag("context-clickable", false)
	w.flag("content-invalid", false)
	w.attr("window-id", "1")
}

func (w *writer) flag(name string, on bool) { w.attr(name, strconv.FormatBool(on)) }

// optional leaves an attribute out that has no value.
func (w *writer) optional(name, value string) {
	if value != "" {
		w.attr(name, value)
	}
}

// attr writes an attribute. A value with a double quote stands between single ones; what XML forbids becomes "?",
// characters beyond the first plane a reference.
func (w *writer) attr(name, value string) {
	quote := byte('"')
	if strings.IndexByte(value, '"') >= 0 {
		quote = '\''
	}
	w.b.WriteString(" " + name + "=")
	w.b.WriteByte(quote)
	for _, r := range value {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			fmt.Fprintf(&w.b, "&#%d;", r)
		case r == '&':
			w.b.WriteString("&amp;")
		case r == '<':
			w.b.WriteString("&lt;")
		case r == '>':
			w.b.WriteString("&gt;")
		case r == '\'' && quote == '\'':
			w.b.WriteString("&apos;")
		case r < 0x20, r > 0xfffd && r < 0x10000, r == 0xfffd:
			w.b.WriteByte('?')
		case r > 0xffff:
			fmt.Fprintf(&w.b, "&#%d;", r)
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte(quote)
}
