package phonetest

import (
	"fmt"
	"image"
	"strings"
)

// Handset answers what phone.Attach and the readings ask, as a phone of its
// fields would.
type Handset struct {
	SDK                    int    // 34 if 0
	Width, Height          int    // in the natural position, 1080x2400 if 0
	Rotation               int    // quarter turns
	Focus                  string // "package/class"; no window if empty
	Keyboard               bool   // shown, over the lower third
	Asleep, Locked, Secure bool
	Tree                   string // what the dumper writes; it fails with "null root node" if empty
	Packages               []string
}

// Ime is the input method that a Handset has.
const Ime = "com.google.android.inputmethod.latin/com.android.inputmethod.latin.LatinIME"

// Reply implements Script. A command that it does not know succeeds silently.
func (h Handset) Reply(r Request) Reply {
	if h.SDK == 0 {
		h.SDK = 34
	}
	if h.Width == 0 {
		h.Width, h.Height = 1080, 2400
	}
	switch cmd := r.Command; {
	case strings.HasPrefix(cmd, "getprop "):
		return Reply{Stdout: fmt.Sprintf("SERIAL1\nAcme\nModel One\none\n14\n%d\narm64-v8a\nBUILD.1\nen-GB\n", h.SDK)}
	case strings.HasPrefix(cmd, "wm size;"):
		return Reply{Stdout: fmt.Sprintf("Physical size: %dx%d\nPhysical density: 420\n", h.Width, h.Height)}
	case strings.HasPrefix(cmd, "dumpsys window displays"):
		return Reply{Stdout: h.displays()}
	case strings.HasPrefix(cmd, "dumpsys window windows"):
		return Reply{Stdout: h.windows()}
	case strings.HasPrefix(cmd, "dumpsys window policy"):
		return Reply{Stdout: fmt.Sprintf("      showing=%t\n      secure=%t\n      interactiveState=INTERACTIVE_STATE_%s\n        mIsShowing=%[1]t\n        mSimSecure=false\n",
			h.Locked, h.Secure, map[bool]string{false: "AWAKE", true: "SLEEP"}[h.Asleep])}
	case strings.HasPrefix(cmd, "dumpsys input_method"):
		return Reply{Stdout: fmt.Sprintf("  mShowRequested=%t mInputShown=%[1]t\n", h.Keyboard)}
	case strings.HasPrefix(cmd, "settings get secure default_input_method"):
		return Reply{Stdout: Ime + "\n"}
	case strings.HasPrefix(cmd, "pm list packages"):
		return Reply{Stdout: "package:" + strings.Join(h.Packages, "\npackage:") + "\n"}
	case strings.HasPrefix(cmd, "cmd package resolve-activity --brief "):
		pkg := cmd[strings.LastIndexByte(cmd, ' ')+1:]
		return Reply{Stdout: "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n" + pkg + "/.MainActivity\n"}
	case strings.HasPrefix(cmd, "am start "):
		return Reply{Stdout: "Starting: Intent { }\nStatus: ok\nLaunchState: COLD\nTotalTime: 300\nComplete\n"}
	case strings.HasPrefix(cmd, "uiautomator dump "):
		return h.dump(r)
	case cmd == "screencap 2>/dev/null":
		return Reply{Stdout: string(RawScreenshot(image.Pt(h.Width, h.Height)))}
	}
	return Reply{}
}

// focusLines tell what is in front: from Android 10 on among the displays.
func (h Handset) focusLines() string {
	if h.Focus == "" {
		return "  mCurrentFocus=null\n  mFocusedApp=null\n"
	}
	return fmt.Sprintf("  mCurrentFocus=Window{1a2b3c u0 %s}\n  mFocusedApp=ActivityRecord{4d5e6f u0 %s t7}\n", h.Focus, h.Focus)
}

func (h Handset) displays() string {
	w, height := h.Width, h.Height
	if h.Rotation%2 == 1 {
		w, height = height, w
	}
	s := fmt.Sprintf("  Display: mDisplayId=0 (organized)\n    init=%dx%d 420dpi cur=%dx%d app=%dx%d rng=1x1-9x9\n    mRotation=%d mDeferredRotationPauseCount=0\n",
		h.Width, h.Height, w, height, w, height, h.Rotation)
	if h.SDK >= 29 {
		s += h.focusLines()
	}
	return s
}

func (h Handset) windows() string {
	var s strings.Builder
	index := 0
	add := func(id, title, pkg, kind string, frame image.Rectangle, visible bool) {
		fmt.Fprintf(&s, "  Window #%d Window{%s u0 %s}:\n    mDisplayId=0 rootTaskId=1\n    mOwnerUid=10085 showForAllUsers=false package=%s appop=NONE\n"+
			"    mAttrs={(0,0)(fillxfill) ty=%s fmt=TRANSPARENT\n    mViewVisibility=0x0 mHaveFrame=true\n    mHasSurface=%t isReadyForDisplay()=%[6]t\n"+
			"    Frames: parent=[0,0][9,9] display=[0,0][9,9] frame=[%d,%d][%d,%d] last=[0,0][9,9]\n    isVisible=%[6]t\n",
			index, id, title, pkg, kind, visible, frame.Min.X, frame.Min.Y, frame.Max.X, frame.Max.Y)
		index++
	}
	screen := image.Rect(0, 0, h.Width, h.Height)
	add("77aa", "InputMethod", "com.google.android.inputmethod.latin", "INPUT_METHOD", image.Rect(0, h.Height*2/3, h.Width, h.Height), h.Keyboard)
	add("88bb", "StatusBar", "com.android.systemui", "STATUS_BAR", image.Rect(0, 0, h.Width, 63), true)
	if pkg, _, ok := strings.Cut(h.Focus, "/"); ok {
		add("1a2b3c", h.Focus, pkg, "BASE_APPLICATION", screen, true)
	}
	if h.SDK < 29 {
		s.WriteString(h.focusLines())
	}
	return s.String()
}

func (h Handset) dump(r Request) Reply {
	const failed = "ERROR: null root node returned by UiTestAutomationBridge.\n"
	_, file, _ := strings.Cut(r.Command, "/data/local/tmp/")
	file, _, _ = strings.Cut(file, " ")
	switch {
	case h.Tree == "" && r.Exec:
		return Reply{Stdout: failed}
	case h.Tree == "":
		return Reply{Stdout: failed, Stderr: "cat: /data/local/tmp/" + file + ": No such file or directory\n"}
	case r.Exec:
		return Reply{Stdout: h.Tree + "UI hierchary dumped to: /dev/tty\n"}
	}
	return Reply{Stdout: "UI hierchary dumped to: /data/local/tmp/" + file + "\n" + h.Tree}
}
