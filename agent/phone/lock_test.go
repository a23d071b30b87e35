package phone

import (
	"errors"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

func TestParseLock(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		want Lock
		err  error
	}{
		"Android 14, open": {
			"      showing=false\n      inputRestricted=false\n      secure=true\n      screenState=SCREEN_STATE_ON\n      interactiveState=INTERACTIVE_STATE_AWAKE\n        mIsShowing=false\n        mSimSecure=false\n",
			Lock{Awake: true},
			nil,
		},
		"Android 14, a PIN": {
			"      showing=true\n      secure=true\n      interactiveState=INTERACTIVE_STATE_AWAKE\n        mIsShowing=true\n        mSimSecure=false\n",
			Lock{true, true, true},
			nil,
		},
		"asleep":               {"      showing=true\n      secure=false\n      screenState=SCREEN_STATE_OFF\n      interactiveState=INTERACTIVE_STATE_SLEEP\n", Lock{false, true, false}, nil},
		"an always-on display": {"      showing=true\n      screenState=SCREEN_STATE_ON\n      interactiveState=INTERACTIVE_STATE_SLEEP\n", Lock{false, true, false}, nil},
		"Android 13, one line says locked": {
			"    isKeyguardShowing=true\n      showing=false\n        mIsShowing=false\n    mAwake=true\n", Lock{true, true, false}, nil,
		},
		"Android 8":                 {"    mShowingLockscreen=true mShowingDream=false mDreamingLockscreen=false\n    mAwake=true\r\n", Lock{true, true, false}, nil},
		"Android 7, a SIM's PIN":    {"        mIsShowing=true\n        mSimSecure=true\n    mAwake=true\n", Lock{true, true, true}, nil},
		"a dream is no lock":        {"        mIsShowing=false\n    mShowingDream=true mDreamingLockscreen=true\n    mAwake=true\n", Lock{true, false, false}, nil},
		"wakefulness tells":         {"        mIsShowing=false\n  mWakefulness=Dozing\n      interactiveState=INTERACTIVE_STATE_AWAKE\n", Lock{}, nil},
		"no keyguard":               {"    mAwake=true\n", Lock{}, ErrMalformed},
		"not told if awake":         {"        mIsShowing=false\n", Lock{}, ErrMalformed},
		"a line that only looks so": {"    showingAndNotOccluded=true notshowing=true\n    mAwake=true\n", Lock{}, ErrMalformed},
	} {
		got, err := parseLock(c.out)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestParseTrust(t *testing.T) {
	got, err := parseTrust(` User "Owner" (id=0, flags=0xc13): trusted=0, trustManaged=0, deviceLocked=1, strongAuthRequired=0x0` + "\n" +
		` User "Guest" (id=10, flags=0x4) (current): trusted=1, trustManaged=1, deviceLocked=0, strongAuthRequired=0x0` + "\n")
	if err != nil || got.Locked {
		t.Errorf("the present user is not locked: %+v, %v", got, err)
	}
	got, err = parseTrust(`deviceLocked=1` + "\n")
	if err != nil || !got.Locked || !got.Secure {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseTrust("Can't find service: trust\n"); !errors.Is(err, ErrMalformed) {
		t.Errorf("%v", err)
	}
}

// Each source that is not understood has another in its place.
func TestLockOfOtherSources(t *testing.T) {
	for name, c := range map[string]struct {
		says  map[string]string // by the beginning of the command
		want  Lock
		trips int
		way   string
	}{
		"the policy alone": {map[string]string{"dumpsys window policy": "mIsShowing=true\nmAwake=true\n"}, Lock{true, true, false}, 1, "policy"},
		"power too":        {map[string]string{"dumpsys window policy": "mIsShowing=true\n", "dumpsys power": "  mWakefulness=Awake\n"}, Lock{true, true, false}, 2, "power"},
		"all windows":      {map[string]string{"dumpsys window |": "    isKeyguardShowing=false\n", "dumpsys power": "  mWakefulness=Asleep\n"}, Lock{}, 3, "window"},
		"trust":            {map[string]string{"dumpsys trust": "(current): deviceLocked=1,\n", "dumpsys power": "  mWakefulness=Awake\n"}, Lock{true, true, true}, 4, "trust"},
	} {
		t.Run(name, func(t *testing.T) {
			p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
				for prefix, said := range c.says {
					if strings.HasPrefix(r.Command, prefix) {
						return phonetest.Reply{Stdout: said}, true
					}
				}
				return phonetest.Reply{}, strings.HasPrefix(r.Command, "dumpsys window policy")
			})
			for i, trips := range []int{c.trips, 1} {
				a.Forget()
				if got, err := p.Lock(t.Context()); err != nil || got != c.want || len(a.Sent()) != trips {
					t.Errorf("time %d: %+v, %v in %d round trips", i, got, err, len(a.Sent()))
				}
			}
			if got := p.Strategies().Parts["lock"]; got != c.way {
				t.Errorf("way %q", got)
			}
		})
	}
}
