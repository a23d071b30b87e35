package android

import (
	"fmt"
	"strings"

	"phonerack/usb/phonesim/screen"
)

// dumpWindow tells of windows, displays and the lock. Until Android 9 the focus is told by "windows",
// from 10 on by "displays"; without a sub-command all is told.
func dumpWindow(c *call, args []string) int {
	what := ""
	for _, a := range args {
		if a != "-a" && a != "--proto" {
			what = a
			break
		}
	}
	switch what {
	case "windows", "w":
		c.windows()
	case "visible", "visible-apps":
		c.windowList(func(w *listed) bool { return w.Visible && (what == "visible" || w.Kind == screen.AppWindow) })
	case "displays", "d":
		c.windowDisplays()
	case "policy", "p":
		c.windowPolicy()
	case "", "all", "a":
		c.windowPolicy()
		c.windowDisplays()
		c.windows()
	case "sessions", "s", "tokens", "t", "lastanr", "animator":
		c.printf("WINDOW MANAGER (dumpsys window %s)\n", what)
	default:
		// A part of a window's name.
		if c.windowList(func(w *listed) bool { return strings.Contains(w.name, what) }) == 0 {
			c.printf("Bad window command, or no windows match: %s\nUse -h for help.\n", what)
		}
	}
	return 0
}

// windows lists all and tells what they are used for.
func (c *call) windows() {
	c.windowList(func(*listed) bool { return true })
	now, last := c.focused()
	if !now.null() && c.screen.Keyboard() {
		target := "Window{" + c.window(now) + "}"
		switch {
		case c.release.version >= 12:
			c.printf("\n  imeLayeringTarget in display# 0 %s\n  imeInputTarget in display# 0 %s\n  imeControlTarget in display# 0 %s\n", target, target, target)
		case c.release.version >= 10:
			c.printf("\n  mInputMethodTarget in display# 0 %s\n", target)
		default:
			c.printf("\n  mInputMethodTarget=%s\n", target)
		}
	}
	if c.release.version < 10 {
		c.focusLines("  ", now, last)
	}
}

// focusLines are what tools look for.
func (c *call) focusLines(indent string, now, last focus) {
	focused, app := "null", "null"
	if !now.null() {
		focused = "Window{" + c.window(now) + "}"
	}
	if !last.null() {
		app = c.appToken(last)
	}
	c.printf("%smCurrentFocus=%s\n%smFocusedApp=%s\n", indent, focused, indent, app)
}

// appToken is what an app's windows belong to.
func (d *Device) appToken(f focus) string {
	record := "ActivityRecord{" + d.record(f) + "}"
	if d.release.version < 11 {
		return fmt.Sprintf("AppWindowToken{%x token=Token{%x %s}}", d.hash("token"+f.pkg), d.hash("binder"+f.pkg), record)
	}
	return record
}

func (c *call) windowDisplays() {
	g := c.screen.Display()
	now, last := c.focused()
	c.printf("WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)\n  Display: mDisplayId=0\n")
	base := ""
	if g.Override.X != 0 || g.OverrideDensity != 0 {
		base = " base=" + size(g.Physical.X, g.Physical.Y)
		if g.Override.X != 0 {
			base = " base=" + size(g.Override.X, g.Override.Y)
		}
	}
	c.printf("    init=%s %ddpi%s cur=%s app=%s rng=%s-%s\n", size(g.Physical.X, g.Physical.Y), g.PhysicalDensity, base,
		size(g.Width, g.Height), size(g.Width, g.Height), size(min(g.Width, g.Height), min(g.Width, g.Height)),
		size(max(g.Width, g.Height), max(g.Width, g.Height)))
	c.printf("    deferred=false mLayoutNeeded=false\n  mCurrentRotation=%s\n  mRotation=%d\n", rotationName(g.Rotation, c.release.version), g.Rotation)
	if c.release.version >= 10 {
		c.focusLines("  ", now, last)
	}
	if c.config.Second || c.Faults().ExtraFocus {
		c.printf("  Display: mDisplayId=1\n    init=720x748 300dpi cur=720x748 app=720x748 rng=720x720-748x748\n")
		c.printf("  mCurrentFocus=null\n  mFocusedApp=null\n")
		if c.release.version >= 10 && c.Faults().ExtraFocus {
			// The focused display comes again at the end, as a summary.
			c.printf("  mTopFocusedDisplayId=0\n")
			c.focusLines("  ", now, last)
		}
	}
}

func size(w, h int) string { return itoa(w) + "x" + itoa(h) }

func rotationName(quarters, version int) string {
	if version < 11 {
		return itoa(quarters)
	}
	return "ROTATION_" + itoa(90*quarters)
}

func (c *call) windowPolicy() {
	on := c.screen.ScreenOn()
	locked := c.screen.Locked()
	state := "SCREEN_STATE_OFF"
	if on {
		state = "SCREEN_STATE_ON"
	}
	c.printf("WINDOW MANAGER POLICY STATE (dumpsys window policy)\n    mSafeMode=false mSystemReady=true mSystemBooted=true\n")
	c.printf("    mAwake=%t mScreenOnEarly=%t mScreenOnFully=%t\n", on, on, on)
	if c.release.version < 9 {
		c.printf("    mShowingLockscreen=%t mShowingDream=false mDreamingLockscreen=%t\n", locked, locked && !on)
	} else {
		c.printf("    mShowingDream=false mDreamingLockscreen=%t\n", locked && !on)
	}
	secure := c.config.PIN != ""
	c.printf("    KeyguardServiceDelegate\n      showing=%t\n      showingAndNotOccluded=%t\n      inputRestricted=%t\n      occluded=false\n"+
		"      secure=%t\n      screenState=%s\n      interactiveState=%s\n", locked, locked, locked, secure, state, map[bool]string{true: "INTERACTIVE_STATE_AWAKE", false: "INTERACTIVE_STATE_SLEEP"}[on])
	c.printf("    KeyguardStateMonitor\n        mIsShowing=%t\n        mSimSecure=false\n        mInputRestricted=%t\n        mCurrentUserId=0\n", locked, locked)
}

// dumpTrust tells whether the phone is locked by something that only its user knows.
func dumpTrust(c *call, _ []string) int {
	bit := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	active := ""
	if c.release.version >= 13 {
		active = ", isActiveUnlockRunning=0"
	}
	locked := c.screen.Locked() && c.config.PIN != ""
	c.printf("Trust manager state:\n User \"Owner\" (id=0, flags=0x13) (current): trusted=0, trustManaged=0, deviceLocked=%d%s, strongAuthRequired=0x%x\n"+
		"   Enabled agents:\n   Events:\n", bit(locked), active, bit(locked && c.config.Locked))
	return 0
}
