package screen

import (
	"image"
	"strings"

	"phonerack/usb/phonesim/screen/internal/app"
	"phonerack/usb/phonesim/screen/internal/glyph"
)

// unbounded is the room along an axis that scrolls.
const unbounded = 1 << 24

// mode says how a widget takes the room that its parent offers along one axis.
type mode uint8

const (
	natural mode = iota // as its look says
	exact               // all of it
	shrink              // as its look says, but fill counts as wrap
)

// layouter measures the views of a window and gives them their places. Everything is laid out from left
// to right; for a right-to-left language the whole window is mirrored at the end.
type layouter struct {
	e   *Engine
	win *window
	rtl bool
	// measured counts calls of measure: views that fill a parent that wraps are measured again, and an app
	// may nest these.
	measured int
}

const maxMeasures = 200_000

func (e *Engine) rtl() bool { return e.language == "ar" }

// layout places a layer's views: an app's screen between the bars, a dialog in the middle of what is free.
func (e *Engine) layout(s *scene, l *layer) {
	m := &layouter{e: e, win: l.window, rtl: e.rtl()}
	display := image.Rectangle{Max: s.size}
	free := image.Rect(0, e.px(statusBarDP), s.size.X, s.size.Y-e.px(navigationBarDP))
	if s.keyboard != nil && (l.window.screen.Dialog || l.window.screen.Keyboard == "resize") {
		free.Max.Y = s.keyboard.rect.Min.Y
	}
	l.rect = display
	if l.root == nil {
		return
	}
	if l.window.screen.Dialog {
		free = free.Inset(e.px(20))
		m.measure(l.root, min(free.Dx(), e.px(400)), free.Dy(), exact, shrink)
		size := l.root.size
		l.rect = image.Rectangle{Max: size}.Add(free.Min).Add(free.Size().Sub(size).Div(2))
		m.place(l.root, l.rect.Min, l.rect)
	} else {
		m.measure(l.root, free.Dx(), free.Dy(), exact, exact)
		m.place(l.root, free.Min, free)
	}
	if m.rtl {
		l.root.walk(func(v *view) {
			v.rect, v.clip = mirrored(v.rect, s.size.X), mirrored(v.clip, s.size.X)
		})
	}
}

func mirrored(r image.Rectangle, width int) image.Rectangle {
	return image.Rect(width-r.Max.X, r.Min.Y, width-r.Min.X, r.Max.Y)
}

// insets in pixels, before mirroring: start is left.
func (m *layouter) insets(in app.Insets) (top, right, bottom, left int) {
	return m.e.px(in.Top), m.e.px(in.End), m.e.px(in.Bottom), m.e.px(in.Start)
}

// extent resolves one axis: the room for the widget and whether it takes all of it.
func (m *layouter) extent(s app.Size, room int, how mode) (int, bool) {
	switch {
	case how == exact:
		return room, true
	case s.Mode == app.Fixed:
		return min(m.e.px(s.DP), room), true
	case s.Mode == app.Fill && how == natural && room < unbounded/2:
		return room, true
	}
	return room, false
}

// measure decides a view's size within the room offered.
func (m *layouter) measure(v *view, roomW, roomH int, howW, howH mode) {
	if m.measured++; m.measured > maxMeasures {
		return
	}
	look := v.look
	if limit := m.e.px(look.MaxWidth); limit > 0 && limit < roomW && howW != exact {
		roomW = limit
	}
	w, allW := m.extent(look.Width, max(roomW, 0), howW)
	h, allH := m.extent(look.Height, max(roomH, 0), howH)
	top, right, bottom, left := m.insets(look.Padding)
	inner := image.Pt(max(w-left-right, 0), max(h-top-bottom, 0))
	need := m.content(v, inner, allW, allH)
	v.size = image.Pt(w, h)
	if !allW {
		v.size.X = min(need.X+left+right, w)
	}
	if !allH {
		v.size.Y = min(max(need.Y+top+bottom, m.e.px(look.MinHeight)), h)
	}
}

// content measures what is inside the padding.
func (m *layouter) content(v *view, inner image.Point, allW, allH bool) image.Point {
	look := v.look
	switch v.widget.Kind {
	case "column", "scroll", "list":
		if look.Horizontal {
			return m.line(v, inner, true, allW, allH)
		}
		if look.Columns > 1 {
			return m.grid(v, inner)
		}
		return m.line(v, inner, false, allW, allH)
	case "row", "toolbar":
		return m.line(v, inner, true, allW, allH)
	case "frame":
		return m.stack(v, inner)
	case "image", "icon":
		return image.Pt(m.e.px(look.Picture), m.e.px(look.Picture))
	case "spacer", "spinner":
		return image.Point{}
	}
	m.setText(v, inner.X)
	need := image.Pt(v.para.Width, v.para.Height)
	if limit := look.Lines * v.para.Height / len(v.para.Lines); v.widget.Kind == "edit" && limit > 0 {
		need.Y = min(need.Y, limit)
	}
	switch box := m.decoration(v); {
	case v.widget.Kind == "tab" && v.picture != nil:
		need = image.Pt(max(need.X, box), need.Y+box+m.e.px(2))
	case box > 0:
		need = image.Pt(need.X+box+m.e.px(look.Gap), max(need.Y, box))
	}
	return need
}

// sizes of the boxes that stand before or after a text, in dp.
const (
	checkboxDP    = 20
	switchWidthDP = 44
)

// decoration is the room, in pixels, of what a widget draws beside its text.
func (m *layouter) decoration(v *view) int { return m.e.decoration(v) }

func (e *Engine) decoration(v *view) int {
	switch {
	case v.widget.Kind == "checkbox":
		return e.px(checkboxDP)
	case v.widget.Kind == "switch":
		return e.px(switchWidthDP)
	case v.picture != nil:
		if v.look.Picture == 0 {
			return e.px(20)
		}
		return e.px(v.look.Picture)
	}
	return 0
}

// setText lays the view's text out in the width that the decoration leaves.
func (m *layouter) setText(v *view, width int) {
	look := v.look
	if box := m.decoration(v); box > 0 && v.widget.Kind != "tab" {
		width -= box + m.e.px(look.Gap)
	}
	text := v.text
	style := glyph.Style{Size: look.Size * float64(m.e.density()) / 160, Bold: look.Bold, Lines: look.Lines}
	if v.widget.Kind == "edit" {
		switch {
		case v.text == "":
			text = v.hint
		case v.widget.Password:
			text = dots(v.text)
		}
		if look.Lines == 1 {
			width = unbounded // a single line scrolls under its caret instead of breaking
		}
		style.Lines = 0
	}
	v.textWidth, v.textStyle = max(width, 1), style
	v.para = m.e.text.Layout(text, style, v.textWidth)
}

func dots(s string) string { return strings.Repeat("•", len([]rune(s))) }

// line measures children one after another along the x axis (across) or the y axis.
func (m *layouter) line(v *view, inner image.Point, across, allW, allH bool) image.Point {
	room, cross := inner.Y, inner.X
	allMain, allCross := allH, allW
	if across {
		room, cross = inner.X, inner.Y
		allMain, allCross = allW, allH
	}
	scrolls := v.scrollable()
	if scrolls {
		room = unbounded
	}
	gap := m.e.px(v.look.Gap)
	used, weights, widest := max(len(v.children)-1, 0)*gap, 0.0, 0
	crossMode := natural
	if !allCross {
		crossMode = shrink
	}
	for _, c := range v.children {
		if c.look.Weight > 0 && room < unbounded/2 && (allMain || across) {
			weights += c.look.Weight
			used += m.along(c, across)
			continue
		}
		m.child(c, room-used, cross, across, natural, crossMode)
		used += m.length(c, across)
		widest = max(widest, m.length(c, !across))
	}
	if weights > 0 {
		left := max(room-used, 0)
		for _, c := range v.children {
			if c.look.Weight > 0 {
				share := int(float64(left) * c.look.Weight / weights)
				m.child(c, share+m.along(c, across), cross, across, exact, crossMode)
				used += share
				widest = max(widest, m.length(c, !across))
			}
		}
	}
	if !allCross { // now it is known how wide "fill" is
		for _, c := range v.children {
			size := c.look.Width
			if across {
				size = c.look.Height
			}
			if size.Mode == app.Fill {
				m.child(c, m.length(c, across), widest, across, exact, exact)
			}
		}
	}
	if scrolls {
		v.content = used
	}
	if across {
		return image.Pt(used, widest)
	}
	return image.Pt(widest, used)
}

// child measures c in a room given along and across its parent's axis, margins included.
func (m *layouter) child(c *view, along, cross int, across bool, howMain, howCross mode) {
	top, right, bottom, left := m.insets(c.look.Margin)
	if across {
		m.measure(c, along-left-right, cross-top-bottom, howMain, howCross)
	} else {
		m.measure(c, cross-left-right, along-top-bottom, howCross, howMain)
	}
}

// along is the sum of c's margins on the axis, length that and c's size.
func (m *layouter) along(c *view, across bool) int {
	top, right, bottom, left := m.insets(c.look.Margin)
	if across {
		return left + right
	}
	return top + bottom
}

func (m *layouter) length(c *view, across bool) int {
	if across {
		return c.size.X + m.along(c, true)
	}
	return c.size.Y + m.along(c, false)
}

// grid measures children in rows of equal cells.
func (m *layouter) grid(v *view, inner image.Point) image.Point {
	columns, gap := v.look.Columns, m.e.px(v.look.Gap)
	cell := (inner.X - (columns-1)*gap) / columns
	total := 0
	for i := 0; i < len(v.children); i += columns {
		row := v.children[i:min(i+columns, len(v.children))]
		height := 0
		for _, c := range row {
			m.child(c, unbounded, cell, false, natural, exact)
			height = max(height, m.length(c, false))
		}
		for _, c := range row {
			m.child(c, height, cell, false, exact, exact)
		}
		total += height
		if i > 0 {
			total += gap
		}
	}
	v.content = total
	return image.Pt(inner.X, total)
}

// stack measures children on top of one another.
func (m *layouter) stack(v *view, inner image.Point) image.Point {
	var need image.Point
	for _, c := range v.children {
		m.child(c, inner.Y, inner.X, false, natural, natural)
		need.X, need.Y = max(need.X, m.length(c, true)), max(need.Y, m.length(c, false))
	}
	return need
}
