package frame

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/jpeg"

	"golang.org/x/image/draw"
)

// Defaults of Options.
const (
	DefaultWidth   = 720
	DefaultQuality = 75
)

// ErrEmpty means that there are no pixels.
var ErrEmpty = errors.New("the picture is empty")

// Options say what becomes of a screen; the zero value is usable.
type Options struct {
	Width   int // of the JPEG at most, in pixels; DefaultWidth if zero
	Quality int // of the JPEG, 1 to 100; DefaultQuality if zero
	Mask    int // rows at the top of the source that are not compared: the status bar
}

// thumbSide is the side of a thumb, in pixels.
const thumbSide = 32

// Thumb is a screen as 32x32 grey values, row by row.
type Thumb [thumbSide * thumbSide]byte

// Picture is a screen as it is kept and sent: a JPEG and what it is compared by.
type Picture struct {
	JPEG   []byte
	Size   image.Point // of the JPEG, in pixels
	Source image.Point // of the screen as the phone sent it, in pixels
	Hash   uint64      // of the source below the mask; equal pictures have equal hashes
	Thumb  Thumb       // of the source below the mask
	Black  bool        // below the mask all pixels are black, as of a window that forbids pictures
}

// Encode makes a picture of an image in memory.
func Encode(img image.Image, o Options) (*Picture, error) {
	if rgba, ok := img.(*image.RGBA); img == nil || ok && rgba == nil || img.Bounds().Empty() {
		return nil, fmt.Errorf("encode picture: %w", ErrEmpty)
	}
	b := img.Bounds()
	width := min(b.Dx(), cmp.Or(o.Width, DefaultWidth))
	small := image.NewRGBA(image.Rect(0, 0, width, max(1, b.Dy()*width/b.Dx())))
	draw.ApproxBiLinear.Scale(small, small.Bounds(), img, b, draw.Src, nil)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: cmp.Or(o.Quality, DefaultQuality)}); err != nil {
		return nil, fmt.Errorf("encode picture: %w", err)
	}
	p := &Picture{JPEG: out.Bytes(), Size: small.Bounds().Size(), Source: b.Size(), Black: true}
	h := fnv.New64a()
	for y := b.Min.Y + o.Mask; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := img.At(x, y).RGBA()
			p.Black = p.Black && r|g|bl == 0
			h.Write([]byte{byte(r >> 8), byte(g >> 8), byte(bl >> 8)})
		}
	}
	p.Hash = h.Sum64()
	grey := image.NewGray(image.Rect(0, 0, thumbSide, thumbSide))
	draw.ApproxBiLinear.Scale(grey, grey.Bounds(), img, image.Rect(b.Min.X, b.Min.Y+o.Mask, b.Max.X, b.Max.Y), draw.Src, nil)
	copy(p.Thumb[:], grey.Pix)
	return p, nil
}

// Distance tells how much two pictures differ, from 0 (not at all) to 1, by
// their thumbs.
func (p *Picture) Distance(q *Picture) float64 {
	sum := 0
	for i, v := range p.Thumb {
		sum += max(int(v), int(q.Thumb[i])) - min(int(v), int(q.Thumb[i]))
	}
	return float64(sum) / (255 * float64(len(p.Thumb)))
}

// Mark is a box around an element, with a label.
type Mark struct {
	Label  string
	Bounds image.Rectangle // in pixels of the source
}

// Marked returns the picture with marks on it, as a JPEG.
func (p *Picture) Marked(marks []Mark) ([]byte, error) {
	if len(marks) == 0 {
		return p.JPEG, nil
	}
	return nil, errors.ErrUnsupported
}
