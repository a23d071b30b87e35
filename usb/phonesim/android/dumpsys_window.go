package android

import "slices"

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
	case "windows", "w", "visible", "visible-apps":
		c.windowList()
	case "displays", "d":
		c.windowDisplays()
	case "policy", "p":
		c.windowPolicy()
	case "", "all", "a":
		c.windowPolicy()
		c.windowDisplays()
		c.windowList()
	case "sessions", "s", "tokens", "t", "lastanr", "animator":
		c.printf("WINDOW MANAGER (dumpsys window %s)\n", what)
	default:
		c.printf("Bad window command, or no windows match: %s\nUse -h for help.\n", what)
	}
	return 0
}

func (c *call) windowList() {
	now, last := c.focused()
	c.printf("WINDOW MANAGER WINDOWS (dumpsys window windows)\n")
	index := 0
	entry := func(f focus, owner int) {
		c.printf("  Window #%d Window{%s}:\n    mDisplayId=0 mSession=Session{%x} mClient=android.os.BinderProxy@%x\n"+
			"    mOwnerUid=%d showForAllUsers=false package=%s appop=NONE\n", index, c.window(f), c.hash("session"+f.pkg), c.hash("client"+f.pkg), owner, f.pkg)
		index++
	}
	entry(keyguard, 10050)
	if c.screen.Keyboard() {
		c.printf("  Window #%d Window{%x u0 InputMethod}:\n    mDisplayId=0 package=com.google.android.inputmethod.latin appop=NONE\n    mHasSurface=true isReadyForDisplay()=true\n",
			index, c.hash("ime"))
		index++
	}
	if !last.null() {
		a, _ := c.find(last.pkg)
		entry(last, a.uid)
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
		app = "ActivityRecord{" + c.record(last) + "}"
		if c.release.version < 11 {
			app = "AppWindowToken{" + hex(c.hash("token"+last.pkg)) + " token=Token{" + hex(c.hash("binder"+last.pkg)) + " " + app + "}}"
		}
	}
	c.printf("%smCurrentFocus=%s\n%smFocusedApp=%s\n", indent, focused, indent, app)
}

func hex(n uint32) string {
	const digits = "0123456789abcdef"
	var b []byte
	for ; n > 0 || len(b) == 0; n >>= 4 {
		b = append(b, digits[n&15])
	}
	slices.Reverse(b)
	return string(b)
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
	c.mu.Lock()
	locked := c.locked
	c.mu.Unlock()
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
	c.printf("    KeyguardServiceDelegate\n      showing=%t\n      showingAndNotOccluded=%t\n      inputRestricted=%t\n      occluded=false\n"+
		"      secure=false\n      screenState=%s\n      interactiveState=%s\n", locked, locked, locked, state, map[bool]string{true: "INTERACTIVE_STATE_AWAKE", false: "INTERACTIVE_STATE_SLEEP"}[on])
	c.printf("    KeyguardStateMonitor\n        mIsShowing=%t\n        mSimSecure=false\n        mInputRestricted=%t\n        mCurrentUserId=0\n", locked, locked)
}
