package phone

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

func TestPackages(t *testing.T) {
	p, _ := attached(t, phonetest.Handset{}, replies("pm list packages", phonetest.Reply{
		Stdout: "WARNING: linker\r\npackage:android\r\npackage:com.shop\r\npackage:bad name\r\npackage:com.chat.lite\r\n",
	}, phonetest.Reply{Stdout: "Error: no package manager\n"}, phonetest.Reply{Stdout: strings.Repeat("x", maxAnswers+1)}))
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

func TestInstalled(t *testing.T) {
	const all = "package:android versionCode:34\npackage:com.shop versionCode:10203\npackage:com.chat\n"
	const own = "package:com.shop versionCode:10203\n"
	for name, c := range map[string]struct {
		sdk        int
		own        string
		thirdParty bool
		want       []Package
		err        error
	}{
		"all":              {34, own, false, []Package{{"android", 34, true}, {"com.shop", 10203, false}, {"com.chat", 0, true}}, nil},
		"added":            {34, own, true, []Package{{"com.shop", 10203, false}}, nil},
		"a new phone":      {34, "", true, nil, nil},
		"a new phone, all": {25, "", false, []Package{{"android", 34, true}, {"com.shop", 10203, true}, {"com.chat", 0, true}}, nil},
		"an error message": {34, "Error: x\n", true, nil, ErrMalformed},
	} {
		p, a := attached(t, phonetest.Handset{SDK: c.sdk}, func(r phonetest.Request) (phonetest.Reply, bool) {
			if !strings.HasPrefix(r.Command, "pm list packages") {
				return phonetest.Reply{}, false
			}
			if strings.Contains(r.Command, "--show-versioncode") != (c.sdk >= 26) {
				t.Errorf("%s: asked %q", name, r.Command)
			}
			if strings.Contains(r.Command, " -3") {
				return phonetest.Reply{Stdout: c.own}, true
			}
			return phonetest.Reply{Stdout: all}, true
		})
		got, err := p.Installed(t.Context(), c.thirdParty)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) || len(a.Sent()) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestApps(t *testing.T) {
	rows := "3 activities found:\n  Activity #0:\n    priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n    com.shop/.Main\n" +
		"  Activity #1:\n    com.android.settings/.Settings\n  Activity #2:\n    com.shop/com.shop.Other$1\n"
	p, _ := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		switch {
		case strings.HasPrefix(r.Command, "cmd package query-activities"):
			return phonetest.Reply{Stdout: rows}, true
		case r.Command == "pm list packages -3":
			return phonetest.Reply{Stdout: "package:com.shop\npackage:com.hidden\n"}, true
		}
		return phonetest.Reply{}, false
	})
	got, err := p.Apps(t.Context())
	if want := []App{{"com.android.settings", "", true}, {"com.shop", "", false}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	rows = "No activities found\n"
	if _, err := p.Apps(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}
