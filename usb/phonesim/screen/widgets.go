package screen

import (
	"image"
	"image/color"

	"phonerack/usb/phonesim/screen/internal/paint"
)

// drawText draws a view's paragraph in a rectangle: vertically centred, its lines at the start, the
// centre or the end.
func (e *Engine) drawText(c *paint.Canvas, v *view, r image.Rectangle, align string, ink color.NRGBA) {
	p := v.para
	y := r.Min.Y + max((r.Dy()-p.Height)/2, 0)
	for i := range p.Lines {
		l := &p.Lines[i]
		free := r.Dx() - l.Width
		x := r.Min.X + aligned(e.alignment(align), free)
		e.text.Draw(c.Image, c.Clip, p, l, x, y, ink)
		if v.look.Strike {
			mid := y + l.Baseline - int(p.Size*0.3)
			c.Fill(image.Rect(x, mid, x+l.Width, mid+max(e.px(1), 1)), ink)
		}
	}
}

// alignment turns start and end round in a right-to-left language.
func (e *Engine) alignment(align string) string {
	switch {
	case align == "center":
		return align
	case (align == "end") != e.rtl():
		return "end"
	}
	return "start"
}

// split cuts the room for a decoration off the start (or the end) of a rectangle.
func (e *Engine) split(r image.Rectangle, width, gap int, atEnd bool) (box, rest image.Rectangle) {
	box, rest = r, r
	if atEnd == e.rtl() {
		box.Max.X = r.Min.X + width
		rest.Min.X = box.Max.X + gap
	} else {
		box.Min.X = r.Max.X - width
		rest.Max.X = box.Min.X - gap
	}
	return box, rest
}

// ink is the colour of a view's text: pale where it is disabled.
func (v *view) ink() color.NRGBA {
	if !v.enabled {
		return color.NRGBA{0x90, 0x94, 0x9a, 255}
	}
	return v.tint
}

func (e *Engine) drawLabel(c *paint.Canvas, v *view, inner image.Rectangle) {
	if v.picture == nil {
		e.drawText(c, v, inner, v.look.Align, v.ink())
		return
	}
	size, gap := e.decoration(v), e.px(v.look.Gap)
	if v.look.Align == "center" {
		free := max(inner.Dx()-size-gap-v.para.Width, 0)
		inner.Min.X, inner.Max.X = inner.Min.X+free/2, inner.Max.X-free/2
	}
	box, rest := e.split(inner, size, gap, false)
	c.Picture(v.picture, image.Pt(box.Min.X, box.Min.Y+(box.Dy()-size)/2), size, v.ink(), e.rtl())
	e.drawText(c, v, rest, "start", v.ink())
}

func (e *Engine) drawEdit(c *paint.Canvas, v *view, inner image.Rectangle) {
	primary := e.color(v.app, "primary")
	if v.focused {
		c.Border(v.rect, e.px(v.look.Radius), e.px(2), primary)
	}
	if v.picture != nil {
		size := e.decoration(v)
		var box image.Rectangle
		box, inner = e.split(inner, size, e.px(v.look.Gap), false)
		c.Picture(v.picture, image.Pt(box.Min.X, box.Min.Y+(box.Dy()-size)/2), size, e.color(v.app, "icon"), e.rtl())
	}
	ink := v.ink()
	if v.text == "" {
		ink = e.color(v.app, "text_hint")
	}
	field := c.Within(image.Rect(inner.Min.X-e.px(2), inner.Min.Y, inner.Max.X+e.px(2), inner.Max.Y))
	r := inner
	if v.para.Height > inner.Dy() {
		r.Min.Y = r.Max.Y - v.para.Height // the last lines show, where the caret usually is
	}
	if free := inner.Dx() - v.para.Width; free < 0 && v.look.Lines == 1 {
		if v.para.RTL {
			r.Max.X = r.Min.X + v.para.Width
		} else {
			r.Min.X = r.Max.X - v.para.Width
		}
	}
	e.drawText(field, v, r, "start", ink)
	if v.focused {
		e.drawCaret(field, v, r, primary)
	}
}

// drawCaret draws the caret of a focused edit; it does not blink, so that pictures of one state are equal.
func (e *Engine) drawCaret(c *paint.Canvas, v *view, r image.Rectangle, ink color.NRGBA) {
	p, head := v.para, []rune(v.text)[:v.cursor]
	lineHeight := p.Height / len(p.Lines)
	line, before, width := 0, 0, 0
	if v.text != "" {
		shown := string(head)
		if v.widget.Password {
			shown = dots(shown)
		}
		h := e.text.Layout(shown, v.textStyle, v.textWidth)
		line = min(len(h.Lines), len(p.Lines)) - 1
		before, width = h.Lines[line].Width, p.Lines[line].Width
	}
	x := r.Min.X + aligned(e.alignment("start"), r.Dx()-width)
	if p.RTL && v.text != "" {
		x += width - before
	} else {
		x += before
	}
	y := r.Min.Y + max((r.Dy()-p.Height)/2, 0) + line*lineHeight
	c.Fill(image.Rect(x, y, x+max(e.px(2), 1), y+lineHeight), ink)
}

func (e *Engine) drawToggle(c *paint.Canvas, v *view, inner image.Rectangle) {
	size := e.decoration(v)
	on := v.ink()
	if primary := e.color(v.app, "primary"); v.enabled {
		on = primary
	}
	isSwitch := v.widget.Kind == "switch"
	box, rest := e.split(inner, size, e.px(v.look.Gap), isSwitch)
	mid := (box.Min.Y + box.Max.Y) / 2
	white, grey := color.NRGBA{255, 255, 255, 255}, color.NRGBA{0x74, 0x77, 0x7f, 255}
	if isSwitch {
		h := e.px(26)
		track := image.Rect(box.Min.X, mid-h/2, box.Max.X, mid-h/2+h)
		thumb := e.px(18)
		inset := (h - thumb) / 2
		x := track.Min.X + inset
		if v.checked != e.rtl() {
			x = track.Max.X - inset - thumb
		}
		knob := image.Rect(x, track.Min.Y+inset, x+thumb, track.Min.Y+inset+thumb)
		if v.checked {
			c.FillRound(track, h/2, on)
			c.FillRound(knob, thumb/2, white)
		} else {
			c.FillRound(track, h/2, color.NRGBA{0xe1, 0xe2, 0xe8, 255})
			c.Border(track, h/2, e.px(2), grey)
			c.FillRound(knob.Inset(e.px(2)), thumb/2, grey)
		}
	} else {
		square := image.Rect(box.Min.X, mid-size/2, box.Min.X+size, mid-size/2+size)
		if v.checked {
			c.FillRound(square, e.px(3), on)
			if p := e.findPicture(v.app, "check"); p != nil {
				c.Picture(p, square.Min, size, white, false)
			}
		} else {
			c.Border(square, e.px(3), e.px(2), grey)
		}
	}
	e.drawText(c, v, rest, "start", v.ink())
}

func (e *Engine) drawTab(c *paint.Canvas, v *view, inner image.Rectangle) {
	ink := v.ink()
	if v.selected {
		ink = e.color(v.app, "primary")
	}
	if v.picture == nil {
		e.drawText(c, v, inner, "center", ink)
		if v.selected {
			line := image.Rect(inner.Min.X, v.rect.Max.Y-e.px(3), inner.Max.X, v.rect.Max.Y)
			c.FillRound(line, e.px(1.5), ink)
		}
		return
	}
	size := e.decoration(v)
	y := inner.Min.Y + (inner.Dy()-size-v.para.Height)/2
	c.Picture(v.picture, image.Pt((inner.Min.X+inner.Max.X-size)/2, y), size, ink, e.rtl())
	e.drawText(c, v, image.Rect(inner.Min.X, y+size, inner.Max.X, y+size+v.para.Height), "center", ink)
}
