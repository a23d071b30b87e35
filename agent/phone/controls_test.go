package phone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lease is a Fence that refuses after so many writes.
type lease struct{ left int }

func (l *lease) Check() error {
	if l.left == 0 {
		return wire.Refuse(wire.NotLeased, map[string]any{"slot": 7})
	}
	l.left--
	return nil
}

func forever() *lease { return &lease{left: -1} }

// commands returns the commands that change the phone.
func commands(a *phonetest.ADB) []string {
	var writes []string
	for _, r := range a.Sent() {
		if !strings.HasPrefix(r.Command, "echo phonerack-") && !strings.HasPrefix(r.Command, "cmd package resolve-activity") &&
			!strings.HasPrefix(r.Command, "cmd package query-activities") {
			writes = append(writes, r.Command)
		}
	}
	return writes
}

const camera = "android.permission.CAMERA"

// writes are all controls that send one command, what it is and how the phone
// answers.
var writes = map[string]struct {
	do    func(context.Context, *Controls) error
	sent  string // the beginning, for those with an answer
	reply string
}{
	"tap":        {func(ctx context.Context, c *Controls) error { return c.Tap(ctx, 0, 2399) }, "input tap 0 2399", ""},
	"double tap": {func(ctx context.Context, c *Controls) error { return c.DoubleTap(ctx, 3, 4) }, "input tap 3 4 && sleep 0.05 && input tap 3 4", ""},
	"long press": {func(ctx context.Context, c *Controls) error { return c.LongPress(ctx, 5, 6, time.Second) }, "input swipe 5 6 5 6 1000", ""},
	"swipe": {func(ctx context.Context, c *Controls) error {
		return c.Swipe(ctx, 1, 2, 3, 4, 300*time.Millisecond)
	}, "input swipe 1 2 3 4 300", ""},
	"type":   {func(ctx context.Context, c *Controls) error { return c.InputText(ctx, "it's 5") }, `input text 'it'\''s%s5'`, ""},
	"clear":  {func(ctx context.Context, c *Controls) error { return c.ClearText(ctx, 5) }, "input keycombination 113 29 && input keyevent 67", ""},
	"key":    {func(ctx context.Context, c *Controls) error { return c.Key(ctx, "back") }, "input keyevent 4", ""},
	"launch": {func(ctx context.Context, c *Controls) error { return c.Launch(ctx, "com.shop") }, "am start -W -n 'com.shop/.MainActivity'", ""},
	"stop":   {func(ctx context.Context, c *Controls) error { return c.Stop(ctx, "com.shop") }, "am force-stop com.shop", ""},
	"open": {func(ctx context.Context, c *Controls) error {
		return c.OpenURL(ctx, "https://a.example/?q='$(x)", "")
	}, `am start -W -a android.intent.action.VIEW -d 'https://a.example/?q='\''$(x)'`, ""},
	"open with": {func(ctx context.Context, c *Controls) error {
		return c.OpenURL(ctx, "tel:1", "com.shop")
	}, "am start -W -a android.intent.action.VIEW -d 'tel:1' -p com.shop", ""},
	"uninstall": {func(ctx context.Context, c *Controls) error { return c.Uninstall(ctx, "com.shop") }, "pm uninstall com.shop", "Success\n"},
	"grant": {func(ctx context.Context, c *Controls) error {
		return c.Grant(ctx, "com.shop", camera)
	}, "pm grant com.shop " + camera + " 2>&1; ", "phonerack-permissions\n      " + camera + ": granted=true, flags=[ USER_SET ]\n"},
	"revoke": {func(ctx context.Context, c *Controls) error {
		return c.Revoke(ctx, "com.shop", camera)
	}, "pm revoke com.shop " + camera + " 2>&1; ", "phonerack-permissions\n      " + camera + ": granted=false\n"},
	"clipboard": {func(ctx context.Context, c *Controls) error {
		return c.SetClipboard(ctx, "a 'b'")
	}, `cmd clipboard set text 'a '\''b'\''' >/dev/null`, "phonerack-clipboard\na 'b'\n"},
	"rotation": {func(ctx context.Context, c *Controls) error { return c.ResetRotation(ctx) }, "settings put system user_rotation 0; ", "0 0\n"},
	"keyboard": {func(ctx context.Context, c *Controls) error {
		c.phone.choose(func(s *Strategies) { s.Keyboard = "com.own/.Ime" })
		return c.ResetKeyboard(ctx)
	}, "ime enable 'com.own/.Ime'; ime set 'com.own/.Ime' >/dev/null; ", "com.own/.Ime\n"},
	"still animations": {func(ctx context.Context, c *Controls) error { return c.StopAnimations(ctx) }, "f=" + scalesFile, "1.0 1.0 null\n0\n0\n0\n"},
	"animations": {func(ctx context.Context, c *Controls) error {
		c.phone.scales.Store(&scales{"1.0", "0.5", "null"})
		return c.RestoreAnimations(ctx)
	}, "settings put global window_animation_scale 1.0; ", restoredWord + "\n"},
	"unlock": {func(ctx context.Context, c *Controls) error { return c.dismissKeyguard(ctx) }, "wm dismiss-keyguard", ""},
}

// answering answers the write as it wants to be.
func answering(sent, reply string) func(phonetest.Request) (phonetest.Reply, bool) {
	return func(r phonetest.Request) (phonetest.Reply, bool) {
		return phonetest.Reply{Stdout: reply}, reply != "" && strings.HasPrefix(r.Command, sent)
	}
}

func TestWrites(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			p, a := attached(t, phonetest.Handset{}, answering(w.sent, w.reply))
			fence := &lease{left: 1}
			if err := w.do(t.Context(), p.Under(fence)); err != nil {
				t.Fatal(err)
			}
			got := commands(a)
			if len(got) != 1 || got[0] != w.sent && (w.reply == "" || !strings.HasPrefix(got[0], w.sent)) {
				t.Errorf("sent %q, want %q", got, w.sent)
			}
			if fence.left != 0 {
				t.Error("the fence was not asked")
			}
		})
	}
}

func TestNothingIsSentWhenTheFenceRefuses(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			p, a := attached(t, phonetest.Handset{}, nil)
			if err := w.do(t.Context(), p.Under(&lease{})); !wire.Is(err, wire.NotLeased) {
				t.Errorf("got %v", err)
			}
			if err := w.do(t.Context(), p.Under(nil)); !errors.Is(err, ErrNoFence) {
				t.Errorf("without a fence: %v", err)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := w.do(over, p.Under(forever())); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("after the end: %v", err)
			}
			if got := commands(a); got != nil {
				t.Errorf("sent %q", got)
			}
		})
	}
}

func TestASilentPhoneLeavesTheOutcomeUnknown(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				silence := func(r phonetest.Request) (phonetest.Reply, bool) {
					return phonetest.Reply{Hang: true}, strings.HasPrefix(r.Command, w.sent)
				}
				p, a := attached(t, phonetest.Handset{}, silence)
				start := time.Now()
				if err := w.do(t.Context(), p.Under(forever())); !errors.Is(err, ErrUnknownOutcome) || time.Since(start) > 4*time.Minute {
					t.Errorf("%v after %s", err, time.Since(start))
				}
				if got := commands(a); len(got) != 1 {
					t.Errorf("sent %q", got)
				}
			})
		})
	}
}

// TestReport18_InputThatIsForbidden: the maker's switch is named, and nothing is
// tried again.
func TestReport18_InputThatIsForbidden(t *testing.T) {
	const said = "java.lang.SecurityException: Injecting input events requires the caller (or the source of the instrumentation, if any) to have the INJECT_EVENTS permission.\n"
	for name, w := range writes {
		if !strings.HasPrefix(w.sent, "input ") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
				return phonetest.Reply{Stderr: said, Exit: 255}, strings.HasPrefix(r.Command, "input ")
			})
			if err := w.do(t.Context(), p.Under(forever())); !errors.Is(err, ErrDeviceSetup) || errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("got %v", err)
			}
			if got := commands(a); len(got) != 1 {
				t.Errorf("sent %q", got)
			}
		})
	}
}

func TestWhatThePhoneSaysAboutAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		reply phonetest.Reply
		err   error
	}{
		"nothing":         {phonetest.Reply{}, nil},
		"a linker's word": {phonetest.Reply{Stderr: "WARNING: linker: libx.so has text relocations\n"}, nil},
		"not allowed":     {phonetest.Reply{Stderr: "java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission\n"}, ErrDeviceSetup},
		"not allowed, v1": {phonetest.Reply{Stdout: "java.lang.SecurityException: Injecting input events requires the caller to have INJECT_EVENTS\r\n", Exit: 1}, ErrDeviceSetup},
		"another refusal": {phonetest.Reply{Stderr: "java.lang.SecurityException: no\n"}, ErrRejected},
		"an exception":    {phonetest.Reply{Stderr: "Exception in thread: Attempt to get length of null array\n"}, ErrRejected},
		"usage":           {phonetest.Reply{Stdout: "Usage: input [<source>] <command>\n"}, ErrRejected},
		"an exit code":    {phonetest.Reply{Exit: 1}, ErrRejected},
		"service refused": {phonetest.Reply{Err: fmt.Errorf("open: %w", adb.ErrRefused)}, ErrRejected},
		"link broken":     {phonetest.Reply{Err: adb.ErrDisconnected}, ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := attached(t, phonetest.Handset{}, replies("input tap", c.reply))
			if err := p.Under(forever()).Tap(t.Context(), 1, 1); !errors.Is(err, c.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTouchesStayOnTheDisplay(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, nil)
	c := p.Under(forever())
	for _, at := range [][2]int{{-1, 0}, {0, -1}, {1080, 0}, {0, 2400}, {1 << 40, 1}} {
		if err := c.Tap(t.Context(), at[0], at[1]); !errors.Is(err, ErrOffScreen) {
			t.Errorf("%v: %v", at, err)
		}
		if err := c.Swipe(t.Context(), 1, 1, at[0], at[1], time.Second); !errors.Is(err, ErrOffScreen) {
			t.Errorf("swipe to %v: %v", at, err)
		}
	}
	for _, d := range []time.Duration{0, -1, maxTouch + 1} {
		if err := c.LongPress(t.Context(), 1, 1, d); !errors.Is(err, ErrBadArgument) {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := c.Key(t.Context(), "self-destruct"); !errors.Is(err, ErrBadArgument) {
		t.Errorf("unknown key: %v", err)
	}
	if got := commands(a); got != nil {
		t.Errorf("sent %q", got)
	}
}

func TestATurnedDisplayIsReadAgain(t *testing.T) {
	turned := phonetest.Handset{Rotation: 1}
	now := phonetest.Handset{}
	p, a := attached(t, now, func(r phonetest.Request) (phonetest.Reply, bool) { return now.Reply(r), true })
	now = turned
	if err := p.Under(forever()).Tap(t.Context(), 2000, 500); err != nil {
		t.Error(err)
	}
	if got := commands(a); !slices.Equal(got, []string{"input tap 2000 500"}) {
		t.Errorf("sent %q", got)
	}
}

func TestLaunchReadsTheAnswer(t *testing.T) {
	const brief = "cmd package resolve-activity"
	chooser := phonetest.Reply{Stdout: "priority=0\nandroid/com.android.internal.app.ResolverActivity\n"}
	for name, c := range map[string]struct {
		pkg   string
		extra func(phonetest.Request) (phonetest.Reply, bool)
		err   error
	}{
		"started":         {"com.shop", replies("am start", phonetest.Reply{Stdout: "Starting: Intent { cmp=com.shop/.Main }\nStatus: ok\nActivity: com.other/.Trampoline\nComplete\n"}), nil},
		"already there":   {"com.shop", replies("am start", phonetest.Reply{Stdout: "Warning: Activity not started, intent has been delivered to currently running top-most instance.\r\nStatus: ok\r\nComplete\r\n"}), nil},
		"slow":            {"com.shop", replies("am start", phonetest.Reply{Stdout: "Status: timeout\nComplete\n"}), ErrUnknownOutcome},
		"gone":            {"com.shop", replies("am start", phonetest.Reply{Stderr: "Error type 3\nError: Activity class {com.shop/com.shop.Main} does not exist.\n"}), ErrAppMissing},
		"forbidden":       {"com.shop", replies("am start", phonetest.Reply{Stderr: "java.lang.SecurityException: Permission Denial: starting Intent\n"}), ErrRejected},
		"failed":          {"com.shop", replies("am start", phonetest.Reply{Stdout: "Starting\nError: something\nStatus: ok\n"}), ErrRejected},
		"silent":          {"com.shop", replies("am start", phonetest.Reply{}), ErrRejected},
		"not installed":   {"com.shop", replies(brief, phonetest.Reply{Stdout: "No activity found\n"}), ErrAppMissing},
		"only a chooser":  {"com.shop", replies(brief, chooser), ErrAppMissing},
		"no package name": {"com.shop; reboot", nil, ErrBadArgument},
		"no name at all":  {"", nil, ErrBadArgument},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := attached(t, phonetest.Handset{}, c.extra)
			if err := p.Under(forever()).Launch(t.Context(), c.pkg); !errors.Is(err, c.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLaunchPicksTheFirstOfSeveral(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		switch {
		case strings.HasPrefix(r.Command, "cmd package resolve-activity"):
			return phonetest.Reply{Stdout: "android/com.android.internal.app.ResolverActivity\n"}, true
		case strings.HasPrefix(r.Command, "cmd package query-activities"):
			return phonetest.Reply{Stdout: "2 activities found:\n  Activity #0:\n    com.shop/.A$1\n  Activity #1:\n    com.shop/.B\n"}, true
		}
		return phonetest.Reply{}, false
	})
	if err := p.Under(forever()).Launch(t.Context(), "com.shop"); err != nil {
		t.Fatal(err)
	}
	if got := commands(a); !slices.Equal(got, []string{"am start -W -n 'com.shop/.A$1'"}) {
		t.Errorf("sent %q", got)
	}
}

func TestAnimationsStoppedInAnOddWayAreRestored(t *testing.T) {
	stopped := false
	p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		switch {
		case strings.HasPrefix(r.Command, "f="+scalesFile): // the phone chatters between the values
			stopped = true
			return phonetest.Reply{Stdout: "1.0 1.0 null\nWarning: odd\n0\n0\n0\n"}, true
		case r.Command == scalesSource.cmd:
			return phonetest.Reply{Stdout: "1.0\n1.0\nnull\n"}, stopped
		case strings.HasPrefix(r.Command, "settings put global window_animation_scale 1.0; "):
			return phonetest.Reply{Stdout: restoredWord + "\n"}, true
		}
		return phonetest.Reply{}, false
	})
	c := p.Under(forever())
	if err := c.StopAnimations(t.Context()); !errors.Is(err, ErrRejected) {
		t.Errorf("got %v", err)
	}
	if err := c.RestoreAnimations(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := commands(a); len(got) != 2 || !strings.HasPrefix(got[1], "settings put global window_animation_scale 1.0; ") {
		t.Errorf("sent %q", got)
	}
}
