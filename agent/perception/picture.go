package perception

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	stddraw "image/draw"
	"image/jpeg"
	"math"

	"golang.org/x/image/draw"
)

// ErrNoImage means that there is no picture to encode.
var ErrNoImage = errors.New("no image")

// EncodeJPEG encodes img with a quality of 1 to 100, scaled down so that its
// longer side is at most maxEdge pixels; maxEdge 0 keeps the size.
func EncodeJPEG(img image.Image, maxEdge, quality int) ([]byte, error) {
	if rgba, ok := img.(*image.RGBA); img == nil || ok && rgba == nil || img.Bounds().Empty() {
		return nil, ErrNoImage
	}
	if quality < 1 || quality > 100 || maxEdge < 0 {
		return nil, fmt.Errorf("encode JPEG: quality %d, edge %d: out of range", quality, maxEdge)
	}
	size := img.Bounds().Size()
	if long := max(size.X, size.Y); maxEdge > 0 && long > maxEdge {
		small := image.NewRGBA(image.Rect(0, 0, max(1, size.X*maxEdge/long), max(1, size.Y*maxEdge/long)))
		draw.ApproxBiLinear.Scale(small, small.Bounds(), img, img.Bounds(), draw.Src, nil)
		img = small
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode JPEG: %w", err)
	}
	return b.Bytes(), nil
}

// MarkTap returns a copy of img with a ring and a cross at p, a pixel of img.
// Red on white, so that it shows on any background.
func MarkTap(img *image.RGBA, p image.Point) *image.RGBA {
	if img == nil {
		return nil
	}
	b := img.Bounds()
	marked := image.NewRGBA(b)
	stddraw.Draw(marked, b, img, b.Min, stddraw.Src)

	radius := float64(max(8, min(b.Dx(), b.Dy())/24))
	width := max(1.5, radius/8) // half of a stroke
	edge := width + max(1, width/2)
	reach := int(radius+edge) + 1
	area := image.Rect(p.X-reach, p.Y-reach, p.X+reach+1, p.Y+reach+1).Intersect(b)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			dx, dy := math.Abs(float64(x-p.X)), math.Abs(float64(y-p.Y))
			from := math.Abs(math.Hypot(dx, dy) - radius) // distance from the ring
			if max(dx, dy) <= radius/2 {
				from = min(from, dx, dy) // or from the cross
			}
			switch {
			case from <= width:
				marked.SetRGBA(x, y, color.RGBA{R: 0xE0, G: 0x10, B: 0x30, A: 0xFF})
			case from <= edge:
				marked.SetRGBA(x, y, color.RGBA{R: 0xFF, G: 0xFF, B: 0xFF, A: 0xFF})
			}
		}
	}
	return marked
}
