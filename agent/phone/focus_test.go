package phone

import (
	"errors"
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
		"a work profile":   {"mCurrentFocus=Window{1 u10 com.shop/com.shop.Main}\n", Focus{"com.shop", ".Main"}},
		"a secondary user": {"mCurrentFocus=Window{1 u11 com.shop/com.shop.Main}\r\nmFocusedApp=ActivityRecord{2 u11 com.shop/.Main t1}\r\n", Focus{"com.shop", ".Main"}},
		"no user":          {"mCurrentFocus=Window{1 com.shop/com.shop.Main}\n", Focus{"com.shop", ".Main"}},
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
			got, err := parseFocus(c.out, nil)
			if got != c.want || (err == nil) != (c.want != Focus{}) {
				t.Errorf("got %+v, %v", got, err)
			}
			if transition := strings.Contains(c.out, "null"); err != nil && transition && !errors.Is(err, ErrInTransition) {
				t.Errorf("only null is %v", err)
			}
		})
	}
}

func TestReport14_TheDisplayThatHasTheInputIsInFront(t *testing.T) {
	const (
		cover = "  Display: mDisplayId=1\n  mCurrentFocus=Window{1 u0 com.cover/com.cover.Main}\n  mFocusedApp=ActivityRecord{2 u0 com.cover/.Main t1}\n"
		inner = "  Display: mDisplayId=0\n  mCurrentFocus=Window{3 u0 com.shop/com.shop.Main}\n  mFocusedApp=ActivityRecord{4 u0 com.shop/.Main t2}\n"
		none  = "  Display: mDisplayId=0\n  mCurrentFocus=null\n  mFocusedApp=null\n"
	)
	for out, want := range map[string]string{
		cover + inner + "  mTopFocusedDisplayId=0\n": "com.shop",
		cover + inner + "  mTopFocusedDisplayId=1\n": "com.cover",
		cover + inner + "  mTopFocusedDisplayId=7\n": "com.cover",
		cover + inner: "com.cover",
		none + cover + "  mTopFocusedDisplayId=0\n": "com.cover",
		none + "  mTopFocusedDisplayId=0\n  mCurrentFocus=Window{3 u0 com.shop/com.shop.Main}\n  mFocusedApp=ActivityRecord{4 u0 com.shop/.Main t2}\n": "com.shop",
	} {
		if got, err := parseFocus(out, nil); err != nil || got.Package != want {
			t.Errorf("%+v, %v of\n%s", got, err, out)
		}
	}
}

func TestATitleDoesNotForgeTheFocus(t *testing.T) {
	const bank = "Window{1 u0 com.bank/com.bank.Main}"
	for name, out := range map[string]string{
		"in the head of a window": "  Window #1 Window{2 u0 mCurrentFocus=" + bank + "}:\n  mCurrentFocus=Window{3 u0 com.evil/com.evil.Main}\n",
		"with a line break":       "  mCurrentFocus=Window{3 u0 x\n  mCurrentFocus=" + bank + "}\n",
		"by another app's name":   "  mCurrentFocus=Window{3 u0 com.bank/com.bank.Main}\n  mFocusedApp=ActivityRecord{4 u0 com.bank/.Main t1}\n",
	} {
		if got, err := parseFocus(out, map[string]string{"3": "com.evil"}); err == nil && got.Package != "com.evil" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// moving answers for the focus with null so many times, and as h otherwise.
func moving(h phonetest.Handset, times int) func(phonetest.Request) (phonetest.Reply, bool) {
	return func(r phonetest.Request) (phonetest.Reply, bool) {
		if !strings.HasPrefix(r.Command, "dumpsys window displays") || times == 0 {
			return phonetest.Reply{}, false
		}
		times--
		none := h
		none.Focus = ""
		return none.Reply(r), true
	}
}

func TestFocusWaitsForATransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := phonetest.Handset{Focus: "com.shop/com.shop.Main"}
		p, a := attached(t, h, moving(h, 3)) // one is for Attach
		f, err := p.Focus(t.Context())
		if err != nil || f != (Focus{"com.shop", ".Main"}) || len(a.Sent()) != 3 {
			t.Errorf("got %+v after %d requests, %v", f, len(a.Sent()), err)
		}
		if s := p.State(t.Context()); s.FocusErr != nil || s.WindowsErr != nil || s.LockErr != nil {
			t.Errorf("state %+v", s)
		}
	})
}

func TestFocusFallsBackToTheActivityStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stack := replies("dumpsys activity", phonetest.Reply{Stdout: "    mResumedActivity: ActivityRecord{4d5 u0 com.shop/.Main t7}\r\n"})
		p, _ := attached(t, phonetest.Handset{SDK: 25}, stack)
		if f, err := p.Focus(t.Context()); err != nil || f != (Focus{"com.shop", ".Main"}) {
			t.Errorf("got %+v, %v", f, err)
		}
		// A phone whose window manager tells in another form is asked there first from then on.
		p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
			if strings.HasPrefix(r.Command, "dumpsys window") {
				reply := phonetest.Handset{}.Reply(r)
				reply.Stdout = strings.ReplaceAll(strings.ReplaceAll(reply.Stdout, "mCurrentFocus", "mFocus"), "mFocusedApp", "mApp")
				return reply, true
			}
			return stack(r)
		})
		for i, trips := range []int{2, 1} {
			a.Forget()
			if f, err := p.Focus(t.Context()); err != nil || f != (Focus{"com.shop", ".Main"}) || len(a.Sent()) != trips {
				t.Errorf("%d: got %+v, %v after %d requests", i, f, err, len(a.Sent()))
			}
		}
		if got := p.Strategies().Parts["focus"]; got != "activities" {
			t.Errorf("the way is %q", got)
		}

		p, _ = attached(t, phonetest.Handset{}, nil)
		if _, err := p.Focus(t.Context()); !errors.Is(err, ErrInTransition) {
			t.Errorf("with nothing in front: %v", err)
		}
	})
}

func TestASleepingPhoneIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := attached(t, phonetest.Handset{Asleep: true, Locked: true}, nil)
		s := p.State(t.Context())
		if !errors.Is(s.FocusErr, ErrInTransition) || s.Lock.Awake || !s.Lock.Locked || len(a.Sent()) != 2 {
			t.Errorf("%+v after %d requests", s, len(a.Sent()))
		}
	})
}

// A phone on which the window manager never names a window is soon not waited for
// any more, until it does name one.
func TestAPhoneWithoutFocusIsNotWaitedForEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := phonetest.Handset{Focus: "com.shop/com.shop.Main"}
		null := false
		p, a := attached(t, h, func(r phonetest.Request) (phonetest.Reply, bool) {
			if strings.HasPrefix(r.Command, "dumpsys activity") {
				return phonetest.Reply{Stdout: "  ResumedActivity: ActivityRecord{1 u0 com.chat/.Main t1}\n"}, true
			}
			none := h
			none.Focus = ""
			return none.Reply(r), null
		})
		look := func(want string, most int) {
			t.Helper()
			a.Forget()
			if s := p.State(t.Context()); s.FocusErr != nil || s.Focus.Package != want || len(a.Sent()) > most {
				t.Errorf("%+v, %v after %d round trips", s.Focus, s.FocusErr, len(a.Sent()))
			}
		}
		for range 2 {
			null = true
			for range patience {
				look("com.chat", 14)
				if len(a.Sent()) < 10 {
					t.Errorf("not waited for: %d round trips", len(a.Sent()))
				}
			}
			for range 3 {
				look("com.chat", 2)
			}
			null = false
			look("com.shop", 1)
		}
	})
}
