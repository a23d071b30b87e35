package appium

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// TestTypeAnyText types what the phone's own command cannot.
func TestTypeAnyText(t *testing.T) {
	for _, text := range []string{
		"plain", "价格：128 元", "مرحبا بالعالم", "שלום", "emoji \U0001F600\U0001F468\u200D\U0001F469\u200D\U0001F467 done", "R&D & co", "&-", "100%sure %s %%s",
		"it's \"quoted\" $HOME `x` \\ ; | <a>", "line\nbreak\ttab", "é", "a\u0301", strings.Repeat("汉字", 200), strings.Repeat("%s", 60), "\U0010FFFF\uFFFD",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			h, _ := helperOf(t, f)
			if err := h.Under(live()).Type(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if f.field != text {
				t.Errorf("typed %q, want %q", f.field, text)
			}
			atHome(t, f)
			for _, c := range f.did("input text ") {
				if len(c) > len("input text ''")+3*maxChunk || strings.ContainsFunc(c, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("command %q", c)
				}
			}
		})
	}
}

// atHome checks that the phone has its own input method again, and nothing of ours.
func atHome(t *testing.T, f *fake) {
	t.Helper()
	if f.ime != latin || f.record != "" || !slices.Equal(f.enabled, []string{latin}) {
		t.Errorf("input method %s of %q, record %q", f.ime, f.enabled, f.record)
	}
}

// TestReport05_TextThatTheInputCommandLoses and the emoji of report 11: what
// goes over the wire is printable ASCII.
func TestReport05_TextThatTheInputCommandLoses(t *testing.T) {
	for _, c := range typing("价格 \U0001F600 ok") {
		if strings.ContainsFunc(c, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q", c)
		}
	}
}

// TestReport11_EmojiIsNotCutInHalves: no command ends between two surrogates.
func TestReport11_EmojiIsNotCutInHalves(t *testing.T) {
	text := strings.Repeat("\U0001F600", 50)
	for _, c := range typing(text) {
		if got := decodeUTF7(c); strings.Trim(got, "\U0001F600") != "" {
			t.Errorf("%q is %q", c, got)
		}
	}
}

func TestUntypable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h, _ := helperOf(t, f)
		for _, text := range []string{"", "\x00", "a\x1b[2J", "\x7f", "\u0085", "\xff", "a\r\n", strings.Repeat("汉", maxTyped+1)} {
			err := h.Under(live()).Type(t.Context(), text)
			if !errors.Is(err, phone.ErrCannotType) || !wire.Is(err, wire.CannotType) {
				t.Errorf("%.20q: %v", text, err)
			}
		}
		f.apps = nil
		if err := h.Under(live()).Type(t.Context(), "x"); !errors.Is(err, ErrNotInstalled) || !wire.Is(err, wire.CannotType) {
			t.Errorf("not installed: %v", err)
		}
		if got := f.writes(); len(got) != 0 {
			t.Errorf("writes %q", got)
		}
	})
}

// TestKeyboardComesBackOnEachWayOut: whatever happens while text is typed, the
// phone has its own keyboard afterwards.
func TestKeyboardComesBackOnEachWayOut(t *testing.T) {
	text := strings.Repeat("一段文字。", 20)
	nth := func(n int, do func() (adb.Result, error)) func(string) (adb.Result, error, bool) {
		return func(cmd string) (adb.Result, error, bool) {
			if !strings.HasPrefix(cmd, "input text") {
				return adb.Result{}, nil, false
			}
			if n--; n > 0 {
				return adb.Result{}, nil, false
			}
			r, err := do()
			return r, err, true
		}
	}
	for name, c := range map[string]struct {
		phone    func(f *fake, cancel context.CancelFunc)
		is       error
		rejected bool // the error promises that nothing was typed
	}{
		"rejected at once": {func(f *fake, _ context.CancelFunc) {
			f.answering = nth(1, func() (adb.Result, error) {
				return adb.Result{Stderr: []byte("java.lang.NullPointerException: Attempt to get length of null array"), ExitCode: 255}, nil
			})
		}, phone.ErrRejected, true},
		"rejected in the middle": {func(f *fake, _ context.CancelFunc) {
			f.answering = nth(2, func() (adb.Result, error) { return adb.Result{ExitCode: 1}, nil })
		}, phone.ErrPartlyTyped, false},
		"no answer at once": {func(f *fake, _ context.CancelFunc) {
			f.answering = nth(1, func() (adb.Result, error) { return adb.Result{}, errCut })
		}, phone.ErrUnknownOutcome, false},
		"no answer in the middle": {func(f *fake, _ context.CancelFunc) {
			f.answering = nth(2, func() (adb.Result, error) { return adb.Result{}, errCut })
		}, phone.ErrPartlyTyped, false},
		"cancelled in the middle": {func(f *fake, cancel context.CancelFunc) {
			f.answering = nth(2, func() (adb.Result, error) { cancel(); return adb.Result{}, nil })
		}, phone.ErrPartlyTyped, false},
		"input forbidden": {func(f *fake, _ context.CancelFunc) {
			f.answering = nth(1, func() (adb.Result, error) {
				return adb.Result{Stderr: []byte("java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission")}, nil
			})
		}, phone.ErrDeviceSetup, false},
		"the input method is not changed":     {func(f *fake, _ context.CancelFunc) { f.stubborn = true }, phone.ErrRejected, true},
		"nor does the phone tell which it is": {func(f *fake, _ context.CancelFunc) { f.stubborn, f.terse = true, true }, phone.ErrRejected, true},
		"the change is not permitted": {func(f *fake, _ context.CancelFunc) {
			f.answering = func(cmd string) (adb.Result, error, bool) {
				return adb.Result{Stdout: []byte("java.lang.SecurityException: WRITE_SECURE_SETTINGS")}, nil, strings.Contains(cmd, "ime ") && !strings.HasPrefix(cmd, "settings")
			}
		}, phone.ErrDeviceSetup, false},
		"the change has no answer": {func(f *fake, _ context.CancelFunc) {
			f.answering = func(cmd string) (adb.Result, error, bool) {
				if !strings.HasPrefix(cmd, "echo ") {
					return adb.Result{}, nil, false
				}
				f.set(func() { f.run(cmd) })
				return adb.Result{}, errCut, true
			}
		}, phone.ErrUnknownOutcome, false},
		"the input method never takes keys": {func(f *fake, _ context.CancelFunc) { f.slowIME = 1000 }, phone.ErrRejected, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				h, _ := helperOf(t, f)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c.phone(f, cancel)
				err := h.Under(live()).Type(ctx, text)
				if !errors.Is(err, c.is) || errors.Is(err, ErrKeyboardLeft) {
					t.Errorf("error %v", err)
				}
				if got := errors.Is(err, phone.ErrRejected); got != c.rejected {
					t.Errorf("promises that nothing was typed: %t; %v", got, err)
				}
				f.answering = nil
				f.enabled = slices.DeleteFunc(f.enabled, func(s string) bool { return s == unicodeIME && f.stubborn })
				atHome(t, f)
			})
		})
	}
}

// TestKeyboardThatStaysIsNotTextThatDoesNot: the text is in the field, and no
// part of the error promises that it is not.
func TestKeyboardThatStaysIsNotTextThatDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.answering = func(cmd string) (adb.Result, error, bool) {
			return adb.Result{}, adb.ErrRefused, strings.HasPrefix(cmd, "ime set")
		}
		h, _ := helperOf(t, f)
		err := h.Under(live()).Type(t.Context(), "é")
		if f.field != "é" || !errors.Is(err, ErrKeyboardLeft) || errors.Is(err, phone.ErrRejected) || errors.As(err, new(*wire.Refusal)) {
			t.Errorf("typed %q, error %v", f.field, err)
		}
	})
}

// TestKeysWaitForTheInputMethod: what is typed too early stands in the field in
// its encoded form.
func TestKeysWaitForTheInputMethod(t *testing.T) {
	for slow := range 3 {
		testKeysWait(t, 10*slow)
	}
}

func testKeysWait(t *testing.T, slow int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.slowIME = slow
		h, _ := helperOf(t, f)
		begun := time.Now()
		if err := h.Under(live()).Type(t.Context(), "你好"); err != nil || f.field != "你好" || time.Since(begun) < imePause {
			t.Errorf("typed %q after %s, %v", f.field, time.Since(begun), err)
		}
	})
}

// TestLeaseOverWhileTyping: whoever has the phone then is not interfered with,
// and Recover under the next lease puts the keyboard back.
func TestLeaseOverWhileTyping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h, _ := helperOf(t, f)
		err := h.Under(&lease{left: 2}).Type(t.Context(), strings.Repeat("字", 40))
		if !errors.Is(err, phone.ErrPartlyTyped) || !strings.Contains(err.Error(), ErrKeyboardLeft.Error()) {
			t.Errorf("error %v", err)
		}
		if len(f.did("input text")) != 1 || f.ime != unicodeIME || f.record != latin+"\n" {
			t.Errorf("input method %s, record %q, typed by %q", f.ime, f.record, f.did("input text"))
		}
		if err := h.Recover(t.Context(), live()); err != nil {
			t.Fatal(err)
		}
		atHome(t, f)
	})
}

// TestRecover: a program that comes after a crash finds what was before.
func TestRecover(t *testing.T) {
	other := "com.example.other/.Pinyin"
	for name, c := range map[string]struct {
		ime, record string
		enabled     []string
		want        string
	}{
		"recorded":                {unicodeIME, other + "\n", []string{latin, other, unicodeIME}, other},
		"nothing recorded":        {unicodeIME, "", []string{unicodeIME, other, latin}, other},
		"recorded one is gone":    {unicodeIME, "com.gone/.IME\n", []string{latin, unicodeIME}, latin},
		"recorded one is ours":    {unicodeIME, settingsID + "/.AppiumIME\n", []string{latin, unicodeIME}, latin},
		"record is nonsense":      {unicodeIME, "'; reboot; '\n", []string{latin, unicodeIME}, latin},
		"record breaks the form":  {unicodeIME, "=\n=\n" + other + "\n", []string{latin, other, unicodeIME}, other},
		"no other is enabled":     {unicodeIME, "", []string{unicodeIME}, latin}, // by reset
		"another of ours":         {settingsID + "/.EmptyIME", "", []string{latin}, latin},
		"restored, record stays":  {latin, other + "\n", []string{latin, other}, latin},
		"nothing to put right":    {latin, "", []string{latin, other}, latin},
		"no input method at all":  {"null", "", []string{latin}, "null"},
		"server and input method": {unicodeIME, latin + "\n", []string{latin, unicodeIME}, latin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				f.ime, f.record, f.enabled = c.ime, c.record, c.enabled
				f.stranded = strings.HasPrefix(name, "server")
				h, _ := helperOf(t, f)
				if err := h.Recover(t.Context(), live()); err != nil {
					t.Fatal(err)
				}
				if f.ime != c.want || f.record != "" && c.record != "'; reboot; '\n" || slices.Contains(f.enabled, unicodeIME) || f.stranded {
					t.Errorf("input method %s of %q, record %q", f.ime, f.enabled, f.record)
				}
				if strings.HasPrefix(name, "nothing to") && len(f.writes()) != 0 {
					t.Errorf("writes %q", f.writes())
				}
			})
		})
	}
	t.Run("leaves other programs alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.squatter = true
			h, _ := helperOf(t, f)
			if err := h.Recover(t.Context(), live()); err != nil || len(f.writes()) != 0 {
				t.Errorf("error %v, writes %q", err, f.writes())
			}
		})
	})
}

// TestTypingTwicePutsTheFirstKeyboardBack: ours is never taken for the phone's.
func TestTypingTwicePutsTheFirstKeyboardBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.ime, f.record, f.enabled = unicodeIME, latin+"\n", []string{latin, unicodeIME}
		h, _ := helperOf(t, f)
		if err := h.Under(live()).Type(t.Context(), "é"); err != nil || f.ime != latin || f.field != "é" {
			t.Errorf("input method %s, %v", f.ime, err)
		}
	})
}

func TestClipboard(t *testing.T) {
	for _, sdk := range []int{28, 29, 34} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			f.sdk = sdk
			h := started(t, f)
			for _, text := range []string{"你好 & \U0001F600\n", "", strings.Repeat("x", maxClip)} {
				if err := h.SetClipboard(t.Context(), text); err != nil {
					t.Fatal(err)
				}
				if got, err := h.Clipboard(t.Context()); err != nil || got != text {
					t.Errorf("SDK %d: %.40q, %v", sdk, got, err)
				}
			}
			if changed := len(f.did("echo ")) > 0; changed != (sdk >= 29) {
				t.Errorf("SDK %d: input method changed: %t", sdk, changed)
			}
			atHome(t, f)
		})
	}
}

// TestReport19_ClipboardThatWasNotSet: exit code 0 is no answer.
func TestReport19_ClipboardThatWasNotSet(t *testing.T) {
	for name, c := range map[string]struct {
		out string
		is  error
	}{
		"no shell command":   {"No shell command implementation.\n", phone.ErrMalformed},
		"nobody received it": {"Broadcasting: Intent {}\nBroadcast completed: result=0\n", ErrNotInstalled},
		"cancelled":          {"Broadcast completed: result=0, data=\"\"\n", phone.ErrRejected},
		"no data":            {"Broadcast completed: result=-1\n", phone.ErrMalformed},
		"cut":                {"Broadcast completed: result=-1, data=\"aGVs", phone.ErrMalformed},
		"not base64":         {"Broadcast completed: result=-1, data=\"aGVs!\"\n", phone.ErrMalformed},
		"odd length":         {"Broadcast completed: result=-1, data=\"aGVsb\"\n", phone.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				f.answering = func(cmd string) (adb.Result, error, bool) {
					return adb.Result{Stdout: []byte(c.out)}, nil, cmd == askClip
				}
				h, _ := helperOf(t, f)
				if text, err := h.Under(live()).Clipboard(t.Context()); !errors.Is(err, c.is) {
					t.Errorf("%q, %v", text, err)
				}
				atHome(t, f)
			})
		})
	}
}

func TestSetClipboardOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		for _, c := range []struct {
			text, fails string
			fence       phone.Fence
			is          error
		}{
			{"x", "cut", live(), phone.ErrUnknownOutcome},
			{"x", "refuse", live(), phone.ErrRejected},
			{"x", "", &lease{}, errOver},
			{"x", "", nil, phone.ErrNoFence},
			{"\xff", "", live(), phone.ErrBadArgument},
			{strings.Repeat("x", maxClip+1), "", live(), phone.ErrBadArgument},
		} {
			f.set(func() { f.behave.clipFails = c.fails })
			if err := h.Under(c.fence).SetClipboard(t.Context(), c.text); !errors.Is(err, c.is) || f.clip != "" {
				t.Errorf("%.10q %s: %v, clipboard %q", c.text, c.fails, err, f.clip)
			}
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.SetClipboard(t.Context(), "x"); !errors.Is(err, ErrNotRunning) || !wire.Is(err, wire.ClipboardFailed) {
			t.Errorf("not running: %v", err)
		}
	})
}
