package frame

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"testing"
)

// grey returns an image of one grey.
func grey(w, h int, v uint8) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(img, img.Rect, image.NewUniform(color.RGBA{v, v, v, 255}), image.Point{}, draw.Src)
	return img
}

func encoded(t testing.TB, img image.Image, o Options) *Picture {
	t.Helper()
	p, err := Encode(img, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestThumbsAreAverages(t *testing.T) {
	for _, size := range []image.Point{{1080, 1200}, {720, 400}, {64, 64}, {33, 31}, {5, 3}, {1, 1}, {3000, 40}} {
		img := image.NewRGBA(image.Rectangle{Max: size})
		for y := range size.Y {
			for x := range size.X {
				v := uint8(255 * x / size.X)
				if y >= size.Y/2 {
					v = uint8(255 * y / size.Y)
				}
				img.SetRGBA(x, y, color.RGBA{v, v, v, 255})
			}
		}
		p := encoded(t, img, Options{Quality: 100})
		small := decode(t, p.JPEG)
		for k, got := range p.Thumb {
			sum, n := 0, 0
			cx, cy := cell(k%thumbSide, p.Size.X), cell(k/thumbSide, p.Size.Y)
			for y := cy.from; y < cy.to; y++ {
				for x := cx.from; x < cx.to; x++ {
					sum += int(color.GrayModel.Convert(small.At(x, y)).(color.Gray).Y)
					n++
				}
			}
			if want := sum / n; int(got) < want-3 || int(got) > want+3 {
				t.Errorf("%v: cell %d is %d, want about %d", size, k, got, want)
				break
			}
		}
	}
}

func TestWhatIsAboveTheMaskIsNotCompared(t *testing.T) {
	for _, width := range []int{1080, 1440, 900, 720} {
		a := grey(width, 480, 90)
		b := grey(width, 480, 90)
		draw.Draw(b, image.Rect(0, 0, width, 63), image.White, image.Point{}, draw.Src) // a clock
		o := Options{Mask: 63}
		p, q := encoded(t, a, o), encoded(t, b, o)
		if p.Hash != q.Hash || p.Distance(q) != 0 {
			t.Errorf("%d wide: the clock changes the hash %x to %x, distance %f", width, p.Hash, q.Hash, p.Distance(q))
		}
		b.SetRGBA(width-1, 63, color.RGBA{90, 91, 90, 255})
		if q = encoded(t, b, o); p.Hash == q.Hash {
			t.Errorf("%d wide: the first pixel below the mask does not change the hash", width)
		}
		if p, q = encoded(t, a, Options{}), encoded(t, b, Options{}); p.Hash == q.Hash || p.Distance(q) == 0 {
			t.Errorf("%d wide: without a mask the clock does not count", width)
		}
	}
}

func TestEveryPixelChangesTheHash(t *testing.T) {
	img := grey(37, 5, 0x40)
	seen := map[uint64]image.Point{encoded(t, img, Options{}).Hash: {-1, -1}}
	for y := range 5 {
		for x := range 37 {
			for c := range 3 {
				i := img.PixOffset(x, y) + c
				img.Pix[i] ^= 1 << (uint(x+y) % 8)
				h := encoded(t, img, Options{}).Hash
				if at, ok := seen[h]; ok {
					t.Fatalf("pixel %d,%d and %v have one hash", x, y, at)
				}
				seen[h] = image.Pt(x, y)
				img.Pix[i] ^= 1 << (uint(x+y) % 8)
			}
		}
	}
	img.Pix[3] = 7 // not a colour
	if _, ok := seen[encoded(t, img, Options{}).Hash]; !ok {
		t.Error("the fourth byte changes the hash")
	}
	turned := &image.RGBA{Pix: img.Pix, Stride: 4 * 5, Rect: image.Rect(0, 0, 5, 37)}
	if _, ok := seen[encoded(t, turned, Options{}).Hash]; ok {
		t.Error("the size does not change the hash")
	}
}

func TestReport21_ABlackPictureIsSeen(t *testing.T) {
	screen := func(paint ...image.Rectangle) *image.RGBA {
		img := grey(270, 600, 0)
		for _, r := range paint {
			draw.Draw(img, r, image.NewUniform(color.RGBA{200, 210, 220, 255}), image.Point{}, draw.Src)
		}
		return img
	}
	bar, navigation, pixel := image.Rect(0, 0, 270, 16), image.Rect(75, 590, 195, 593), image.Rect(125, 225, 126, 226)
	for name, c := range map[string]struct {
		img   *image.RGBA
		black bool
		dark  float64 // at least
	}{
		"all black":                  {screen(), true, 1},
		"a status bar":               {screen(bar), true, 1},
		"a navigation bar":           {screen(bar, navigation), false, 0.95},
		"a pixel":                    {screen(pixel), false, 0.99},
		"only below the status bar":  {screen(image.Rect(0, 16, 270, 17)), false, 0.95},
		"a very dark app, not black": {grey(270, 600, 2), false, 0},
	} {
		for way, read := range map[string]func() (*Picture, error){
			"raw": func() (*Picture, error) {
				return ReadRaw(t.Context(), bytes.NewReader(rawOf(c.img, longHeader)), Options{Mask: 16})
			},
			"png": func() (*Picture, error) {
				return ReadPNG(t.Context(), bytes.NewReader(pngOf(t, c.img)), Options{Mask: 16})
			},
			"jpeg": func() (*Picture, error) {
				return ReadJPEG(t.Context(), bytes.NewReader(jpegOf(t, c.img)), Options{Mask: 16})
			},
		} {
			if way == "jpeg" && (name == "a pixel" || name == "only below the status bar") {
				continue // a JPEG may lose a pixel, and what is next to the mask is not looked at
			}
			p, err := read()
			if err != nil {
				t.Fatal(err)
			}
			dark := float64(bytes.Count(p.Thumb[:], []byte{0})) / float64(len(p.Thumb))
			if p.Black != c.black || dark < c.dark || c.dark == 0 && dark != 0 {
				t.Errorf("%s, %s: black %t, dark %.3f", name, way, p.Black, dark)
			}
		}
	}
	if p := encoded(t, screen(), Options{Mask: 600}); p.Black {
		t.Error("nothing is looked at and it is black")
	}
}

func TestDistance(t *testing.T) {
	black, white, half := encoded(t, grey(64, 64, 0), Options{}), encoded(t, grey(64, 64, 255), Options{}), grey(64, 64, 0)
	draw.Draw(half, image.Rect(0, 0, 32, 64), image.White, image.Point{}, draw.Src)
	if d := black.Distance(white); d != 1 {
		t.Errorf("black and white: %f", d)
	}
	if d := black.Distance(black); d != 0 {
		t.Errorf("equal: %f", d)
	}
	if d := encoded(t, half, Options{}).Distance(white); d < 0.49 || d > 0.51 {
		t.Errorf("half: %f", d)
	}
}

// TestEachTargetPixelIsAnAverage checks the weights: whatever the ratio, each
// target pixel has all of its weight, and neighbours meet.
func TestEachTargetPixelIsAnAverage(t *testing.T) {
	for _, c := range [][2]int{{1220, 720}, {1079, 720}, {8192, 720}, {8192, 1}, {8192, 5}, {8191, 90}, {8192, 91}, {721, 720}, {719, 3}, {100, 99}, {3, 2}} {
		for _, target := range []int{c[1], 1} {
			var a axis
			_, _, r := scaled(c[0], c[0], target)
			a.plan(target, r)
			for x := range target {
				sum := 0
				for k, w := range a.of(x) {
					sum += int(w)
					if at := int(a.starts[x]) + k; w > 0 && at >= c[0] {
						t.Fatalf("%v: pixel %d takes source pixel %d", c, x, at)
					}
				}
				if sum != a.total || a.of(x)[0] == 0 || a.ends[x] <= a.starts[x] || x > 0 && a.starts[x] < a.ends[x-1]-1 {
					t.Fatalf("%v: pixel %d of source pixels %d to %d weighs %d of %d", c, x, a.starts[x], a.ends[x], sum, a.total)
				}
			}
			img := grey(c[0], 3*c[0]/target%100+1, 77)
			if p := encoded(t, img, Options{Width: target, Quality: 100}); target > 1 && p.Thumb[500] != 77 {
				t.Errorf("%v: grey 77 becomes %d", c, p.Thumb[500])
			}
		}
	}
	narrow := grey(300, 280, 77)
	for width := 1; width < 9; width++ {
		if p := encoded(t, narrow, Options{Width: width}); p.Thumb[500] != 77 || p.Size.Y != width {
			t.Errorf("%d wide: grey 77 becomes %d in %v", width, p.Thumb[500], p.Size)
		}
	}
}
