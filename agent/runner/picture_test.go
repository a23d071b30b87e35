package runner

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"strings"
	"testing"
	"testing/synctest"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
)

// pictured asks one question about the stage and returns it.
func pictured(t *testing.T, s *stage, which Pictures, answers ...any) planner.Request {
	t.Helper()
	s.pictures = true
	r, p := newRunner(s, append(answers, finishWell)...)
	r.Pictures = which
	run(t, r, task)
	return p.requests[0]
}

func decoded(t *testing.T, b []byte) image.Image {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// reds counts the pixels of the first mark's colour.
func reds(img image.Image) int {
	n := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA); int(c.R)-int(max(c.G, c.B)) > 60 {
				n++
			}
		}
	}
	return n
}

func TestPlannersSeePicturesAsTheyAreToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if req := pictured(t, &stage{app: "a.shop"}, PicturesNeeded); req.Screen != nil {
			t.Error("a picture of a screen with elements is sent")
		}
		plain := pictured(t, &stage{app: "a.shop"}, PicturesAlways)
		marked := pictured(t, &stage{app: "a.shop"}, PicturesMarked)
		before, after := decoded(t, plain.Screen), decoded(t, marked.Screen)
		if before.Bounds() != after.Bounds() || !strings.Contains(marked.UserPrompt, " picture 135x300\n") {
			t.Errorf("%v with marks, %v without", after.Bounds(), before.Bounds())
		}
		if reds(before) > 0 || reds(after) < 100 {
			t.Errorf("%d red pixels, %d without marks", reds(after), reds(before))
		}
		// The text in row 2 cannot be touched: it has no mark.
		for y := 53; y < 72; y++ {
			if c := color.GrayModel.Convert(after.At(1, y)).(color.Gray).Y; c < 0x70 || c > 0x90 {
				t.Fatalf("something is drawn at %d, around a text", y)
			}
		}
		if strings.Contains(plain.SystemPrompt, "box") || !strings.Contains(marked.SystemPrompt, "each box is an element") {
			t.Errorf("the planner is told:\n%s\n%s", plain.SystemPrompt, marked.SystemPrompt)
		}
	})
}

func TestAGridLiesOverAScreenWithoutElements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := decoded(t, pictured(t, &stage{app: "a.game", noTree: perception.NoTreeDrawn}, PicturesNeeded).Screen)
		s := &stage{app: "a.game", noTree: perception.NoTreeDrawn}
		at := 0
		s.onTap = func(y int) { at = y }
		req := pictured(t, s, PicturesMarked, `tap {"x":60,"y":150,"generation":$gen}`)
		grid := decoded(t, req.Screen)
		if plain.Bounds() != grid.Bounds() {
			t.Errorf("%v with a grid, %v without", grid.Bounds(), plain.Bounds())
		}
		dark := func(img image.Image) (n int) {
			for y := range img.Bounds().Dy() { // along the line between the columns F and G
				if color.GrayModel.Convert(img.At(6*135/perception.GridCells, y)).(color.Gray).Y < 0x40 {
					n++
				}
			}
			return n
		}
		if dark(plain) > 0 || dark(grid) < 100 {
			t.Errorf("%d dark pixels along a line, %d without a grid", dark(grid), dark(plain))
		}
		if at != 1204 { // the middle of the pixel, on a display of 2400
			t.Errorf("touched at %d", at)
		}
	})
}

func TestAPictureCostsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		costs := map[Pictures]int{}
		for _, which := range []Pictures{PicturesNeeded, PicturesAlways} {
			r, _ := newRunner(&stage{app: "a.shop", pictures: true}, finishWell)
			r.Pictures = which
			costs[which] = run(t, r, task).Tokens
		}
		if got, want := costs[PicturesAlways]-costs[PicturesNeeded], pictureTokens(image.Pt(135, 300)); got != want {
			t.Errorf("a picture costs %d tokens, want %d", got, want)
		}
	})
}
