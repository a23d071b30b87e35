package frame

import (
	"bytes"
	"image"
	"image/jpeg"
	"slices"
	"testing"
	"time"

	"golang.org/x/image/draw"
)

// plainPath is what this package is measured against: x/image's bilinear scaler
// and image/jpeg. Its buffers are there already, and it is given an image rather
// than a stream.
type plainPath struct {
	small *image.RGBA
	out   bytes.Buffer
}

func (p *plainPath) encode(img *image.RGBA, size image.Point) []byte {
	if p.small == nil || p.small.Rect.Size() != size {
		p.small = image.NewRGBA(image.Rectangle{Max: size})
	}
	draw.ApproxBiLinear.Scale(p.small, p.small.Rect, img, img.Rect, draw.Src, nil)
	p.out.Reset()
	if err := jpeg.Encode(&p.out, p.small, &jpeg.Options{Quality: DefaultQuality}); err != nil {
		panic(err)
	}
	return p.out.Bytes()
}

// BenchmarkRaw reads raw screenshots of several sizes and, in turn with it, takes
// the plain path. ratio is the plain path's median time over ours.
func BenchmarkRaw(b *testing.B) {
	for _, size := range []image.Point{{1080, 2400}, {1440, 3120}, {1220, 2712}, {720, 1600}, {2400, 1080}} {
		img := screenOf(size.X, size.Y)
		stream := rawOf(img, longHeader)
		b.Run(size.String(), func(b *testing.B) {
			ratioOf(b, img, func() (*Picture, error) { return ReadRaw(b.Context(), bytes.NewReader(stream), Options{}) })
		})
	}
}

func ratioOf(b *testing.B, img *image.RGBA, ours func() (*Picture, error)) {
	var plain plainPath
	var plainTook, oursTook []time.Duration
	for b.Loop() {
		start := time.Now()
		p, err := ours()
		if err != nil {
			b.Fatal(err)
		}
		oursTook = append(oursTook, time.Since(start))
		start = time.Now()
		plain.encode(img, p.Size)
		plainTook = append(plainTook, time.Since(start))
	}
	slices.Sort(oursTook)
	slices.Sort(plainTook)
	us, them := oursTook[len(oursTook)/2], plainTook[len(plainTook)/2]
	b.ReportMetric(float64(them)/float64(us), "ratio")
	b.ReportMetric(float64(us), "ours-ns")
	b.ReportMetric(float64(them), "plain-ns")
}

// TestPicturesTakeLessTimeThanOnThePlainPath has a wide margin, as it runs beside
// anything: the best of a few runs of each. BenchmarkRaw gives the real ratio.
func TestPicturesTakeLessTimeThanOnThePlainPath(t *testing.T) {
	img := screenOf(270, 600)
	stream := rawOf(img, longHeader)
	var plain plainPath
	ours, theirs := time.Hour, time.Hour
	for range 7 {
		start := time.Now()
		p, err := ReadRaw(t.Context(), bytes.NewReader(stream), Options{Width: 180})
		if err != nil {
			t.Fatal(err)
		}
		ours = min(ours, time.Since(start))
		start = time.Now()
		plain.encode(img, p.Size)
		theirs = min(theirs, time.Since(start))
	}
	t.Logf("%s, plain path %s: %.1f times", ours, theirs, float64(theirs)/float64(ours))
	if float64(ours)*1.3 > float64(theirs) {
		t.Errorf("%s, the plain path takes %s", ours, theirs)
	}
}

// BenchmarkStages is for finding out where the time goes.
func BenchmarkStages(b *testing.B) {
	img := screenOf(1080, 2400)
	stream := rawOf(img, longHeader)
	packed, pngStream := gzipOf(b, stream), pngOf(b, img)
	b.Run("raw", func(b *testing.B) { read(b, ReadRaw, stream) })
	b.Run("gzip", func(b *testing.B) { read(b, ReadGzip, packed) })
	b.Run("png", func(b *testing.B) { read(b, ReadPNG, pngStream) })
	b.Run("jpeg", func(b *testing.B) { read(b, ReadJPEG, jpegOf(b, img)) })
	b.Run("hash", func(b *testing.B) {
		var f fingerprint
		for b.Loop() {
			f.begin(img.Rect.Size(), 63)
			f.add(img.Pix, img.Stride, 0)
		}
	})
	b.Run("shrink", func(b *testing.B) {
		y, c := make([]byte, 2*720), make([]byte, 720)
		for b.Loop() {
			for p := img.Pix; len(p) > 0; p = p[3*img.Stride:] {
				threeToTwo(y[:720], y[720:], c[:360], c[360:], &[maxRows][]byte{p[:img.Stride], p[img.Stride : 2*img.Stride], p[2*img.Stride : 3*img.Stride]})
			}
		}
	})
}

func read(b *testing.B, reader reader, stream []byte) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reader(b.Context(), bytes.NewReader(stream), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
