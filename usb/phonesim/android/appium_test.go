package android

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf16"

	"phonerack/usb/phonesim/android/apk/apktest"
	"phonerack/usb/phonesim/screen"
)

// helpedPhone is a phone with Appium's Settings app and the focus in the shop's search field.
func helpedPhone(t *testing.T, version int, method string) (*phone, *screen.Engine) {
	t.Helper()
	p, engine := realPhone(t, version)
	if out, status := p.stream("-r -g", apktest.Build(apktest.Settings())); status != 0 {
		t.Fatal(out)
	}
	if method != "" {
		p.ok("ime enable " + method + "; ime set " + method)
	}
	focusSearch(p, engine)
	return p, engine
}

// imap encodes text in modified UTF-7, all of what is no printable ASCII in one piece.
func imap(text string) string {
	var raw []byte
	for _, u := range utf16.Encode([]rune(text)) {
		raw = append(raw, byte(u>>8), byte(u))
	}
	return "&" + strings.ReplaceAll(base64.RawStdEncoding.EncodeToString(raw), "/", ",") + "-"
}

func TestUnicodeKeyboard(t *testing.T) {
	for _, test := range []struct{ name, typed, want string }{
		{"ASCII", "plain text", "plain text"},
		{"Latin", "h" + imap("é") + "llo", "héllo"},
		{"Arabic", imap("مرحبا"), "مرحبا"},
		{"an ampersand", "a &- b", "a & b"},
		{"no code", "&!!-x", "&!!-x"},
		{"odd bytes", "&AA-", "&AA-"},
		{"standard base64", "&AOk/-", "&AOk/-"},
		{"without an end", "a&AOk", "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, engine := helpedPhone(t, 14, unicodeIME)
			p.ok("input text '" + strings.ReplaceAll(test.typed, " ", "%s") + "'")
			if got := find(engine.Tree(), searchField).Text; got != test.want {
				t.Errorf("field holds %q, want %q", got, test.want)
			}
		})
	}
	p, engine := helpedPhone(t, 14, unicodeIME)
	p.ok("input text 'a&AO'; input text 'k-b'")
	if got := find(engine.Tree(), searchField).Text; got != "aéb" {
		t.Errorf("in two commands: %q", got)
	}
	p.ok("input text '&AO'; ime set " + latinIME + "; input text 'c'")
	if got := find(engine.Tree(), searchField).Text; got != "aébc" {
		t.Errorf("after another keyboard: %q", got)
	}
	// Faults of the way spoil what is encoded.
	p.fault(func(f *Faults) { f.DropFirst = true })
	p.ok("ime set " + unicodeIME + "; input text '" + imap("é") + "'")
	if got := find(engine.Tree(), searchField).Text; got != "aébcAOk-" {
		t.Errorf("with the first character lost: %q", got)
	}
}

func TestKeyboardWithoutKeys(t *testing.T) {
	for version, says := range map[int]string{11: "mShowRequested=true mShowExplicitlyRequested=false mShowForced=false mInputShown=true", 14: "  mInputShown=true\n"} {
		p, engine := helpedPhone(t, version, unicodeIME)
		if engine.Keyboard() || !engine.Typing() {
			t.Errorf("keys %t, typing %t", engine.Keyboard(), engine.Typing())
		}
		wantContains(t, "input method", p.ok("dumpsys input_method"), says, "mIsInputViewShown=false")
		wantContains(t, "window", p.ok("dumpsys window InputMethod"), "package=io.appium.settings ", "mHasSurface=false")
		p.ok("ime set " + latinIME)
		if !engine.Keyboard() {
			t.Error("no keys")
		}
		wantContains(t, "input method", p.ok("dumpsys input_method"), says, "mIsInputViewShown=true")
	}
}

func TestKeyboardOfActions(t *testing.T) {
	p, engine := helpedPhone(t, 14, actionIME)
	p.ok("input text 'mug/nothing/x/none/'")
	if got := find(engine.Tree(), searchField).Text; got != "mugnothingx" {
		t.Errorf("field holds %q", got)
	}
	p.ok("input text '/search/'; sleep 4")
	if _, activity := engine.Focus(); find(engine.Tree(), "com.phonerack.shop:id/popular") != nil || activity == ".MainActivity" {
		t.Errorf("still at %s", activity)
	}
}

func TestClipboardByBroadcast(t *testing.T) {
	const ask = "am broadcast -n io.appium.settings/.receivers.ClipboardReceiver -a io.appium.settings.clipboard.get"
	answer := func(out string) string {
		_, rest, ok := strings.Cut(out, "\nBroadcast completed: result=-1, data=\"")
		if !ok {
			return out
		}
		text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(rest, "\"\n"))
		if err != nil {
			t.Errorf("%q: %v", out, err)
		}
		return string(text)
	}
	for _, test := range []struct {
		version        int
		method, lead   string
		implicit, full bool
		stopped        bool
		want           string
	}{
		{version: 9, lead: "am start -n io.appium.settings/.Settings", want: "häll\"o"},
		{version: 9, lead: "am start -n io.appium.settings/.Settings", implicit: true, want: "häll\"o"},
		{version: 9, implicit: true, full: true, want: "Broadcast completed: result=0\n"},
		{version: 9, full: true, want: "Broadcast completed: result=0\n"},
		{version: 14, lead: "am start-foreground-service -n io.appium.settings/.ForegroundService", want: ""},
		{version: 14, lead: "am start -n io.appium.settings/.Settings", method: actionIME, want: "häll\"o"},
		{version: 14, lead: "am start -n io.appium.settings/.Settings; am force-stop io.appium.settings", method: actionIME, full: true, want: "Broadcast completed: result=0\n"},
		{version: 14, lead: "am force-stop io.appium.settings", method: actionIME, stopped: true, want: "häll\"o"},
	} {
		p, engine := helpedPhone(t, test.version, test.method)
		if err := engine.SetClipboard("häll\"o"); err != nil {
			t.Fatal(err)
		}
		if test.lead != "" {
			p.ok(test.lead)
		}
		cmd := ask
		if test.stopped {
			cmd = strings.Replace(ask, "broadcast", "broadcast --include-stopped-packages", 1)
		}
		if test.implicit {
			cmd = "am broadcast -a io.appium.settings.clipboard.get"
		}
		out := p.ok(cmd)
		if test.full && !strings.HasSuffix(out, "\n"+test.want) || !test.full && answer(out) != test.want {
			t.Errorf("%+v: %q", test, out)
		}
		if pkg, _ := engine.Focus(); pkg != "com.phonerack.shop" {
			t.Errorf("focus %s: the activity does not close itself", pkg)
		}
	}
	p, _ := realPhone(t, 14)
	if out := p.ok(ask); !strings.HasSuffix(out, "\nBroadcast completed: result=0\n") {
		t.Errorf("without the app: %q", out)
	}
	if _, errOut, status := p.sh("am startservice -n io.appium.settings/.ForegroundService"); status != 255 || !strings.Contains(errOut, "no service started") {
		t.Errorf("%q %d", errOut, status)
	}
}

func TestReport19_ClipboardCommandSucceedsWithoutDoingAnything(t *testing.T) {
	p, engine := helpedPhone(t, 14, "")
	for _, lie := range []bool{false, true} {
		p.fault(func(f *Faults) { f.ClipboardLie = lie })
		_, errOut, status := p.sh("cmd clipboard set-text lost")
		if status != 0 || (errOut == "") != lie || engine.Clipboard() != "" {
			t.Errorf("%q %d, clipboard %q", errOut, status, engine.Clipboard())
		}
	}
}
