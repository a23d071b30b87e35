package phone

import (
	"errors"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

func TestDisplayOfTheWindowManager(t *testing.T) {
	for name, c := range map[string]struct {
		displays, windows string
		want              Display
		err               error
	}{
		"Android 14": {
			"  Display: mDisplayId=0 (organized)\n    init=1080x2400 420dpi mMinSizeOfResizeableTaskDp=220 cur=1080x2400 app=1080x2274 rng=1080x997-2337x2274\n      mRotation=0 mDeferredRotationPauseCount=0\n",
			"",
			Display{1080, 2400, 0, 420},
			nil,
		},
		"Android 9": {
			"  Display: mDisplayId=0\n    init=1080x1920 480dpi cur=1920x1080 app=1794x1080 rng=1080x1008-1794x1731\n",
			"  mRotation=1 mAltOrientation=false\n",
			Display{1920, 1080, 1, 480},
			nil,
		},
		"Report15, landscape": {
			"  Display: mDisplayId=0\n    init=1080x2400 420dpi cur=2400x1080 app=2274x1080 rng=1x1-9x9\n    mCurrentRotation=ROTATION_270\n",
			"",
			Display{2400, 1080, 3, 420},
			nil,
		},
		"overridden": {
			"  Display: mDisplayId=0\n    init=1080x2400 420dpi base=720x1600 280dpi cur=720x1600 app=720x1516 rng=1x1-9x9\n    mRotation=2\n",
			"",
			Display{720, 1600, 2, 280},
			nil,
		},
		"a tablet, natural is wide": {
			"  Display: mDisplayId=0\n    init=2560x1600 320dpi cur=1600x2560 app=1600x2464 rng=1x1-9x9\n    DisplayFrames w=1600 h=2560 r=3\n",
			"",
			Display{1600, 2560, 3, 320},
			nil,
		},
		"a square": {
			"  Display: mDisplayId=0\n    init=720x720 300dpi cur=720x720 app=720x720 rng=1x1-9x9\n    mRotation=1\n",
			"",
			Display{720, 720, 1, 300},
			nil,
		},
		"the cover is another display": {
			"  Display: mDisplayId=1\n    init=720x748 300dpi cur=720x748 app=720x748 rng=1x1-9x9\n    mRotation=3\n" +
				"  Display: mDisplayId=0\n    init=1080x2640 425dpi cur=1080x2640 app=1080x2640 rng=1x1-9x9\n    mRotation=0\n",
			"",
			Display{1080, 2640, 0, 425},
			nil,
		},
		"in the middle of turning": {
			"  Display: mDisplayId=0\n    init=1080x2400 420dpi cur=1080x2400 app=1x1 rng=1x1-9x9\n    mRotation=1\n", "", Display{}, ErrInTransition,
		},
		"a density that is not told": {
			"  Display: mDisplayId=0\n    init=1080x2400 420dpi base=720x1600 cur=720x1600 app=1x1 rng=1x1-9x9\n    mRotation=0\n", "", Display{}, ErrMalformed,
		},
		"no rotation": {"  Display: mDisplayId=0\n    init=1080x2400 420dpi cur=1080x2400 app=1x1\n", "", Display{}, ErrMalformed},
		"no size":     {"  mRotation=0\n", "", Display{}, ErrMalformed},
		"huge":        {"    init=99999x1 1dpi cur=1x99999 app=1x1\n    mRotation=1\n", "", Display{}, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseDisplays(strings.ReplaceAll(c.displays, "\n", "\r\n"), c.windows)
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
			if got, err = parseDisplays(c.displays, c.windows); !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// Where the window manager's dump is not understood, wm tells the size and one
// of several dumps the rotation.
func TestDisplayOfOtherSources(t *testing.T) {
	for name, c := range map[string]struct {
		wm            string
		asked, turned string
		want          Display
		trips         int
		err           error
	}{
		"plain":            {"Physical size: 1080x2400\nPhysical density: 420\n", "dumpsys window displays", "  mCurrentRotation=ROTATION_0\n", Display{1080, 2400, 0, 420}, 2, nil},
		"overridden":       {"Physical size: 1080x2400\nOverride size: 720x1600\nPhysical density: 420\nOverride density: 280\n", "dumpsys window windows", "  mRotation=0\n", Display{720, 1600, 0, 280}, 2, nil},
		"turned":           {"Physical size: 1080x2400\r\nPhysical density: 420\r\n", "dumpsys window displays", " mCurrentRotation=ROTATION_90\r\n", Display{2400, 1080, 1, 420}, 2, nil},
		"upside down":      {"Physical size: 1080x2400\nPhysical density: 420\n", "dumpsys window displays", "mCurrentRotation=ROTATION_180\n", Display{1080, 2400, 2, 420}, 2, nil},
		"old version":      {"Physical size: 1080x1920\nPhysical density: 480\n", "dumpsys window windows", "  mRotation=3 mAltOrientation=false\n", Display{1920, 1080, 3, 480}, 2, nil},
		"from input":       {"Physical size: 1080x1920\nPhysical density: 480\n", "dumpsys input", "      SurfaceOrientation: 1\n", Display{1920, 1080, 1, 480}, 3, nil},
		"from the display": {"Physical size: 1080x1920\nPhysical density: 480\n", "dumpsys display", "    mCurrentOrientation=2\n", Display{1080, 1920, 2, 480}, 4, nil},
		"no rotation":      {"Physical size: 1080x1920\n", "dumpsys x", "", Display{}, 4, ErrMalformed},
		"no size":          {"", "dumpsys window displays", "  mRotation=0\n", Display{}, 4, ErrMalformed},
		"huge":             {"Physical size: 99999x1920\n", "dumpsys window displays", "  mRotation=0\n", Display{}, 4, ErrMalformed},
		"odd angle":        {"Physical size: 1080x1920\n", "dumpsys window displays", "  mRotation=7\n", Display{}, 4, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
				switch {
				case strings.HasPrefix(r.Command, "wm "):
					return phonetest.Reply{Stdout: c.wm}
				case strings.HasPrefix(r.Command, c.asked):
					return phonetest.Reply{Stdout: c.turned}
				}
				return phonetest.Reply{}
			})
			p := &Phone{conn: connOf(a)}
			p.remember(Strategies{})
			for i, trips := range []int{c.trips, 1} {
				a.Forget()
				got, err := p.Display(t.Context())
				if got != c.want || !errors.Is(err, c.err) {
					t.Errorf("got %+v, %v", got, err)
				}
				if n := len(a.Sent()); err == nil && n != trips || err != nil && n < c.trips-1 {
					t.Errorf("time %d took %d round trips", i, n)
				}
			}
		})
	}
}
