package frame

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/inconsolata"
	"golang.org/x/image/math/fixed"
)

// Mark is a box around an element, with a label.
type Mark struct {
	Label  string
	Bounds image.Rectangle // in pixels of the source
}

// Bounds of what is drawn. A screen has fewer elements, a label fewer characters.
const (
	maxMarks = 1000
	maxLabel = 12
)

// markedQuality is that of pictures with something drawn on them: thin lines and
// letters suffer first.
const markedQuality = 80

// markColors are taken in turn, so that neighbours differ. Each is far from white
// and dark enough for white letters.
var markColors = []color.RGBA{
	{0xD5, 0x00, 0x32, 0xFF}, // red
	{0x00, 0x5B, 0xD3, 0xFF}, // blue
	{0x00, 0x7A, 0x33, 0xFF}, // green
	{0x8E, 0x24, 0xAA, 0xFF}, // purple
	{0xB3, 0x54, 0x00, 0xFF}, // brown
	{0x00, 0x75, 0x7F, 0xFF}, // teal
	{0xC2, 0x18, 0x7B, 0xFF}, // magenta
	{0x45, 0x45, 0x45, 0xFF}, // grey
}

// Marked returns the picture as a JPEG with a box and a label for each mark. A
// label stands where it covers no other one, if there is such a place near its
// box.
func (p *Picture) Marked(marks []Mark) ([]byte, error) {
	if len(marks) == 0 {
		return p.JPEG, nil
	}
	c, err := p.canvas()
	if err != nil {
		return nil, fmt.Errorf("mark picture: %w", err)
	}
	marks = marks[:min(len(marks), maxMarks)]
	boxes := make([]image.Rectangle, len(marks))
	for i, m := range marks {
		boxes[i] = p.fromSource(m.Bounds)
		c.box(boxes[i], markColors[i%len(markColors)])
	}
	var taken []image.Rectangle
	for i, m := range marks {
		if boxes[i].Empty() {
			continue
		}
		l := labelOf(m.Label)
		at := place(boxes[i], l.size, c.img.Rect, taken)
		taken = append(taken, at)
		c.label(at, l, markColors[i%len(markColors)])
	}
	return c.encode()
}

// fromSource converts pixels of the source to those of the JPEG. What was seen
// keeps at least a pixel.
func (p *Picture) fromSource(r image.Rectangle) image.Rectangle {
	r = r.Canon().Intersect(image.Rectangle{Max: p.Source})
	if r.Empty() {
		return image.Rectangle{}
	}
	out := image.Rect(r.Min.X*p.Size.X/p.Source.X, r.Min.Y*p.Size.Y/p.Source.Y,
		(r.Max.X*p.Size.X+p.Source.X-1)/p.Source.X, (r.Max.Y*p.Size.Y+p.Source.Y-1)/p.Source.Y)
	return out.Intersect(image.Rectangle{Max: p.Size})
}

// place finds room for a label of a size at a box: above it, inside it, below,
// beside it. If there is none it is where it covers the least of other labels.
func place(box image.Rectangle, size image.Point, within image.Rectangle, taken []image.Rectangle) image.Rectangle {
	w, h := size.X, size.Y
	candidates := [...]image.Point{
		{box.Min.X, box.Min.Y - h}, // above, left
		box.Min,                    // inside, left
		{box.Max.X - w, box.Min.Y - h},
		{box.Max.X - w, box.Min.Y},
		{box.Min.X, box.Max.Y - h},
		{box.Max.X - w, box.Max.Y - h},
		{box.Min.X, box.Max.Y},
		{box.Max.X - w, box.Max.Y},
		{box.Max.X, (box.Min.Y + box.Max.Y - h) / 2},
		{box.Min.X - w, (box.Min.Y + box.Max.Y - h) / 2},
	}
	best, least := image.Rectangle{}, -1
	for _, min := range candidates {
		at := inside(image.Rectangle{Min: min, Max: min.Add(size)}, within)
		covered := 0
		for _, t := range taken {
			common := at.Intersect(t)
			covered += common.Dx() * common.Dy()
		}
		if least < 0 || covered < least {
			best, least = at, covered
		}
		if covered == 0 {
			break
		}
	}
	return best
}

// inside moves r so that it lies in within, as far as it fits.
func inside(r, within image.Rectangle) image.Rectangle {
	dx := max(within.Min.X-r.Min.X, min(0, within.Max.X-r.Max.X))
	dy := max(within.Min.Y-r.Min.Y, min(0, within.Max.Y-r.Max.Y))
	return r.Add(image.Pt(dx, dy))
}

// canvas is a picture that is drawn on.
type canvas struct {
	img *image.RGBA
}

func (p *Picture) canvas() (*canvas, error) {
	decoded, err := jpeg.Decode(bytes.NewReader(p.JPEG))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, ErrMalformed)
	}
	if p.Source.X < 1 || p.Source.Y < 1 || decoded.Bounds().Size() != p.Size {
		return nil, fmt.Errorf("a JPEG of %v is said to have %v of %v: %w", decoded.Bounds().Size(), p.Size, p.Source, ErrMalformed)
	}
	img := image.NewRGBA(image.Rectangle{Max: p.Size})
	draw.Draw(img, img.Rect, decoded, decoded.Bounds().Min, draw.Src)
	return &canvas{img: img}, nil
}

func (c *canvas) encode() ([]byte, error) {
	p, err := Encode(c.img, Options{Width: maxSide, Quality: markedQuality})
	if err != nil {
		return nil, err
	}
	return p.JPEG, nil
}

func (c *canvas) fill(r image.Rectangle, col color.RGBA) {
	draw.Draw(c.img, r, image.NewUniform(col), image.Point{}, draw.Src)
}

// box draws a frame of two pixels in a colour between white ones of one pixel, so
// that it shows on any background.
func (c *canvas) box(r image.Rectangle, col color.RGBA) {
	if r.Empty() {
		return
	}
	c.frame(r.Inset(-1), 1, color.RGBA{0xFF, 0xFF, 0xFF, 0xFF})
	c.frame(r, 2, col)
	c.frame(r.Inset(2), 1, color.RGBA{0xFF, 0xFF, 0xFF, 0xFF})
}

// frame draws the edges of r, so many pixels wide.
func (c *canvas) frame(r image.Rectangle, width int, col color.RGBA) {
	if r.Empty() {
		return
	}
	c.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, min(r.Min.Y+width, r.Max.Y)), col)
	c.fill(image.Rect(r.Min.X, max(r.Max.Y-width, r.Min.Y), r.Max.X, r.Max.Y), col)
	c.fill(image.Rect(r.Min.X, r.Min.Y, min(r.Min.X+width, r.Max.X), r.Max.Y), col)
	c.fill(image.Rect(max(r.Max.X-width, r.Min.X), r.Min.Y, r.Max.X, r.Max.Y), col)
}

// label is a text that the face can draw, and the room it needs.
type label struct {
	text string
	size image.Point
}

// face draws the letters, 8 pixels wide and 16 high.
var face = inconsolata.Bold8x16

// margin is the room around a label's text, in pixels.
const margin = 2

func labelOf(s string) label {
	runes := []rune(s)
	runes = runes[:min(len(runes), maxLabel)]
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '?'
		}
	}
	capHeight := face.Ascent - 1
	return label{string(runes), image.Pt(face.Advance*len(runes)+2*margin, capHeight+2*margin)}
}

// label draws white letters on a tag with a white edge.
func (c *canvas) label(at image.Rectangle, l label, col color.RGBA) {
	c.fill(at, color.RGBA{0xFF, 0xFF, 0xFF, 0xFF})
	c.fill(at.Inset(1), col)
	d := font.Drawer{Dst: c.img, Src: image.White, Face: face, Dot: fixed.P(at.Min.X+margin, at.Max.Y-margin-1)}
	d.DrawString(l.text)
}
