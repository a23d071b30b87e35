package phone

import (
	"errors"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
	"phonerack/usb/adb"
)

// Scales that may have been changed without an answer are looked for before they
// are taken to be right.
func TestAnimationsThatMayBeStopped(t *testing.T) {
	for kept, want := range map[string]string{
		"":                   "",
		"1.0\n0.5\nnull\n":   "settings put global window_animation_scale 1.0; settings put global transition_animation_scale 0.5; settings delete global animator_duration_scale; ",
		"1.0 0.5 $(reboot)":  "",
		"1.0\n0.5\n":         "",
		"1.0\n0.5\n1.0\n1.0": "",
	} {
		p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
			switch {
			case strings.HasPrefix(r.Command, "f="):
				return phonetest.Reply{Err: adb.ErrTimeout}, true
			case strings.HasPrefix(r.Command, "cat "+scalesFile):
				return phonetest.Reply{Stdout: kept}, true
			case strings.HasPrefix(r.Command, "settings put global"):
				return phonetest.Reply{Stdout: restoredWord + "\n"}, true
			}
			return phonetest.Reply{}, false
		})
		p.scales.Store(nil)
		c := p.Under(forever())
		if err := c.StopAnimations(t.Context()); !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("%q: %v", kept, err)
		}
		a.Forget()
		if err := c.RestoreAnimations(t.Context()); err != nil {
			t.Errorf("%q: %v", kept, err)
		}
		sent := commands(a)
		if want == "" && len(sent) != 0 || want != "" && (len(sent) != 1 || !strings.HasPrefix(sent[0], want)) {
			t.Errorf("%q: sent %q", kept, sent)
		}
		a.Forget()
		if err := c.RestoreAnimations(t.Context()); err != nil || len(a.Sent()) != 0 {
			t.Errorf("%q, again: %v, sent %v", kept, err, a.Sent())
		}
	}
}

func TestRestoringThatFailsIsTriedAgain(t *testing.T) {
	said := "1.0\n"
	p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
		return phonetest.Reply{Stdout: said}, strings.HasPrefix(r.Command, "settings put global")
	})
	p.scales.Store(&scales{"1.0", "1.0", "1.0"})
	for _, c := range []struct {
		says string
		err  error
	}{{"1.0\n", ErrRejected}, {"java.lang.SecurityException: no\n", ErrRejected}, {"java.lang.SecurityException: no\n" + restoredWord, nil}} {
		said = c.says
		if err := p.Under(forever()).RestoreAnimations(t.Context()); !errors.Is(err, c.err) || p.AnimationsStopped() != (c.err != nil) {
			t.Errorf("%q: %v", c.says, err)
		}
	}
	if len(commands(a)) != 3 {
		t.Errorf("sent %q", commands(a))
	}
}
