package phone

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

func TestAttachProbesOnce(t *testing.T) {
	a := phonetest.New(phonetest.Handset{SDK: 29}.Reply, "shell_v2", "cmd", "unheard_of")
	p, err := Attach(t.Context(), a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := p.Info()
	if i.Serial != "SERIAL1" || i.Manufacturer != "Acme" || i.Model != "Model One" || i.Release != "14" || i.SDK != 29 || i.Locale != "en-GB" ||
		i.Display != (Display{1080, 2400, 0, 420}) || i.Screenshot != "raw" || !slices.Equal(i.Features, []string{"shell_v2", "cmd"}) {
		t.Errorf("got %+v", i)
	}
	properties := 0
	for _, r := range a.Sent() {
		if strings.Contains(r.Command, "getprop") {
			properties++
		}
	}
	if properties != 1 || len(a.Sent()) != 5 {
		t.Errorf("sent %v", a.Sent())
	}
	i.Features[0] = "changed"
	if p.Info().Features[0] != "shell_v2" {
		t.Error("a caller changes the phone's features")
	}
}

func TestAttachTakesTheSerialOfTheDevice(t *testing.T) {
	p, err := Attach(t.Context(), phonetest.New(phonetest.Handset{}.Reply), Options{Serial: "USB1"})
	if err != nil || p.Info().Serial != "USB1" {
		t.Errorf("got %+v, %v", p.Info(), err)
	}
}

func TestAttachRefusesAPhoneThatDoesNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		extra func(phonetest.Request) (phonetest.Reply, bool)
		err   error
	}{
		"no properties": {replies("getprop", phonetest.Reply{Stdout: "x\n"}), ErrTruncated},
		"no version":    {replies("getprop", phonetest.Reply{Stdout: strings.Repeat("x\n", 12)}), ErrMalformed},
		"lost":          {replies("getprop", phonetest.Reply{Err: errLost}), errLost},
		"no display": {func(r phonetest.Request) (phonetest.Reply, bool) {
			return phonetest.Reply{}, strings.HasPrefix(r.Command, "dumpsys ") || strings.HasPrefix(r.Command, "wm ")
		}, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
				if reply, ok := c.extra(r); ok {
					return reply
				}
				return phonetest.Handset{}.Reply(r)
			})
			if _, err := Attach(t.Context(), a, Options{}); !errors.Is(err, c.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAttachLivesWithoutScreenshots(t *testing.T) {
	p, _ := attached(t, phonetest.Handset{}, replies("screencap", phonetest.Reply{Stdout: "no\n"}))
	if got := p.Info().Screenshot; got != "" {
		t.Errorf("chosen %q", got)
	}
	if _, err := p.Screenshot(t.Context()); !errors.Is(err, ErrNoScreenshot) {
		t.Errorf("got %v", err)
	}
}
