package perception

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"testing"
)

func gradient(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{byte(x), byte(y), byte(x + y), 255})
		}
	}
	return img
}

func TestEncodeJPEGScalesToTheLongerSide(t *testing.T) {
	for _, c := range []struct {
		in   image.Point
		edge int
		want image.Point
	}{
		{image.Pt(108, 240), 120, image.Pt(54, 120)},
		{image.Pt(240, 108), 120, image.Pt(120, 54)},
		{image.Pt(108, 240), 0, image.Pt(108, 240)},
		{image.Pt(108, 240), 500, image.Pt(108, 240)},
		{image.Pt(1, 2000), 100, image.Pt(1, 100)},
	} {
		b, err := EncodeJPEG(gradient(c.in.X, c.in.Y), c.edge, 75)
		if err != nil {
			t.Fatal(err)
		}
		config, err := jpeg.DecodeConfig(bytes.NewReader(b))
		if err != nil || image.Pt(config.Width, config.Height) != c.want {
			t.Errorf("%v with edge %d is %dx%d: %v", c.in, c.edge, config.Width, config.Height, err)
		}
	}
	var none *image.RGBA
	if _, err := EncodeJPEG(none, 100, 75); !errors.Is(err, ErrNoImage) {
		t.Errorf("no image gives %v", err)
	}
	if _, err := EncodeJPEG(gradient(1, 1), 100, 0); err == nil {
		t.Error("quality 0 is accepted")
	}
}

func BenchmarkEncodeJPEG(b *testing.B) {
	img := gradient(1080, 2400)
	for b.Loop() {
		if _, err := EncodeJPEG(img, 1200, 75); err != nil {
			b.Fatal(err)
		}
	}
}
