package phone

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// keyboards answers for the settings of the input method.
type keyboards struct {
	now     string
	methods []string // what can be selected
	reset   string   // what a reset selects
}

func (k *keyboards) reply(r phonetest.Request) (phonetest.Reply, bool) {
	switch {
	case strings.HasPrefix(r.Command, "ime enable"):
		id := strings.Split(r.Command, "'")[1]
		if slices.Contains(k.methods, id) {
			k.now = id
		}
	case strings.HasPrefix(r.Command, "ime reset"):
		k.now = k.reset
	case !strings.HasPrefix(r.Command, "settings get secure"):
		return phonetest.Reply{}, false
	}
	return phonetest.Reply{Stdout: k.now + "\n"}, true
}

func TestResetKeyboard(t *testing.T) {
	const own, other, helper = "com.own/.Ime", "com.other/.Ime", "io.appium.settings/.UnicodeIME"
	for name, c := range map[string]struct {
		attach string // what the phone has when it is attached
		record string // what its record tells
		later  string // what it has then
		methods,
		sent []string
		reset string
		now   string
		err   error
	}{
		"nothing to do":                  {own, "", own, nil, nil, "", own, nil},
		"a helper's is left":             {own, "", helper, []string{own}, []string{"ime enable"}, other, own, nil},
		"a crash left it":                {helper, own, helper, []string{own}, []string{"ime enable"}, other, own, nil},
		"a crash left it, no record":     {helper, "", helper, nil, []string{"ime reset"}, other, other, nil},
		"a task has chosen another":      {own, "", other, []string{own, other}, []string{"ime enable"}, other, own, nil},
		"a person has, before":           {other, own, other, []string{own, other}, nil, "", other, nil},
		"the phone's own is gone":        {own, "", helper, nil, []string{"ime enable", "ime reset"}, other, other, nil},
		"none can be selected":           {own, "", helper, nil, []string{"ime enable", "ime reset"}, helper, helper, ErrRejected},
		"there is none":                  {"null", "", "null", nil, []string{"ime reset"}, other, other, nil},
		"there is none, and none to get": {"null", "", "null", nil, []string{"ime reset"}, "null", "null", ErrRejected},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keyboards{now: c.attach, methods: c.methods, reset: c.reset}
			a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
				if reply, ok := k.reply(r); ok {
					return reply
				}
				return phonetest.Handset{Width: 9, Height: 20}.Reply(r)
			})
			p, err := Attach(t.Context(), a, Options{Strategies: Strategies{Keyboard: c.record}})
			if err != nil {
				t.Fatal(err)
			}
			k.now = c.later
			a.Forget()
			fence := new(counting)
			if err := p.Under(fence).ResetKeyboard(t.Context()); !errors.Is(err, c.err) || err == nil && c.err != nil {
				t.Errorf("got %v", err)
			}
			var sent []string
			for _, cmd := range commands(a) {
				sent = append(sent, strings.Join(strings.Fields(cmd)[:2], " "))
			}
			if !slices.Equal(sent, c.sent) || fence.n != len(c.sent) || k.now != c.now {
				t.Errorf("sent %q under %d checks, now %s", sent, fence.n, k.now)
			}
		})
	}
}

// counting is a Fence that counts.
type counting struct{ n int }

func (c *counting) Check() error {
	c.n++
	return nil
}

func TestResetRotation(t *testing.T) {
	for said, want := range map[string]error{
		"0 0\n": nil, "0 1\n": ErrRejected, "": ErrRejected, "null null\n": ErrRejected,
		"java.lang.SecurityException: no WRITE_SETTINGS\n3 0\n": ErrRejected,
	} {
		p, _ := attached(t, phonetest.Handset{}, replies("settings put system", phonetest.Reply{Stdout: said}))
		if err := p.Under(forever()).ResetRotation(t.Context()); !errors.Is(err, want) {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestPull(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, nil)
	a.Files().Put("/sdcard/a b.txt", []byte("0123456789"))
	for limit, ok := range map[int64]bool{9: false, 10: true, 1 << 40: true} {
		var got bytes.Buffer
		err := p.Pull(t.Context(), "/sdcard/a b.txt", &got, limit)
		if ok && (err != nil || got.String() != "0123456789") || !ok && (!wire.Is(err, wire.FileTooLarge) || !errors.Is(err, ErrTooLarge)) {
			t.Errorf("limit %d: %q, %v", limit, got.String(), err)
		}
	}
	err := p.Pull(t.Context(), "/sdcard/none", new(bytes.Buffer), 10)
	if _, ok := errors.AsType[*adb.SyncError](err); !ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for _, path := range []string{"", "sdcard/x", "/sdcard/\x00"} {
		if err := p.Pull(t.Context(), path, new(bytes.Buffer), 10); !errors.Is(err, ErrBadArgument) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestOpenURLRefusesWhatIsNoLink(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, nil)
	for _, url := range []string{
		"", "example.com", "//example.com", "-n com.evil/.Main", "https://a b", "https://a\nb", "https://a\x00", "https://a\u202eb",
		"https://a\xff", "http\x1b:x", "https://" + strings.Repeat("a", maxURL),
	} {
		if err := p.Under(forever()).OpenURL(t.Context(), url, ""); !errors.Is(err, ErrBadArgument) {
			t.Errorf("%.30q: %v", url, err)
		}
	}
	if err := p.Under(forever()).OpenURL(t.Context(), "https://a.example", "com.shop; reboot"); !errors.Is(err, ErrBadArgument) {
		t.Errorf("an app that is none: %v", err)
	}
	if len(a.Sent()) != 0 {
		t.Errorf("sent %v", a.Sent())
	}
	for said, want := range map[string]error{
		"Starting: Intent { act=android.intent.action.VIEW dat=x: }\nStatus: ok\nActivity: com.shop/.Other\nComplete\n":    nil,
		"Error: Activity not started, unable to resolve Intent { act=android.intent.action.VIEW dat=x: flg=0x10000000 }\n": ErrAppMissing,
		"Starting: Intent { }\nStatus: timeout\nComplete\n":                                                                ErrUnknownOutcome,
	} {
		p, _ := attached(t, phonetest.Handset{}, replies("am start", phonetest.Reply{Stdout: said}))
		if err := p.Under(forever()).OpenURL(t.Context(), "https://a.example/ünïcode", ""); !errors.Is(err, want) {
			t.Errorf("%q: %v", said, err)
		}
	}
}
