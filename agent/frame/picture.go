package frame

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"image/draw"
	"time"
)

// Defaults of Options.
const (
	DefaultWidth   = 720
	DefaultQuality = 75
	DefaultStall   = 2 * time.Second
	DefaultTotal   = 10 * time.Second
)

// Options say what becomes of a screen; the zero value is usable.
type Options struct {
	Width   int // of the JPEG at most, in pixels, or its height if the screen lies on its side; DefaultWidth if zero
	Quality int // of the JPEG, 1 to 100; DefaultQuality if zero
	Mask    int // rows at the top of the source that are not compared: the status bar

	Header int           // bytes of a raw screenshot's header, 12 or 16; judged by its content if zero
	Stall  time.Duration // for which a stream that occupies buffers may bring nothing; DefaultStall if zero
	Total  time.Duration // for which a stream may occupy them, and before that bring nothing; DefaultTotal if zero
}

// normal fills in the defaults and refuses what is out of range.
func (o Options) normal() (Options, error) {
	o.Width = cmp.Or(o.Width, DefaultWidth)
	o.Quality = cmp.Or(o.Quality, DefaultQuality)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	o.Total = cmp.Or(o.Total, DefaultTotal)
	switch {
	case o.Width < 1 || o.Width > maxSide:
		return o, fmt.Errorf("width %d of a picture is out of range", o.Width)
	case o.Quality < 1 || o.Quality > 100:
		return o, fmt.Errorf("quality %d of a picture is out of range", o.Quality)
	case o.Mask < 0 || o.Stall < 0 || o.Total < 0:
		return o, fmt.Errorf("options of a picture are negative: mask %d, stall %s, total %s", o.Mask, o.Stall, o.Total)
	case o.Header != 0 && o.Header != shortHeader && o.Header != longHeader:
		return o, fmt.Errorf("no raw screenshot has a header of %d bytes", o.Header)
	}
	return o, nil
}

// maxSide bounds the sides of a screen, in pixels.
const maxSide = 8192

// Picture is a screen as it is kept and sent: a JPEG and what it is compared by.
type Picture struct {
	JPEG   []byte
	Size   image.Point // of the JPEG, in pixels
	Source image.Point // of the screen as the phone sent it, in pixels
	Hash   uint64      // of the source below the mask; equal pictures have equal hashes
	Thumb  Thumb       // of the source below the mask
	Black  bool        // below the mask all pixels are black, as of a window that forbids pictures
}

// thumbSide is the side of a thumb, in pixels.
const thumbSide = 32

// Thumb is a screen as 32x32 grey values, row by row.
type Thumb [thumbSide * thumbSide]byte

// Distance tells how much two pictures differ, from 0 (not at all) to 1, by
// their thumbs.
func (p *Picture) Distance(q *Picture) float64 {
	sum := 0
	for i, v := range p.Thumb {
		sum += max(int(v), int(q.Thumb[i])) - min(int(v), int(q.Thumb[i]))
	}
	return float64(sum) / (255 * float64(len(p.Thumb)))
}

// Encode makes a picture of an image in memory. It waits for a buffer set, which
// streams hold for as long as Options.Total at most.
func Encode(img image.Image, o Options) (*Picture, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	if rgba, ok := img.(*image.RGBA); img == nil || ok && rgba == nil || img.Bounds().Empty() {
		return nil, fmt.Errorf("encode picture: %w", ErrEmpty)
	}
	if size := img.Bounds().Size(); size.X > maxSide || size.Y > maxSide {
		return nil, fmt.Errorf("encode picture of %dx%d: %w", size.X, size.Y, ErrTooLarge)
	}
	s, err := sets.take(context.Background())
	if err != nil {
		return nil, err
	}
	defer sets.give(s)
	return s.encode(img, o), nil
}

// encode makes a picture of an image; what is transparent is black.
func (s *set) encode(img image.Image, o Options) *Picture {
	b := img.Bounds()
	s.begin(b.Size(), o)
	for y := b.Min.Y; y < b.Max.Y; y += s.batch {
		n := min(s.batch, b.Max.Y-y)
		if rgba, ok := img.(*image.RGBA); ok && rgba.Stride == s.rowBytes {
			at := rgba.PixOffset(b.Min.X, y)
			s.add(rgba.Pix[at : at+n*s.rowBytes])
			continue
		}
		band := image.RGBA{Pix: s.rows(n), Stride: s.rowBytes, Rect: image.Rect(0, 0, b.Dx(), n)}
		draw.Draw(&band, band.Rect, img, image.Pt(b.Min.X, y), draw.Src)
		s.add(band.Pix)
	}
	return s.end()
}
