package android

import (
	"cmp"
	"fmt"
	"image"
	"strings"

	"phonerack/usb/phonesim/screen"
)

// listed is a window as the dump of the window manager has it.
type listed struct {
	screen.Window
	name  string // what stands after "u0"
	uid   int
	kind  string // of WindowManager.LayoutParams, without TYPE_
	code  int    // the same as a number, which Android 8 and older print
	layer int
}

// windowNames are those of the windows that are no app's.
var windowNames = map[screen.WindowKind]struct {
	name, kind  string
	code, layer int
}{
	screen.NavigationBarWindow: {"NavigationBar0", "NAVIGATION_BAR", 2019, 231000},
	screen.StatusBarWindow:     {"StatusBar", "STATUS_BAR", 2000, 171000},
	screen.LockWindow:          {"NotificationShade", "NOTIFICATION_SHADE", 2040, 171000},
	screen.KeyboardWindow:      {"InputMethod", "INPUT_METHOD", 2011, 151000},
	screen.SystemDialogWindow:  {"", "SYSTEM_ALERT", 2003, 121000},
	screen.DialogWindow:        {"", "APPLICATION", 2, 21000},
	screen.AppWindow:           {"", "BASE_APPLICATION", 1, 21000},
}

// listWindows gives the windows from the top. Until Android 10 the lock screen is the status bar, pulled down.
func (c *call) listWindows() []listed {
	method, _ := c.setting("secure", "default_input_method")
	ime, _, _ := strings.Cut(method, "/")
	v := c.release.version
	var list []listed
	all := c.screen.Windows()
	locked := false
	for _, w := range all {
		locked = locked || w.Kind == screen.LockWindow && w.Visible
	}
	for _, w := range all {
		about := windowNames[w.Kind]
		l := listed{Window: w, name: about.name, kind: about.kind, code: about.code, layer: about.layer}
		switch w.Kind {
		case screen.NavigationBarWindow:
			if v < 10 {
				l.name = "NavigationBar"
			}
		case screen.StatusBarWindow:
			if v < 11 && locked {
				l.Frame = image.Rectangle{Max: image.Pt(c.screen.Display().Width, c.screen.Display().Height)}
				l.Touchable, l.Focused = l.Frame, true
			}
		case screen.LockWindow:
			if v < 11 {
				continue
			}
		case screen.KeyboardWindow:
			l.Package = ime
		case screen.SystemDialogWindow:
			l.name = cmp.Or(w.Title, "Application Error")
		default:
			l.Activity = shortActivity(w.Package, w.Activity)
			l.name = w.Package + "/" + longActivity(w.Package, l.Activity)
		}
		a, _ := c.find(l.Package)
		l.uid = a.uid
		list = append(list, l)
	}
	display := c.screen.Display()
	return append(list, listed{
		Window: screen.Window{
			Package: "com.android.systemui", Frame: image.Rect(0, 0, display.Width, display.Height),
			Visible: display.On && len(list) > 0 && list[len(list)-1].Package == "com.android.launcher3",
		},
		name: "com.android.systemui.ImageWallpaper", kind: "WALLPAPER", code: 2013, layer: 11000, uid: 10050,
	})
}

// windowList prints the windows that match.
func (c *call) windowList(match func(*listed) bool) int {
	list := c.listWindows()
	n := 0
	for i := range list {
		if w := &list[i]; match(w) {
			if n == 0 {
				c.printf("WINDOW MANAGER WINDOWS (dumpsys window windows)\n")
			}
			number := i
			if c.release.version < 8 {
				number = len(list) - 1 - i
			}
			c.printf("  Window #%d Window{%s}:\n", number, c.windowID(w))
			c.windowEntry(w)
			n++
		}
	}
	return n
}

// windowID is what stands between the braces of Window{...}.
func (d *Device) windowID(w *listed) string {
	return fmt.Sprintf("%x u0 %s", d.hash("window"+w.name), w.name)
}

func rect(r image.Rectangle) string {
	return fmt.Sprintf("[%d,%d][%d,%d]", r.Min.X, r.Min.Y, r.Max.X, r.Max.Y)
}

func (c *call) windowEntry(w *listed) {
	v := c.release.version
	stack := " stackId=" + itoa(c.task(w.Package))
	if v >= 12 {
		stack = " rootTaskId=" + itoa(c.task(w.Package))
	}
	c.printf("    mDisplayId=0%s mSession=Session{%x %d:u0a%d} mClient=android.os.BinderProxy@%x\n", stack, c.hash("session"+w.Package),
		1000+c.hash("pid"+w.Package)%9000, w.uid, c.hash("client"+w.name))
	owner := "showForAllUsers=" + fmt.Sprint(w.Kind > screen.SystemDialogWindow)
	if v < 10 {
		owner = "mShowToOwnerOnly=" + fmt.Sprint(w.Kind <= screen.SystemDialogWindow)
	}
	c.printf("    mOwnerUid=%d %s package=%s appop=%s\n", w.uid, owner, w.Package, map[bool]string{true: "SYSTEM_ALERT_WINDOW", false: "NONE"}[w.kind == "SYSTEM_ALERT"])
	c.windowAttributes(w)
	c.printf("    Requested w=%d h=%d mLayoutSeq=%d\n", w.Frame.Dx(), w.Frame.Dy(), 100+c.hash(w.name)%900)
	if w.Kind == screen.KeyboardWindow {
		c.printf("    mIsImWindow=true mIsWallpaper=false mIsFloatingLayer=true\n")
	}
	token := fmt.Sprintf("WindowToken{%x android.os.Binder@%x}", c.hash("token"+w.name), c.hash("binder"+w.name))
	if w.Activity != "" && w.Kind <= screen.DialogWindow {
		token = c.appToken(focus{w.Package, w.Activity})
	}
	if v < 9 {
		c.printf("    mBaseLayer=%d mSubLayer=0 mAnimLayer=%d+0=%d mLastLayer=%d\n    mToken=%s\n", w.layer, w.layer+5, w.layer+5, w.layer+5, token)
	} else {
		c.printf("    mBaseLayer=%d mSubLayer=0    mToken=%s\n", w.layer, token)
	}
	visibility := "0x0"
	if !w.Visible {
		visibility = "0x8"
	}
	c.printf("    mViewVisibility=%s mHaveFrame=true mObscured=false\n", visibility)
	if v < 11 {
		c.printf("    mSeq=0 mSystemUiVisibility=0x0\n")
	}
	c.windowInsets(w)
	c.printf("    mFullConfiguration=%s\n", c.configuration())
	c.windowFrames(w)
	c.printf("    WindowStateAnimator{%x %s}:\n", c.hash("animator"+w.name), w.name)
	if w.Visible {
		c.printf("      mSurface=Surface(name=%s)/@0x%x\n      Surface: shown=true layer=0 alpha=1.0 rect=(0.0,0.0) %d x %d\n      mDrawState=HAS_DRAWN       mLastHidden=false\n",
			w.name, c.hash("surface"+w.name), w.Frame.Dx(), w.Frame.Dy())
	} else {
		c.printf("      mDrawState=NO_SURFACE       mLastHidden=true\n")
	}
	if v >= 9 {
		c.printf("    isOnScreen=%t\n    isVisible=%t\n", w.Visible, w.Visible)
	}
}

// windowAttributes prints the layout parameters: until Android 8 as numbers.
func (c *call) windowAttributes(w *listed) {
	place := "(0,0)(fillxfill)"
	switch w.Kind {
	case screen.StatusBarWindow, screen.NavigationBarWindow:
		place = fmt.Sprintf("(0,0)(fillx%d)", w.Frame.Dy())
	case screen.DialogWindow, screen.SystemDialogWindow:
		place = "(0,0)(wrapxwrap) gr=CENTER"
	}
	flags := []string{"LAYOUT_IN_SCREEN", "HARDWARE_ACCELERATED"}
	number := 0x81810100
	if w.Secure {
		flags, number = append(flags, "SECURE"), number|0x2000
	}
	switch w.Kind {
	case screen.DialogWindow, screen.SystemDialogWindow:
		flags, number = append(flags, "DIM_BEHIND"), number|0x2
	case screen.KeyboardWindow, screen.StatusBarWindow, screen.NavigationBarWindow:
		flags, number = append(flags, "NOT_FOCUSABLE", "SPLIT_TOUCH"), number|0x800008
	}
	if c.release.version < 9 {
		c.printf("    mAttrs=WM.LayoutParams{%s sim=#20 ty=%d fl=#%x}\n", place, w.code, number)
		return
	}
	c.printf("    mAttrs={%s sim={adjust=pan} ty=%s fmt=TRANSLUCENT\n      fl=%s", place, w.kind, strings.Join(flags, " "))
	if c.release.version >= 11 {
		c.printf("\n      pfl=USE_BLAST\n      fitSides=")
	}
	c.printf("}\n")
}

// windowInsets tells where a keyboard's keys are: the frame is the display below the status bar, the insets are the
// empty part of it, the region is what takes touches. A hidden keyboard keeps an old region.
func (c *call) windowInsets(w *listed) {
	if w.Kind != screen.KeyboardWindow {
		c.printf("    mGivenContentInsets=[0,0][0,0] mGivenVisibleInsets=[0,0][0,0]\n")
		return
	}
	top := 0
	region := w.Frame
	if w.Visible {
		top, region = w.Touchable.Min.Y-w.Frame.Min.Y, w.Touchable
	}
	c.printf("    mGivenContentInsets=[0,%d][0,0] mGivenVisibleInsets=[0,%d][0,0]\n    mTouchableInsets=%d mGivenInsetsPending=false\n", top, top,
		map[bool]int{true: 3, false: 2}[w.Visible])
	c.printf("    touchable region=SkRegion((%d,%d,%d,%d))\n", region.Min.X, region.Min.Y, region.Max.X, region.Max.Y)
}

func (c *call) windowFrames(w *listed) {
	f, v := rect(w.Frame), c.release.version
	shown := ""
	if v < 9 && w.Visible {
		shown = fmt.Sprintf(" mShownFrame=[%d.0,%d.0][%d.0,%d.0]", w.Frame.Min.X, w.Frame.Min.Y, w.Frame.Max.X, w.Frame.Max.Y)
	}
	removal := ""
	if v >= 9 {
		removal = " mWindowRemovalAllowed=false"
	}
	c.printf("    mHasSurface=%t%s isReadyForDisplay()=%t%s\n", w.Visible, shown, w.Visible, removal)
	switch {
	case v >= 13:
		c.printf("    Frames: parent=%s display=%s frame=%s last=%s insetsChanged=false\n     surface=[0,0][0,0]\n", f, f, f, f)
	case v == 12:
		c.printf("    Frames: containing=%s parent=%s\n        display=%s\n        mFrame=%s last=%s\n     surface=[0,0][0,0]\n", f, f, f, f, f)
	case v >= 10:
		c.printf("    Frames: containing=%s parent=%s\n        display=%s\n        content=%s visible=%s\n        decor=[0,0][0,0]\n        mFrame=%s last=%s\n",
			f, f, f, f, f, f, f)
		c.printf("    Cur insets: content=[0,0][0,0] visible=[0,0][0,0] stable=[0,0][0,0]\n    Lst insets: content=[0,0][0,0] visible=[0,0][0,0] stable=[0,0][0,0]\n")
	default:
		c.printf("    mFrame=%s last=%s\n    mSystemDecorRect=%s last=[0,0][0,0]\n", f, f, f)
		c.printf("    Frames: containing=%s parent=%s\n        display=%s overscan=%s\n        content=%s visible=%s\n        decor=%s\n        outset=[0,0][0,0]\n",
			f, f, f, f, f, f, f)
		c.printf("    Cur insets: overscan=[0,0][0,0] content=[0,0][0,0] visible=[0,0][0,0] stable=[0,0][0,0] outsets=[0,0][0,0]\n")
	}
}

// configuration is a short form of what every window prints of the display.
func (c *call) configuration() string {
	g := c.screen.Display()
	side := "port"
	if g.Width > g.Height {
		side = "land"
	}
	dp := func(px int) int { return px * 160 / max(g.Density, 1) }
	text := fmt.Sprintf("{1.0 ?mcc?mnc [en_US] ldltr sw%ddp w%ddp h%ddp %ddpi nrml long %s finger -keyb/v/h -nav/h", dp(min(g.Width, g.Height)), dp(g.Width), dp(g.Height), g.Density, side)
	if c.release.version >= 9 {
		text += fmt.Sprintf(" winConfig={ mBounds=Rect(0, 0 - %d, %d) mAppBounds=Rect(0, 0 - %d, %d) mWindowingMode=fullscreen mRotation=ROTATION_%d}",
			g.Width, g.Height, g.Width, g.Height, 90*g.Rotation)
	}
	return text + " s.7}"
}
