package paint

import (
	"image"
	"image/color"
	"image/draw"

	"golang.org/x/image/vector"

	"phonerack/usb/phonesim/screen/internal/app"
)

// Canvas is an image with a clip and caches of masks. It is not safe for concurrent use.
type Canvas struct {
	Image *image.RGBA
	Clip  image.Rectangle
	cache *Cache
}

// Cache keeps masks and pictures between frames. It is not safe for concurrent use.
type Cache struct {
	masks    map[maskKey]*image.Alpha
	pictures map[pictureKey]*image.RGBA
}

// maxCached bounds each map of a Cache, which is emptied when full.
const maxCached = 500

// NewCache returns an empty Cache.
func NewCache() *Cache {
	return &Cache{masks: make(map[maskKey]*image.Alpha), pictures: make(map[pictureKey]*image.RGBA)}
}

// maskKey: a disc of radius r if w is 0, else a frame of w by h with round corners and a line of width line.
type maskKey struct{ r, w, h, line int }

// New returns a canvas over img that draws everywhere.
func New(img *image.RGBA, cache *Cache) *Canvas {
	return &Canvas{Image: img, Clip: img.Rect, cache: cache}
}

// Within returns a canvas that also clips to r.
func (c *Canvas) Within(r image.Rectangle) *Canvas {
	out := *c
	out.Clip = c.Clip.Intersect(r)
	return &out
}

// Fill fills a rectangle.
func (c *Canvas) Fill(r image.Rectangle, ink color.NRGBA) {
	r = r.Intersect(c.Clip)
	if r.Empty() || ink.A == 0 {
		return
	}
	op := draw.Over
	if ink.A == 255 {
		op = draw.Src
	}
	draw.Draw(c.Image, r, image.NewUniform(ink), image.Point{}, op)
}

// mask draws ink through a mask whose top left corner lies at at.
func (c *Canvas) mask(m *image.Alpha, mp image.Rectangle, at image.Point, ink color.NRGBA) {
	r := mp.Sub(mp.Min).Add(at)
	clipped := r.Intersect(c.Clip)
	if !clipped.Empty() {
		draw.DrawMask(c.Image, clipped, image.NewUniform(ink), image.Point{}, m, mp.Min.Add(clipped.Min.Sub(r.Min)), draw.Over)
	}
}

// FillRound fills a rectangle whose corners are quarters of a circle of radius r.
func (c *Canvas) FillRound(rect image.Rectangle, r int, ink color.NRGBA) {
	r = min(r, rect.Dx()/2, rect.Dy()/2)
	if r <= 0 || ink.A == 0 {
		c.Fill(rect, ink)
		return
	}
	disc := c.cache.disc(r)
	lo, hi := image.Rect(0, 0, r, r), image.Rect(r, r, 2*r, 2*r)
	c.mask(disc, lo, rect.Min, ink)
	c.mask(disc, image.Rect(r, 0, 2*r, r), image.Pt(rect.Max.X-r, rect.Min.Y), ink)
	c.mask(disc, image.Rect(0, r, r, 2*r), image.Pt(rect.Min.X, rect.Max.Y-r), ink)
	c.mask(disc, hi, rect.Max.Sub(image.Pt(r, r)), ink)
	c.Fill(image.Rect(rect.Min.X+r, rect.Min.Y, rect.Max.X-r, rect.Min.Y+r), ink)
	c.Fill(image.Rect(rect.Min.X, rect.Min.Y+r, rect.Max.X, rect.Max.Y-r), ink)
	c.Fill(image.Rect(rect.Min.X+r, rect.Max.Y-r, rect.Max.X-r, rect.Max.Y), ink)
}

// Gradient fills a rectangle from one colour at its top to another at its bottom.
func (c *Canvas) Gradient(rect image.Rectangle, from, to color.NRGBA) {
	h := max(rect.Dy()-1, 1)
	mix := func(a, b uint8, y int) uint8 { return uint8((int(a)*(h-y) + int(b)*y) / h) }
	for y := range rect.Dy() {
		ink := color.NRGBA{mix(from.R, to.R, y), mix(from.G, to.G, y), mix(from.B, to.B, y), mix(from.A, to.A, y)}
		c.Fill(image.Rect(rect.Min.X, rect.Min.Y+y, rect.Max.X, rect.Min.Y+y+1), ink)
	}
}

// Border draws a line of the given width just inside a rectangle with round corners.
func (c *Canvas) Border(rect image.Rectangle, r, line int, ink color.NRGBA) {
	if rect.Empty() || !rect.Overlaps(c.Clip) {
		return
	}
	m := c.cache.frame(maskKey{min(r, rect.Dx()/2, rect.Dy()/2), rect.Dx(), rect.Dy(), max(line, 1)})
	c.mask(m, m.Rect, rect.Min, ink)
}

// Shadow darkens the surroundings of an opaque rectangle, the more the higher it floats (in pixels).
func (c *Canvas) Shadow(rect image.Rectangle, r, height int) {
	steps := min(height, 6)
	for i := steps; i > 0; i-- {
		grow := i * height / steps
		outer := image.Rect(rect.Min.X-grow, rect.Min.Y-grow/2, rect.Max.X+grow, rect.Max.Y+grow+height/3)
		for _, strip := range around(outer, rect.Inset(min(r, rect.Dx()/2, rect.Dy()/2))) {
			c.Within(strip).FillRound(outer, r+grow, color.NRGBA{A: uint8(max(3, 16/steps))})
		}
	}
}

// around cuts what surrounds a hole into four strips: the middle of a shadow is covered anyway.
func around(outer, hole image.Rectangle) [4]image.Rectangle {
	return [4]image.Rectangle{
		image.Rect(outer.Min.X, outer.Min.Y, outer.Max.X, hole.Min.Y),
		image.Rect(outer.Min.X, hole.Max.Y, outer.Max.X, outer.Max.Y),
		image.Rect(outer.Min.X, hole.Min.Y, hole.Min.X, hole.Max.Y),
		image.Rect(hole.Max.X, hole.Min.Y, outer.Max.X, hole.Max.Y),
	}
}

func (k *Cache) disc(r int) *image.Alpha {
	key := maskKey{r: r}
	if m := k.masks[key]; m != nil {
		return m
	}
	f := float64(r)
	return k.keep(key, coverage(2*r, 2*r, app.Ellipse(f, f, f, f)))
}

func (k *Cache) frame(key maskKey) *image.Alpha {
	if m := k.masks[key]; m != nil {
		return m
	}
	w, h, r, l := float64(key.w), float64(key.h), float64(key.r), float64(key.line)
	outer := coverage(key.w, key.h, app.RoundRect(0, 0, w, h, r))
	if w > 2*l && h > 2*l {
		inner := coverage(key.w, key.h, app.RoundRect(l, l, w-2*l, h-2*l, r-l))
		for i, a := range inner.Pix {
			outer.Pix[i] -= min(a, outer.Pix[i])
		}
	}
	return k.keep(key, outer)
}

func (k *Cache) keep(key maskKey, m *image.Alpha) *image.Alpha {
	if len(k.masks) >= maxCached {
		clear(k.masks)
	}
	k.masks[key] = m
	return m
}

// coverage rasterises one outline.
func coverage(w, h int, outline []app.Segment) *image.Alpha {
	z := vector.NewRasterizer(w, h)
	trace(z, outline, 1)
	m := image.NewAlpha(image.Rect(0, 0, w, h))
	z.DrawOp = draw.Src
	z.Draw(m, m.Rect, image.Opaque, image.Point{})
	return m
}

func trace(z *vector.Rasterizer, outline []app.Segment, scale float64) {
	for _, s := range outline {
		var p [6]float32
		for i, q := range s.P {
			p[2*i], p[2*i+1] = float32(q[0]*scale), float32(q[1]*scale)
		}
		switch s.Op {
		case 'M':
			z.ClosePath()
			z.MoveTo(p[0], p[1])
		case 'L':
			z.LineTo(p[0], p[1])
		case 'Q':
			z.QuadTo(p[0], p[1], p[2], p[3])
		case 'C':
			z.CubeTo(p[0], p[1], p[2], p[3], p[4], p[5])
		case 'Z':
			z.ClosePath()
		}
	}
	z.ClosePath()
}
