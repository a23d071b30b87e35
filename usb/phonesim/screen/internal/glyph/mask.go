package glyph

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"github.com/go-text/typesetting/font"
	ot "github.com/go-text/typesetting/font/opentype"
	"golang.org/x/image/vector"
)

// Mask is a glyph's coverage; Offset leads from the pixel that holds the glyph's origin to the mask's
// top left corner.
type Mask struct {
	Image  *image.Alpha
	Offset image.Point
}

type maskKey struct {
	face *face
	gid  font.GID
	size float64
	sub  uint8 // quarter pixels that the origin is right of a whole pixel
}

// Draw draws a line of the paragraph with its left end at (x, y+Baseline), where (x, y) is the
// paragraph's top left corner.
func (t *Typesetter) Draw(dst *image.RGBA, clip image.Rectangle, p *Paragraph, l *Line, x, y int, ink color.Color) {
	clip = clip.Intersect(dst.Rect)
	src := image.NewUniform(ink)
	for _, g := range l.Glyphs {
		at := float64(x) + float64(g.X)
		whole := math.Floor(at)
		m := t.mask(maskKey{g.face, g.gid, p.Size, uint8((at - whole) * 4)})
		if m.Image == nil {
			continue
		}
		origin := image.Pt(int(whole), y+l.Baseline+int(math.Round(float64(g.Y)))).Add(m.Offset)
		r := m.Image.Rect.Add(origin).Intersect(clip)
		if !r.Empty() {
			draw.DrawMask(dst, r, src, image.Point{}, m.Image, r.Min.Sub(origin), draw.Over)
		}
	}
}

func (t *Typesetter) mask(key maskKey) *Mask {
	if m := t.masks[key]; m != nil {
		return m
	}
	if len(t.masks) >= maxMasks {
		clear(t.masks)
	}
	m := rasterise(key)
	t.masks[key] = m
	return m
}

func rasterise(key maskKey) *Mask {
	outline, ok := key.face.GlyphDataOutline(key.gid)
	if !ok || len(outline.Segments) == 0 {
		return &Mask{}
	}
	scale := float32(key.size) / float32(key.face.Upem())
	shift := float32(key.sub) / 4
	var stroke float32 // how far a second impression is moved, to look bold
	if key.face.embolden {
		stroke = float32(key.size) / 26
	}
	minX, minY, maxX, maxY := float32(math.Inf(1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Inf(-1))
	for i := range outline.Segments {
		for _, p := range outline.Segments[i].ArgsSlice() {
			minX, maxX = min(minX, p.X*scale), max(maxX, p.X*scale)
			minY, maxY = min(minY, -p.Y*scale), max(maxY, -p.Y*scale)
		}
	}
	left, top := floor(minX+shift), floor(minY)
	w, h := floor(maxX+shift+stroke)+2-left, floor(maxY)+2-top
	if w > 2000 || h > 2000 {
		return &Mask{}
	}
	z := vector.NewRasterizer(w, h)
	trace(z, outline.Segments, scale, shift-float32(left), -float32(top))
	if stroke > 0 {
		trace(z, outline.Segments, scale, shift-float32(left)+stroke, -float32(top))
	}
	img := image.NewAlpha(image.Rect(0, 0, w, h))
	z.DrawOp = draw.Src
	z.Draw(img, img.Rect, image.Opaque, image.Point{})
	return &Mask{Image: img, Offset: image.Pt(left, top)}
}

func floor(f float32) int { return int(math.Floor(float64(f))) }

func trace(z *vector.Rasterizer, segments []ot.Segment, scale, dx, dy float32) {
	for i := range segments {
		s := &segments[i]
		a := s.Args
		for j := range a {
			a[j].X, a[j].Y = a[j].X*scale+dx, -a[j].Y*scale+dy
		}
		switch s.Op {
		case ot.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(a[0].X, a[0].Y)
		case ot.SegmentOpLineTo:
			z.LineTo(a[0].X, a[0].Y)
		case ot.SegmentOpQuadTo:
			z.QuadTo(a[0].X, a[0].Y, a[1].X, a[1].Y)
		case ot.SegmentOpCubeTo:
			z.CubeTo(a[0].X, a[0].Y, a[1].X, a[1].Y, a[2].X, a[2].Y)
		}
	}
	z.ClosePath()
}
