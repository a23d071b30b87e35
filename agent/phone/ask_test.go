package phone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone/phonetest"
	"phonerack/usb/adb"
)

// bare is a phone of which nothing is known, with a shell.
func bare(shell func(ctx context.Context, cmd string) (adb.Result, error)) *Phone {
	p := &Phone{conn: conn{shell: shell}}
	p.remember(Strategies{})
	return p
}

func TestSeveralSourcesInOneRoundTrip(t *testing.T) {
	sources := []source{{"one", "first"}, {"two", "second"}, {"three", "third"}}
	for name, c := range map[string]struct {
		answer func(marks []string) string
		err    error // of the shell
		want   [3]string
	}{
		"as asked": {func(m []string) string {
			return m[0] + "\n1\n" + m[1] + "\n" + m[2] + "\n3\n3\n" + m[3] + "\n"
		}, nil, [3]string{"1\n", "", "3\n3\n"}},
		"CRLF": {func(m []string) string {
			return m[0] + "\r\n1\r\n" + m[1] + "\r\n2\r\n" + m[2] + "\r\n3\r\n" + m[3] + "\r\n"
		}, nil, [3]string{"1\n", "2\n", "3\n"}},
		"without line ends, behind a warning": {func(m []string) string {
			return "WARNING: linker\n" + m[0] + "\n1" + m[1] + "\n2" + m[2] + "\n3" + m[3] + "\n"
		}, nil, [3]string{"1", "2", "3"}},
		"marks of another time": {func(m []string) string {
			return m[0] + "\nphonerack-aaaaaaaaaaaa-1\n" + m[1] + "\n2\n" + m[2] + "\n3\n" + m[3] + "\n"
		}, nil, [3]string{"phonerack-aaaaaaaaaaaa-1\n", "2\n", "3\n"}},
		"cut off":    {func(m []string) string { return m[0] + "\n1\n" + m[1] + "\n2\n" }, nil, [3]string{"1\n", "!", "!"}},
		"nothing":    {func([]string) string { return "" }, nil, [3]string{"!", "!", "!"}},
		"time over":  {func(m []string) string { return m[0] + "\n1\n" + m[1] + "\n2\n" + m[2] + "\n" }, context.DeadlineExceeded, [3]string{"1\n", "2\n", "!"}},
		"first mark": {func(m []string) string { return m[1] + "\n1\n" + m[2] + "\n" }, nil, [3]string{"!", "!", "!"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := bare(func(_ context.Context, cmd string) (adb.Result, error) {
				var marks []string
				for part := range strings.SplitSeq(cmd, "; ") {
					if m, ok := strings.CutPrefix(part, "echo "); ok {
						marks = append(marks, m)
					}
				}
				if len(marks) != 4 || !strings.Contains(cmd, "; first; ") || !strings.Contains(cmd, "; third; ") {
					t.Errorf("sent %q", cmd)
				}
				return adb.Result{Stdout: []byte(c.answer(marks))}, c.err
			})
			a := newAnswers()
			if err := p.ask(t.Context(), a, sources); err != nil {
				t.Fatal(err)
			}
			for i, s := range sources {
				err := a.err([]source{s})
				switch {
				case c.want[i] == "!" && (err == nil || c.err != nil && !errors.Is(err, c.err) || c.err == nil && !errors.Is(err, ErrTruncated)):
					t.Errorf("%s: %q, %v", s.name, a.text(s), err)
				case c.want[i] != "!" && (err != nil || a.text(s) != c.want[i]):
					t.Errorf("%s: %q, %v", s.name, a.text(s), err)
				}
			}
		})
	}
}

func TestNoSourceWithoutAPhone(t *testing.T) {
	for _, c := range []struct {
		out int
		err error
	}{{0, errLost}, {0, context.Canceled}, {maxAnswers + 1, nil}} {
		p := bare(func(context.Context, string) (adb.Result, error) {
			return adb.Result{Stdout: make([]byte, c.out)}, c.err
		})
		a := newAnswers()
		if err := p.ask(t.Context(), a, []source{{"one", "x"}}); c.err != nil && !errors.Is(err, c.err) || c.err == nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes, %v: %v", c.out, c.err, err)
		}
	}
}

// TestStatePartsFailAlone: each source that gives nonsense takes down its own
// parts only, and a phone that is lost all of them at once.
func TestStatePartsFailAlone(t *testing.T) {
	h := phonetest.Handset{Focus: "com.shop/com.shop.Main", Keyboard: true}
	for name, c := range map[string]struct {
		broken []string // beginnings of commands
		want   string   // the parts that fail
	}{
		"nothing":          {nil, ""},
		"the input method": {[]string{"dumpsys input_method"}, ""}, // the windows tell
		"the policy":       {[]string{"dumpsys window policy", "dumpsys power"}, "lock "},
		"the windows":      {[]string{"dumpsys window windows"}, "windows "},
		"the displays":     {[]string{"dumpsys window displays", "wm ", "dumpsys input |", "dumpsys display"}, "display focus "},
		"all":              {[]string{"dumpsys", "wm "}, "display focus keyboard lock windows "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, a := attached(t, h, nil)
				broken := phonetest.New(func(r phonetest.Request) phonetest.Reply {
					for _, b := range c.broken {
						if strings.HasPrefix(r.Command, b) {
							return phonetest.Reply{Stdout: "Failed to dump\n"}
						}
					}
					return h.Reply(r)
				})
				p.conn = connOf(broken)
				_ = a
				s := p.State(t.Context())
				if got := failures(s); got != c.want {
					t.Errorf("failed: %s\n%+v", got, s)
				}
			})
		})
	}
	p, a := attached(t, h, func(r phonetest.Request) (phonetest.Reply, bool) {
		return phonetest.Reply{Err: errLost}, strings.HasPrefix(r.Command, "dumpsys window policy")
	})
	s := p.State(t.Context())
	if got := failures(s); got != "display focus keyboard lock windows " || !errors.Is(s.LockErr, errLost) || len(a.Sent()) != 1 {
		t.Errorf("a lost phone: %s after %d round trips", got, len(a.Sent()))
	}
}

func failures(s State) string {
	out := ""
	for _, p := range []struct {
		name string
		err  error
	}{{"display", s.DisplayErr}, {"focus", s.FocusErr}, {"keyboard", s.KeyboardErr}, {"lock", s.LockErr}, {"windows", s.WindowsErr}} {
		if p.err != nil {
			out += p.name + " "
		}
	}
	return out
}

// An input method that hangs takes the service's answer with it, but not that of
// the others.
func TestAKeyboardThatHangsLeavesTheOtherParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := attached(t, phonetest.Handset{Focus: "com.shop/com.shop.Main"}, replies("dumpsys input_method", phonetest.Reply{Hang: true}))
		start := time.Now()
		s := p.State(t.Context())
		if got := failures(s); got != "keyboard " || !errors.Is(s.KeyboardErr, context.DeadlineExceeded) || time.Since(start) != readTimeout {
			t.Errorf("%s after %s: %v", got, time.Since(start), s.KeyboardErr)
		}
		if s.Focus.Package != "com.shop" || s.Display.Width != 1080 || !s.Lock.Awake || len(s.Windows) == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A phone that is changing for as long as that is waited for, and then hangs, is
// the slowest one. What the comment of State tells is kept here, too.
func TestStateOfTheSlowestPhoneIsBounded(t *testing.T) {
	const told = 27250 * time.Millisecond
	if bound := transitionLimit + transitionPause + 3*readTimeout; bound != told {
		t.Errorf("the bound is %s, State tells %s", bound, told)
	}
	synctest.Test(t, func(t *testing.T) {
		changing := "  Display: mDisplayId=0\n    init=1080x2400 420dpi cur=1080x2400 app=1x1 rng=1x1-9x9\n    mRotation=1\n  mCurrentFocus=null\n  mFocusedApp=null\n"
		var start time.Time // zero while the phone is attached
		p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
			switch {
			case start.IsZero():
				return phonetest.Reply{}, false
			case strings.HasPrefix(r.Command, "dumpsys window displays"):
				return phonetest.Reply{Stdout: changing}, true
			case strings.HasPrefix(r.Command, "dumpsys window windows"):
				return phonetest.Reply{}, true
			case strings.HasPrefix(r.Command, "dumpsys input_method"):
				return phonetest.Reply{Hang: true}, time.Since(start) >= transitionLimit
			}
			return phonetest.Reply{Hang: true}, strings.HasPrefix(r.Command, "dumpsys activity activities") || strings.HasPrefix(r.Command, "wm size")
		})
		start = time.Now()
		s := p.State(t.Context())
		took := time.Since(start)
		if got := failures(s); got != "display focus keyboard windows " || !errors.Is(s.FocusErr, ErrInTransition) {
			t.Errorf("%s\n%+v", got, s)
		}
		// It answers at once before it hangs, so its last look begins a pause early.
		if took != told-transitionPause {
			t.Errorf("it took %s", took)
		}
	})
}

func TestALearntWayIsGivenUpWhenItFails(t *testing.T) {
	policy := "mIsShowing=false\n"
	p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		switch {
		case strings.HasPrefix(r.Command, "dumpsys window policy"):
			return phonetest.Reply{Stdout: policy}, true
		case strings.HasPrefix(r.Command, "dumpsys power"):
			return phonetest.Reply{Stdout: "mWakefulness=Awake\n"}, policy != "" // an update took it away
		case strings.HasPrefix(r.Command, "dumpsys window |"):
			return phonetest.Reply{Stdout: "isKeyguardShowing=true\nmAwake=true\n"}, true
		}
		return phonetest.Reply{}, false
	})
	if l, err := p.Lock(t.Context()); err != nil || l.Locked || p.way("lock") != "power" {
		t.Errorf("%+v, %v by %q", l, err, p.way("lock"))
	}
	policy = ""
	a.Forget()
	if l, err := p.Lock(t.Context()); err != nil || !l.Locked || p.way("lock") != "window" || len(a.Sent()) != 2 {
		t.Errorf("%+v, %v by %q in %d round trips", l, err, p.way("lock"), len(a.Sent()))
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := p.State(ctx)
	if got := failures(s); len(strings.Fields(got)) != 5 || !errors.Is(s.FocusErr, context.Canceled) || len(a.Sent()) != 0 {
		t.Errorf("%s: %v", got, s.FocusErr)
	}
	if fmt.Sprint(s.FocusErr) == "" || strings.Contains(s.FocusErr.Error(), "\n") {
		t.Errorf("%q", s.FocusErr)
	}
}
