package phone

import (
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"phonerack/agent/phone/phonetest"
)

func TestParseFocus(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want Focus // none if empty
	}{
		"Android 14": {
			"  mCurrentFocus=Window{7c3d0f9 u0 com.android.settings/com.android.settings.Settings}\n  mFocusedApp=ActivityRecord{d8f9e5c u0 com.android.settings/.Settings t12}\n",
			Focus{"com.android.settings", ".Settings"},
		},
		"Android 7": {
			"  mCurrentFocus=Window{7c3d0f9 u0 com.shop/com.shop.ui.Main}\n  mFocusedApp=AppWindowToken{1ab token=Token{2cd ActivityRecord{3ef u0 com.shop/.ui.Main t7}}}\n",
			Focus{"com.shop", ".ui.Main"},
		},
		"a class of another package": {
			"mCurrentFocus=Window{1 u0 com.shop/com.lib.Login$Page}\n", Focus{"com.shop", "com.lib.Login$Page"},
		},
		"a work profile": {"mCurrentFocus=Window{1 u10 com.shop/com.shop.Main}\n", Focus{"com.shop", ".Main"}},
		"the second display has it": {
			"mCurrentFocus=null\nmFocusedApp=null\n  mCurrentFocus=Window{1 u0 com.shop/com.shop.Main}\n  mFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n",
			Focus{"com.shop", ".Main"},
		},
		"two displays, one agrees": {
			"mCurrentFocus=Window{1 u0 com.cover/com.cover.Main}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\nmCurrentFocus=Window{1 u0 com.shop/com.shop.Main}\n",
			Focus{"com.shop", ".Main"},
		},
		"only the app":          {"mCurrentFocus=null\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n", Focus{}},
		"nothing":               {"mCurrentFocus=null\nmFocusedApp=null\n", Focus{}},
		"a popup of the app":    {"mCurrentFocus=Window{1 u0 PopupWindow:7a8b}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n", Focus{"com.shop", ".Main"}},
		"a splash screen":       {"mCurrentFocus=Window{1 u0 Splash Screen com.shop}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n", Focus{"com.shop", ".Main"}},
		"the shade":             {"mCurrentFocus=Window{1 u0 NotificationShade}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n", Focus{"com.android.systemui", "NotificationShade"}},
		"an app that hangs":     {"mCurrentFocus=Window{1 u0 Application Not Responding: com.shop}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n", Focus{"android", "Application Not Responding"}},
		"the chooser":           {"mCurrentFocus=Window{1 u0 android/com.android.internal.app.ResolverActivity}\n", Focus{"android", "com.android.internal.app.ResolverActivity"}},
		"no lines":              {"", Focus{}},
		"a name that is forged": {"mCurrentFocus=Window{1 u0 com.shop\u202e/x y}\n", Focus{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseFocus(c.out)
			if got != c.want || ok != (c.want != Focus{}) {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

// attached attaches a phone that answers with extra first, as a handset with a
// small screenshot does otherwise.
func attached(t *testing.T, h phonetest.Handset, extra func(phonetest.Request) (phonetest.Reply, bool)) (*Phone, *phonetest.ADB) {
	t.Helper()
	a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
		if extra != nil {
			if reply, ok := extra(r); ok {
				return reply
			}
		}
		if r.Command == "screencap 2>/dev/null" {
			return phonetest.Reply{Stdout: string(phonetest.RawScreenshot(image.Pt(9, 20)))}
		}
		return h.Reply(r)
	}, "shell_v2")
	p, err := Attach(t.Context(), a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Forget()
	return p, a
}

// answer replies to the commands that begin with prefix.
func answer(prefix string, replies ...phonetest.Reply) func(phonetest.Request) (phonetest.Reply, bool) {
	return func(r phonetest.Request) (phonetest.Reply, bool) {
		if !strings.HasPrefix(r.Command, prefix) {
			return phonetest.Reply{}, false
		}
		reply := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		return reply, true
	}
}

func TestFocusWaitsForATransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		null := phonetest.Reply{Stdout: "  mCurrentFocus=null\n  mFocusedApp=null\n"}
		shop := phonetest.Reply{Stdout: "  mCurrentFocus=Window{1 u0 com.shop/com.shop.Main}\n"}
		p, a := attached(t, phonetest.Handset{}, answer("dumpsys window displays | grep -E 'mCurrentFocus", null, null, shop))
		f, err := p.Focus(t.Context())
		if err != nil || f != (Focus{"com.shop", ".Main"}) || len(a.Sent()) != 3 {
			t.Errorf("got %+v after %d requests, %v", f, len(a.Sent()), err)
		}
	})
}

func TestFocusFallsBackToTheActivityStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := attached(t, phonetest.Handset{SDK: 25}, answer("dumpsys activity", phonetest.Reply{
			Stdout: "    mResumedActivity: ActivityRecord{4d5 u0 com.shop/.Main t7}\r\n",
		}))
		f, err := p.Focus(t.Context())
		if err != nil || f != (Focus{"com.shop", ".Main"}) {
			t.Errorf("got %+v, %v", f, err)
		}
		if first := a.Sent()[0].Command; !strings.HasPrefix(first, "dumpsys window windows") {
			t.Errorf("Android 7 was asked by %q", first)
		}

		p, _ = attached(t, phonetest.Handset{}, nil)
		if _, err = p.Focus(t.Context()); !errors.Is(err, ErrInTransition) {
			t.Errorf("with nothing in front: %v", err)
		}
	})
}

func TestDisplayIsTurnedAndOverridden(t *testing.T) {
	for name, c := range map[string]struct {
		wm            string
		asked, turned string
		want          Display
		err           error
	}{
		"plain":            {"Physical size: 1080x2400\nPhysical density: 420\nmCurrentRotation=ROTATION_0\n", "", "", Display{1080, 2400, 0, 420}, nil},
		"overridden":       {"Physical size: 1080x2400\nOverride size: 720x1600\nPhysical density: 420\nOverride density: 280\nmRotation=0\n", "", "", Display{720, 1600, 0, 280}, nil},
		"turned":           {"Physical size: 1080x2400\r\nPhysical density: 420\r\n mCurrentRotation=ROTATION_90\r\n", "", "", Display{2400, 1080, 1, 420}, nil},
		"upside down":      {"Physical size: 1080x2400\nPhysical density: 420\nmCurrentRotation=ROTATION_180\n", "", "", Display{1080, 2400, 2, 420}, nil},
		"old version":      {"Physical size: 1080x1920\nPhysical density: 480\nmRotation=3 mAltOrientation=false\n", "", "", Display{1920, 1080, 3, 480}, nil},
		"from input":       {"Physical size: 1080x1920\nPhysical density: 480\n", "dumpsys input", "      SurfaceOrientation: 1\n", Display{1920, 1080, 1, 480}, nil},
		"no rotation":      {"Physical size: 1080x1920\n", "", "", Display{}, ErrMalformed},
		"no size":          {"mRotation=0\n", "", "", Display{}, ErrMalformed},
		"huge":             {"Physical size: 99999x1920\nmRotation=0\n", "", "", Display{}, ErrMalformed},
		"odd angle":        {"Physical size: 1080x1920\nmRotation=7\n", "", "", Display{}, ErrMalformed},
		"from the display": {"Physical size: 1080x1920\nPhysical density: 480\n", "dumpsys display", "    mCurrentOrientation=2\n", Display{1080, 1920, 2, 480}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Phone{conn: connOf(phonetest.New(func(r phonetest.Request) phonetest.Reply {
				switch {
				case strings.HasPrefix(r.Command, "wm "):
					return phonetest.Reply{Stdout: c.wm}
				case strings.HasPrefix(r.Command, c.asked):
					return phonetest.Reply{Stdout: c.turned}
				}
				return phonetest.Reply{}
			}))}
			got, err := p.Display(t.Context())
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
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
		p, _ := attached(t, phonetest.Handset{}, answer("dumpsys input_method", phonetest.Reply{Stdout: out}))
		if got, err := p.Keyboard(t.Context()); got != want || err != nil {
			t.Errorf("%q gives %t, %v", out, got, err)
		}
	}
	p, _ := attached(t, phonetest.Handset{}, answer("dumpsys input_method", phonetest.Reply{Stdout: "Can't find service: input_method\n"}))
	if _, err := p.Keyboard(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("no such service: %v", err)
	}
}

func TestPackages(t *testing.T) {
	p, _ := attached(t, phonetest.Handset{}, answer("pm list packages", phonetest.Reply{
		Stdout: "WARNING: linker\r\npackage:android\r\npackage:com.shop\r\npackage:bad name\r\npackage:com.chat.lite\r\n",
	}, phonetest.Reply{Stdout: "Error: no package manager\n"}, phonetest.Reply{Stdout: strings.Repeat("x", maxText+1)}))
	got, err := p.Packages(t.Context())
	if want := []string{"android", "com.shop", "com.chat.lite"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err = p.Packages(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("an error message gives %v", err)
	}
	if _, err = p.Packages(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a flood gives %v", err)
	}
}

func FuzzState(f *testing.F) {
	f.Add("mCurrentFocus=Window{1 u0 com.shop/com.shop.Main}\nmFocusedApp=ActivityRecord{2 u0 com.shop/.Main t1}\n")
	f.Add("Physical size: 1080x2400\nOverride density: 280\nmCurrentRotation=ROTATION_90\n")
	f.Add("Status: ok\nError: x\njava.lang.SecurityException: y\n")
	f.Fuzz(func(t *testing.T, out string) {
		if focus, ok := parseFocus(out); ok && (focus.Package == "" || strings.ContainsAny(focus.Package+focus.Activity, "\n\"")) {
			t.Errorf("focus %+v", focus)
		}
		if d, err := parseDisplay(out); err == nil && (d.Width < 1 || d.Height > maxEdge) {
			t.Errorf("display %+v", d)
		}
		if turn, ok := parseRotation(out); ok && (turn < 0 || turn > 3) {
			t.Errorf("rotation %d", turn)
		}
		_ = started(out, 0)
		if e := excerpt([]byte(out)); len(e) > maxExcerpt+3 || strings.ContainsAny(e, "\n\x00\x1b") {
			t.Errorf("excerpt %q", e)
		}
	})
}
