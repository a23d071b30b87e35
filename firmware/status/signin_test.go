package status_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware/status"
)

func TestARackWithoutAPINLetsNobodyIn(t *testing.T) {
	b := benchWith("")
	for _, p := range []string{"", "0", pin} {
		if w := b.signIn(p); w.Code != http.StatusForbidden || b.cookie != "" {
			t.Errorf("PIN %q: %d", p, w.Code)
		}
	}
	if w := b.ask("GET", "/log", ""); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "has no PIN") {
		t.Errorf("log: %d %s", w.Code, w.Body)
	}
}

func TestWrongPINsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		wait := time.Duration(0)
		for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			time.Sleep(wait)
			if w := b.signIn("000000"); w.Code != http.StatusForbidden {
				t.Fatalf("wrong PIN %d: %d %s", n, w.Code, w.Body)
			}
			wait = want * time.Second
			w := b.signIn(pin) // the right one, too early, is no other answer than a wrong one
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != fmt.Sprint(int(want)) || b.cookie != "" {
				t.Fatalf("after wrong PIN %d: %d, wait %s s, want %d", n, w.Code, w.Header().Get("Retry-After"), want)
			}
		}
		time.Sleep(wait)
		if b.signIn(pin); b.cookie == "" {
			t.Error("the right PIN is not taken after the wait")
		}
		b.cookie = ""
		if w := b.signIn("1"); w.Code != http.StatusForbidden {
			t.Errorf("after a right PIN the wait begins anew: %d", w.Code)
		}
	})
}

func TestOnesGuessesDoNotKeepOthersOutForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.signIn("000000")
		b.from = "192.168.1.10:4000"
		if b.signIn(pin); b.cookie == "" {
			t.Error("another address has to wait too")
		}
		// From a whole network of addresses: ten a minute.
		b.cookie = ""
		tried := 0
		for n := range 600 {
			b.from = fmt.Sprintf("10.0.%d.%d:1", n/250, n%250)
			if b.signIn("000000").Code == http.StatusForbidden {
				tried++
			}
		}
		if tried > 10 {
			t.Errorf("%d PINs were tried at once", tried)
		}
		time.Sleep(time.Minute)
		b.from = "192.168.1.10:4000"
		if b.signIn(pin); b.cookie == "" {
			t.Error("nobody gets in a minute later")
		}
	})
}

// TestGuessesOverIPv6: technicians of a LAN do not lock each other out, and who takes many addresses there guesses no faster for it.
func TestGuessesOverIPv6(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		apart               bool
	}{
		{"unique local", "[fd00::1]:1", "[fd00::2]:1", true},
		{"link-local", "[fe80::1%eth0]:1", "[fe80::2%eth0]:1", true},
		{"link-local, the zone is no other host", "[fe80::1%eth0]:1", "[fe80::1%eth1]:1", false},
		{"a global network is one guesser", "[2001:db8::1]:1", "[2001:db8::2]:1", false},
		{"another global network", "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", true},
		{"IPv4 in IPv6", "[::ffff:192.168.1.9]:1", "192.168.1.9:1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.from = c.first
				b.signIn("000000")
				b.from = c.second
				if b.signIn(pin); (b.cookie != "") != c.apart {
					t.Errorf("the other one gets in: %v", b.cookie != "")
				}
			})
		})
	}
	t.Run("many addresses of a LAN", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench()
			tried := 0
			for n := range 3600 { // each second of an hour another one, of another network
				b.from = fmt.Sprintf("[fd00:0:0:%x::%x]:1", n, n)
				if b.signIn("000000").Code == http.StatusForbidden {
					tried++
				}
				time.Sleep(time.Second)
			}
			if tried < 16 || tried > 36 { // 16, the doubled waits, then one in 5 minutes
				t.Errorf("%d PINs were tried in an hour", tried)
			}
			b.from = "192.168.1.10:4000"
			if b.signIn(pin); b.cookie == "" {
				t.Error("a technician over IPv4 has to wait for them")
			}
			time.Sleep(5 * time.Minute)
			b.from, b.cookie = "[fe80::7%eth0]:1", ""
			if b.signIn(pin); b.cookie == "" {
				t.Error("nobody of the LAN gets in afterwards")
			}
		})
	})
}

// TestGuessesFillNoLog: from however many addresses they come.
func TestGuessesFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newBench()
		b.page = status.New(status.Options{Source: b.Rack, Actor: b.Rack, Log: slog.New(slog.NewTextHandler(&log, nil)), PIN: pin, Hosts: func() []string { return []string{"192.168.1.20"} }})
		for n := range 1000 {
			b.from = fmt.Sprintf("10.0.%d.%d:1", n/250, n%250)
			b.signIn("000000")
		}
		if n := strings.Count(log.String(), "\n"); n != 10 {
			t.Errorf("%d lines: %.300s", n, log.String())
		}
	})
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		w := b.signIn(pin)
		c := w.Result().Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 || c.Domain != "" || len(c.Value) < 40 {
			t.Errorf("cookie %s", c)
		}
		in := func() bool { return b.ask("GET", "/log", "").Code == http.StatusOK }
		for range 5 {
			time.Sleep(29 * time.Minute)
			if !in() {
				t.Fatal("signed out although it is used")
			}
		}
		time.Sleep(30 * time.Minute)
		if in() {
			t.Error("signed in after half an hour without use")
		}
		b.signIn(pin)
		for range 24 {
			time.Sleep(29 * time.Minute)
			in()
		}
		time.Sleep(25 * time.Minute)
		if in() {
			t.Error("signed in after twelve hours of use")
		}
		b.signIn(pin)
		old := b.cookie
		if w := b.ask("POST", "/signout", ""); w.Code != http.StatusSeeOther || w.Result().Cookies()[0].MaxAge >= 0 {
			t.Errorf("sign out: %d", w.Code)
		}
		if b.cookie = old; in() {
			t.Error("the cookie works after signing out")
		}
		// A new session makes an end to the one that was used longest ago.
		var all []string
		for range 17 {
			time.Sleep(7 * time.Second)
			b.cookie = ""
			b.signIn(pin)
			all = append(all, b.cookie)
		}
		if b.cookie = all[0]; in() {
			t.Error("seventeen are signed in at once")
		}
		if b.cookie = all[16]; !in() {
			t.Error("the last is not signed in")
		}
	})
}

func TestNamesOfPeopleAreBoundedAndPlain(t *testing.T) {
	b := newBench()
	w := b.ask("POST", "/signin", url.Values{"pin": {" " + pin + " "}, "name": {"Li\nactor=root\x1b[2J\u202e" + strings.Repeat("x", 100)}}.Encode())
	b.cookie = w.Result().Cookies()[0].Value
	b.ask("POST", "/act", "act=identify&slot=3")
	if got := strings.TrimSuffix(b.Calls(), ` via page: identify {"seconds":30,"slot":3}`); len(got) != len("page/")+40 || strings.ContainsAny(got, "\n\x1b\u202e") {
		t.Errorf("acted as %q", got)
	}
}
