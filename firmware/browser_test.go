//go:build browser

package firmware_test

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"phonerack/firmware"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/status/browsertest"
	"phonerack/hal/power"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

// troubled is a rack of two hubs in which each slot is something else.
const (
	plain, frozen, asking, missing = 1, 2, 3, 4 // of hub A
	hot, spare, lying, held        = 5, 6, 7, 8 // of hub B
)

var places = map[int]string{plain: "1-1.1", frozen: "1-1.2", asking: "1-1.3", missing: "1-1.4", hot: "1-2.5", spare: "1-2.6", lying: "1-2.7", held: "1-2.8"}

func troubledBoard() string {
	var text strings.Builder
	text.WriteString("name = \"two hubs of four\"\n[[hub]]\nname = \"A\"\npath = \"1-1\"\npower = \"ports\"\n[[hub]]\nname = \"B\"\npath = \"1-2\"\npower = \"ports\"\n")
	for n := plain; n <= held; n++ {
		fmt.Fprintf(&text, "[[slot]]\nnumber = %d\npath = %q\nrow = %d\ncolumn = %d\nlabel = \"%c%d\"\n", n, places[n], (n-1)/4+1, (n-1)%4+1, 'A'+(n-1)/4, (n-1)%4+1)
	}
	return text.String()
}

// steady looks often, and takes the usual time between two acts of recovery, so that what is seen stays for a while.
func steady(o *firmware.Options) {
	hasty(o)
	for _, step := range []*health.Step{&o.Config.Health.Ladder.Reopen, &o.Config.Health.Ladder.Resync} {
		step.Tries, step.Settle = 2, health.Duration(30*time.Second)
	}
	o.Config.Health.Probe.Confirm = 1
	o.Config.Health.Battery.Interval = health.Duration(200 * time.Millisecond)
	o.Patience = time.Second
}

// newTroubled makes the rack and waits until each slot is what it is there for.
func newTroubled(t *testing.T, change ...func(*firmware.Options)) (*bench, map[int]*socket) {
	t.Helper()
	c := newCable()
	ports := map[int]*socket{}
	stall := &stuck{}
	outlets := func(o *firmware.Options) {
		o.Hubs = still{}
		for n, path := range places {
			s := &socket{t: t, c: c, path: path, on: true, address: 10 * n, absent: n == missing, vbus: true}
			auth := phonesim.Auth{Required: n == asking}
			s.phone = newSimPhone(t, "", fmt.Sprintf("R5CT%04d", n), 14, auth)
			if n == frozen {
				stall.Device = s.phone.device
				var err error
				if s.phone.Phone, err = phonesim.New(phonesim.Config{Android: 14, Serial: "R5CT0002", System: stall}); err != nil {
					t.Fatal(err)
				}
			}
			ports[n] = s
			var of power.Switch = s
			if n == lying {
				of = &deaf{on: true}
			}
			hub := string(rune('A' + (n-1)/4))
			o.Outlets = append(o.Outlets, power.Outlet{
				Name: fmt.Sprintf("hub %s port %s", hub, path[4:]), Hub: hub, HubPath: path[:3], Path: path, Slots: []int{n}, Switch: of, Default: true, Settle: time.Millisecond,
			})
		}
	}
	b := newUSBBench(t, c, append([]func(*firmware.Options){steady, onBoard(t, troubledBoard()), outlets}, change...)...)
	for n := plain; n <= held; n++ {
		if n != missing {
			ports[n].plug()
		}
	}
	for _, n := range []int{plain, frozen, hot, spare, lying, held} {
		b.health(n, health.Well)
	}
	stall.frozen.Store(true)
	ports[hot].battery(heat(385))
	lied := make(chan error, 1)
	go func() { lied <- b.Call(t.Context(), "power_cycle", map[string]int{"slot": lying}, nil) }()
	if _, err := firmware.LeasesOf(b.rack).Acquire(held, lease.Holder{Kind: lease.Hold, Who: "kim"}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := <-lied; !wire.Is(err, wire.PowerNotCut) {
		t.Fatalf("a port that cuts nothing: %v", err)
	}
	for n, state := range map[int]health.State{frozen: health.Recovering, asking: health.NeedsHands, missing: health.Empty, hot: health.Resting, lying: health.Attention} {
		b.health(n, state)
	}
	return b, ports
}

// TestARealRacksPageInABrowser: the page of a whole rack whose slots are each something else, as a technician uses it in Chromium,
// with JavaScript and without. Screenshots are left in the cache's folder page, their names begin with real-.
func TestARealRacksPageInABrowser(t *testing.T) {
	serve, v := withPage(t, io.Discard)
	b, ports := newTroubled(t, serve)
	task := b.runTask(spare, "open settings")
	b.watchTask(task.ID)
	d := &technician{browsertest.New(t, v.url, filepath.Join("..", ".cache")), b, ports}
	d.Large(t)
	t.Run("the rack as it stands", d.drawn)
	t.Run("a wrong PIN and the right one", d.signsIn)
	t.Run("a picture of the screen", d.looks)
	t.Run("power off and on, seen within 2 s", d.cycles)
	t.Run("quarantine, maintenance and their ends", d.keepsAway)
	t.Run("identify", d.identifies)
	t.Run("without JavaScript", d.plain)
	t.Run("on a small phone, light and dark, in both languages", func(t *testing.T) { d.small(t, task.ID) })
	for _, line := range d.Complaints() {
		t.Errorf("the browser complains: %s", line)
	}
}

// technician is somebody with a browser before a rack.
type technician struct {
	*browsertest.Desk
	b     *bench
	ports map[int]*socket
}

// text is what can be read in an element.
func (d *technician) text(t *testing.T, css string) string {
	t.Helper()
	return browsertest.JS[string](t, d.Desk, fmt.Sprintf("(document.querySelector(%q) || { innerText: 'nothing' }).innerText", css))
}

func (d *technician) press(t *testing.T, path, act, done string) {
	t.Helper()
	d.Open(t, path)
	browsertest.JS[bool](t, d.Desk, "window.confirm = () => true, true")
	d.Submit(t, "#b-"+act)
	if got := d.text(t, ".done"); got != done {
		t.Errorf("%s says %q, want %q", act, got, done)
	}
}

func (d *technician) drawn(t *testing.T) {
	d.Open(t, "/")
	d.Shot(t, "real-rack")
	for n, want := range map[int][]string{
		plain: {"1 A1", "hub A", "well"}, frozen: {"recovering", "hangs"}, asking: {"needs hands", "not authorised"}, missing: {"empty"}, hot: {"resting"},
		spare: {"well"}, lying: {"attention", "port switches nothing"}, held: {"8 B4", "well", "in use"},
	} {
		cell := browsertest.JS[string](t, d.Desk, fmt.Sprintf("document.getElementById('s-%d').textContent", n))
		for _, w := range want {
			if !strings.Contains(cell, w) {
				t.Errorf("slot %d shows %q, without %q", n, cell, w)
			}
		}
		at := browsertest.JS[string](t, d.Desk, fmt.Sprintf("((c) => c.parentElement.rowIndex + ' ' + c.cellIndex)(document.getElementById('s-%d').closest('td'))", n))
		if want := fmt.Sprintf("%d %d", (n-1)/4+1, (n-1)%4+1); at != want {
			t.Errorf("slot %d is drawn at %s, want %s", n, at, want)
		}
	}
	for n, want := range map[int]string{frozen: "does not carry anything out", asking: "Always allow", hot: "battery", lying: "claims to switch"} {
		d.Open(t, fmt.Sprint("/slot/", n))
		if got := d.text(t, "main"); !strings.Contains(got, want) || !strings.Contains(got, "Sign in with the PIN first.") {
			t.Errorf("slot %d is explained without %q:\n%s", n, want, got)
		}
	}
}

func (d *technician) signsIn(t *testing.T) {
	try := func(pin string) {
		t.Helper()
		d.Do(t, chromedp.SendKeys(chromedp.CSS("#pin"), pin), chromedp.SetValue(chromedp.CSS("#name"), "Lee"))
		d.Submit(t, ".sign button")
	}
	d.Open(t, "/slot/1/screen")
	try("000000")
	if got := d.text(t, ".refusal"); !strings.Contains(got, "the PIN is wrong") {
		t.Errorf("a wrong PIN: %q", got)
	}
	d.Shot(t, "real-wrong-pin")
	time.Sleep(1100 * time.Millisecond) // the first wait is one second
	try(pagePIN)
	d.Until(t, `location.pathname === '/slot/1/screen' && !!document.querySelector('form[action="/signout"]')`)
}

func (d *technician) looks(t *testing.T) {
	d.Open(t, "/slot/1")
	d.Submit(t, `a[href="/slot/1/screen"]`)
	d.Until(t, `document.querySelector('.shot').naturalWidth > 100`)
	d.Shot(t, "real-screen")
}

func (d *technician) cycles(t *testing.T) {
	d.Open(t, "/slot/1")
	browsertest.JS[bool](t, d.Desk, "window.confirm = () => true, true")
	began := time.Now()
	d.Do(t, chromedp.Click(chromedp.CSS("#b-power_cycle")))
	// The form's answer comes when it is over: what is seen meanwhile, another tab shows. Here it is what the answer shows.
	d.Until(t, `(document.querySelector('.done') || { innerText: '' }).innerText.includes('goes off and on again')`)
	t.Logf("answered after %v", time.Since(began).Round(time.Millisecond))
	d.b.within("the port off and on", func() bool { return d.ports[plain].switched() == "false true" })
	d.Until(t, `document.querySelector('#how').innerText.includes('well') && document.querySelector('#events').innerText.includes('the phone left')`)
	d.Shot(t, "real-cycled")
	// A hand pulls a plug: the page says so without being read anew by a person.
	d.Open(t, "/")
	d.Until(t, `document.querySelector('#s-6 .state').innerText.includes('well')`)
	time.Sleep(300 * time.Millisecond) // the stream is open
	d.ports[spare].take()
	if took := d.Until(t, `document.querySelector('#s-6').innerText.includes('has left') || document.querySelector('#s-6').innerText.includes('gone')`); took > saidWithin {
		t.Errorf("a phone that was pulled out is shown as such after %v", took)
	} else {
		t.Logf("a plug that was pulled: drawn after %v", took.Round(time.Millisecond))
	}
	d.Shot(t, "real-pulled")
	d.ports[spare].mu.Lock()
	d.ports[spare].taken = false
	d.ports[spare].plug()
	d.ports[spare].mu.Unlock()
	d.Until(t, `document.querySelector('#s-6 .state').innerText.includes('well')`)
}

func (d *technician) keepsAway(t *testing.T) {
	d.Open(t, "/slot/6")
	d.Do(t, chromedp.SetValue(chromedp.CSS("#minutes"), "480"), chromedp.SendKeys(chromedp.CSS("#reason"), "new cable is ordered"))
	d.Submit(t, "#b-quarantine")
	if got := d.text(t, "main"); !strings.Contains(got, "new cable is ordered") || !strings.Contains(got, "page/Lee") || !strings.Contains(got, "quarantined") {
		t.Errorf("in quarantine: %s", got)
	}
	d.Shot(t, "real-quarantined")
	d.press(t, "/slot/6", "release", "The quarantine has ended.")
	d.press(t, "/slot/6", "slot_maintenance_on", "This slot is in maintenance.")
	d.press(t, "/slot/6", "slot_maintenance_off", "Maintenance of this slot has ended.")
	d.press(t, "/", "maintenance_on", "Maintenance is on.")
	d.Open(t, "/slot/1")
	if got := d.text(t, "#w-power_cycle"); !strings.Contains(got, "Maintenance is on") {
		t.Errorf("power off and on in maintenance: %q", got)
	}
	d.Shot(t, "real-maintenance")
	d.press(t, "/", "maintenance_off", "Maintenance has ended.")
}

func (d *technician) identifies(t *testing.T) {
	d.Open(t, "/slot/8")
	if got := d.text(t, "#w-identify"); !strings.Contains(got, "kim") { // there is no light
		t.Errorf("identify of a phone that somebody has: %q", got)
	}
	if got := d.text(t, "#w-power_cycle"); !strings.Contains(got, "kim") {
		t.Errorf("power of a phone that somebody has: %q", got)
	}
	d.Open(t, "/slot/1")
	d.Do(t, chromedp.Click(chromedp.CSS("#b-identify"))) // answered after 4 s, as it takes longer
	d.b.within("the screen goes dark", func() bool { return !d.ports[plain].phone.engine.ScreenOn() })
	d.Open(t, "/slot/1")
	if got := d.text(t, "#w-identify"); !strings.Contains(got, "held by identify") {
		t.Errorf("while it blinks: %q", got)
	}
	d.Shot(t, "real-identify")
}

func (d *technician) plain(t *testing.T) {
	d.Scripts(t, false)
	defer d.Scripts(t, true)
	d.Open(t, "/slot/6")
	d.Do(t, chromedp.SendKeys(chromedp.CSS("#reason"), "loose"))
	d.Submit(t, "#b-quarantine")
	if got := d.text(t, "main"); !strings.Contains(got, "loose") || !strings.Contains(got, "quarantined") {
		t.Errorf("in quarantine: %s", got)
	}
	d.Submit(t, "#b-release")
	d.Submit(t, "#b-slot_maintenance_on")
	d.Submit(t, "#b-slot_maintenance_off")
	if got := d.text(t, ".done"); got != "Maintenance of this slot has ended." {
		t.Errorf("said: %q", got)
	}
	d.Open(t, "/slot/6/screen")
	d.Until(t, `document.querySelector('.shot').naturalWidth > 100`)
	d.Open(t, "/")
	if !browsertest.JS[bool](t, d.Desk, `!!document.querySelector('head meta[http-equiv=refresh]')`) {
		t.Error("the page is not read anew")
	}
	d.Shot(t, "real-no-script")
}

func (d *technician) small(t *testing.T, task string) {
	d.Phone(t)
	for n, lang := range []string{"en", "zh"} {
		d.Open(t, "/support")
		d.Submit(t, "button[lang="+lang+"]")
		d.Until(t, `document.documentElement.lang === '`+lang+`'`)
		pages := []string{"/", "/slot/2", "/slot/7", "/slot/8", "/controller", "/tasks/" + task}
		if lang == "zh" { // the other way round: colours too
			pages = []string{"/", "/slot/7", "/controller", "/map"}
		}
		for i, path := range pages {
			scheme := []string{"light", "dark"}[(i+n)%2]
			d.Colours(t, scheme)
			d.Open(t, path)
			if wide := browsertest.JS[int](t, d.Desk, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("%s in %s is %d px wide", path, lang, wide)
			}
			d.Judge(t, path+" in "+lang+", "+scheme)
			d.Shot(t, fmt.Sprintf("real-small-%s-%s-%s", lang, scheme, strings.ReplaceAll(cmp.Or(strings.Trim(strings.Replace(path, task, "task", 1), "/"), "rack"), "/", "-")))
		}
	}
}
