package android

import (
	"fmt"
	"image"
	"strings"
	"testing"
	"time"

	"phonerack/usb/phonesim/screen"
)

func lockedPhone(t *testing.T, version int, pin string) (*phone, *screen.Engine) {
	t.Helper()
	var engine *screen.Engine
	p := newPhone(t, version, func(c *Config) {
		var err error
		if engine, err = screen.New(screen.Config{Width: 720, Height: 1600, Density: 320, Clock: c.Clock}); err != nil {
			t.Fatal(err)
		}
		c.Screen, c.Locked, c.PIN = engine, true, pin
	})
	return p, engine
}

// wantLock checks what every service tells of the lock.
func wantLock(t *testing.T, p *phone, locked, secure bool) {
	t.Helper()
	p.ok("sleep 1")
	wantContains(t, "policy", p.ok("dumpsys window policy"), fmt.Sprintf("mIsShowing=%t\n", locked), fmt.Sprintf("mInputRestricted=%t\n", locked),
		fmt.Sprintf("secure=%t\n", secure))
	device := 0
	if locked && secure {
		device = 1
	}
	wantContains(t, "trust", p.ok("dumpsys trust"), fmt.Sprintf("deviceLocked=%d", device))
	focus := "NotificationShade}"
	if p.release.version < 11 {
		focus = "StatusBar}"
	}
	if got := strings.Contains(p.ok("dumpsys window"), "mCurrentFocus=Window{"+fmt.Sprintf("%x u0 ", p.hash("window"+strings.TrimSuffix(focus, "}")))+focus); got != locked {
		t.Errorf("focus on the lock screen: %t, want %t", got, locked)
	}
}

func TestLockScreenWithoutPIN(t *testing.T) {
	for version := range releases {
		p, engine := lockedPhone(t, version, "")
		wantLock(t, p, true, false)
		p.ok("input tap 360 800; input text x; input keyevent 66 HOME")
		p.ok("uiautomator dump")
		wantContains(t, "dump", p.ok("cat /sdcard/window_dump.xml"), "com.android.systemui:id/keyguard_root_view", `text="10:0`)
		p.ok("input swipe 360 1500 360 1450")
		wantLock(t, p, true, false)
		p.ok("input swipe 360 1500 360 300")
		wantLock(t, p, false, false)
		p.ok("input keyevent POWER")
		wantContains(t, "power", p.ok("dumpsys power"), "mWakefulness=Asleep", "Display Power: state=OFF")
		wantLock(t, p, true, false)
		p.ok("input keyevent POWER; wm dismiss-keyguard")
		wantLock(t, p, false, false)
		p.ok("input keyevent SLEEP; input keyevent WAKEUP; input keyevent MENU")
		wantLock(t, p, false, false)
		if !engine.ScreenOn() {
			t.Error("the display is off")
		}
	}
}

func TestLockScreenWithPIN(t *testing.T) {
	tap := func(p *phone, e *screen.Engine, id string) {
		t.Helper()
		n := find(e.Tree(), "com.android.systemui:id/"+id)
		if n == nil {
			t.Fatalf("no %s on the screen", id)
		}
		c := n.Bounds.Min.Add(n.Bounds.Max).Div(2)
		p.ok(fmt.Sprintf("input tap %d %d", c.X, c.Y))
	}
	p, engine := lockedPhone(t, 14, "1234")
	p.ok("wm dismiss-keyguard")
	wantLock(t, p, true, true)
	for _, key := range []string{"key1", "key2", "key3", "key3", "key_enter"} {
		tap(p, engine, key)
	}
	wantLock(t, p, true, true)
	if n := find(engine.Tree(), "com.android.systemui:id/bouncer_message_view"); n.Text != "Wrong PIN" {
		t.Errorf("message %q", n.Text)
	}
	for _, key := range []string{"key9", "delete_button", "key1", "key2", "key3", "key4", "key_enter"} {
		tap(p, engine, key)
	}
	wantLock(t, p, false, true)
	p.ok("input keyevent SLEEP WAKEUP; input swipe 360 1500 360 300; sleep 1; input text 1234; input keyevent ENTER")
	wantLock(t, p, false, true)
}

func TestWrongPINsBarTheRightOne(t *testing.T) {
	p, engine := lockedPhone(t, 14, "1234")
	p.ok("input swipe 360 1500 360 300; sleep 1")
	for range 5 {
		p.ok("input text 1; input keyevent ENTER")
	}
	p.ok("input text 1234; input keyevent ENTER")
	wantLock(t, p, true, true)
	if n := find(engine.Tree(), "com.android.systemui:id/bouncer_message_view"); n.Text != "Try again in 30 seconds" {
		t.Errorf("message %q", n.Text)
	}
	p.clock.Sleep(t.Context(), 30*time.Second)
	p.ok("input text 1234; input keyevent ENTER")
	wantLock(t, p, false, true)
}

// The list of windows tells where the keyboard's keys are, in the words of each version.
func TestWindowListShowsTheKeyboard(t *testing.T) {
	for version := range releases {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			p, engine := realPhone(t, version)
			hidden := p.ok("dumpsys window InputMethod")
			wantContains(t, "hidden", hidden, "mHasSurface=false", "touchable region=SkRegion((0,56,720,1600))", "mViewVisibility=0x8")
			focusSearch(p, engine)
			top := engine.Display().KeyboardTop
			out := p.ok("dumpsys window windows")
			entry := windowEntry(t, out, "InputMethod")
			wantContains(t, "keyboard", entry, "package=com.google.android.inputmethod.latin ", "mHasSurface=true",
				fmt.Sprintf("mGivenContentInsets=[0,%d][0,0]", top-56), fmt.Sprintf("touchable region=SkRegion((0,%d,720,1600))", top))
			frame := "mFrame=[0,56][720,1600]"
			if version >= 13 {
				frame = " frame=[0,56][720,1600]"
			}
			kind := "ty=INPUT_METHOD "
			if version < 9 {
				kind = "ty=2011 "
			}
			wantContains(t, "keyboard", entry, frame, kind)
			if strings.Contains(out, "isOnScreen=") != (version >= 9) || strings.Contains(out, "mCurrentFocus") != (version < 10) {
				t.Error("isOnScreen or mCurrentFocus in a version without it, or missing")
			}
			shop := windowEntry(t, out, "com.phonerack.shop/com.phonerack.shop.MainActivity")
			wantContains(t, "app", shop, "package=com.phonerack.shop ", "mViewVisibility=0x0", "[0,0][720,1600]")
			behind := windowEntry(t, out, "com.android.launcher3/com.android.launcher3.uioverrides.QuickstepLauncher")
			wantContains(t, "behind", behind, "mViewVisibility=0x8", "mHasSurface=false")
			if got := windowNamesOf(out); got[0] == "InputMethod" || got[len(got)-1] != "com.android.systemui.ImageWallpaper" {
				t.Errorf("windows %q", got)
			}
		})
	}
}

// windowEntry is what the dump says of one window.
func windowEntry(t *testing.T, dump, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(dump, " u0 "+name+"}:\n")
	if !ok {
		t.Fatalf("no window %s in\n%s", name, dump)
	}
	entry, _, _ := strings.Cut(rest, "\n  Window #")
	return entry
}

func windowNamesOf(dump string) (names []string) {
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "  Window #") {
			_, name, _ := strings.Cut(line, " u0 ")
			names = append(names, strings.TrimSuffix(name, "}:\n"))
		}
	}
	return names
}

func TestWindowListShowsDialogs(t *testing.T) {
	p, engine := realPhone(t, 14)
	focusSearch(p, engine)
	if err := engine.Crash("com.phonerack.shop"); err != nil {
		t.Fatal(err)
	}
	p.ok("sleep 1")
	out := p.ok("dumpsys window windows")
	var frame image.Rectangle
	entry := windowEntry(t, out, "Application Error: com.phonerack.shop")
	_, after, _ := strings.Cut(entry, " frame=")
	if _, err := fmt.Sscanf(after, "[%d,%d][%d,%d]", &frame.Min.X, &frame.Min.Y, &frame.Max.X, &frame.Max.Y); err != nil || frame != engine.Tree().Bounds {
		t.Errorf("frame %v (%v), the dialog is at %v", frame, err, engine.Tree().Bounds)
	}
	wantContains(t, "dialog", entry, "ty=SYSTEM_ALERT", "DIM_BEHIND")
}
