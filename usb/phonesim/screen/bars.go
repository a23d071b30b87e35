package screen

import (
	"image"
	"image/color"
	"strconv"

	"phonerack/usb/phonesim/screen/internal/app"
	"phonerack/usb/phonesim/screen/internal/glyph"
	"phonerack/usb/phonesim/screen/internal/paint"
)

// drawStatus draws clock, signal, Wi-Fi and battery.
func (e *Engine) drawStatus(c *paint.Canvas, bar image.Rectangle, ink color.NRGBA) {
	pad := e.px(16)
	inner := image.Rect(bar.Min.X+pad, bar.Min.Y, bar.Max.X-pad, bar.Max.Y)
	e.drawString(c, e.now.Format("15:04"), inner, "start", 14, true, ink)
	size, gap := e.px(16), e.px(4)
	percent := strconv.Itoa(e.battery) + "%"
	y := (bar.Min.Y + bar.Max.Y) / 2
	width := e.textWidth(percent, 12)
	battery := e.batteryRect(inner, width+gap, y)
	e.drawString(c, percent, inner, "end", 12, false, ink)
	e.drawBattery(c, battery, ink)
	for i, name := range []string{"status_wifi", "status_signal"} {
		if p := e.findPicture(e.bundle.Apps[app.System], name); p != nil {
			step := (i + 1) * (size + gap)
			x := battery.Min.X - step
			if e.rtl() {
				x = battery.Max.X + step - size
			}
			c.Picture(p, image.Pt(x, y-size/2), size, ink, false)
		}
	}
}

// batteryRect is the battery's outline, which stands upright before the level.
func (e *Engine) batteryRect(inner image.Rectangle, distance, y int) image.Rectangle {
	w, h := e.px(8), e.px(14)
	x := inner.Max.X - distance - w
	if e.rtl() {
		x = inner.Min.X + distance
	}
	return image.Rect(x, y-h/2, x+w, y-h/2+h)
}

func (e *Engine) drawBattery(c *paint.Canvas, r image.Rectangle, ink color.NRGBA) {
	body := r
	body.Min.Y += e.px(1.5)
	c.Fill(image.Rect(r.Min.X+r.Dx()/4, r.Min.Y, r.Max.X-r.Dx()/4, body.Min.Y), ink)
	faint := ink
	faint.A = 90
	c.FillRound(body, e.px(1.5), faint)
	level := body
	level.Min.Y = body.Max.Y - body.Dy()*e.battery/100
	if e.charging {
		ink = color.NRGBA{0x1e, 0x9e, 0x50, 255}
	}
	c.FillRound(level, e.px(1.5), ink)
}

// drawNavigation draws the handle at the bottom edge.
func (e *Engine) drawNavigation(c *paint.Canvas, s *scene) {
	w, h := min(e.px(120), s.size.X/3), e.px(4)
	y := s.size.Y - e.px(navigationBarDP)/2 - h/2
	x := (s.size.X - w) / 2
	ink := inkOn(c.Image.RGBAAt(x-1, y))
	ink.A = 200
	c.FillRound(image.Rect(x, y, x+w, y+h), h/2, ink)
}

func (e *Engine) drawKeyboard(c *paint.Canvas, k *keyboard) {
	c.Fill(k.rect, color.NRGBA{0xe4, 0xe6, 0xeb, 255})
	ink := color.NRGBA{0x20, 0x21, 0x24, 255}
	primary := e.color(k.edit.app, "primary")
	if k.composition != "" {
		strip := k.rect
		strip.Min.X += e.px(16)
		strip.Max.Y = k.keys[0].rect.Min.Y
		e.drawString(c, k.composition, strip, "start", 18, false, ink)
	}
	for _, key := range k.keys {
		face, text := color.NRGBA{255, 255, 255, 255}, ink
		switch key.action {
		case enter:
			face, text = primary, color.NRGBA{255, 255, 255, 255}
		case deleteBack, shift, symbols:
			face = color.NRGBA{0xc9, 0xcd, 0xd6, 255}
		}
		c.FillRound(key.rect, e.px(6), face)
		if p := e.findPicture(k.edit.app, key.picture); p != nil {
			size := min(e.px(24), key.rect.Dy())
			c.Picture(p, key.rect.Min.Add(key.rect.Size().Sub(image.Pt(size, size)).Div(2)), size, text, e.rtl())
			continue
		}
		size := 20.0
		if key.action == symbols {
			size = 14
		}
		e.drawString(c, key.label, key.rect, "center", size, false, text)
	}
}

// drawString draws one line in a rectangle, vertically centred. Size is in dp.
func (e *Engine) drawString(c *paint.Canvas, s string, r image.Rectangle, align string, size float64, bold bool, ink color.NRGBA) {
	p := e.text.Layout(s, glyph.Style{Size: size * float64(e.density()) / 160, Bold: bold}, unbounded)
	x := r.Min.X + aligned(e.alignment(align), r.Dx()-p.Width)
	e.text.Draw(c.Image, c.Clip, p, &p.Lines[0], x, r.Min.Y+(r.Dy()-p.Height)/2, ink)
}

func (e *Engine) textWidth(s string, size float64) int {
	return e.text.Layout(s, glyph.Style{Size: size * float64(e.density()) / 160}, unbounded).Width
}
