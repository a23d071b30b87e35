package frame

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// screenOf draws a screen as apps have them: a bar, text of two sizes on white
// cards, a photograph with noise, a gradient, round buttons.
func screenOf(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	fill := func(r image.Rectangle, c color.RGBA) { draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src) }
	fill(img.Rect, color.RGBA{0xF2, 0xF3, 0xF7, 0xFF})
	fill(image.Rect(0, 0, w, h/28), color.RGBA{0x20, 0x30, 0x60, 0xFF})
	r := rand.New(rand.NewPCG(1, 2))
	text := func(height, x, y int, c color.RGBA, words int) {
		var line []byte
		for range words {
			for range 2 + r.IntN(9) {
				line = append(line, byte('a'+r.IntN(26)))
			}
			line = append(line, ' ')
		}
		face := basicfont.Face7x13
		mask := image.NewAlpha(image.Rect(0, 0, face.Advance*len(line), face.Height))
		d := font.Drawer{Dst: mask, Src: image.Opaque, Face: face, Dot: fixed.P(0, face.Ascent)}
		d.DrawString(string(line))
		grown := image.NewAlpha(image.Rect(0, 0, mask.Rect.Dx()*height/face.Height, height))
		draw.CatmullRom.Scale(grown, grown.Rect, mask, mask.Rect, draw.Src, nil)
		draw.DrawMask(img, grown.Rect.Add(image.Pt(x, y)), image.NewUniform(c), image.Point{}, grown, image.Point{}, draw.Over)
	}
	big, small := max(h/50, 1), max(h/70, 1)
	row := max(h/12, 1)
	for y := h / 20; y+row < h*6/10; y += row {
		fill(image.Rect(w/40, y, w-w/40, y+row-row/12), color.RGBA{0xFF, 0xFF, 0xFF, 0xFF})
		disc(img, w/40+row/2, y+row/2, row/3, color.RGBA{uint8(r.UintN(256)), uint8(r.UintN(256)), uint8(r.UintN(256)), 0xFF})
		text(big, w/40+row, y+row/8, color.RGBA{0x11, 0x11, 0x11, 0xFF}, 4)
		text(small, w/40+row, y+row/2, color.RGBA{0x66, 0x66, 0x66, 0xFF}, 6)
	}
	photo := image.Rect(0, h*6/10, w, h*8/10)
	for y := photo.Min.Y; y < photo.Max.Y; y++ {
		for x := range w {
			s := 128 + 70*math.Sin(float64(x)/70+2*math.Cos(float64(y)/90)) + 30*math.Sin(float64(x*y)/9000) + 8*r.NormFloat64()
			t := 120 + 60*math.Cos(float64(x+y)/110) + 8*r.NormFloat64()
			img.SetRGBA(x, y, color.RGBA{clamp(s), clamp(t), clamp((s + t) / 2), 0xFF})
		}
	}
	for y := photo.Max.Y; y < h; y++ {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{uint8(255 * x / w), uint8(255 * (y - photo.Max.Y) / (h - photo.Max.Y)), 0x80, 0xFF})
		}
	}
	for i := range 4 {
		disc(img, w*(2*i+1)/8, h*9/10, w/12, color.RGBA{0x1A, 0x73, 0xE8, 0xFF})
		text(small, w*(2*i+1)/8-w/16, h*9/10-small/2, color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}, 1)
	}
	return img
}

func clamp(v float64) uint8 { return uint8(min(max(v, 0), 255)) }

func disc(img *image.RGBA, cx, cy, radius int, c color.RGBA) {
	for y := -radius; y <= radius; y++ {
		for x := -radius; x <= radius; x++ {
			if x*x+y*y <= radius*radius {
				img.SetRGBA(cx+x, cy+y, c)
			}
		}
	}
}
