package screen

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/image/draw"
)

var update = flag.Bool("update", false, "rewrite the golden pictures")

// scenes lead a phone to what the golden pictures show.
var scenes = []struct {
	name      string
	languages []string
	seed      int64
	lead      func(d *driver)
}{
	{"home", []string{"en", "ar", "zh"}, 0, func(*driver) {}},
	{"recents", []string{"en"}, 0, func(d *driver) {
		d.open("com.phonerack.shop")
		d.open("com.phonerack.messenger")
		d.Key(KeyAppSwitch)
		d.settle()
	}},
	{"shop", []string{"en", "ar", "zh"}, 1, func(d *driver) { d.open("com.phonerack.shop") }},
	{"shop_search", []string{"en", "ar"}, 1, func(d *driver) {
		d.open("com.phonerack.shop")
		d.tap("search")
		d.typeText(map[string]string{"en": "kettle", "ar": "غلاية"}[d.language])
	}},
	{"shop_loading", []string{"en"}, 1, func(d *driver) {
		search(d, "kettle")
		d.wait(time.Second)
	}},
	{"shop_results", []string{"en", "ar", "zh"}, 1, func(d *driver) {
		search(d, "e")
		d.settle()
	}},
	{"shop_product", []string{"en", "ar"}, 1, func(d *driver) {
		search(d, "travel")
		d.settle()
		d.tap("result")
	}},
	{"shop_coupon", []string{"zh"}, 1, func(d *driver) {
		search(d, "travel")
		d.settle()
		d.tap("result")
		d.wait(time.Second)
		d.settle()
	}},
	{"shop_rate", []string{"ar"}, 0, func(d *driver) {
		search(d, "mug")
		d.settle()
		d.tap("result")
		d.wait(time.Second)
		d.settle()
	}},
	{"shop_cookies", []string{"en"}, 2, func(d *driver) {
		search(d, "mug")
		d.settle()
	}},
	{"shop_basket", []string{"en", "ar", "zh"}, 1, func(d *driver) {
		fillBasket(d)
		d.tap("basket")
	}},
	{"shop_checkout", []string{"en"}, 1, func(d *driver) {
		fillBasket(d)
		d.tap("basket")
		d.tap("checkout")
		d.tap("name")
		d.typeText("Ana Silva")
		d.tap("gift")
	}},
	{"messenger", []string{"en", "ar", "zh"}, 0, func(d *driver) { d.open("com.phonerack.messenger") }},
	{"messenger_chat", []string{"en", "ar", "zh"}, 0, func(d *driver) {
		d.open("com.phonerack.messenger")
		d.tap("conversation")
		d.tap("input")
		d.typeText(map[string]string{"en": "I leave at half past nine.", "ar": "سأخرج في التاسعة والنصف.", "zh": "我九点半出门。"}[d.language])
		d.tap("send")
		d.typeText("ok")
	}},
	{"settings", []string{"en", "ar", "zh"}, 0, func(d *driver) { d.open("com.android.settings") }},
	{"settings_network", []string{"en", "ar", "zh"}, 0, func(d *driver) {
		d.open("com.android.settings")
		d.tap("title")
	}},
	{"crash", []string{"en", "zh"}, 0, func(d *driver) {
		d.open("com.phonerack.shop")
		if err := d.Crash("com.phonerack.shop"); err != nil {
			d.Fatal(err)
		}
		d.settle()
	}},
	{"lock", []string{"en", "ar", "zh"}, 0, func(d *driver) { d.SetKeyguard(Keyguard{On: true}) }},
	{"lock_pin", []string{"en", "zh"}, 0, func(d *driver) {
		d.SetKeyguard(Keyguard{On: true, PIN: "1234"})
		d.DismissKeyguard()
		d.settle()
		d.tap("key7")
		d.tap("key_enter")
	}},
	{"composing", []string{"en"}, 0, func(d *driver) {
		d.open("com.phonerack.messenger")
		d.tap("Ana")
		d.tap("input")
		d.SetTyping(Typing{Composing: true})
		d.typeText("nihao")
	}},
	{"stage", []string{"en", "ar", "zh"}, 0, func(d *driver) { d.open(stage) }},
	{"stage_web", []string{"en"}, 0, func(d *driver) { d.open(stage); d.tap("open_web") }},
	{"stage_game", []string{"en"}, 0, func(d *driver) { d.open(stage); d.tap("open_game") }},
	{"stage_form", []string{"en", "ar"}, 0, func(d *driver) { d.open(stage); d.tap("open_form") }},
	{"stage_permission", []string{"en", "ar", "zh"}, 0, func(d *driver) { d.open(stage); d.tap("open_dialogs"); d.tap("camera") }},
	{"stage_rating", []string{"en"}, 0, func(d *driver) { d.open(stage); d.tap("open_dialogs"); d.tap("rate"); d.tap("3 stars") }},
	{"stage_anr", []string{"zh"}, 0, func(d *driver) { d.open(stage); d.tap("open_dialogs"); d.tap("hang") }},
	{"stage_update", []string{"en"}, 0, func(d *driver) { d.open(stage); d.tap("open_dialogs"); d.tap("update") }},
	{"secure", []string{"en"}, 0, func(d *driver) {
		d.open("com.android.settings")
		d.Swipe(360, 1300, 360, 700, 300*time.Millisecond)
		d.tap("Security")
		d.tap("Screen lock")
	}},
	{"landscape", []string{"en", "ar"}, 1, func(d *driver) {
		d.open("com.phonerack.messenger")
		d.tap("conversation")
		d.SetRotation(1)
		d.settle()
	}},
}

func search(d *driver, query string) {
	d.open("com.phonerack.shop")
	if d.has("clear") {
		d.tap("clear")
	}
	d.tap("search")
	d.typeText(query)
	d.Key(KeyEnter)
}

func fillBasket(d *driver) {
	for _, name := range []string{"mug", "headphones"} {
		search(d, name)
		d.settle()
		d.tap("result")
		d.wait(time.Second)
		d.settle()
		if d.has("coupon_yes") {
			d.tap("coupon_yes")
		}
		d.tap("more")
		d.tap("add")
		d.Key(KeyBack)
		d.Key(KeyBack)
		d.settle()
	}
}

// Golden pictures have half the width and height of what was drawn and 256 colours, so that the files stay
// small. Machines round differently: a few pixels may differ a little.
const goldenTolerance, goldenPixels = 40, 200

func TestGoldenPictures(t *testing.T) {
	for _, s := range scenes {
		for _, lang := range s.languages {
			t.Run(s.name+"_"+lang, func(t *testing.T) {
				d := drive(t, Config{Language: lang, Seed: s.seed})
				s.lead(d)
				got := half(d.Render())
				path := filepath.Join("testdata", "golden", s.name+"_"+lang+".png")
				if *update {
					writePNG(t, path, paletted(got))
					return
				}
				want := readPNG(t, path)
				if got.Rect != want.Bounds() {
					t.Fatalf("picture is %v, want %v", got.Rect, want.Bounds())
				}
				if n := different(got, want); n > goldenPixels {
					t.Errorf("%d pixels differ from %s", n, path)
				}
			})
		}
	}
}

func shrinkTo(img *image.RGBA, size image.Point) *image.RGBA {
	out := image.NewRGBA(image.Rectangle{Max: size})
	draw.ApproxBiLinear.Scale(out, out.Rect, img, img.Rect, draw.Src, nil)
	return out
}

func half(img *image.RGBA) *image.RGBA { return shrinkTo(img, img.Rect.Size().Div(2)) }

// paletted reduces a picture to the 256 colours that stand for it best: the most frequent ones, as far
// as they differ.
func paletted(img *image.RGBA) *image.Paletted {
	count := make(map[color.RGBA]int)
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			count[img.RGBAAt(x, y)]++
		}
	}
	byCount := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var p color.Palette
	for _, c := range byCount {
		near := slices.ContainsFunc(p, func(o color.Color) bool {
			k := o.(color.RGBA)
			return abs(int(c.R)-int(k.R))+abs(int(c.G)-int(k.G))+abs(int(c.B)-int(k.B)) < 10
		})
		if !near && len(p) < 256 {
			p = append(p, c)
		}
	}
	out := image.NewPaletted(img.Rect, p)
	index := make(map[color.RGBA]uint8)
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			c := img.RGBAAt(x, y)
			k, ok := index[c]
			if !ok {
				k = uint8(p.Index(c))
				index[c] = k
			}
			out.SetColorIndex(x, y, k)
		}
	}
	return out
}

func different(a *image.RGBA, b image.Image) (n int) {
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			for _, d := range []int{int(r1>>8) - int(r2>>8), int(g1>>8) - int(g2>>8), int(b1>>8) - int(b2>>8)} {
				if abs(d) > goldenTolerance {
					n++
					break
				}
			}
		}
	}
	return n
}

func writePNG(t *testing.T, path string, img image.Image) {
	t.Helper()
	var buf bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
