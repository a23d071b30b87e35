package runner

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"

	"golang.org/x/image/draw"
)

// Pictures are scaled to this width, in pixels, and encoded at these qualities.
const (
	maxPictureWidth = 540
	diaryQuality    = 70
	screenQuality   = 75
)

// encodeScreen makes the picture that a planner gets.
func encodeScreen(img *image.RGBA) ([]byte, error) {
	return encode(shrink(img, 2*maxPictureWidth), screenQuality)
}

// encodeMarked makes the picture of a step: a ring around a touch, and for a
// swipe a line from the ring to a dot. Points are pixels of img.
func encodeMarked(img *image.RGBA, points []image.Point) ([]byte, error) {
	small := shrink(img, maxPictureWidth)
	b := img.Bounds()
	scaled := make([]image.Point, len(points))
	for i, p := range points {
		p = p.Sub(b.Min)
		scaled[i] = image.Pt(p.X*small.Bounds().Dx()/max(b.Dx(), 1), p.Y*small.Bounds().Dy()/max(b.Dy(), 1))
	}
	mark(small, scaled)
	return encode(small, diaryQuality)
}

func encode(img *image.RGBA, quality int) ([]byte, error) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// shrink returns a copy that is at most width wide.
func shrink(img *image.RGBA, width int) *image.RGBA {
	b := img.Bounds()
	if b.Dx() <= width {
		out := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
		draw.Draw(out, out.Bounds(), img, b.Min, draw.Src)
		return out
	}
	out := image.NewRGBA(image.Rect(0, 0, width, max(1, b.Dy()*width/b.Dx())))
	draw.ApproxBiLinear.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}

var (
	markColor = color.RGBA{R: 0xe6, G: 0x00, B: 0x50, A: 0xff}
	markHalo  = color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
)

// Sizes of a mark, in pixels of the small picture.
const (
	ringRadius = 18.0
	ringWidth  = 4.0
	haloWidth  = 2.0
	dotRadius  = 7.0
)

func mark(img *image.RGBA, points []image.Point) {
	if len(points) == 0 {
		return
	}
	from, to := points[0], points[len(points)-1]
	if from != to {
		steps := int(math.Hypot(float64(to.X-from.X), float64(to.Y-from.Y)))
		for i := range steps {
			p := image.Pt(from.X+(to.X-from.X)*i/steps, from.Y+(to.Y-from.Y)*i/steps)
			disc(img, p, 0, ringWidth/2, markColor)
		}
		disc(img, to, 0, dotRadius+haloWidth, markHalo)
		disc(img, to, 0, dotRadius, markColor)
	}
	disc(img, from, ringRadius-haloWidth, ringRadius+ringWidth+haloWidth, markHalo)
	disc(img, from, ringRadius, ringRadius+ringWidth, markColor)
}

// disc fills the points between two distances from c.
func disc(img *image.RGBA, c image.Point, inner, outer float64, col color.RGBA) {
	r := int(math.Ceil(outer))
	box := image.Rect(c.X-r, c.Y-r, c.X+r+1, c.Y+r+1).Intersect(img.Bounds())
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if d := math.Hypot(float64(x-c.X), float64(y-c.Y)); d >= inner && d <= outer {
				img.SetRGBA(x, y, col)
			}
		}
	}
}
