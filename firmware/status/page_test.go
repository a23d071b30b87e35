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
