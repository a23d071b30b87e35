package status_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// browser is one person's: it keeps the pass that it is given, and nothing else.
type browser struct {
	*bench
	pass string
}

// scan opens a QR code's address.
func (b *browser) scan(t *testing.T, path string) {
	t.Helper()
	w := b.ask("GET", path, "")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
		t.Fatalf("%s: %d to %q", path, w.Code, w.Header().Get("Location"))
	}
	b.keep(t, w)
}

func (b *browser) keep(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	for _, c := range w.Result().Cookies() {
		if c.Name != "rack_pass" {
			continue
		}
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 90*24*3600 || c.Path != "/" {
			t.Errorf("the cookie is %s", c)
		}
		b.pass = c.Value
	}
}

// try gives a PIN and tells the answer: 303 is in.
func (b *browser) try(t *testing.T, pin string) int {
	t.Helper()
	var header []string
	if b.pass != "" {
		header = append(header, "Cookie: rack_pass="+b.pass)
	}
	w := b.ask("POST", "/signin", url.Values{"pin": {pin}}.Encode(), header...)
	b.keep(t, w)
	return w.Code
}

// crowd uses up what all may try together, and leaves the address of b with a wrong PIN.
func (b *bench) crowd() {
	own := b.from
	b.signIn("000000")
	for n := range 60 {
		b.from = fmt.Sprintf("10.0.0.%d:1", n)
		b.signIn("000000")
	}
	b.from = own
}

const (
	in      = http.StatusSeeOther
	wrong   = http.StatusForbidden
	tooSoon = http.StatusTooManyRequests
)

// TestWhoStandsBeforeTheRackIsNotKeptOut: with the QR code of a phone's screen, whatever others try.
func TestWhoStandsBeforeTheRackIsNotKeptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		shown := b.page.Pass("")
		b.crowd()
		without, with := &browser{bench: b}, &browser{bench: b}
		if code := without.try(t, pin); code != tooSoon {
			t.Fatalf("without a pass: %d", code)
		}
		with.scan(t, shown)
		if "/P/"+with.pass != shown {
			t.Fatalf("the code was %s, the pass is %q", shown, with.pass)
		}
		if w := b.ask("GET", "/log", "", "Cookie: rack_pass="+with.pass); w.Code != http.StatusUnauthorized {
			t.Errorf("a pass alone lets somebody in: %d", w.Code)
		}
		if code := with.try(t, pin); code != in {
			t.Fatalf("with the pass: %d", code)
		}
		if "/P/"+with.pass == shown {
			t.Error("who was let in has no pass of their own")
		}
		b.crowd()
		if code := with.try(t, pin); code != in {
			t.Errorf("who was let in before: %d", code)
		}
	})
}

// TestAPassGuessesNoFaster: it waits for its own wrong PINs as an address does, and others do not wait for it.
func TestAPassGuessesNoFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		one, other := &browser{bench: b}, &browser{bench: b}
		one.scan(t, b.page.Pass(""))
		other.scan(t, b.page.Pass(""))
		for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			if code := one.try(t, "000000"); code != wrong {
				t.Fatalf("wrong PIN %d: %d", n, code)
			}
			b.from = fmt.Sprintf("10.1.0.%d:1", n) // elsewhere it is the same pass
			time.Sleep(want*time.Second - time.Millisecond)
			if code := one.try(t, pin); code != tooSoon {
				t.Fatalf("%v after wrong PIN %d: %d", want*time.Second, n, code)
			}
			time.Sleep(time.Millisecond)
		}
		if code := other.try(t, pin); code != in {
			t.Errorf("another pass waits too: %d", code)
		}
		if code := (&browser{bench: b}).try(t, pin); code != in {
			t.Errorf("an address waits for what a pass has tried: %d", code)
		}
	})
}

func TestPassesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		shown := b.page.Pass("")
		time.Sleep(50 * time.Minute)
		if again := b.page.Pass(shown); again != shown {
			t.Error("a code that is shown for longer is another one")
		}
		time.Sleep(50 * time.Minute)
		known := &browser{bench: b}
		known.scan(t, shown)
		if known.pass == "" {
			t.Fatal("a code that was shown anew is good for an hour")
		}
		if code := known.try(t, pin); code != in {
			t.Fatal(code)
		}
		time.Sleep(11 * time.Minute)
		late := &browser{bench: b}
		if late.scan(t, shown); late.pass != "" {
			t.Error("a code is good after its hour")
		}
		if again := b.page.Pass(shown); again == shown || !strings.HasPrefix(again, "/P/") {
			t.Errorf("in place of a code that is over comes %q", again)
		}
		time.Sleep(89 * 24 * time.Hour)
		b.crowd()
		if code := known.try(t, pin); code != in { // and 90 days from here
			t.Errorf("after 89 days: %d", code)
		}
		time.Sleep(89 * 24 * time.Hour)
		b.crowd()
		if code := known.try(t, "000000"); code != wrong {
			t.Errorf("89 days after the last time: %d", code)
		}
		time.Sleep(25 * time.Hour)
		b.crowd()
		if code := known.try(t, pin); code != tooSoon {
			t.Errorf("90 days after the last time: %d", code)
		}
	})
}

func TestPassesThatAreNone(t *testing.T) {
	b := newBench()
	for _, path := range []string{"/P/" + strings.Repeat("A", 26), "/P/" + strings.Repeat("A", 9000), "/P/%00"} {
		one := &browser{bench: b}
		if one.scan(t, path); one.pass != "" {
			t.Errorf("%.40s is taken for a pass", path)
		}
	}
	if code := b.ask("GET", "/P/", "").Code; code != http.StatusNotFound {
		t.Errorf("/P/: %d", code)
	}
	if path := benchWith("").page.Pass(""); path != "" {
		t.Errorf("without a PIN the code has %q", path)
	}
}

// TestPassesAreBounded: the one that was used longest ago makes room.
func TestPassesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		first, second := b.page.Pass(""), b.page.Pass("")
		for range 63 {
			time.Sleep(time.Second)
			if b.page.Pass(first) != first {
				t.Fatal("a pass that is in use makes room")
			}
			b.page.Pass("")
		}
		if b.page.Pass(second) == second {
			t.Error("65 passes are kept")
		}
	})
}
