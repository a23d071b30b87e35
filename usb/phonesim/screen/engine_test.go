package screen

import (
	"bytes"
	"errors"
	"image"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestListFollowsTheFinger(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.messenger")
	before := d.find("Ben").Bounds
	d.Swipe(300, 900, 300, 900-120, 300*time.Millisecond)
	if got := d.find("Ben").Bounds; got != before.Sub(image.Pt(0, 120)) {
		t.Errorf("row is at %v, want %v moved up by 120", got, before)
	}
	list := d.find("conversations").Bounds
	var cut bool
	for _, n := range d.all("conversation") {
		if !n.Bounds.In(list) {
			t.Errorf("row %v is not clipped to the list %v", n.Bounds, list)
		}
		cut = cut || n.Bounds.Min.Y == list.Min.Y && n.Bounds.Dy() < d.all("conversation")[1].Bounds.Dy()
	}
	if !cut {
		t.Error("no row is partly visible")
	}
	for range 20 {
		d.Swipe(300, 1400, 300, 400, 300*time.Millisecond)
	}
	d.find("Wang Fang")
	d.Swipe(300, 60, 300, 10, 300*time.Millisecond)   // on the status bar
	d.Swipe(600, 700, 100, 710, 300*time.Millisecond) // across
	d.find("Wang Fang")
	for range 20 {
		d.Swipe(300, 500, 300, 1500, 300*time.Millisecond)
	}
	if got := d.find("Ben").Bounds; got != before {
		t.Errorf("back at the top the row is at %v, not %v", got, before)
	}
}

func TestShortSwipeIsATouch(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.messenger")
	x, y := centre(d.find("Ana"))
	d.Swipe(x, y, x+3, y, 50*time.Millisecond)
	d.settle()
	d.find("input")
	x, y = centre(d.find("Yes, at ten."))
	d.Swipe(x, y, x, y, time.Second)
	d.settle()
	d.find("Delete this message?")
}

func TestKeyboardCoversWhatIsBelow(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	tab := d.find("tab_basket")
	d.tap("search")
	if !d.Keyboard() {
		t.Fatal("no keyboard")
	}
	if got := d.find("tab_basket"); got.Bounds != tab.Bounds {
		t.Errorf("the covered tab moved to %v", got.Bounds)
	}
	d.Tap(centre(tab))
	d.settle()
	if _, activity := d.Focus(); activity != ".MainActivity" {
		t.Errorf("a tap went through the keyboard to %s", activity)
	}
	d.Key(KeyBack)
	if d.Keyboard() {
		t.Fatal("BACK leaves the keyboard")
	}
	d.find("search") // and the screen
	d.tap("tab_basket")
	d.find("items")
}

func TestSoftKeysType(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	d.tap("search")
	press := func(label string) {
		t.Helper()
		for _, k := range d.current().keyboard.keys {
			if k.label == label || k.picture == label {
				d.Tap(k.rect.Min.X+2, k.rect.Min.Y+2)
				return
			}
		}
		t.Fatalf("no key %q", label)
	}
	for _, label := range []string{"shift", "M", "u", "x", "backspace", "g", " ", "?123", "7", "ABC"} {
		press(label)
	}
	if got := d.find("search").Text; got != "Mug 7" {
		t.Errorf("typed %q", got)
	}
	press("key_search")
	d.settle()
	d.find("empty")
}

func TestTextNeedsFocus(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	d.typeText("lost")
	d.tap("search")
	for _, code := range []int{keyA + 10, keyA + 4, key0 + 5, KeyLeft, KeyDel, KeyMoveEnd, KeySpace, KeyMoveHome, KeyForwardDel} {
		d.Key(code)
	}
	if got := d.find("search").Text; got != "5 " {
		t.Errorf("field holds %q", got)
	}
	if err := d.SetClipboard("kettle"); err != nil {
		t.Fatal(err)
	}
	d.Key(KeyPaste)
	if got := d.find("search").Text; got != "kettle5 " {
		t.Errorf("field holds %q", got)
	}
	if err := d.Type("a\U0001F600b"); !errors.Is(err, ErrNoGlyph) {
		t.Errorf("typing an emoji gives %v", err)
	}
	if err := d.Commit("\U0001F600 שלום"); err != nil || !strings.HasPrefix(d.find("search").Text, "kettle\U0001F600 שלום") {
		t.Errorf("an input method commits %q, %v", d.find("search").Text, err)
	}
	d.settle() // draws boxes
	d.Key(KeyEscape)
	if d.Keyboard() {
		t.Error("ESC leaves the keyboard")
	}
}

func TestTapOnNothingDoesNothing(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	before := d.summary()
	d.Tap(centre(d.find("Popular now")))
	d.Tap(360, 20)
	d.Tap(-5, 4000)
	d.settle()
	if after := d.summary(); after != before {
		t.Errorf("the screen changed to %s", after)
	}
}

func TestDisplayTurnsAndChangesSize(t *testing.T) {
	for _, lang := range []string{"en", "ar"} {
		d := drive(t, Config{Language: lang})
		d.open("com.phonerack.messenger")
		check := func(w, h int) {
			t.Helper()
			d.settle()
			whole := image.Rect(0, 0, w, h)
			if got := d.Tree().Bounds; got != whole {
				t.Errorf("tree is %v, want %v", got, whole)
			}
			if got := d.Render().Rect; got != whole {
				t.Errorf("picture is %v, want %v", got, whole)
			}
			for _, n := range nodes(d.Tree()) {
				if !n.Bounds.In(whole) || n.Bounds.Empty() {
					t.Errorf("%s %q is at %v", n.Class, n.Text, n.Bounds)
				}
			}
		}
		check(720, 1600)
		d.SetRotation(1)
		check(1600, 720)
		if err := d.SetSize(1080, 1920); err != nil {
			t.Fatal(err)
		}
		if err := d.SetDensity(480); err != nil {
			t.Fatal(err)
		}
		check(1920, 1080)
		d.SetRotation(0)
		check(1080, 1920)
		if err := errors.Join(d.SetSize(0, 0), d.SetDensity(0)); err != nil {
			t.Fatal(err)
		}
		check(720, 1600)
		if d.SetSize(1, 1) == nil || d.SetDensity(5000) == nil {
			t.Error("an impossible display is accepted")
		}
	}
}

func TestAnimationScaleMayChangeDuringATransition(t *testing.T) {
	for _, scale := range []float64{0.1, 0} {
		d := drive(t, Config{})
		if err := d.Launch("com.phonerack.messenger"); err != nil {
			t.Fatal(err)
		}
		before := d.Render().Pix
		d.SetAnimationScale(scale)
		d.wait(2 * framePeriod)
		if !bytes.Equal(d.Render().Pix, before) {
			t.Errorf("scale %v: the new screen is not at the edge from which it comes", scale)
		}
		d.settle()
		if bytes.Equal(d.Render().Pix, before) {
			t.Errorf("scale %v: the transition does not end", scale)
		}
	}
}

func TestArabicIsMirrored(t *testing.T) {
	en, ar := drive(t, Config{Language: "en"}), drive(t, Config{Language: "ar"})
	for _, d := range []*driver{en, ar} {
		d.open("com.phonerack.messenger")
	}
	a, b := en.find("search").Bounds, ar.find("search").Bounds
	if a != mirrored(b, 720) {
		t.Errorf("field is at %v and %v", a, b)
	}
	if name := ar.find("name").Bounds; name.Max.X < 500 {
		t.Errorf("name is on the left: %v", name)
	}
}

func TestDisplayOff(t *testing.T) {
	d := drive(t, Config{})
	d.Key(KeyPower)
	if d.ScreenOn() || !black(d) || d.Tree() != nil {
		t.Error("the display is not off")
	}
	d.Tap(100, 1200)
	d.Key(KeyWakeup)
	d.settle()
	if pkg, _ := d.Focus(); pkg != "com.android.launcher3" {
		t.Errorf("a touch in the dark opened %s", pkg)
	}
	d.Key(KeySleep)
	d.SetScreenOn(true)
	if black(d) {
		t.Error("the display stays black")
	}
}

func TestCrashShowsTheSystemsDialog(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	if err := d.Crash("com.phonerack.shop"); err != nil {
		t.Fatal(err)
	}
	d.settle()
	if n := d.find("Shop keeps stopping"); n.Package != "android" {
		t.Errorf("the dialog is of %s", n.Package)
	}
	if got := d.Running(); len(got) != 1 {
		t.Errorf("running: %q", got)
	}
	d.tap("Open app again")
	if pkg, _ := d.Focus(); pkg != "com.phonerack.shop" {
		t.Errorf("focus is %s", pkg)
	}
	if err := d.Crash("nobody"); !errors.Is(err, ErrUnknownPackage) {
		t.Errorf("crash of an unknown package: %v", err)
	}
}

func TestStopAndClear(t *testing.T) {
	d := drive(t, Config{})
	search(d, "kettle")
	d.Stop("com.phonerack.shop")
	d.wait(5 * time.Second)
	d.settle()
	d.find("workspace")
	d.open("com.phonerack.shop")
	if d.find("search").Text != "" {
		t.Error("a stopped app comes back where it was")
	}
	d.open("com.android.settings")
	d.tap("Network and internet")
	d.tap("Wi-Fi")
	d.Stop("com.android.settings")
	d.open("com.android.settings")
	d.tap("Network and internet")
	if d.all("switch_widget")[0].Checked {
		t.Error("stopping resets data")
	}
	if err := d.Clear("com.android.settings"); err != nil {
		t.Fatal(err)
	}
	d.open("com.android.settings")
	d.tap("Network and internet")
	if !d.all("switch_widget")[0].Checked {
		t.Error("clearing keeps data")
	}
	if err := d.Launch("nobody"); !errors.Is(err, ErrUnknownPackage) {
		t.Errorf("launch of an unknown package: %v", err)
	}
}

func TestPackages(t *testing.T) {
	got := make(map[string]Package)
	for _, p := range drive(t, Config{Language: "zh"}).Packages() {
		got[p.Name] = p
	}
	if p := got["com.phonerack.shop"]; p.Label != "商店" || p.Activity != ".MainActivity" || p.Version == "" || p.System {
		t.Errorf("shop is %+v", p)
	}
	if len(got) != 7 || !got["android"].System || !got["com.android.launcher3"].System {
		t.Errorf("packages are %v", got)
	}
}

func TestMissingChineseFontIsAClearError(t *testing.T) {
	t.Setenv("PHONERACK_CJK_FONT", "/nonexistent/font.ttf")
	_, err := New(Config{Language: "zh"})
	if !errors.Is(err, ErrNoCJKFont) || !strings.Contains(err.Error(), "fonts-droid-fallback") {
		t.Errorf("New in Chinese gives %v", err)
	}
	e, err := New(Config{Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Type("水壶"); !errors.Is(err, ErrNoCJKFont) {
		t.Errorf("typing Chinese gives %v", err)
	}
}

func TestEveryShippedCharacterHasAGlyph(t *testing.T) {
	b, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{"en", "ar", "zh"} {
		e := drive(t, Config{Language: lang})
		n := 0
		for _, name := range b.Names() {
			for where, s := range b.Apps[name].Strings(lang) {
				n++
				if err := e.text.Check(s); err != nil {
					t.Errorf("%s: %s: %v", name, where, err)
				}
			}
		}
		if n < 400 {
			t.Errorf("only %d strings in %s", n, lang)
		}
		for _, rows := range keyRows {
			if err := e.text.Check(strings.ToUpper(strings.Join(rows, "")) + strings.Join(rows, "") + "أبج،"); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestUnchangedPictureIsACopy(t *testing.T) {
	d := drive(t, Config{})
	a := d.Render()
	a.Pix[0] ^= 0xff
	if b := d.Render(); b.Pix[0] == a.Pix[0] {
		t.Error("changing a picture changes the next one")
	}
}

func TestStatusBarClockMoves(t *testing.T) {
	d := drive(t, Config{})
	a := d.Render()
	d.wait(time.Minute)
	if b := d.Render(); string(a.Pix) == string(b.Pix) {
		t.Error("the picture is the same a minute later")
	}
	d.find("09:42")
}

func TestConcurrentUse(t *testing.T) {
	d := drive(t, Config{Width: 360, Height: 800, Density: 160})
	var wg sync.WaitGroup
	for i, f := range []func(i int){
		func(i int) { d.Tap(i*37%360, i*91%800) },
		func(i int) { d.Swipe(180, 600, 180, 600-i*13%400, time.Second) },
		func(i int) { _ = d.Launch([]string{"com.phonerack.shop", "com.phonerack.messenger"}[i%2]) },
		func(int) { _ = d.Type("mug\n") },
		func(i int) { d.Key([]int{KeyBack, KeyHome, KeyAppSwitch, KeyTab}[i%4]) },
		func(int) {
			d.Tree()
			d.Focus()
			d.Idle()
			d.Journal()
			d.Packages()
			d.Keyboard()
		},
		func(i int) { d.SetRotation(i / 8); d.Render(); d.clock.advance(100 * time.Millisecond) },
		func(i int) {
			d.Stop("com.phonerack.shop")
			_ = d.Crash("com.phonerack.messenger")
			d.SetBattery(i, false)
		},
	} {
		wg.Go(func() {
			for n := range 30 {
				f(n + i)
			}
		})
	}
	wg.Wait()
}
