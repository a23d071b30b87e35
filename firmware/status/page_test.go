package status_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/firmware/status/statustest"
	"phonerack/hal/power"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const pin = "482913"

// bench is a page over the double, asked without a network.
type bench struct {
	*statustest.Rack
	page   *status.Page
	cookie string // of the session; "" if signed out
	from   string
}

func newBench() *bench { return benchWith(pin) }

func benchWith(pin string) *bench {
	b := &bench{Rack: statustest.New(60), from: "192.168.1.9:4000"}
	b.page = status.New(status.Options{Source: b.Rack, Actor: b.Rack, Log: slog.New(slog.DiscardHandler), PIN: pin, Hosts: func() []string { return []string{"rack7.local", "192.168.1.20"} }})
	return b
}

// ask sends a request; header lines are "Name: value".
func (b *bench) ask(method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host, r.RemoteAddr = "192.168.1.20", b.from
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.cookie != "" {
		r.Header.Set("Cookie", "rack_session="+b.cookie)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	b.page.ServeHTTP(w, r)
	return w
}

// signIn gives the PIN and keeps the cookie.
func (b *bench) signIn(pin string) *httptest.ResponseRecorder {
	w := b.ask("POST", "/signin", url.Values{"pin": {pin}, "name": {"Lee"}, "next": {"/slot/3"}}.Encode())
	for _, c := range w.Result().Cookies() {
		if c.Name == "rack_session" {
			b.cookie = c.Value
		}
	}
	return w
}

func signedIn(t *testing.T) *bench {
	t.Helper()
	b := newBench()
	if w := b.signIn(pin); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/slot/3" {
		t.Fatalf("sign in: %d %s", w.Code, w.Body)
	}
	return b
}

func TestOnlyHostsOfTheRackAreAnswered(t *testing.T) {
	b := newBench()
	for host, want := range map[string]int{
		"192.168.1.20": 200, "192.168.1.20:8080": 200, "rack7.local": 200, "RACK7.local.:80": 200, "localhost:80": 200, "127.0.0.1": 200, "[::1]:80": 200,
		"evil.example": 421, "192.168.1.21": 421, "rack7.local.evil.example": 421, "evil.example:80": 421, "": 421, "[::1": 421, "192.168.1.20.evil.example": 421, strings.Repeat("a", 400): 421,
	} {
		w := b.ask("GET", "/", "", "Host: "+host)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
		if w.Code != 200 && (strings.Contains(w.Body.String(), "door-side") || strings.Contains(w.Body.String(), "<a")) {
			t.Errorf("%q is told about the rack:\n%s", host, w.Body)
		}
	}
}

func TestAPageOfAnotherSiteDoesNothing(t *testing.T) {
	for _, header := range [][]string{
		{"Origin: http://evil.example"}, {"Origin: null"}, {"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site", "Origin: http://192.168.1.20"}, {"Origin: http://192.168.1.20:81"},
	} {
		b := signedIn(t)
		w := b.ask("POST", "/act", "act=identify&slot=3", header...)
		if w.Code != http.StatusForbidden || b.Calls() != "" {
			t.Errorf("%q: %d, did %q", header, w.Code, b.Calls())
		}
		if !strings.Contains(w.Body.String(), "another site") {
			t.Errorf("%q: no reason in %s", header, w.Body)
		}
	}
	b := signedIn(t)
	if w := b.ask("POST", "/act", "act=identify&slot=3", "Origin: http://192.168.1.20"); w.Code != http.StatusSeeOther {
		t.Errorf("the page's own form over plain HTTP: %d %s", w.Code, w.Body)
	}
}

func TestEveryAnswerHasItsHeaders(t *testing.T) {
	b := newBench()
	for _, target := range []string{"/", "/slot/3", "/nowhere", "/act", "/log", "/slot/900"} {
		w := b.ask("GET", target, "")
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", target, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Access-Control-Allow-Origin": ""} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", target, name, got, want)
			}
		}
	}
}

func TestStatesAreOpenAndTheRestNeedsThePIN(t *testing.T) {
	open := []string{"/", "/slot/1", "/slot/12", "/controller", "/map", "/map?page=2", "/signin"}
	closed := []string{"/slot/3/screen", "/slot/3/screen.jpg", "/tasks", "/tasks/01J0TASK1", "/tasks/01J0TASK1/001.jpg", "/log", "/support", "/support/bundle.zip", "/events?log=0"}
	b := newBench()
	for _, target := range open {
		w := b.ask("GET", target, "")
		if w.Code != http.StatusOK {
			t.Errorf("%s signed out: %d", target, w.Code)
		}
		for _, secret := range []string{"kettle", "connection refused", pin} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s shows %q to everybody", target, secret)
			}
		}
	}
	for _, target := range closed {
		if w := b.ask("GET", target, ""); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `type="password"`) {
			t.Errorf("%s signed out: %d", target, w.Code)
		}
	}
	if pictures, _ := b.Asked(); pictures != 0 {
		t.Errorf("%d pictures were taken for nobody", pictures)
	}
	if w := b.ask("POST", "/act", "act=identify&slot=3"); w.Code != http.StatusUnauthorized || b.Calls() != "" {
		t.Errorf("an act signed out: %d, did %q", w.Code, b.Calls())
	}
	b = signedIn(t)
	for _, target := range append(open, closed[:len(closed)-1]...) {
		if w := b.ask("GET", target, ""); w.Code != http.StatusOK {
			t.Errorf("%s signed in: %d %s", target, w.Code, w.Body)
		}
	}
	if b.cookie = strings.Repeat("A", 43); b.ask("GET", "/log", "").Code != http.StatusUnauthorized {
		t.Error("a made-up cookie opens the log")
	}
}

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

func TestGETChangesNothing(t *testing.T) {
	b := signedIn(t)
	for _, target := range []string{"/", "/slot/3?act=power_cycle", "/act?act=power_cycle&slot=3", "/signout", "/language?lang=zh", "/controller", "/slot/3/screen", "/support/bundle.zip?pictures=1"} {
		w := b.ask("GET", target, "")
		if len(w.Result().Cookies()) > 0 {
			t.Errorf("GET %s sets a cookie", target)
		}
	}
	if b.Calls() != "" {
		t.Errorf("GETs did %s", b.Calls())
	}
	if w := b.ask("GET", "/log", ""); w.Code != 200 {
		t.Errorf("signed out by a GET: %d", w.Code)
	}
}

func TestActs(t *testing.T) {
	for _, c := range []struct{ form, want string }{
		{"act=identify&slot=3", `identify {"seconds":30,"slot":3}`},
		{"act=sign&slot=3", `sign {"slot":3}`},
		{"act=power_cycle&slot=3", `power_cycle {"slot":3}`},
		{"act=power_cycle&slot=7", `power_cycle {"slot":7}`}, // which has not cut the power so far
		{"act=hub_cycle&slot=22", `power_cycle {"hub":true,"slot":22}`},
		{"act=retry&slot=6", `slot_retry {"slot":6}`},
		{"act=quarantine&slot=3&minutes=30&reason=cable", `quarantine {"reason":"cable","seconds":1800,"slot":3}`},
		{"act=quarantine&slot=3&minutes=10080", `quarantine {"reason":"","seconds":604800,"slot":3}`},
		{"act=release&slot=7", `quarantine_end {"slot":7}`},
		{"act=slot_maintenance_on&slot=3", `maintenance {"slot":3}`},
		{"act=slot_maintenance_off&slot=9", `maintenance {"off":true,"slot":9}`},
		{"act=forget&slot=13", `slot_forget {"slot":13}`},
		{"act=identify_rack", `identify {"seconds":30}`},
		{"act=maintenance_on", `maintenance {}`},
		{"act=maintenance_off", `maintenance {"off":true}`},
		{"act=link_retry", `link_retry {}`},
	} {
		b := signedIn(t)
		w := b.ask("POST", "/act", c.form+"&next=/slot/3")
		if want := "page/Lee via page: " + c.want; w.Code != http.StatusSeeOther || b.Calls() != want {
			t.Errorf("%s: %d, did %q, want %q", c.form, w.Code, b.Calls(), want)
			continue
		}
		w = b.ask("GET", w.Header().Get("Location"), "")
		if !strings.Contains(w.Body.String(), `class="done" role="status"`) {
			t.Errorf("%s: the page does not say that it was done", c.form)
		}
	}
}

func TestActsThatAreNotDone(t *testing.T) {
	hands := func(s *status.Snapshot) { s.Rack.Maintenance = true }
	none := func(*status.Snapshot) {}
	for _, c := range []struct {
		name, form string
		change     func(*status.Snapshot)
		code       int
		why        string
	}{
		{"a port that cannot be switched", "act=power_cycle&slot=22", none, 409, "cannot be switched"},
		{"a hub of which somebody has a phone", "act=hub_cycle&slot=22", func(s *status.Snapshot) { s.Slots[23].Lease = s.Slots[11].Lease }, 409, "Somebody has a phone of this hub."},
		{"a hub with hands in another slot", "act=hub_cycle&slot=22", func(s *status.Snapshot) { s.Slots[23].Hands = true }, 409, "Hands are in a slot of this hub"},
		{"a hub in maintenance of the rack", "act=hub_cycle&slot=22", hands, 409, "Maintenance is on"},
		{"a sign where no phone is", "act=sign&slot=13", none, 409, "The phone is not ready."},
		{"a slot that is leased", "act=power_cycle&slot=12", none, 409, "Slot 12 is busy because it is held by task"},
		{"maintenance of the rack", "act=power_cycle&slot=3", hands, 409, "Maintenance is on"},
		{"maintenance of the slot", "act=power_cycle&slot=9", none, 409, "Maintenance is on"},
		{"maintenance of a slot within that of the rack", "act=slot_maintenance_on&slot=3", hands, 409, "whole rack"},
		{"retry of a phone that is well", "act=retry&slot=3", none, 409, "nothing to retry"},
		{"retry in quarantine", "act=retry&slot=7", none, 409, "in quarantine"},
		{"retry of an empty slot", "act=retry&slot=1", none, 409, "No phone"},
		{"quarantine of an empty slot", "act=quarantine&slot=1&minutes=30", none, 409, "No phone"},
		{"a length that is not offered", "act=quarantine&slot=3&minutes=31", none, 400, "offered"},
		{"a length that comes round", "act=quarantine&slot=3&minutes=99999999999999999999", none, 400, "offered"},
		{"a long reason", "act=quarantine&slot=3&minutes=30&reason=" + strings.Repeat("x", 201), none, 400, "200 bytes"},
		{"no such act", "act=format&slot=3", none, 404, "no action format"},
		{"no such slot", "act=identify&slot=61", none, 404, "no slot 61"},
		{"no number", "act=identify&slot=3x", none, 404, "no such page"},
		{"no slot", "act=identify", none, 404, "no such page"},
		{"not enrolled", "act=link_retry", func(s *status.Snapshot) { s.Rack.Link.Joined = false }, 409, "not enrolled"},
		{"a form too large", "act=identify&slot=3&x=" + strings.Repeat("x", 9000), none, 413, "8192"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := signedIn(t)
			b.Change(c.change)
			w := b.ask("POST", "/act", c.form)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.why) || b.Calls() != "" {
				t.Errorf("%d, did %q:\n%s", w.Code, b.Calls(), w.Body)
			}
		})
	}
}

// TestAnActThatTakesLong: the browser is answered, the act goes on, and only so many go on at once.
func TestAnActThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := signedIn(t)
		_, finish := b.Block()
		start := time.Now()
		if w := b.ask("POST", "/act", "act=identify&slot=3&next=/slot/3"); w.Code != http.StatusSeeOther || time.Since(start) != 4*time.Second {
			t.Errorf("%d after %v", w.Code, time.Since(start))
		}
		for range 7 {
			b.ask("POST", "/act", "act=identify&slot=3")
		}
		if w := b.ask("POST", "/act", "act=identify&slot=3"); w.Code != http.StatusTooManyRequests {
			t.Errorf("the ninth at once: %d", w.Code)
		}
		if b.Calls() != "" {
			t.Error("done before its time")
		}
		finish()
		synctest.Wait()
		if n := strings.Count(b.Calls(), "identify"); n != 8 {
			t.Errorf("%d were carried out", n)
		}
	})
}

// TestButtonsSayWhyTheyAreDisabled: what the page would refuse cannot be pressed, and says so beside the button.
func TestButtonsSayWhyTheyAreDisabled(t *testing.T) {
	b := signedIn(t)
	body := b.ask("GET", "/slot/12", "").Body.String()
	if !strings.Contains(body, `<button id="b-power_cycle" disabled aria-describedby="w-power_cycle">`) || !strings.Contains(body, `id="w-power_cycle">Slot 12 is busy`) {
		t.Errorf("power off and on of a leased slot:\n%s", body)
	}
	if !strings.Contains(body, `<button id="b-identify" aria-describedby="w-identify">`) || !strings.Contains(body, `id="w-identify">Somebody has the phone: its screen stays`) {
		t.Errorf("identify of a leased slot cannot be pressed, or does not say that only lights show it:\n%s", body)
	}
	if body := b.ask("GET", "/slot/1", "").Body.String(); !strings.Contains(body, `id="w-identify">No phone here is ready`) {
		t.Errorf("identify of an empty slot:\n%s", body)
	}
	if body := b.ask("GET", "/slot/3", "").Body.String(); !strings.Contains(body, `<button id="b-identify">`) {
		t.Errorf("identify of a free phone says more than it has to:\n%s", body)
	}
	b.cookie = ""
	if body = b.ask("GET", "/slot/3", "").Body.String(); !strings.Contains(body, `id="w-identify">Sign in with the PIN first.`) {
		t.Errorf("signed out:\n%s", body)
	}
}

func TestARefusalOfAnActionIsASentenceInTheReadersLanguage(t *testing.T) {
	b := signedIn(t)
	b.Refuse(wire.Refuse(wire.SlotBusy, map[string]any{"slot": 3, "holder": "<i>kim</i>", "until": "noon"}))
	for lang, want := range map[string]string{"en": "Slot 3 is busy because it is held by &lt;i&gt;kim", "zh": "插槽 3 正忙"} {
		w := b.ask("POST", "/act", "act=identify&slot=3&next=/slot/3", "Accept-Language: "+lang)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `href="/slot/3"`) {
			t.Errorf("%s: %d\n%s", lang, w.Code, w.Body)
		}
	}
	w := b.ask("POST", "/act", "act=identify&slot=3", "Accept: application/json")
	if !strings.HasPrefix(w.Body.String(), `{"refusal":{"code":"slot_busy","args":{`) || w.Code != http.StatusConflict {
		t.Errorf("as JSON: %d %s", w.Code, w.Body)
	}
}

func TestFormsLeadBackToThisPageOnly(t *testing.T) {
	b := newBench()
	for next, want := range map[string]string{
		"/slot/3": "/slot/3", "": "/", "//evil.example": "/", `/\evil.example`: "/", "http://evil.example": "/", "/a?b": "/", "/x\r\nSet-Cookie: a=b": "/", "/" + strings.Repeat("a", 300): "/",
	} {
		w := b.ask("POST", "/language", url.Values{"lang": {"zh"}, "next": {next}}.Encode())
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
}

func TestAcceptChoosesTheForm(t *testing.T) {
	b := newBench()
	for accept, json := range map[string]bool{
		"": false, "*/*": false, "text/html": false, "application/json": true, "application/json, text/html": false, "text/html;q=0.5, application/json": true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false, "application/json;q=0.4, */*;q=0.3": true, "application/json;q=0": false,
		"text/*;q=0.2, application/*;q=0.3": true, "application/json;q=2, text/html;q=0.1": false, "APPLICATION/JSON": true, "application/json;q=0.0001": false,
		"text/html;q=0, */*": true,
	} {
		w := b.ask("GET", "/", "", "Accept: "+accept)
		if got := w.Header().Get("Content-Type") == "application/json"; got != json {
			t.Errorf("%q: %s", accept, w.Header().Get("Content-Type"))
		}
		if vary := w.Header().Get("Vary"); !strings.Contains(vary, "Accept,") || !strings.Contains(vary, "Accept-Language") || !strings.Contains(vary, "Cookie") {
			t.Errorf("%q: Vary %q", accept, vary)
		}
	}
	for _, target := range []string{"/", "/slot/3", "/controller", "/map", "/nowhere"} {
		if w := b.ask("GET", target, "", "Accept: application/json"); !strings.HasPrefix(w.Body.String(), "{") || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s as JSON: %s", target, w.Body)
		}
	}
	b = signedIn(t)
	for _, target := range []string{"/tasks", "/tasks/01J0TASK1", "/log", "/support", "/slot/3/screen"} {
		if w := b.ask("GET", target, "", "Accept: application/json"); !strings.HasPrefix(w.Body.String(), "{") || w.Code != 200 {
			t.Errorf("%s as JSON: %s", target, w.Body)
		}
	}
}

func TestLanguageIsTheReaders(t *testing.T) {
	b := newBench()
	for accept, want := range map[string]string{"": "en", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "de, zh;q=0.2": "zh", "en;q=0.5, zh;q=0.6": "zh", "fr": "en", "zh;q=0": "en", "en-GB, zh": "en"} {
		if w := b.ask("GET", "/", "", "Accept-Language: "+accept); !strings.Contains(w.Body.String(), `<html lang="`+want+`">`) {
			t.Errorf("%q is not answered in %s", accept, want)
		}
	}
	w := b.ask("POST", "/language", "lang=zh&next=/controller")
	c := w.Result().Cookies()[0]
	if w = b.ask("GET", "/controller", "", "Cookie: "+c.Name+"="+c.Value, "Accept-Language: en"); !strings.Contains(w.Body.String(), `<html lang="zh">`) {
		t.Error("what was chosen on the page does not count")
	}
	if w := b.ask("POST", "/language", "lang=xx"); w.Code != http.StatusBadRequest {
		t.Errorf("a language that there is not: %d", w.Code)
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

// TestTheSystemsOnTheCardAreNeverLeftOut: what is not known is said not to be.
func TestTheSystemsOnTheCardAreNeverLeftOut(t *testing.T) {
	b := newBench()
	if body := b.ask("GET", "/controller", "").Body.String(); !strings.Contains(body, "running now") || strings.Contains(body, "not known: rackd was not told") {
		t.Errorf("two systems:\n%s", body)
	}
	b.Change(func(s *status.Snapshot) { s.Rack.Images = nil })
	if body := b.ask("GET", "/controller", "").Body.String(); !strings.Contains(body, "<dt>Systems on the card</dt><dd>not known: rackd was not told") {
		t.Errorf("none is known:\n%s", body)
	}
}

// TestTasksSayWhenTheyBegan, unless the board does not know what time it is.
func TestTasksSayWhenTheyBegan(t *testing.T) {
	b := signedIn(t)
	if body := b.ask("GET", "/tasks", "").Body.String(); !strings.Contains(body, "25 steps, 1 min <span class=\"quiet\">(1 h ago)</span>") {
		t.Errorf("an hour ago:\n%.2000s", body)
	}
	b.Change(func(s *status.Snapshot) { s.Rack.Clock.Trusted = false })
	if body := b.ask("GET", "/tasks", "").Body.String(); strings.Contains(body, "ago)") {
		t.Error("without a clock the page says when tasks began")
	}
}

func TestPicturesOfScreens(t *testing.T) {
	b := signedIn(t)
	if w := b.ask("GET", "/slot/3/screen.jpg", ""); w.Code != 200 || w.Header().Get("Content-Type") != "image/jpeg" || w.Body.Len() < 100 {
		t.Errorf("%d %s", w.Code, w.Header())
	}
	b.Refuse(wire.Refuse(wire.PhoneTimeout, map[string]any{"slot": 3, "serial": "R5", "what": "picture", "timeout_ms": 9}))
	if w := b.ask("GET", "/slot/3/screen.jpg", ""); w.Code != http.StatusGatewayTimeout || strings.HasPrefix(w.Header().Get("Content-Type"), "image/") {
		t.Errorf("a phone that does not answer: %d %s", w.Code, w.Header())
	}
	for _, target := range []string{"/tasks/..%2f..%2fetc/001.jpg", "/tasks/01J0TASK1/..%2ftask.json", "/tasks/01J0TASK1/task.json", "/tasks/" + strings.Repeat("a", 65)} {
		if w := b.ask("GET", target, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestLinksOfQRCodesLeadToTheirSlot(t *testing.T) {
	b := newBench()
	if w := b.ask("GET", "/S/12", ""); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/slot/12" {
		t.Errorf("%d %s", w.Code, w.Header().Get("Location"))
	}
}

func TestPagesOfAListHaveNoPlaceOutside(t *testing.T) {
	b := newBench()
	for page, first := range map[string]string{"": "<b>1</b>", "2": "<b>25</b>", "3": "<b>49</b>", "4": "<b>1</b>", "0": "<b>1</b>", "-1": "<b>1</b>", "x": "<b>1</b>", "9223372036854775807": "<b>1</b>"} {
		w := b.ask("GET", "/map?page="+page, "")
		if _, list, _ := strings.Cut(w.Body.String(), `class="labels"`); w.Code != 200 || !strings.Contains(list, first) {
			t.Errorf("page %q: %d, not from %s on", page, w.Code, first)
		}
	}
}

// TestARackThatNobodyDrew: slots without a place, two in one place, a place far outside, and states of another version.
func TestARackThatNobodyDrew(t *testing.T) {
	b := newBench()
	b.Change(func(s *status.Snapshot) {
		s.Slots[0].Row, s.Slots[0].Column = 0, 0
		s.Slots[1].Row, s.Slots[1].Column = 1<<30, 1<<30
		s.Slots[2].Row, s.Slots[2].Column = s.Slots[3].Row, s.Slots[3].Column
		s.Slots[5].Row, s.Slots[6].Column = 1<<30, 1<<30
		s.Slots[4].State = health.State("<b>new</b>")
	})
	w := b.ask("GET", "/", "")
	for n := 1; n <= 60; n++ {
		if strings.Count(w.Body.String(), fmt.Sprintf(`id="s-%d"`, n)) != 1 {
			t.Errorf("slot %d is not drawn once", n)
		}
	}
	if strings.Contains(w.Body.String(), "<b>new</b>") {
		t.Error("a state is not escaped")
	}
	b.Change(func(s *status.Snapshot) { *s = status.Snapshot{} })
	for _, target := range []string{"/", "/controller", "/map"} {
		if w := b.ask("GET", target, ""); w.Code != 200 {
			t.Errorf("%s of a rack that knows nothing yet: %d", target, w.Code)
		}
	}
}

func TestAssetsAreKeptForEver(t *testing.T) {
	b := newBench()
	body := b.ask("GET", "/", "").Body.String()
	_, rest, _ := strings.Cut(body, `href="/static/`)
	name, _, _ := strings.Cut(rest, `"`)
	w := b.ask("GET", "/static/"+name, "")
	if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("%s: %d %v", name, w.Code, w.Header())
	}
	if w := b.ask("GET", "/static/page.css", ""); w.Code != http.StatusNotFound {
		t.Errorf("without its hash: %d", w.Code)
	}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAHubThatLiesIsNamed: what was seen of a port's switching stands beside the port.
func TestAHubThatLiesIsNamed(t *testing.T) {
	b := newBench()
	for cut, want := range map[power.Cut]string{
		power.Unseen: "not seen yet whether", power.LeavesBus: "takes the data, perhaps the power", power.NoEffect: "phones stay when it is switched off",
		power.DataOnly: "go on charging", power.Repowers: "the power comes back unasked",
	} {
		b.Change(func(s *status.Snapshot) { s.Slots[2].Outlet = &status.Outlet{Cut: cut} })
		if page := b.ask("GET", "/slot/3", "").Body.String(); !strings.Contains(page, want) {
			t.Errorf("%q is not named", cut)
		}
	}
	b.Change(func(s *status.Snapshot) {
		s.Slots[2].Outlet = &status.Outlet{Repowered: 4, Resets: 5, Silent: 3 * time.Second, Busy: "cycling", Fault: "<stalled>"}
		s.Hubs[0].Outlet = &status.Outlet{Cut: power.DataOnly}
	})
	page := b.ask("GET", "/slot/3", "").Body.String()
	for _, want := range []string{"came back by itself 4 times", "gave the power back 5 times", "does not answer for 3 s after switching", "is being switched off and on", "could not be switched: &lt;stalled&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if page := b.ask("GET", "/", "").Body.String(); !strings.Contains(page, "go on charging") {
		t.Error("the hub is not named")
	}
}
