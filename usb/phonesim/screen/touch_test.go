package screen

import (
	"testing"
	"testing/fstest"
	"time"
)

func TestFingerDragsAndLifts(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.android.settings")
	first := d.find("title").Text
	top := func() int { return d.find(first).Bounds.Min.Y }
	before := top()
	d.Touch(TouchDown, 360, 1200)
	if !d.FingerDown() {
		t.Error("no finger is down")
	}
	d.Touch(TouchMove, 360, 1195)
	if top() != before {
		t.Error("a finger that hardly moves scrolls")
	}
	d.Touch(TouchMove, 360, 1160)
	if got := before - top(); got != 40 {
		t.Errorf("scrolled by %d, want 40", got)
	}
	d.Touch(TouchMove, 360, 1180)
	d.Touch(TouchUp, 360, 900)
	if got := before - top(); got != 20 || d.FingerDown() {
		t.Errorf("scrolled by %d, want 20; finger down: %t", got, d.FingerDown())
	}
	if pkg, _ := d.Focus(); pkg != "com.android.settings" || !d.has(first) {
		t.Error("the drag clicked")
	}
}

func TestFingerThatDoesNotMoveTapsWhereItWentDown(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	x, y := centre(d.find("search"))
	d.Touch(TouchDown, x, y)
	if d.Keyboard() {
		t.Error("clicked before the finger lifted")
	}
	d.Touch(TouchUp, 5, 1500)
	if !d.Keyboard() {
		t.Error("not clicked")
	}
	d.Touch(TouchUp, x, y) // of no finger
}

func TestCancelledTouchDoesNothing(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	x, y := centre(d.find("search"))
	d.Touch(TouchDown, x, y)
	d.Touch(TouchCancel, 0, 0)
	if d.Keyboard() || d.FingerDown() {
		t.Errorf("keyboard %t, finger %t", d.Keyboard(), d.FingerDown())
	}
}

func TestFingerThatRestsPressesLongWhileItIsDown(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.messenger")
	d.tap("Ben")
	d.tap("input")
	d.typeText("hello")
	d.tap("send")
	d.Key(KeyBack)
	x, y := centre(d.find("hello"))
	d.Touch(TouchDown, x, y)
	d.wait(longPress)
	if !d.has("Delete") || !d.FingerDown() {
		t.Errorf("dialog %t, finger %t", d.has("Delete"), d.FingerDown())
	}
	d.Touch(TouchUp, x, y)
	d.settle()
	if !d.has("Delete") {
		t.Error("the lifted finger clicked again")
	}
}

func TestSwipeHoldsTheFingerForItsTime(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.android.settings")
	first := d.find("title").Text
	before := d.find(first).Bounds.Min.Y
	d.StartSwipe(360, 1200, 360, 1160, 500*time.Millisecond, 500*time.Millisecond)
	d.wait(400 * time.Millisecond)
	if !d.FingerDown() || d.find(first).Bounds.Min.Y != before {
		t.Error("the swipe is over too soon")
	}
	d.wait(100 * time.Millisecond)
	if d.FingerDown() || before-d.find(first).Bounds.Min.Y != 40 {
		t.Errorf("finger %t, scrolled by %d", d.FingerDown(), before-d.find(first).Bounds.Min.Y)
	}
	d.StartSwipe(360, 1200, 360, 1000, time.Second, time.Second)
	d.Tap(5, 5)
	if d.FingerDown() {
		t.Error("another touch leaves the finger down")
	}
	d.Touch(TouchDown, 5, 5)
	d.SetScreenOn(false)
	if d.FingerDown() {
		t.Error("a finger on a dark display")
	}
	d.Touch(TouchDown, 5, 5)
	if d.FingerDown() {
		t.Error("a dark display takes a finger")
	}
}

func TestDoubleTap(t *testing.T) {
	d := drive(t, Config{Apps: fstest.MapFS{"com.x.y/app.yaml": {Data: []byte(`
package: com.x.y
activity: .Main
version: "1"
label: X
icon: gear
start: main
screens:
  main:
    root:
      widget: text
      id: photo
      text: photo
      tap: [{journal: single}]
      double_tap: [{journal: double}]
`)}}})
	d.open("com.x.y")
	x, y := centre(d.find("photo"))
	d.Tap(x, y)
	if d.Idle() || len(d.Journal()) != 0 {
		t.Error("a tap counts before it is known to be single")
	}
	d.wait(doubleTap)
	d.wantJournal("single")
	d.Tap(x, y)
	d.wait(doubleTap - time.Millisecond)
	d.Tap(x, y)
	d.wait(time.Second)
	d.wantJournal("single", "double")
}
