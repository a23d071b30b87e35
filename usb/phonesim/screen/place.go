package screen

import (
	"image"
	"strings"
)

// place gives v and what is in it their rectangles on the display, seen through clip.
func (m *layouter) place(v *view, at image.Point, clip image.Rectangle) {
	v.rect = image.Rectangle{Min: at, Max: at.Add(v.size)}
	v.clip = clip
	top, right, bottom, left := m.insets(v.look.Padding)
	inner := image.Rect(v.rect.Min.X+left, v.rect.Min.Y+top, v.rect.Max.X-right, v.rect.Max.Y-bottom)
	if v.scrollable() {
		clip = clip.Intersect(v.rect)
		v.content += top + bottom
		if v.look.Horizontal {
			v.content += left + right - top - bottom
		}
		m.scroll(v)
	}
	switch v.widget.Kind {
	case "frame":
		m.placeStack(v, inner, clip)
	case "row", "toolbar":
		m.placeLine(v, inner, clip, true)
	case "column":
		m.placeLine(v, inner, clip, false)
	case "scroll", "list":
		switch {
		case v.look.Horizontal:
			m.placeLine(v, inner.Sub(image.Pt(v.offset, 0)), clip, true)
		case v.look.Columns > 1:
			m.placeGrid(v, inner.Sub(image.Pt(0, v.offset)), clip)
		default:
			m.placeLine(v, inner.Sub(image.Pt(0, v.offset)), clip, false)
		}
	}
}

// scroll turns the position that the window remembers into an offset from the top, within bounds.
func (m *layouter) scroll(v *view) {
	limit := max(v.content-v.viewport(), 0)
	pos := min(max(m.win.scroll[v.key], 0), limit)
	m.win.scroll[v.key] = pos
	if v.widget.Bottom {
		pos = limit - pos
	}
	v.offset = pos
}

func (m *layouter) placeLine(v *view, inner image.Rectangle, clip image.Rectangle, across bool) {
	gap := m.e.px(v.look.Gap)
	used := max(len(v.children)-1, 0) * gap
	for _, c := range v.children {
		used += m.length(c, across)
	}
	free := inner.Dy() - used
	if across {
		free = inner.Dx() - used
	}
	pos, extra := 0, 0
	if free > 0 && !v.scrollable() {
		switch v.look.Justify {
		case "center":
			pos = free / 2
		case "end":
			pos = free
		case "between":
			extra = free / max(len(v.children)-1, 1)
		}
	}
	for _, c := range v.children {
		top, right, bottom, left := m.insets(c.look.Margin)
		at := inner.Min
		if across {
			at = at.Add(image.Pt(pos+left, top+aligned(v.look.Align, inner.Dy()-c.size.Y-top-bottom)))
		} else {
			at = at.Add(image.Pt(left+aligned(v.look.Align, inner.Dx()-c.size.X-left-right), pos+top))
		}
		m.place(c, at, clip)
		pos += m.length(c, across) + gap + extra
	}
}

// aligned is where something starts that leaves free pixels of its room.
func aligned(align string, free int) int {
	switch align {
	case "center":
		return free / 2
	case "end":
		return free
	}
	return 0
}

func (m *layouter) placeGrid(v *view, inner image.Rectangle, clip image.Rectangle) {
	columns, gap := v.look.Columns, m.e.px(v.look.Gap)
	cell := (inner.Dx() - (columns-1)*gap) / columns
	y := inner.Min.Y
	for i := 0; i < len(v.children); i += columns {
		height := 0
		for j, c := range v.children[i:min(i+columns, len(v.children))] {
			top, _, _, left := m.insets(c.look.Margin)
			m.place(c, image.Pt(inner.Min.X+j*(cell+gap)+left, y+top), clip)
			height = max(height, m.length(c, false))
		}
		y += height + gap
	}
}

func (m *layouter) placeStack(v *view, inner image.Rectangle, clip image.Rectangle) {
	for _, c := range v.children {
		top, right, bottom, left := m.insets(c.look.Margin)
		horizontal, vertical := "start", "start"
		for _, word := range strings.Fields(c.look.Place) {
			switch word {
			case "center":
				if c.look.Place == "center" {
					horizontal = "center"
				}
				vertical = "center"
			case "middle":
				horizontal = "center"
			case "end":
				horizontal = "end"
			case "bottom":
				vertical = "end"
			}
		}
		m.place(c, image.Pt(
			inner.Min.X+left+aligned(horizontal, inner.Dx()-c.size.X-left-right),
			inner.Min.Y+top+aligned(vertical, inner.Dy()-c.size.Y-top-bottom),
		), clip)
	}
}
