package screen

import (
	"image"
	"image/color"
	"math"
	"time"

	"phonerack/usb/phonesim/screen/internal/app"
	"phonerack/usb/phonesim/screen/internal/paint"
)

// frame is the last picture made and what it shows.
type frame struct {
	image   *image.RGBA
	version uint64
	phase   int // of what moves by itself
}

// framePeriod is how often a moving picture changes.
const framePeriod = 33 * time.Millisecond

// Render returns a picture of the display: bars, the app in front, dialogs, the keyboard. It is black
// while the display is off; so is a secure window, but not what lies over it. The caller may keep and change it.
func (e *Engine) Render() *image.RGBA {
	e.lock()
	defer e.mu.Unlock()
	s := e.current()
	phase := 0
	if e.moving() || s.spinners > 0 {
		phase = int(e.now.UnixMilli() / framePeriod.Milliseconds())
	}
	if f := e.frame; f.image == nil || f.version != s.version || f.phase != phase {
		img := f.image
		if img == nil || img.Rect.Size() != s.size {
			img = image.NewRGBA(image.Rectangle{Max: s.size})
		}
		e.draw(img, s)
		e.frame = frame{img, s.version, phase}
	}
	out := image.NewRGBA(e.frame.image.Rect)
	copy(out.Pix, e.frame.image.Pix)
	return out
}

func (e *Engine) draw(img *image.RGBA, s *scene) {
	c := paint.New(img, e.cache)
	if !e.on {
		c.Fill(img.Rect, color.NRGBA{A: 255})
		return
	}
	for i, l := range s.layers {
		if !l.window.screen.Dialog {
			e.drawScreen(c, s, l, i == len(s.layers)-1)
			continue
		}
		c.Fill(img.Rect, color.NRGBA{A: 110})
		switch {
		case l.window.screen.Secure:
			c.Fill(l.rect, color.NRGBA{A: 255})
		case l.root != nil:
			c.Shadow(l.rect, e.px(l.root.look.Radius), e.px(8))
			e.drawView(c, l.root)
		}
	}
	if s.keyboard != nil {
		e.drawKeyboard(c, s.keyboard)
	}
	e.drawNavigation(c, s)
}

func (e *Engine) drawScreen(c *paint.Canvas, s *scene, l *layer, active bool) {
	full := image.Rectangle{Max: s.size}
	def := l.window.screen
	if def.Secure {
		c.Fill(full, color.NRGBA{A: 255})
		e.drawStatus(c, image.Rect(0, 0, s.size.X, e.px(statusBarDP)), color.NRGBA{255, 255, 255, 255})
		return
	}
	e.fill(c, full, def.Background)
	if l.root != nil {
		e.drawView(c, l.root)
	}
	if active && e.moving() && e.moveSign != 0 {
		e.slide(c, full, def.Background)
	}
	bar := image.Rect(0, 0, s.size.X, e.px(statusBarDP))
	if len(def.StatusBar.Colors) > 0 && def.StatusBar.Colors[0].A > 0 {
		e.fill(c, bar, def.StatusBar)
	}
	e.drawStatus(c, bar, inkOn(c.Image.RGBAAt(s.size.X/2, bar.Max.Y/2)))
}

// slide moves what was drawn sideways, as a new screen comes in during a transition.
func (e *Engine) slide(c *paint.Canvas, full image.Rectangle, background app.Paint) {
	// The scale may have been made smaller, or 0, since the transition began.
	left := min(float64(e.movingTo.Sub(e.now))/(float64(transition)*e.animationScale), 1)
	shift := int(float64(full.Dx()) * 0.3 * left * left)
	if (e.moveSign < 0) != e.rtl() {
		shift = -shift
	}
	img := c.Image
	for y := range full.Dy() {
		row := img.Pix[y*img.Stride : y*img.Stride+4*full.Dx()]
		if shift >= 0 {
			copy(row[4*shift:], row[:len(row)-4*shift])
		} else {
			copy(row, row[-4*shift:])
		}
	}
	gap := image.Rect(0, 0, shift, full.Max.Y)
	if shift < 0 {
		gap = image.Rect(full.Max.X+shift, 0, full.Max.X, full.Max.Y)
	}
	e.fill(c, gap, background)
}

// fill paints a plain rectangle.
func (e *Engine) fill(c *paint.Canvas, r image.Rectangle, p app.Paint) {
	switch len(p.Colors) {
	case 1:
		c.Fill(r, p.Colors[0])
	case 2:
		c.Gradient(r, p.Colors[0], p.Colors[1])
	}
}

// inkOn is black or white, whichever is readable on a colour.
func inkOn(c color.RGBA) color.NRGBA {
	if int(c.R)*299+int(c.G)*587+int(c.B)*114 > 140_000 {
		return color.NRGBA{0x20, 0x21, 0x24, 255}
	}
	return color.NRGBA{255, 255, 255, 255}
}

func (e *Engine) drawView(c *paint.Canvas, v *view) {
	visible := v.visible()
	if visible.Empty() {
		return
	}
	look := v.look
	radius := e.px(look.Radius)
	outer := c.Within(v.clip)
	if look.Elevation > 0 {
		outer.Shadow(v.rect, radius, e.px(look.Elevation))
	}
	if len(look.Background.Colors) == 1 {
		ink := look.Background.Colors[0]
		if v.widget.Kind == "button" && !v.enabled {
			ink = color.NRGBA{0xd8, 0xda, 0xde, ink.A}
		}
		outer.FillRound(v.rect, radius, ink)
	} else {
		e.fill(outer, v.rect, look.Background)
	}
	if len(look.Border.Colors) > 0 {
		outer.Border(v.rect, radius, e.px(1), look.Border.Colors[0])
	}
	e.drawContent(outer, v)
	for i, child := range v.children {
		e.drawView(outer, child)
		if look.Divider && i < len(v.children)-1 {
			line := child.rect
			line.Min.Y = line.Max.Y
			line.Max.Y += max(e.px(1), 1)
			outer.Within(v.visible()).Fill(line, e.color(v.app, "divider"))
		}
	}
	if v.scrollable() {
		e.drawScrollBar(outer, v)
	}
}

// drawScrollBar shows where in a long list the viewport is.
func (e *Engine) drawScrollBar(c *paint.Canvas, v *view) {
	if v.look.Horizontal || v.content <= v.viewport() {
		return
	}
	width := e.px(3)
	length := max(v.viewport()*v.viewport()/v.content, e.px(24))
	y := v.rect.Min.Y + (v.viewport()-length)*v.offset/(v.content-v.viewport())
	x := v.rect.Max.X - width - e.px(2)
	if e.rtl() {
		x = v.rect.Min.X + e.px(2)
	}
	c.FillRound(image.Rect(x, y, x+width, y+length), width/2, color.NRGBA{0, 0, 0, 60})
}

func (e *Engine) color(a *app.App, name string) color.NRGBA {
	c, _ := a.FindColor(name)
	return c.NRGBA
}

// inside is the view's rectangle without its padding.
func (e *Engine) inside(v *view) image.Rectangle {
	p := v.look.Padding
	start, end := e.px(p.Start), e.px(p.End)
	if e.rtl() {
		start, end = end, start
	}
	return image.Rect(v.rect.Min.X+start, v.rect.Min.Y+e.px(p.Top), v.rect.Max.X-end, v.rect.Max.Y-e.px(p.Bottom))
}

func (e *Engine) drawContent(c *paint.Canvas, v *view) {
	inner := e.inside(v)
	switch v.widget.Kind {
	case "image", "icon":
		if v.picture != nil {
			size := min(e.px(v.look.Picture), max(inner.Dx(), inner.Dy()))
			at := inner.Min.Add(inner.Size().Sub(image.Pt(size, size)).Div(2))
			c.Picture(v.picture, at, size, v.tint, e.rtl())
		}
	case "spinner":
		turn := float64(e.now.UnixMilli()%1200) / 1200
		c.Arc(inner, math.Max(float64(inner.Dx())/12, 1), turn, v.tint)
	case "text", "button":
		e.drawLabel(c, v, inner)
	case "edit":
		e.drawEdit(c, v, inner)
	case "checkbox", "switch":
		e.drawToggle(c, v, inner)
	case "tab":
		e.drawTab(c, v, inner)
	}
}
