//go:build browser

package status_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/firmware/status/browsertest"
	"phonerack/firmware/status/statustest"
	"phonerack/sync/wire"
)

// TestPageInABrowser tries the page in Debian's Chromium as technicians use it. Screenshots are left in the cache's
// folder page. `make setup` installs the browser and the judge of accessibility.
func TestPageInABrowser(t *testing.T) {
	d := newDesk(t)
	t.Run("each state is a word, an icon and a colour", d.states)
	t.Run("a change is shown within 2 s, and the keyboard's place is kept", d.changes)
	t.Run("what was written is kept", d.written)
	t.Run("a hidden tab closes its stream", d.hidden)
	t.Run("a wrong PIN is refused and waited for", d.wrongPIN)
	t.Run("each action", d.actions)
	t.Run("the log is live", d.liveLog)
	t.Run("pictures", d.pictures)
	t.Run("a foreign host and a foreign page", d.foreign)
	t.Run("without JavaScript", d.plain)
	t.Run("with the keyboard alone", d.keyboard)
	t.Run("360 px wide, light and dark, both languages, no serious finding of axe", d.small)
	for _, line := range d.Complaints() {
		t.Errorf("the browser complains: %s", line)
	}
}

// desk is a browser before the page of a double.
type desk struct {
	*browsertest.Desk
	rack    *statustest.Rack
	streams atomic.Int32 // of events that are open
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{rack: statustest.New(60)}
	page := status.New(status.Options{Source: d.rack, Actor: d.rack, Log: slog.New(slog.DiscardHandler), PIN: pin})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			d.streams.Add(1)
			defer d.streams.Add(-1)
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	d.Desk = browsertest.New(t, server.URL, filepath.Join("..", "..", ".cache"))
	return d
}

// js evaluates an expression.
func js[T any](t *testing.T, d *desk, expression string) T {
	t.Helper()
	return browsertest.JS[T](t, d.Desk, expression)
}

func (d *desk) signIn(t *testing.T) {
	t.Helper()
	d.Open(t, "/signin")
	d.Do(t, chromedp.SendKeys(chromedp.CSS("#pin"), pin), chromedp.SendKeys(chromedp.CSS("#name"), "Lee"))
	d.Submit(t, ".sign button")
	d.Until(t, `!!document.querySelector('form[action="/signout"]')`)
}

func (d *desk) signOut(t *testing.T) {
	t.Helper()
	d.Open(t, "/support")
	if js[bool](t, d, `!!document.querySelector('form[action="/signout"]')`) {
		d.Submit(t, `form[action="/signout"] button`)
		d.Until(t, `location.pathname === '/' && !document.querySelector('form[action="/signout"]')`)
	}
}

func (d *desk) states(t *testing.T) {
	d.Large(t)
	d.Open(t, "/")
	colours := map[string]bool{}
	for n, s := range health.States() {
		cell := fmt.Sprintf("document.getElementById('s-%d')", n+1)
		word := strings.ReplaceAll(string(s), "_", " ")
		if got := js[string](t, d, cell+".querySelector('.state').innerText.trim()"); got != word {
			t.Errorf("slot %d says %q, want %q", n+1, got, word)
		}
		if js[float64](t, d, cell+".querySelector('use').getBBox().width") <= 0 {
			t.Errorf("slot %d has no icon", n+1)
		}
		colours[js[string](t, d, "getComputedStyle("+cell+".querySelector('.state')).color")] = true
	}
	if len(colours) < 4 {
		t.Errorf("%d colours only", len(colours))
	}
	if got := js[string](t, d, "document.getElementById('summary').innerText"); !strings.Contains(got, "50 well") || !strings.Contains(got, "2 needs hands") {
		t.Errorf("summary: %q", got)
	}
	d.Shot(t, "rack")
	for n, s := range health.States() {
		d.Open(t, fmt.Sprintf("/slot/%d", n+1))
		d.Shot(t, "slot-"+string(s))
	}
}

func (d *desk) changes(t *testing.T) {
	d.Open(t, "/")
	d.Until(t, "true")
	js[bool](t, d, "document.getElementById('s-20').focus(), true")
	d.streaming(t, 1)
	d.rack.Change(func(s *status.Snapshot) {
		s.Slots[19].State, s.Slots[19].Main = health.NeedsHands, health.Finding{Code: "unauthorized", Args: map[string]any{"slot": 20}}
	})
	if took := d.Until(t, `document.querySelector('#s-20 .state').innerText.includes('needs hands')`); took > 2*time.Second {
		t.Errorf("shown after %v", took)
	}
	if js[string](t, d, "document.activeElement.id") != "s-20" {
		t.Error("the keyboard's place is lost")
	}
	d.Until(t, `document.getElementById('summary').innerText.includes('3 needs hands')`)
	d.rack.Change(func(s *status.Snapshot) {
		s.Slots[19].State, s.Slots[19].Main = health.Well, health.Finding{Code: "fine"}
	})
	d.Until(t, `document.querySelector('#s-20 .state').innerText.includes('well')`)
}

// written is what somebody has typed, and then left to press its button: a change of the slot takes neither away.
func (d *desk) written(t *testing.T) {
	d.signIn(t)
	d.Open(t, "/slot/20")
	d.streaming(t, 1)
	d.Do(t, chromedp.SetValue(chromedp.CSS("#minutes"), "480"), chromedp.SendKeys(chromedp.CSS("#reason"), "cable"))
	js[bool](t, d, "document.activeElement.blur(), true")
	d.rack.Change(func(s *status.Snapshot) {
		s.Slots[19].State, s.Slots[19].Main = health.NeedsHands, health.Finding{Code: "unauthorized", Args: map[string]any{"slot": 20}}
	})
	d.Until(t, `document.getElementById('how').innerText.includes('needs hands')`)
	if got := js[string](t, d, "document.getElementById('minutes').value + ' ' + document.getElementById('reason').value"); got != "480 cable" {
		t.Errorf("what was written has become %q", got)
	}
	d.rack.Change(func(s *status.Snapshot) {
		s.Slots[19].State, s.Slots[19].Main = health.Well, health.Finding{Code: "fine"}
	})
	d.signOut(t)
}

// streaming waits until so many streams of events are open.
func (d *desk) streaming(t *testing.T, want int32) {
	t.Helper()
	for start := time.Now(); d.streams.Load() != want; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > browsertest.Step {
			t.Fatalf("%d streams, want %d", d.streams.Load(), want)
		}
	}
}

func (d *desk) hidden(t *testing.T) {
	d.Open(t, "/")
	d.streaming(t, 1)
	hide := `Object.defineProperty(document, 'hidden', { configurable: true, get: () => %v }); document.dispatchEvent(new Event('visibilitychange'))`
	js[bool](t, d, fmt.Sprintf(hide, true))
	d.streaming(t, 0)
	js[bool](t, d, fmt.Sprintf(hide, false))
	d.streaming(t, 1)
}

func (d *desk) wrongPIN(t *testing.T) {
	try := func(pin string) (refusal string) {
		t.Helper()
		js[bool](t, d, "window.before = true")
		d.Do(t, chromedp.SendKeys(chromedp.CSS("#pin"), pin+kb.Enter))
		d.Until(t, "!window.before && document.readyState === 'complete'")
		return js[string](t, d, "(document.querySelector('.refusal[role=alert]') || { innerText: '' }).innerText")
	}
	d.Open(t, "/log")
	if got := try("000000"); !strings.Contains(got, "the PIN is wrong") {
		t.Errorf("a wrong PIN: %q", got)
	}
	wrong := time.Now() // or a little later than the page's clock has it
	d.Shot(t, "wrong-pin")
	if got := try(pin); !strings.Contains(got, "too many wrong PINs") && time.Since(wrong) < time.Second/2 {
		t.Errorf("the right PIN at once: %q", got)
	}
	if !js[bool](t, d, "!!document.getElementById('log')") { // else the browser took longer than the wait
		time.Sleep(1100 * time.Millisecond) // the first wait is one second
		if got := try(pin); got != "" {
			t.Errorf("the right PIN after the wait: %q", got)
		}
	}
	d.Until(t, `location.pathname === '/log' && !!document.getElementById('log')`)
	if cookies := js[string](t, d, "document.cookie"); cookies != "" {
		t.Errorf("scripts see %q", cookies)
	}
	d.signOut(t)
}

func (d *desk) actions(t *testing.T) {
	d.signIn(t)
	press := func(page, act, want string) {
		t.Helper()
		d.Open(t, page)
		js[bool](t, d, "window.confirm = () => true, true")
		if act == "quarantine" {
			d.Do(t, chromedp.SetValue(chromedp.CSS("#minutes"), "480"), chromedp.SendKeys(chromedp.CSS("#reason"), "cable"))
		}
		d.Submit(t, "#b-"+act)
		d.Until(t, `!!document.querySelector('.done')`)
		if got := d.rack.Calls(); !strings.HasSuffix(got, "page/Lee via page: "+want) {
			t.Errorf("%s on %s did %q", act, page, got)
		}
		if at := js[string](t, d, "location.pathname + location.search"); at != page {
			t.Errorf("%s leads to %s", act, at)
		}
	}
	press("/slot/3", "identify", `identify {"seconds":30,"slot":3}`)
	press("/slot/3", "power_cycle", `power_cycle {"slot":3}`)
	press("/slot/3", "sign", `sign {"slot":3}`)
	press("/slot/22", "hub_cycle", `power_cycle {"hub":true,"slot":22}`)
	press("/slot/6", "retry", `slot_retry {"slot":6}`)
	press("/slot/3", "quarantine", `quarantine {"reason":"cable","seconds":28800,"slot":3}`)
	press("/slot/7", "release", `quarantine_end {"slot":7}`)
	press("/slot/3", "slot_maintenance_on", `maintenance {"slot":3}`)
	press("/slot/9", "slot_maintenance_off", `maintenance {"off":true,"slot":9}`)
	press("/slot/13", "forget", `slot_forget {"slot":13}`)
	press("/controller", "identify_rack", `identify {"seconds":30}`)
	press("/controller", "maintenance_on", `maintenance {}`)
	press("/controller", "link_retry", `link_retry {}`)
	d.rack.Change(func(s *status.Snapshot) { s.Rack.Maintenance = true })
	press("/", "maintenance_off", `maintenance {"off":true}`)
	d.rack.Change(func(s *status.Snapshot) { s.Rack.Maintenance = false })
	d.Shot(t, "done")

	before := d.rack.Calls()
	d.Open(t, "/slot/3")
	js[bool](t, d, "window.confirm = () => false, true")
	d.Do(t, chromedp.Click(chromedp.CSS("#b-power_cycle")))
	d.Open(t, "/slot/12")
	if !js[bool](t, d, `document.getElementById('b-power_cycle').disabled`) || !js[bool](t, d, `document.getElementById('w-power_cycle').innerText.includes('busy')`) {
		t.Error("a leased slot can be powered off, or nobody says why not")
	}
	d.Shot(t, "disabled")
	if d.rack.Calls() != before {
		t.Errorf("done although it was taken back: %s", d.rack.Calls())
	}
	d.rack.Refuse(wire.Refuse(wire.ShuttingDown, nil))
	d.Open(t, "/slot/3")
	d.Submit(t, "#b-identify")
	d.Until(t, `(document.querySelector('.refusal')||{innerText:''}).innerText.includes('the controller is stopping')`)
	d.Shot(t, "refused")
	d.rack.Refuse(nil)
}

func (d *desk) liveLog(t *testing.T) {
	d.Open(t, "/log")
	d.rack.Say("WARN", "<b>a new line</b>")
	d.Until(t, `document.getElementById('log').lastElementChild.innerText.endsWith('WARN <b>a new line</b>')`)
	d.Shot(t, "log")
}

func (d *desk) pictures(t *testing.T) {
	d.Open(t, "/slot/3/screen")
	d.Until(t, `document.querySelector('.shot').naturalWidth === 90`)
	d.Shot(t, "screen")
	d.Open(t, "/tasks/01J0TASK1")
	d.Until(t, `document.querySelector('.shot').naturalWidth === 90`)
	d.Shot(t, "task")
	d.Open(t, "/map")
	d.Shot(t, "map")
}

func (d *desk) foreign(t *testing.T) {
	before := d.rack.Calls()
	d.Do(t, chromedp.Navigate(strings.Replace(d.URL, "127.0.0.1", "evil.example", 1)+"/"))
	if text := js[string](t, d, "document.body.innerText"); !strings.Contains(text, "not called evil.example") || strings.Contains(text, "door-side") {
		t.Errorf("a foreign host is told: %s", text)
	}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><title>x</title><form method="post" action="%s/act"><input name="act" value="identify"><input name="slot" value="3"><button>x</button></form>
<iframe src="%s/slot/3"></iframe>`, d.URL, d.URL)
	}))
	defer evil.Close()
	d.Do(t, chromedp.Navigate(evil.URL), chromedp.Click(chromedp.CSS("button")))
	d.Until(t, `location.pathname === '/act' && document.body.innerText.includes('a page of another site sent the request')`)
	if d.rack.Calls() != before {
		t.Errorf("done for a foreign page: %s", d.rack.Calls())
	}
	d.Complaints() // that the frame is refused is one too
}

func (d *desk) plain(t *testing.T) {
	d.signOut(t)
	d.Scripts(t, false)
	defer d.Scripts(t, true)
	d.signIn(t)
	d.Open(t, "/slot/3")
	d.Submit(t, "#b-identify")
	d.Until(t, `document.querySelector('.done').innerText === 'Look for the light or the screen that blinks.'`)
	if !strings.HasSuffix(d.rack.Calls(), `identify {"seconds":30,"slot":3}`) {
		t.Error("nothing was done")
	}
	d.Open(t, "/")
	if !js[bool](t, d, `!!document.querySelector('head meta[http-equiv=refresh]') && document.body.innerText.includes('every 30 seconds')`) {
		t.Error("the page is not read anew")
	}
	d.Submit(t, "button[lang=zh]")
	d.Until(t, `document.documentElement.lang === 'zh'`)
	d.Shot(t, "no-script")
	d.Submit(t, "button[lang=en]")
	d.Until(t, `document.documentElement.lang === 'en'`)
}

func (d *desk) keyboard(t *testing.T) {
	d.Open(t, "/")
	d.Do(t, chromedp.KeyEvent(kb.Tab))
	if js[string](t, d, "document.activeElement.className") != "skip" {
		t.Error("the first key does not reach the link to the content")
	}
	d.Shot(t, "skip")
	d.Do(t, chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	if !js[bool](t, d, "document.getElementById('main').contains(document.activeElement)") {
		t.Error("the link to the content leads elsewhere")
	}
	if js[string](t, d, "getComputedStyle(document.activeElement).outlineStyle") == "none" {
		t.Error("what has the keyboard cannot be seen")
	}
}

// small looks at each page on a small phone.
func (d *desk) small(t *testing.T) {
	d.signIn(t)
	d.Phone(t)
	defer d.Do(t, chromedp.ResetViewport())
	for _, lang := range wire.Languages() {
		d.Open(t, "/support")
		d.Submit(t, "button[lang="+lang+"]")
		d.Until(t, `document.documentElement.lang === '`+lang+`'`)
		pages := []string{"/", "/slot/6", "/slot/7", "/controller", "/tasks", "/log", "/tasks/01J0TASK1", "/map", "/support", "/signin", "/nowhere"}
		schemes := []string{"light", "dark"}
		if lang != "en" { // their words are longer or shorter, and the colours the other way round; that is seen on six
			pages, schemes = pages[:6], []string{"dark", "light"}
		}
		for n, path := range pages {
			scheme := schemes[n%2]
			d.Colours(t, scheme)
			d.Open(t, path)
			if wide := js[int](t, d, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("%s in %s is %d px wide", path, lang, wide)
			}
			d.Judge(t, path+" in "+lang+", "+scheme)
			d.Shot(t, fmt.Sprintf("small-%s-%s-%s", lang, scheme, strings.Trim(strings.ReplaceAll(path, "/", "-"), "-")))
		}
	}
	d.Colours(t, "light")
}
