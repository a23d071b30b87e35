package frame

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
)

func picture(t testing.TB, w, h int) *Picture {
	t.Helper()
	p, err := Encode(screenOf(w, h), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decode(t testing.TB, b []byte) image.Image {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("FRAME_PICTURES"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, filepath.Base(t.Name())+".jpg"), b, 0o644)
	}
	return img
}

func TestMarksAreDrawn(t *testing.T) {
	p := picture(t, 1080, 2400)
	marks := []Mark{}
	for i := range 7 {
		y := 120 + 200*i
		marks = append(marks, Mark{fmt.Sprint(3*i + 1), image.Rect(27, y, 1053, y+184)}, Mark{fmt.Sprint(3*i + 2), image.Rect(60, y+20, 190, y+160)}, Mark{fmt.Sprint(3*i + 3), image.Rect(227, y+20, 900, y+90)})
	}
	b, err := p.Marked(marks)
	if err != nil {
		t.Fatal(err)
	}
	img := decode(t, b)
	if img.Bounds().Size() != p.Size {
		t.Fatalf("%v, want %v", img.Bounds(), p.Size)
	}
	for i, m := range marks {
		r := p.fromSource(m.Bounds)
		want := markColors[i%len(markColors)]
		got := color.RGBAModel.Convert(img.At(r.Min.X, (r.Min.Y+3*r.Max.Y)/4)).(color.RGBA)
		if d := colorDistance(got, want); d > 120 {
			t.Errorf("mark %d: edge is %v, want %v", i, got, want)
		}
	}
}

func colorDistance(a, b color.RGBA) int {
	d := func(a, b uint8) int { return int(max(a, b) - min(a, b)) }
	return d(a.R, b.R) + d(a.G, b.G) + d(a.B, b.B)
}

func TestLabelsDoNotCoverEachOther(t *testing.T) {
	within := image.Rect(0, 0, 720, 1600)
	size := labelOf("12").size
	var taken []image.Rectangle
	for y := range 30 { // a dense list with three nested boxes a row
		for x := range 3 {
			box := image.Rect(20+100*x, 20+50*y, 700-100*x, 20+50*y+48)
			taken = append(taken, place(box, size, within, taken))
		}
	}
	for i, a := range taken {
		if !a.In(within) {
			t.Errorf("label %d at %v is cut", i, a)
		}
		for j, b := range taken[:i] {
			if a.Overlaps(b) {
				t.Errorf("label %d at %v covers label %d at %v", i, a, j, b)
			}
		}
	}
}

func TestMarksThatCannotBeDrawn(t *testing.T) {
	p := picture(t, 360, 800)
	for name, m := range map[string]Mark{
		"empty":          {"1", image.Rectangle{}},
		"outside":        {"1", image.Rect(400, 900, 500, 1000)},
		"partly outside": {"1", image.Rect(-50, -50, 1000, 10)},
		"huge":           {"1", image.Rect(-1<<40, -1<<40, 1<<40, 1<<40)},
		"turned round":   {"1", image.Rectangle{image.Pt(100, 100), image.Pt(50, 50)}},
		"a pixel":        {"1", image.Rect(359, 799, 360, 800)},
		"no label":       {"", image.Rect(10, 10, 100, 100)},
		"long label":     {"a very long label indeed", image.Rect(10, 10, 100, 100)},
		"odd label":      {"\x00\n\xff中", image.Rect(10, 10, 100, 100)},
	} {
		b, err := p.Marked([]Mark{m})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		decode(t, b)
	}
	if b, err := p.Marked(nil); err != nil || !bytes.Equal(b, p.JPEG) {
		t.Errorf("no marks: %v", err)
	}
	many := make([]Mark, 3*maxMarks)
	if _, err := p.Marked(many); err != nil {
		t.Errorf("many: %v", err)
	}
	for name, bad := range map[string]*Picture{
		"empty":        {},
		"another size": {JPEG: p.JPEG, Size: image.Pt(1, 1), Source: p.Source},
		"no source":    {JPEG: p.JPEG, Size: p.Size},
	} {
		if _, err := bad.Marked([]Mark{{"1", image.Rect(0, 0, 9, 9)}}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrid(t *testing.T) {
	p := picture(t, 1080, 2400)
	b, err := p.Grid(6, 12)
	if err != nil {
		t.Fatal(err)
	}
	img := decode(t, b)
	dark, light := 0, 0
	for y := 200; y < 300; y++ { // along the first line between columns
		v := color.GrayModel.Convert(img.At(120, y)).(color.Gray).Y
		if v < 90 {
			dark++
		}
		if v > 190 {
			light++
		}
	}
	if dark < 30 || light < 30 {
		t.Errorf("a line has %d dark and %d light pixels of 100", dark, light)
	}
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {maxCells + 1, 1}, {1, -1}} {
		if _, err := p.Grid(bad[0], bad[1]); err == nil {
			t.Errorf("a grid of %v is drawn", bad)
		}
	}
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 49: "AX"} {
		if got := columnName(i); got != want {
			t.Errorf("column %d is %q, want %q", i, got, want)
		}
	}
}
