package paint

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/vector"

	"phonerack/usb/phonesim/screen/internal/app"
)

type pictureKey struct {
	picture *app.Picture
	size    int
	tint    color.NRGBA
	mirror  bool
}

// Picture draws p as a square of size pixels at the point. Its shapes of colour "tint" get the tint; a
// directional one is turned round where mirror is set.
func (c *Canvas) Picture(p *app.Picture, at image.Point, size int, tint color.NRGBA, mirror bool) {
	r := image.Rect(0, 0, size, size).Add(at)
	clipped := r.Intersect(c.Clip)
	if size <= 0 || clipped.Empty() {
		return
	}
	tile := c.cache.picture(pictureKey{p, size, tint, mirror && p.Mirror})
	draw.Draw(c.Image, clipped, tile, clipped.Min.Sub(r.Min), draw.Over)
}

func (k *Cache) picture(key pictureKey) *image.RGBA {
	if t := k.pictures[key]; t != nil {
		return t
	}
	if len(k.pictures) >= maxCached {
		clear(k.pictures)
	}
	scale := float64(key.size) / key.picture.Size
	tile := image.NewRGBA(image.Rect(0, 0, key.size, key.size))
	for _, s := range key.picture.Shapes {
		outline := s.Segments
		if s.Stroke != "" {
			outline = Stroke(outline, s.Width)
		}
		ink := s.Ink
		if s.Tinted {
			ink = key.tint
		}
		z := vector.NewRasterizer(key.size, key.size)
		trace(z, outline, scale)
		z.Draw(tile, tile.Rect, image.NewUniform(ink), image.Point{})
	}
	if key.mirror {
		flip(tile)
	}
	k.pictures[key] = tile
	return tile
}

func flip(img *image.RGBA) {
	w := img.Rect.Dx()
	for y := range img.Rect.Dy() {
		row := img.Pix[y*img.Stride : y*img.Stride+4*w]
		for a, b := 0, w-1; a < b; a, b = a+1, b-1 {
			var t [4]byte
			copy(t[:], row[4*a:])
			copy(row[4*a:4*a+4], row[4*b:])
			copy(row[4*b:4*b+4], t[:])
		}
	}
}

// Arc draws the turning arc of a progress ring; phase runs from 0 to 1 in one turn.
func (c *Canvas) Arc(rect image.Rectangle, line, phase float64, ink color.NRGBA) {
	size := min(rect.Dx(), rect.Dy())
	if size <= 0 || !rect.Overlaps(c.Clip) {
		return
	}
	const steps = 48
	centre := float64(size) / 2
	radius := centre - line
	var path []app.Segment
	for i := range steps + 1 {
		angle := 2 * math.Pi * (phase + 0.72*float64(i)/steps)
		s := app.Segment{Op: 'L', P: [3][2]float64{{centre + radius*math.Cos(angle), centre + radius*math.Sin(angle)}}}
		if i == 0 {
			s.Op = 'M'
		}
		path = append(path, s)
	}
	m := coverage(size, size, Stroke(path, line))
	at := rect.Min.Add(image.Pt((rect.Dx()-size)/2, (rect.Dy()-size)/2))
	c.mask(m, m.Rect, at, ink)
}
