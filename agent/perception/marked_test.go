package perception

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"phonerack/agent/frame"
)

// TestMarksStandWhereTheElementsAre: also on a screenshot of another size than
// the display.
func TestMarksStandWhereTheElementsAre(t *testing.T) {
	grey := image.NewRGBA(image.Rect(0, 0, 540, 1200))
	for i := range grey.Pix {
		grey.Pix[i] = 0x80
	}
	p, err := frame.Encode(grey, frame.Options{Width: 270})
	if err != nil {
		t.Fatal(err)
	}
	s := &Scene{Width: 1080, Height: 2400, Picture: p, Elements: []Element{{Index: 12, Bounds: image.Rect(400, 800, 800, 1600)}}}
	b, err := s.Marked(s.Elements)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Size() != p.Size {
		t.Errorf("%v, the picture is %v", img.Bounds(), p.Size)
	}
	red := image.Rectangle{}
	for y := range p.Size.Y {
		for x := range p.Size.X {
			if c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA); int(c.R)-int(max(c.G, c.B)) > 60 {
				red = red.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	// The box, and above it its label.
	if want := image.Rect(100, 180, 200, 400); !near(red.Min.X, want.Min.X) || !near(red.Max.X, want.Max.X) || !near(red.Max.Y, want.Max.Y) || red.Min.Y < want.Min.Y || red.Min.Y > 200 {
		t.Errorf("the mark is at %v, want %v", red, want)
	}
	if _, err := (&Scene{}).Marked(nil); err == nil {
		t.Error("a scene without a picture is marked")
	}
	if _, err := (&Scene{}).Grid(); err == nil {
		t.Error("a scene without a picture has a grid over it")
	}
}

func near(a, b int) bool { return max(a, b)-min(a, b) <= 4 }

func TestTouchable(t *testing.T) {
	for _, c := range []struct {
		e    Element
		want bool
	}{
		{Element{Enabled: true, Clickable: true}, true},
		{Element{Enabled: true, LongClickable: true}, true},
		{Element{Enabled: true, Checkable: true}, true},
		{Element{Enabled: true, Editable: true}, true},
		{Element{Clickable: true}, false},
		{Element{Enabled: true, Scrollable: true, Focused: true}, false},
	} {
		if c.e.Touchable() != c.want {
			t.Errorf("%+v: %t", c.e, !c.want)
		}
	}
}
