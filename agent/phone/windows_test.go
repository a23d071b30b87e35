package phone

import (
	"errors"
	"image"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

// Dumps of windows as versions of Android shape them, cut to what the phone is
// asked for.
const (
	windows8 = `  Window #11 Window{a11 u0 NavigationBar}:
    mDisplayId=0 stackId=0 mSession=Session{1 2:u0a10030} mClient=android.os.BinderProxy@3
    mOwnerUid=10030 mShowToOwnerOnly=false package=com.android.systemui appop=NONE
    mAttrs=WM.LayoutParams{(0,0)(fillxfill) sim=#20 ty=2019 fl=#1840068 fmt=-3}
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    mFrame=[0,1794][1080,1920] last=[0,1794][1080,1920]
  Window #10 Window{a10 u0 InputMethod}:
    mDisplayId=0 stackId=0 mSession=Session{4 5:u0a10060}
    mOwnerUid=10060 mShowToOwnerOnly=true package=com.google.android.inputmethod.latin appop=NONE
    mAttrs=WM.LayoutParams{(0,0)(fillxfill) gr=#50 sim=#20 ty=2011 fl=#81800108 fmt=-2 wanim=0x1030056}
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    mGivenContentInsets=[0,1065][0,0] mGivenVisibleInsets=[0,1065][0,0]
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    mFrame=[0,63][1080,1794] last=[0,63][1080,1794]
  Window #9 Window{a9 u0 com.shop/com.shop.Main}:
    mDisplayId=0 stackId=1 mSession=Session{6 7:u0a10085}
    mOwnerUid=10085 mShowToOwnerOnly=true package=com.shop appop=NONE
    mAttrs=WM.LayoutParams{(0,0)(wrapxwrap) gr=#11 sim=#120 ty=2 fl=#1810002 fmt=-3}
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    mFrame=[40,700][1040,1200] last=[40,700][1040,1200]
  Window #8 Window{a8 u0 com.shop/com.shop.Main}:
    mDisplayId=0 stackId=1 mSession=Session{6 7:u0a10085}
    mOwnerUid=10085 mShowToOwnerOnly=true package=com.shop appop=NONE
    mAttrs=WM.LayoutParams{(0,0)(fillxfill) sim=#20 ty=1 fl=#81810100 wanim=0x10302fd}
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    mFrame=[0,0][1080,1920] last=[0,0][1080,1920]
  Window #7 Window{a7 u0 com.other/com.other.Main}:
    mDisplayId=0 stackId=1 mSession=Session{8 9:u0a10086}
    mOwnerUid=10086 mShowToOwnerOnly=true package=com.other appop=NONE
    mAttrs=WM.LayoutParams{(0,0)(fillxfill) sim=#20 ty=1 fl=#81810100}
    mViewVisibility=0x8 mHaveFrame=true mObscured=false
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    mFrame=[0,0][1080,1920] last=[0,0][1080,1920]
  mCurrentFocus=Window{a9 u0 com.shop/com.shop.Main}
  mFocusedApp=AppWindowToken{1 token=Token{2 ActivityRecord{3 u0 com.shop/.Main t7}}}
  mRotation=0 mAltOrientation=false
`
	windows14 = `  Window #0 Window{b0 u0 ScreenDecorOverlay}:
    mDisplayId=0 mSession=Session{1 2:u0a10200} mClient=android.os.BinderProxy@3
    mOwnerUid=10200 showForAllUsers=true package=com.android.systemui appop=NONE
    mAttrs={(0,0)(fillx142) gr=TOP CENTER sim={adjust=pan} layoutInDisplayCutoutMode=always ty=NAVIGATION_BAR_PANEL fmt=TRANSLUCENT
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    touchable region=SkRegion()
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    Frames: parent=[0,0][1080,2400] display=[0,0][1080,2400] frame=[0,0][1080,142] last=[0,0][1080,142] insetsChanged=false
    isVisible=true
  Window #1 Window{b1 u0 InputMethod}:
    mDisplayId=0 rootTaskId=1 mSession=Session{4 5:u0a10150}
    mOwnerUid=10150 showForAllUsers=false package=com.google.android.inputmethod.latin appop=NONE
    mAttrs={(0,0)(fillxfill) gr=BOTTOM CENTER_VERTICAL sim={adjust=pan} ty=INPUT_METHOD fmt=TRANSPARENT wanim=0x1030056 receive insets ignoring z-order
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    mGivenContentInsets=[0,1250][0,0] mGivenVisibleInsets=[0,1250][0,0]
    touchable region=SkRegion((0,1378,1080,1500)(0,1500,1080,2400))
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    Frames: parent=[0,128][1080,2400] display=[0,128][1080,2400] frame=[0,128][1080,2400] last=[0,128][1080,2400] insetsChanged=false
    isVisible=true
  Window #2 Window{b2 u0 PopupWindow:5a1b2c}:
    mDisplayId=0 rootTaskId=9 mSession=Session{6 7:u0a10300}
    mOwnerUid=10300 showForAllUsers=false package=com.shop appop=NONE
    mAttrs={(500,128)(500x900) gr=TOP START CENTER sim={adjust=pan} ty=APPLICATION_PANEL fmt=TRANSLUCENT
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    touchable region=SkRegion((500,128,1000,1028))
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    Frames: parent=[0,0][1080,2400] display=[0,0][1080,2400] frame=[500,128][1000,1028] last=[500,128][1000,1028] insetsChanged=false
    isVisible=true
  Window #3 Window{b3 u0 com.shop/com.shop.Main}:
    mDisplayId=0 rootTaskId=9 mSession=Session{6 7:u0a10300}
    mOwnerUid=10300 showForAllUsers=false package=com.shop appop=NONE
    mAttrs={(0,0)(fillxfill) sim={state=always_hidden adjust=resize} ty=BASE_APPLICATION wanim=0x10302fd
    mViewVisibility=0x0 mHaveFrame=true mObscured=false
    touchable region=SkRegion((0,0,1080,2400))
    mHasSurface=true isReadyForDisplay()=true mWindowRemovalAllowed=false
    Frames: parent=[0,0][1080,2400] display=[0,0][1080,2400] frame=[0,0][1080,2400] last=[0,0][1080,2400] insetsChanged=false
        InsetsSource id=3 type=ime frame=[0,1378][1080,2400] visible=true flags=
    isVisible=true
  Window #4 Window{b4 u10 com.work/com.work.Main EXITING}:
    mDisplayId=0 rootTaskId=8 mSession=Session{8 9:u10a10301}
    mOwnerUid=1010301 showForAllUsers=false package=com.work appop=NONE
    mAttrs={(0,0)(fillxfill) ty=BASE_APPLICATION fmt=OPAQUE
    mViewVisibility=0x8 mHaveFrame=true mObscured=false
    mHasSurface=false isReadyForDisplay()=false mWindowRemovalAllowed=false
    Frames: parent=[0,0][1080,2400] display=[0,0][1080,2400] frame=[0,0][1080,2400] last=[0,0][0,0] insetsChanged=false
    isVisible=false
  Window #5 Window{b5 u0 com.cover/com.cover.Main}:
    mDisplayId=1 rootTaskId=7 mSession=Session{8 9:u0a10302}
    mOwnerUid=10302 showForAllUsers=false package=com.cover appop=NONE
    mAttrs={(0,0)(fillxfill) ty=BASE_APPLICATION fmt=OPAQUE
    isVisible=true
`
	displays14 = "  Display: mDisplayId=0 (organized)\n    init=1080x2400 420dpi cur=1080x2400 app=1080x2274 rng=1x1-9x9\n" +
		"  mCurrentFocus=Window{b2 u0 PopupWindow:5a1b2c}\n  mFocusedApp=ActivityRecord{9 u0 com.shop/.Main t9}\n"
)

// windowsOf reads a dump of windows.
func windowsOf(out string) *windowList {
	l := new(windowList)
	l.all, l.err = parseWindows(out)
	return l
}

func TestWindowsByVersion(t *testing.T) {
	full := image.Rect(0, 0, 1080, 2400)
	for name, c := range map[string]struct {
		windows, displays string
		want              []Window
	}{
		"Android 8": {windows8, "", []Window{
			{"com.android.systemui", "NavigationBar", SystemWindow, false, image.Rect(0, 1794, 1080, 1920)},
			{"com.google.android.inputmethod.latin", "InputMethod", KeyboardWindow, false, image.Rect(0, 63, 1080, 1794)},
			{"com.shop", "com.shop/com.shop.Main", DialogWindow, true, image.Rect(40, 700, 1040, 1200)},
			{"com.shop", "com.shop/com.shop.Main", AppWindow, false, image.Rect(0, 0, 1080, 1920)},
		}},
		"Android 14": {windows14, displays14, []Window{
			{"com.android.systemui", "ScreenDecorOverlay", SystemWindow, false, image.Rect(0, 0, 1080, 142)},
			{"com.google.android.inputmethod.latin", "InputMethod", KeyboardWindow, false, image.Rect(0, 128, 1080, 2400)},
			{"com.shop", "PopupWindow:5a1b2c", DialogWindow, true, image.Rect(500, 128, 1000, 1028)},
			{"com.shop", "com.shop/com.shop.Main", AppWindow, false, full},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := windowsOf(strings.ReplaceAll(c.windows, "\n", "\r\n")).visible(focusedWindow(c.displays + c.windows))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, c.want)
			}
		})
	}
}

func TestWindowsThatCannotBeUnderstood(t *testing.T) {
	for name, out := range map[string]string{
		"nothing":                 "",
		"an error":                "Can't find service: window\n",
		"a title with line break": "  Window #0 Window{1 u0 x\n  Window #1 Window{2 u0 com.bank/com.bank.Main}:\n    isVisible=true\n",
	} {
		if got, err := parseWindows(out); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := windowsOf("  Window #0 Window{1 u0 com.shop/com.shop.Main}:\n    package=com.shop\n").visible("1"); !errors.Is(err, ErrMalformed) {
		t.Errorf("none is called visible: %+v, %v", got, err)
	}
}

func TestKeyboardAreaByVersion(t *testing.T) {
	const insets14 = displays14 + "        InsetsSource id=3 type=ime frame=[0,1444][1080,2400] visible=true flags=\n"
	const insets11 = displays14 + "        InsetsSource type=ITYPE_IME frame=[0,1444][1080,2400] visible=true\n"
	without := func(out string, prefixes ...string) string {
		var kept strings.Builder
		for line := range strings.Lines(out) {
			if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(strings.TrimSpace(line), p) }) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	}
	bare := without(windows14, "touchable region", "mGivenContentInsets", "InsetsSource")
	for name, c := range map[string]struct {
		windows, displays string
		want              image.Rectangle
	}{
		"what is touched":                        {windows14, insets14, image.Rect(0, 1378, 1080, 2400)},
		"what is left to the app":                {windows8, "", image.Rect(0, 63+1065, 1080, 1794)},
		"where apps end":                         {bare, insets14, image.Rect(0, 1444, 1080, 2400)},
		"where apps end, Android 11":             {bare, insets11, image.Rect(0, 1444, 1080, 2400)},
		"a window of the keyboard's size":        {strings.ReplaceAll(bare, "frame=[0,128]", "frame=[0,1500]"), displays14, image.Rect(0, 1500, 1080, 2400)},
		"a window that fills the display":        {bare, displays14, image.Rectangle{}},
		"insets of a hidden keyboard":            {bare, strings.ReplaceAll(insets14, "visible=true", "visible=false"), image.Rectangle{}},
		"a window that is hidden":                {strings.ReplaceAll(windows14, "isVisible=true", "isVisible=false"), displays14, image.Rectangle{}},
		"partly outside the display":             {strings.ReplaceAll(windows14, "1080,2400)", "1080,9999)"), displays14, image.Rect(0, 1378, 1080, 2400)},
		"no dump":                                {"", "", image.Rectangle{}},
		"a dump that is forged":                  {"  Window #0 Window{1 u0 x\n" + windows14, displays14, image.Rectangle{}},
		"a pill of a keyboard made of hardware":  {strings.ReplaceAll(windows14, "(0,1378,1080,1500)(0,1500,1080,2400)", "(0,1000,90,1400)"), displays14, image.Rect(0, 1000, 90, 1400)},
		"nothing of it is touched, but apps end": {strings.ReplaceAll(without(windows14, "mGivenContentInsets"), "(0,1378,1080,1500)(0,1500,1080,2400)", ""), insets14, image.Rect(0, 1444, 1080, 2400)},
	} {
		if got := keyboardArea(windowsOf(c.windows), c.displays); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestKeyboard(t *testing.T) {
	for out, want := range map[string]bool{
		"  mShowRequested=true mInputShown=true\n":                       true,
		"  mShowRequested=true mInputShown=false\n":                      false,
		"mInputShown=false\n mIsInputViewShown=true\n":                   false,
		"    mCandidatesVisibility=8\n mIsInputViewShown=true\n":         true,
		" u0 mInputShown=false\r\n u10 mInputShown=true\r\n":             true,
		"mIsInputViewShown=false mStatusIcon=0\nmIsInputViewShown=false": false,
	} {
		p, _ := attached(t, phonetest.Handset{}, replies("dumpsys input_method", phonetest.Reply{Stdout: out}))
		if got, err := p.Keyboard(t.Context()); got.Shown != want || err != nil {
			t.Errorf("%q gives %+v, %v", out, got, err)
		}
	}
}

// A phone whose input method service does not answer, or in another form, shows
// its keyboard among the windows.
func TestKeyboardOfTheWindows(t *testing.T) {
	for _, shown := range []bool{true, false} {
		p, a := attached(t, phonetest.Handset{Keyboard: shown}, replies("dumpsys input_method", phonetest.Reply{Stdout: "Can't find service: input_method\n"}))
		got, err := p.Keyboard(t.Context())
		if err != nil || got.Shown != shown || got.Area.Empty() == shown {
			t.Errorf("%t: %+v, %v", shown, got, err)
		}
		if len(a.Sent()) != 1 {
			t.Errorf("%d round trips", len(a.Sent()))
		}
	}
	p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		return phonetest.Reply{}, strings.HasPrefix(r.Command, "dumpsys input_method") || strings.HasPrefix(r.Command, "dumpsys window windows")
	})
	if _, err := p.Keyboard(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("no dump: %v", err)
	}
}

func BenchmarkWindows(b *testing.B) {
	dump := strings.Repeat(windows14, 10) // of 60 windows, as many as a phone has
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := windowsOf(dump).visible("b2"); err != nil {
			b.Fatal(err)
		}
	}
}
