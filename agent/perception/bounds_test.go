package perception

import (
	"bytes"
	"fmt"
	"image"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"phonerack/agent/frame"
	"phonerack/agent/phone"
)

// hostile are dumps made to cost much: deep, wide, and full of what is compared
// with everything else.
func hostile() map[string]string {
	touch := `<node clickable="true" scrollable="true" text="a" bounds="[0,0][1000,2000]">`
	comb := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			fmt.Fprintf(&b, `<node clickable="true" bounds="[0,0][%d,2000]"><node content-desc="%d" clickable="true" bounds="[0,0][9,9]"/><node text="b" bounds="[0,0][900,1000]"/>`, 999-i%500, i)
		}
		return b.String() + strings.Repeat("</node>", depth)
	}
	var classes strings.Builder
	for i := range maxNodes {
		fmt.Fprintf(&classes, `<node class="c%d" resource-id="i%d" package="p%d" bounds="[0,0][9,9]"/>`, i, i, i)
	}
	return map[string]string{
		"wide":    strings.Repeat(`<node clickable="true" text="a" bounds="[0,0][1000,1500]"/>`, maxNodes),
		"deep":    strings.Repeat(touch, maxDepth) + strings.Repeat("</node>", maxDepth),
		"comb":    comb(6000),
		"sheets":  strings.Repeat(`<node clickable="true" bounds="[0,0][1000,1500]"><node text="a" bounds="[0,0][99,99]"/><node bounds="[0,0][99,99]"/></node>`, 6000),
		"roots":   strings.Repeat(`<node package="x" text="a" clickable="true" bounds="[0,0][1000,2000]"/>`, maxNodes),
		"names":   classes.String(),
		"long":    `<node text="` + strings.Repeat("&#55357;", 1<<20) + `" bounds="[0,0][900,900]"/>`,
		"pieces":  `<node content-desc="` + strings.Repeat("a ", 2000) + `" clickable="true" bounds="[0,0][900,900]">` + strings.Repeat(`<node text="`+strings.Repeat("a ", 1000)+`b" bounds="[0,0][9,9]"/>`, 1000) + `</node>`,
		"nothing": strings.Repeat(`<node/>`, 1<<20),
	}
}

func TestReport13_AHugeTreeIsBounded(t *testing.T) {
	for name, nodes := range hostile() {
		t.Run(name, func(t *testing.T) {
			dump := []byte(`<hierarchy rotation="0"><node bounds="[0,0][1000,2000]">` + nodes + `</node></hierarchy>`)
			if name == "roots" {
				dump = []byte(`<hierarchy rotation="0">` + nodes + `</hierarchy>`)
			}
			start := time.Now()
			s, err := read(dump)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 10*time.Second { // a tenth of a second when nothing else runs
				t.Errorf("%d bytes took %s", len(dump), took)
			}
			if len(s.Elements) > maxElements {
				t.Errorf("%d elements", len(s.Elements))
			}
			if size := len(s.Prompt()); size > maxElements*4*12*maxPromptText {
				t.Errorf("a prompt of %d bytes", size)
			}
		})
	}
}

// A scene is kept for as long as a task looks at it, by every rack of 40 phones:
// it must not hold the dump that it was made of.
func TestASceneHoldsNothingOfItsDump(t *testing.T) {
	dump := append([]byte(`<hierarchy rotation="0"><!--`), bytes.Repeat([]byte{'x'}, 8<<20)...)
	dump = append(dump, `--><node text="kept" resource-id="a:id/kept" class="android.widget.Button" package="a" clickable="true" bounds="[0,0][90,90]"/></hierarchy>`...)
	held := weak.Make(&dump[0])
	s, err := read(dump)
	if err != nil {
		t.Fatal(err)
	}
	dump = nil
	for range 5 {
		runtime.GC()
	}
	if held.Value() != nil {
		t.Error("the dump is still there")
	}
	if e := s.Elements[0]; e.Text != "kept" || e.ID != "a:id/kept" || e.Class != "android.widget.Button" || e.Package != "a" {
		t.Errorf("got %+v", e)
	}
}

// Trees are used again by whoever comes next: scenes that were made before must
// not change, and those made at the same time must not mix.
func TestScenesOfManyPhonesDoNotMix(t *testing.T) {
	all := fixtures(t)
	want := map[string]*Scene{}
	for name, dump := range all {
		want[name] = sceneIn(t, dump, surroundings[name])
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for name, dump := range all {
				if got := sceneIn(t, dump, surroundings[name]); !reflect.DeepEqual(got, want[name]) {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
	wg.Wait()
	for name := range all {
		if again := sceneIn(t, all[name], surroundings[name]); !reflect.DeepEqual(again, want[name]) {
			t.Errorf("%s has changed", name)
		}
	}
}

// The phone's own dumper and Appium's server describe one screen in two shapes.
func TestBothShapesOfADumpGiveOneScene(t *testing.T) {
	a, b := fixture(t, "shop_stock"), fixture(t, "shop_appium")
	if a.Prompt() != b.Prompt() || a.Hash != b.Hash || !Compare(a, b).empty() {
		t.Errorf("got\n%s\nand\n%s", a.Prompt(), b.Prompt())
	}
	for i := range a.Elements {
		if a.Elements[i] != b.Elements[i] {
			t.Errorf("element %d: %+v and %+v", i, a.Elements[i], b.Elements[i])
		}
	}
	bare := `<hierarchy class="hierarchy" rotation="1" width="200" height="100"><android.widget.Button text="OK" bounds="[0,0][90,90]" clickable="true" displayed="true"/></hierarchy>`
	s := sceneOf(t, []byte(bare))
	if len(s.Elements) != 1 || s.Elements[0].Role != RoleButton || s.Elements[0].Class != "android.widget.Button" || s.Width != 200 || s.Height != 100 || s.Rotation != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestReport11_EmojiArriveWhole(t *testing.T) {
	for in, want := range map[string]string{
		"&#55357;&#56832; &#128640; 👩‍👩‍👧": "😀 🚀 👩‍👩‍👧",
		"half &#55357; and &#56832;":       "half \uFFFD and \uFFFD",
		".. and .":                         ".. and .", // what some versions write instead: nothing tells it from dots
		"a&#0;\x00b":                       "ab",
	} {
		s := sceneOf(t, []byte(`<hierarchy><node text="`+in+`" bounds="[0,0][90,90]"/></hierarchy>UI hierchary dumped to: /dev/tty`))
		if got := s.Elements[0].Text; got != want {
			t.Errorf("%q arrives as %q, want %q", in, got, want)
		}
		if err := readsBack(s); err != nil {
			t.Error(err)
		}
	}
}

// The display is as it is turned, and so are the nodes; a point of a picture that
// is smaller goes where it was seen.
func TestReport15_PlacesInLandscape(t *testing.T) {
	s := fixture(t, "landscape_player")
	if s.Width != 2340 || s.Height != 1080 || s.Rotation != 1 {
		t.Errorf("%dx%d turned %d", s.Width, s.Height, s.Rotation)
	}
	for _, e := range s.Elements {
		if e.Description == "Cast" && e.Bounds.Min.Add(e.Bounds.Max).Div(2) != image.Pt(2240, 80) {
			t.Errorf("Cast is at %v", e.Bounds)
		}
	}
	game := sceneIn(t, fixtures(t)["game_unity"], func(s *phone.State) { s.Display = phone.Display{Width: 2400, Height: 1080, Rotation: 1} })
	game.Picture = &frame.Picture{Size: image.Pt(720, 324), Source: image.Pt(2400, 1080)}
	for _, c := range []struct{ in, out image.Point }{{image.Pt(0, 0), image.Pt(1, 1)}, {image.Pt(719, 323), image.Pt(2398, 1078)}, {image.Pt(360, 162), image.Pt(1201, 541)}} {
		if p, err := game.ScreenPoint(c.in.X, c.in.Y); err != nil || p != c.out {
			t.Errorf("%v is %v, %v; want %v", c.in, p, err, c.out)
		}
		if back := image.Pt(c.out.X*720/2400, c.out.Y*324/1080); back != c.in {
			t.Errorf("%v goes back to %v, not %v", c.out, back, c.in)
		}
	}
}

// The dump that a phone without the hint attribute writes still has a field to
// write into.
func TestOldAndroidHasFieldsToo(t *testing.T) {
	b, err := os.ReadFile("testdata/android44_messages.xml")
	if err != nil || bytes.Contains(b, []byte("hint=")) {
		t.Fatal("the fixture is not of an old Android", err)
	}
	for _, e := range fixture(t, "android44_messages").Elements {
		if e.Role == RoleEdit && e.Text == "Type message" && e.Hint == "" && e.Focused {
			return
		}
	}
	t.Error("no field")
}

// TestTreesThatTellHints knows a tree that keeps hints apart from one that does
// not, also where no field has a hint.
func TestTreesThatTellHints(t *testing.T) {
	for _, c := range []struct {
		attributes string
		want       bool
	}{
		{`text="Notes"`, false},
		{`text="Notes" hint=""`, true},
		{`text="Notes" hint="Notes"`, true},
		{`text="Notes" showing-hint="false"`, true},
	} {
		dump := `<hierarchy rotation="0"><node class="android.widget.EditText" package="a.b" bounds="[0,0][500,100]" ` + c.attributes + ` /></hierarchy>`
		if s := sceneOf(t, []byte(dump)); s.Hints != c.want || len(s.Elements) != 1 {
			t.Errorf("%s: %t, %d elements", c.attributes, s.Hints, len(s.Elements))
		}
	}
}
