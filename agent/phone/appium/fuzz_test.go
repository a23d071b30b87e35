package appium

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"phonerack/agent/phone"
)

// FuzzTyping: what is typed is the text again, in whole pieces of ASCII.
func FuzzTyping(f *testing.F) {
	for _, s := range []string{"", "a", "&", "&-", "%s%%s", "汉字 \U0001F600 x", "\u0000\uFFFF", strings.Repeat("é", 100), strings.Repeat("\U0001F600", 40), "100%s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		var got strings.Builder
		for _, c := range typing(text) {
			if c == "" || len(c) > maxChunk || strings.Contains(c, "%s") {
				t.Errorf("command %q", c)
			}
			for _, r := range c {
				if r < ' ' || r > '~' {
					t.Errorf("command %q", c)
				}
			}
			got.WriteString(decodeUTF7(c))
		}
		if got.String() != text {
			t.Errorf("%q came back as %q", text, got.String())
		}
	})
}

// FuzzAnswer: nothing that a server answers is taken for what it is not.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"value":"x","sessionId":"y"}`))
	f.Add(500, []byte(`{"value":{"error":"unknown error","message":"m","stacktrace":""},"sessionId":null}`))
	f.Add(200, []byte(`{"value":{}} x`))
	f.Add(404, []byte(`{}`))
	f.Add(200, []byte("[\xff"))
	f.Fuzz(func(t *testing.T, status int, b []byte) {
		e, err := answer(status, b)
		var failed *serverError
		switch {
		case err == nil && status != http.StatusOK:
			t.Errorf("status %d is no error", status)
		case err == nil && len(e.Value) > len(b):
			t.Errorf("value %q", e.Value)
		case err != nil && !errors.Is(err, phone.ErrMalformed) && !errors.As(err, &failed):
			t.Errorf("error %v", err)
		case failed != nil && (failed.Code == "" || failed.Status != status || len(failed.Error()) > 20*maxExcerpt):
			t.Errorf("error %v", failed)
		}
	})
}

// TestTreesThatAreNone: what the server never writes is not guessed at.
func TestTreesThatAreNone(t *testing.T) {
	for xml, want := range map[string]error{
		``:                                         phone.ErrMalformed,
		`hello`:                                    phone.ErrMalformed,
		`<a></a>`:                                  phone.ErrMalformed,
		`<hierarchy>`:                              phone.ErrTruncated,
		`<hierarchy><a>`:                           phone.ErrTruncated,
		`<hierarchy><a b="`:                        phone.ErrTruncated,
		`<hierarchy><a></a></hierarchy>x`:          phone.ErrMalformed,
		`<hierarchy></hierarchy><hierarchy/>`:      phone.ErrMalformed,
		`<hierarchy><a></a></hierarchy><b></b>`:    phone.ErrMalformed,
		`<hierarchy><a></a></hierarchy></b>`:       phone.ErrMalformed,
		`<hierarchy><a></a></hierarchy><?xml ?>`:   phone.ErrMalformed,
		`<hierarchy>text<a></a></hierarchy>`:       phone.ErrMalformed,
		`<hierarchy><!-- --></hierarchy>`:          phone.ErrMalformed,
		`<hierarchy></hierarchy>`:                  phone.ErrNoRoot,
		`<hierarchy/>`:                             phone.ErrNoRoot,
		`<hierarchy>` + strings.Repeat("<a>", 700): phone.ErrTooLarge,
		`<hierarchy>` + strings.Repeat("<a/>", maxWindows+1) + `</hierarchy>`: phone.ErrTooLarge,
	} {
		if windows, err := layOut([]byte(xml)); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, %v", xml, windows, err)
		}
	}
}

// FuzzLayOut: windows are disjoint elements in order, whose tags close.
func FuzzLayOut(f *testing.F) {
	f.Add([]byte(`<?xml version='1.0'?><hierarchy width="10" height="20">` + statusBar("1") + window1("a.b", "x") + `</hierarchy>`))
	f.Add([]byte(`<hierarchy/>`))
	f.Add([]byte(`<hierarchy><a b='>'/></hierarchy> `))
	f.Add([]byte(`<hierarchy><a></a></b></hierarchy>`))
	f.Add([]byte(`<hierarchy><a b=>`))
	f.Fuzz(func(t *testing.T, xml []byte) {
		windows, err := layOut(xml)
		if err != nil {
			if !errors.Is(err, phone.ErrMalformed) && !errors.Is(err, phone.ErrTruncated) && !errors.Is(err, phone.ErrTooLarge) && !errors.Is(err, phone.ErrNoRoot) {
				t.Errorf("error %v", err)
			}
			return
		}
		at := 0
		for _, w := range windows {
			if w.from < at || w.to > len(xml) || xml[w.from] != '<' || xml[w.to-1] != '>' || strings.Count(string(xml[w.from:w.to]), "<") == 0 {
				t.Fatalf("window %+v after byte %d", w, at)
			}
			at = w.to
		}
		fingerprint(xml, windows)
	})
}

// FuzzBroadcast: the clipboard is what the receiver said, or nothing.
func FuzzBroadcast(f *testing.F) {
	f.Add("Broadcast completed: result=-1, data=\"aGVsbG8=\"\n")
	f.Add("Broadcast completed: result=-1, data=\"\", extras: Bundle[x]\n")
	f.Add("Broadcast completed: result=0\n")
	f.Fuzz(func(t *testing.T, out string) {
		text, err := parseClip(out)
		if err != nil && text != "" || !utf8.ValidString(text) {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// FuzzVersions: whatever the phone lists, an app is not pinned by accident.
func FuzzVersions(f *testing.F) {
	f.Add("package:/x\n=\n  Package [a.b] (1):\n    versionCode=7 minSdk=1\n    versionName=1.2\n")
	f.Add("=\nUnable to find package: a.b\n")
	f.Fuzz(func(t *testing.T, out string) {
		i, err := parseVersions("a.b", out)
		if (err != nil || !i.Present) && (i.Version != "" || i.Code != 0) {
			t.Errorf("%+v, %v", i, err)
		}
	})
}
