//go:build browser

package status_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/firmware/status/statustest"
	"phonerack/sync/wire"
)

const step = 10 * time.Second // bound of one step in the browser

// TestPageInABrowser tries the page in Debian's Chromium as technicians use it. Screenshots are left in the cache's
// folder page. `make setup` installs the browser and the judge of accessibility.
func TestPageInABrowser(t *testing.T) {
	d := newDesk(t)
	t.Run("each state is a word, an icon and a colour", d.states)
	t.Run("a change is shown within 2 s, and the keyboard's place is kept", d.changes)
	t.Run("a hidden tab closes its stream", d.hidden)
	t.Run("a wrong PIN is refused and waited for", d.wrongPIN)
	t.Run("each action", d.actions)
	t.Run("the log is live", d.liveLog)
	t.Run("pictures", d.pictures)
	t.Run("a foreign host and a foreign page", d.foreign)
	t.Run("without JavaScript", d.plain)
	t.Run("with the keyboard alone", d.keyboard)
	t.Run("360 px wide, light and dark, both languages, no serious finding of axe", d.small)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.console {
		t.Errorf("the browser complains: %s", line)
	}
}

// desk is a browser before a page.
type desk struct {
	rack    *statustest.Rack
	url     string
	tab     context.Context
	axe     string
	shots   string       // folder
	streams atomic.Int32 // of events that are open

	mu      sync.Mutex
	console []string // errors of the browser; guarded by mu
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	cache := os.Getenv("PHONERACK_CACHE")
	if cache == "" {
		cache = filepath.Join("..", "..", ".cache")
	}
	d := &desk{rack: statustest.New(60), shots: filepath.Join(cache, "page")}
	axe, err := os.ReadFile(filepath.Join(cache, "rig", "page-judges", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("the judge of the page is not installed: run make setup (%v)", err)
	}
	d.axe = string(axe)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("no browser is installed: run make setup (%v)", err)
	}
	if err := os.MkdirAll(d.shots, 0o755); err != nil {
		t.Fatal(err)
	}
	page := status.New(status.Options{Source: d.rack, Actor: d.rack, Log: slog.New(slog.DiscardHandler), PIN: pin})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			d.streams.Add(1)
			defer d.streams.Add(-1)
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	d.url = server.URL

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("host-resolver-rules", "MAP evil.example 127.0.0.1"))
	browsers, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	tab, cancel := chromedp.NewContext(browsers)
	t.Cleanup(func() {
		bound, stop := context.WithTimeout(tab, step)
		defer stop()
		_ = chromedp.Cancel(bound)
		cancel()
	})
	d.tab = tab
	messages := chromedp.Console(tab)
	listening, stop := context.WithCancel(tab)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for m, err := range messages {
			if err != nil || listening.Err() != nil {
				return
			}
			// That a page is refused, or a stream ends as its page goes, is what is tested.
			if (m.IsException() || m.Type == "error") && m.Source != "network" {
				d.mu.Lock()
				d.console = append(d.console, m.String())
				d.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { stop(); cancel(); <-ended })
	return d
}

func (d *desk) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, step)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) open(t *testing.T, path string) {
	t.Helper()
	d.do(t, chromedp.Navigate(d.url+path))
}

// js evaluates an expression.
func js[T any](t *testing.T, d *desk, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, step)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true, and says how long that took.
func (d *desk) until(t *testing.T, expression string) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < step {
		ctx, cancel := context.WithTimeout(d.tab, step)
		// On the way from one page to the next there is nothing to ask.
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		cancel()
		if err == nil && ok {
			return time.Since(start)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("never true: %s\n%.1500s", expression, js[string](t, d, "document.body.innerText"))
	return 0
}

// submit clicks a button of a form, and waits for the page that follows.
func (d *desk) submit(t *testing.T, button string) {
	t.Helper()
	js[bool](t, d, "window.before = true")
	d.do(t, chromedp.Click(chromedp.CSS(button)))
	d.until(t, "!window.before && document.readyState === 'complete'")
}

func (d *desk) shot(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, step)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.shots, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) signIn(t *testing.T) {
	t.Helper()
	d.open(t, "/signin")
	d.do(t, chromedp.SendKeys(chromedp.CSS("#pin"), pin), chromedp.SendKeys(chromedp.CSS("#name"), "Lee"))
	d.submit(t, ".sign button")
	d.until(t, `!!document.querySelector('form[action="/signout"]')`)
}

func (d *desk) signOut(t *testing.T) {
	t.Helper()
	d.open(t, "/support")
	if js[bool](t, d, `!!document.querySelector('form[action="/signout"]')`) {
		d.submit(t, `form[action="/signout"] button`)
		d.until(t, `location.pathname === '/' && !document.querySelector('form[action="/signout"]')`)
	}
}

func (d *desk) states(t *testing.T) {
	d.do(t, chromedp.EmulateViewport(1280, 900))
	d.open(t, "/")
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
	d.shot(t, "rack")
	for n, s := range health.States() {
		d.open(t, fmt.Sprintf("/slot/%d", n+1))
		d.shot(t, "slot-"+string(s))
	}
}

func (d *desk) changes(t *testing.T) {
	d.open(t, "/")
	d.until(t, "true")
	js[bool](t, d, "document.getElementById('s-20').focus(), true")
	for d.streams.Load() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	d.rack.Change(func(s *status.Snapshot) {
		s.Slots[19].State, s.Slots[19].Main = health.NeedsHands, health.Finding{Code: "unauthorized", Args: map[string]any{"slot": 20}}
	})
	if took := d.until(t, `document.querySelector('#s-20 .state').innerText.includes('needs hands')`); took > 2*time.Second {
		t.Errorf("shown after %v", took)
	}
	if js[string](t, d, "document.activeElement.id") != "s-20" {
		t.Error("the keyboard's place is lost")
	}
	d.until(t, `document.getElementById('summary').innerText.includes('3 needs hands')`)
	d.rack.Change(func(s *status.Snapshot) {
		s.Slots[19].State, s.Slots[19].Main = health.Well, health.Finding{Code: "fine"}
	})
	d.until(t, `document.querySelector('#s-20 .state').innerText.includes('well')`)
}

func (d *desk) hidden(t *testing.T) {
	d.open(t, "/")
	wait := func(want int32) {
		t.Helper()
		for start := time.Now(); d.streams.Load() != want; time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > step {
				t.Fatalf("%d streams, want %d", d.streams.Load(), want)
			}
		}
	}
	wait(1)
	hide := `Object.defineProperty(document, 'hidden', { configurable: true, get: () => %v }); document.dispatchEvent(new Event('visibilitychange'))`
	js[bool](t, d, fmt.Sprintf(hide, true))
	wait(0)
	js[bool](t, d, fmt.Sprintf(hide, false))
	wait(1)
}

func (d *desk) wrongPIN(t *testing.T) {
	try := func(pin string) (refusal string) {
		t.Helper()
		js[bool](t, d, "window.before = true")
		d.do(t, chromedp.SendKeys(chromedp.CSS("#pin"), pin+kb.Enter))
		d.until(t, "!window.before && document.readyState === 'complete'")
		return js[string](t, d, "(document.querySelector('.refusal[role=alert]') || { innerText: '' }).innerText")
	}
	d.open(t, "/log")
	if got := try("000000"); !strings.Contains(got, "the PIN is wrong") {
		t.Errorf("a wrong PIN: %q", got)
	}
	wrong := time.Now() // or a little later than the page's clock has it
	d.shot(t, "wrong-pin")
	if got := try(pin); !strings.Contains(got, "too many wrong PINs") && time.Since(wrong) < time.Second/2 {
		t.Errorf("the right PIN at once: %q", got)
	}
	if !js[bool](t, d, "!!document.getElementById('log')") { // else the browser took longer than the wait
		time.Sleep(1100 * time.Millisecond) // the first wait is one second
		if got := try(pin); got != "" {
			t.Errorf("the right PIN after the wait: %q", got)
		}
	}
	d.until(t, `location.pathname === '/log' && !!document.getElementById('log')`)
	if cookies := js[string](t, d, "document.cookie"); cookies != "" {
		t.Errorf("scripts see %q", cookies)
	}
	d.signOut(t)
}

func (d *desk) actions(t *testing.T) {
	d.signIn(t)
	press := func(page, act, want string) {
		t.Helper()
		d.open(t, page)
		js[bool](t, d, "window.confirm = () => true, true")
		if act == "quarantine" {
			d.do(t, chromedp.SetValue(chromedp.CSS("#minutes"), "480"), chromedp.SendKeys(chromedp.CSS("#reason"), "cable"))
		}
		d.submit(t, "#b-"+act)
		d.until(t, `!!document.querySelector('.done')`)
		if got := d.rack.Calls(); !strings.HasSuffix(got, "page/Lee via page: "+want) {
			t.Errorf("%s on %s did %q", act, page, got)
		}
		if at := js[string](t, d, "location.pathname + location.search"); at != page {
			t.Errorf("%s leads to %s", act, at)
		}
	}
	press("/slot/3", "identify", `identify {"seconds":30,"slot":3}`)
	press("/slot/3", "power_cycle", `power_cycle {"slot":3}`)
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
	d.shot(t, "done")

	before := d.rack.Calls()
	d.open(t, "/slot/3")
	js[bool](t, d, "window.confirm = () => false, true")
	d.do(t, chromedp.Click(chromedp.CSS("#b-power_cycle")))
	d.open(t, "/slot/12")
	if !js[bool](t, d, `document.getElementById('b-power_cycle').disabled`) || !js[bool](t, d, `document.getElementById('w-power_cycle').innerText.includes('busy')`) {
		t.Error("a leased slot can be powered off, or nobody says why not")
	}
	d.shot(t, "disabled")
	if d.rack.Calls() != before {
		t.Errorf("done although it was taken back: %s", d.rack.Calls())
	}
	d.rack.Refuse(wire.Refuse(wire.ShuttingDown, nil))
	d.open(t, "/slot/3")
	d.submit(t, "#b-identify")
	d.until(t, `(document.querySelector('.refusal')||{innerText:''}).innerText.includes('the controller is stopping')`)
	d.shot(t, "refused")
	d.rack.Refuse(nil)
}

func (d *desk) liveLog(t *testing.T) {
	d.open(t, "/log")
	d.rack.Say("WARN", "<b>a new line</b>")
	d.until(t, `document.getElementById('log').lastElementChild.innerText.endsWith('WARN <b>a new line</b>')`)
	d.shot(t, "log")
}

func (d *desk) pictures(t *testing.T) {
	d.open(t, "/slot/3/screen")
	d.until(t, `document.querySelector('.shot').naturalWidth === 90`)
	d.shot(t, "screen")
	d.open(t, "/tasks/01J0TASK1")
	d.until(t, `document.querySelector('.shot').naturalWidth === 90`)
	d.shot(t, "task")
	d.open(t, "/map")
	d.shot(t, "map")
}

func (d *desk) foreign(t *testing.T) {
	before := d.rack.Calls()
	d.do(t, chromedp.Navigate(strings.Replace(d.url, "127.0.0.1", "evil.example", 1)+"/"))
	if text := js[string](t, d, "document.body.innerText"); !strings.Contains(text, "not called evil.example") || strings.Contains(text, "door-side") {
		t.Errorf("a foreign host is told: %s", text)
	}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><title>x</title><form method="post" action="%s/act"><input name="act" value="identify"><input name="slot" value="3"><button>x</button></form>
<iframe src="%s/slot/3"></iframe>`, d.url, d.url)
	}))
	defer evil.Close()
	d.do(t, chromedp.Navigate(evil.URL), chromedp.Click(chromedp.CSS("button")))
	d.until(t, `location.pathname === '/act' && document.body.innerText.includes('a page of another site sent the request')`)
	if d.rack.Calls() != before {
		t.Errorf("done for a foreign page: %s", d.rack.Calls())
	}
	d.mu.Lock()
	d.console = nil // that the frame is refused is a complaint too
	d.mu.Unlock()
}

func (d *desk) plain(t *testing.T) {
	d.signOut(t)
	scripts := func(off bool) {
		d.do(t, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
			return chromedp.Void{}, err
		})
	}
	scripts(true)
	defer scripts(false)
	d.signIn(t)
	d.open(t, "/slot/3")
	d.submit(t, "#b-identify")
	d.until(t, `document.querySelector('.done').innerText === 'Look for the light or the screen that blinks.'`)
	if !strings.HasSuffix(d.rack.Calls(), `identify {"seconds":30,"slot":3}`) {
		t.Error("nothing was done")
	}
	d.open(t, "/")
	if !js[bool](t, d, `!!document.querySelector('head meta[http-equiv=refresh]') && document.body.innerText.includes('every 30 seconds')`) {
		t.Error("the page is not read anew")
	}
	d.submit(t, "button[lang=zh]")
	d.until(t, `document.documentElement.lang === 'zh'`)
	d.shot(t, "no-script")
	d.submit(t, "button[lang=en]")
	d.until(t, `document.documentElement.lang === 'en'`)
}

func (d *desk) keyboard(t *testing.T) {
	d.open(t, "/")
	d.do(t, chromedp.KeyEvent(kb.Tab))
	if js[string](t, d, "document.activeElement.className") != "skip" {
		t.Error("the first key does not reach the link to the content")
	}
	d.shot(t, "skip")
	d.do(t, chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
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
	d.do(t, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	defer d.do(t, chromedp.ResetViewport())
	for _, lang := range wire.Languages() {
		d.open(t, "/support")
		d.submit(t, "button[lang="+lang+"]")
		d.until(t, `document.documentElement.lang === '`+lang+`'`)
		pages := []string{"/", "/slot/6", "/slot/7", "/controller", "/tasks", "/log", "/tasks/01J0TASK1", "/map", "/support", "/signin", "/nowhere"}
		schemes := []string{"light", "dark"}
		if lang != "en" { // their words are longer or shorter, and the colours the other way round; that is seen on six
			pages, schemes = pages[:6], []string{"dark", "light"}
		}
		for n, path := range pages {
			scheme := schemes[n%2]
			d.do(t, media(scheme))
			d.open(t, path)
			if wide := js[int](t, d, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("%s in %s is %d px wide", path, lang, wide)
			}
			d.judge(t, path+" in "+lang+", "+scheme)
			d.shot(t, fmt.Sprintf("small-%s-%s-%s", lang, scheme, strings.Trim(strings.ReplaceAll(path, "/", "-"), "-")))
		}
	}
	d.do(t, media("light"))
}

func media(scheme string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	}
}

// judge runs axe-core: nothing serious or critical may be found.
func (d *desk) judge(t *testing.T, where string) {
	t.Helper()
	js[bool](t, d, d.axe+"; true")
	found := js[string](t, d, `axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) =>
		({ id: v.id, impact: v.impact, help: v.help, at: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + ' ' + n.any.map((a) => a.message).join('; ')) }))))`)
	var all []struct {
		ID, Impact, Help string
		At               []string
	}
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Impact == "serious" || v.Impact == "critical" {
			t.Errorf("%s: %s (%s): %s\n\t%s", where, v.ID, v.Impact, v.Help, strings.Join(v.At, "\n\t"))
		} else {
			t.Logf("%s: %s (%s): %s", where, v.ID, v.Impact, v.Help)
		}
	}
}
