package frame

import (
	"bytes"
	"image"
	"image/draw"
	"image/jpeg"
	"math"
	"testing"
)

// areaAverage scales img by exact averages over the area of each target pixel.
func areaAverage(img *image.RGBA, size image.Point, r ratio) []float64 {
	out := make([]float64, 0, 3*size.X*size.Y)
	by := float64(r.source) / float64(r.target)
	for y := range size.Y {
		y0, y1 := float64(y)*by, float64(y+1)*by
		for x := range size.X {
			x0, x1 := float64(x)*by, float64(x+1)*by
			var sum [3]float64
			for j := int(y0); float64(j) < y1-1e-9; j++ {
				h := min(y1, float64(j+1)) - max(y0, float64(j))
				for i := int(x0); float64(i) < x1-1e-9; i++ {
					w := h * (min(x1, float64(i+1)) - max(x0, float64(i)))
					p := img.Pix[img.PixOffset(i, j):]
					for c := range sum {
						sum[c] += w * float64(p[c])
					}
				}
			}
			for _, v := range sum {
				out = append(out, v/(by*by))
			}
		}
	}
	return out
}

// psnr compares a part of a JPEG with exact colours.
func psnr(t testing.TB, b []byte, want []float64, part image.Rectangle) float64 {
	t.Helper()
	decoded, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	img := image.NewRGBA(decoded.Bounds())
	draw.Draw(img, img.Rect, decoded, img.Rect.Min, draw.Src)
	sum, n := 0.0, 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		row := img.Pix[img.PixOffset(0, y):img.PixOffset(img.Rect.Dx(), y)]
		exact := want[3*y*img.Rect.Dx():]
		for x := part.Min.X; x < part.Max.X; x++ {
			for i := range 3 {
				d := float64(row[4*x+i]) - exact[3*x+i]
				sum += d * d
				n++
			}
		}
	}
	return 10 * math.Log10(255*255*float64(n)/sum)
}

// TestPicturesAreAsGoodAsThePlainPaths compares with an exact area average: text
// on cards, a photograph with noise, a gradient.
func TestPicturesAreAsGoodAsThePlainPaths(t *testing.T) {
	for _, size := range []image.Point{{1080, 2400}, {720, 1200}, {610, 900}, {1170, 540}, {539, 1200}} {
		img := screenOf(size.X, size.Y)
		width := DefaultWidth
		if size.X != 1080 {
			width = 360
		}
		p := encoded(t, img, Options{Width: width})
		_, _, r := scaled(size.X, size.Y, width)
		exact := areaAverage(img, p.Size, r)
		var plain plainPath
		theirs := plain.encode(img, p.Size)
		for name, part := range map[string][2]int{"whole": {0, 100}, "text": {0, 60}, "photograph": {60, 80}, "gradient": {80, 100}} {
			rect := image.Rect(0, p.Size.Y*part[0]/100, p.Size.X, p.Size.Y*part[1]/100)
			got, want := psnr(t, p.JPEG, exact, rect), psnr(t, theirs, exact, rect)
			t.Logf("%v %-10s %.2f dB, plain path %.2f dB", size, name, got, want)
			tolerance := 0.0
			if r == (ratio{2, 1}) {
				tolerance = 0.05 // both are the same average but for their rounding
			}
			if got < want-tolerance {
				t.Errorf("%v %s: %.3f dB, the plain path has %.3f dB", size, name, got, want)
			}
		}
		t.Logf("%v: %d bytes, plain path %d", size, len(p.JPEG), len(theirs))
		if len(p.JPEG) > len(theirs)*12/10 {
			t.Errorf("%v: %d bytes, the plain path has %d", size, len(p.JPEG), len(theirs))
		}
	}
}

// TestTheEncoderIsAsGoodAsTheStandardLibrarys leaves scaling out.
func TestTheEncoderIsAsGoodAsTheStandardLibrarys(t *testing.T) {
	img := screenOf(360, 800)
	exact := areaAverage(img, img.Rect.Size(), ratio{1, 1})
	for _, quality := range []int{1, 25, 50, 75, 90, 100} {
		p := encoded(t, img, Options{Quality: quality})
		var out bytes.Buffer
		if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}); err != nil {
			t.Fatal(err)
		}
		got, want := psnr(t, p.JPEG, exact, img.Rect), psnr(t, out.Bytes(), exact, img.Rect)
		t.Logf("quality %d: %.2f dB in %d bytes, standard library %.2f dB in %d bytes", quality, got, len(p.JPEG), want, out.Len())
		if got < want-0.05 || len(p.JPEG) > out.Len()*102/100 {
			t.Errorf("quality %d: %.2f dB in %d bytes, standard library %.2f dB in %d bytes", quality, got, len(p.JPEG), want, out.Len())
		}
	}
}
