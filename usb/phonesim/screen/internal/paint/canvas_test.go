package paint

import (
	"image"
	"image/color"
	"testing"

	"phonerack/usb/phonesim/screen/internal/app"
)

var red = color.NRGBA{255, 0, 0, 255}

func blank() *Canvas { return New(image.NewRGBA(image.Rect(0, 0, 60, 60)), NewCache()) }

func TestRoundCornersStayInside(t *testing.T) {
	c := blank()
	c.Within(image.Rect(0, 0, 60, 30)).FillRound(image.Rect(10, 10, 50, 50), 10, red)
	for at, want := range map[image.Point]uint8{
		{30, 20}: 255, {10, 10}: 0, {11, 25}: 255, {20, 10}: 255, {9, 20}: 0,
		{30, 35}: 0, // clipped away
	} {
		if got := c.Image.RGBAAt(at.X, at.Y).A; got != want {
			t.Errorf("alpha at %v is %d, want %d", at, got, want)
		}
	}
	if a := c.Image.RGBAAt(13, 12).A; a == 0 || a == 255 {
		t.Errorf("the corner is not smooth: %d", a)
	}
}

func TestBorderIsHollow(t *testing.T) {
	c := blank()
	c.Border(image.Rect(10, 10, 50, 50), 8, 2, red)
	for at, want := range map[image.Point]uint8{{30, 10}: 255, {30, 11}: 255, {30, 13}: 0, {30, 30}: 0, {49, 30}: 255} {
		if got := c.Image.RGBAAt(at.X, at.Y).A; got != want {
			t.Errorf("alpha at %v is %d, want %d", at, got, want)
		}
	}
}

func TestStrokePiecesAddUp(t *testing.T) {
	path, err := app.ParsePath("M5 12 H19 M12 19 V5 M5 19 L19 5")
	if err != nil {
		t.Fatal(err)
	}
	m := coverage(24, 24, Stroke(path, 4))
	for _, at := range []image.Point{{12, 12}, {8, 12}, {12, 16}, {15, 9}} {
		if a := m.AlphaAt(at.X, at.Y).A; a < 250 {
			t.Errorf("coverage at %v is %d", at, a)
		}
	}
}

func TestPictureIsTintedAndMirrored(t *testing.T) {
	p := &app.Picture{Size: 24, Mirror: true, Shapes: []*app.Shape{{Fill: "tint", Tinted: true, Segments: app.RoundRect(0, 0, 12, 24, 0)}}}
	c := blank()
	c.Picture(p, image.Pt(0, 0), 24, red, false)
	c.Picture(p, image.Pt(30, 0), 24, red, true)
	for at, want := range map[image.Point]uint8{{5, 5}: 255, {18, 5}: 0, {35, 5}: 0, {48, 5}: 255} {
		if got := c.Image.RGBAAt(at.X, at.Y).R; got != want {
			t.Errorf("red at %v is %d, want %d", at, got, want)
		}
	}
}
