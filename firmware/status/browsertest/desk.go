//go:build browser

package browsertest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Step is the bound of one step in the browser.
const Step = 10 * time.Second

// Desk is a browser before a page.
type Desk struct {
	URL string // of the page, without a slash at its end

	tab   context.Context
	axe   string
	shots string // folder

	mu      sync.Mutex
	console []string // errors of the browser; guarded by mu
}

// New starts the browser for a test, which ends it. cache is the project's cache where PHONERACK_CACHE does not name it.
func New(t *testing.T, url, cache string) *Desk {
	t.Helper()
	if named := os.Getenv("PHONERACK_CACHE"); named != "" {
		cache = named
	}
	d := &Desk{URL: url, shots: filepath.Join(cache, "page")}
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("host-resolver-rules", "MAP evil.example 127.0.0.1"))
	browsers, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	tab, cancel := chromedp.NewContext(browsers)
	t.Cleanup(func() {
		bound, stop := context.WithTimeout(tab, Step)
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

// Complaints are errors of the browser since they were asked for last: exceptions and what a policy forbids.
func (d *Desk) Complaints() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.console
	d.console = nil
	return all
}

// Do takes steps of chromedp.
func (d *Desk) Do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, Step)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// Open goes to a path of the page.
func (d *Desk) Open(t *testing.T, path string) {
	t.Helper()
	d.Do(t, chromedp.Navigate(d.URL+path))
}

// JS evaluates an expression.
func JS[T any](t *testing.T, d *Desk, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, Step)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// Until waits for an expression to be true, and says how long that took.
func (d *Desk) Until(t *testing.T, expression string) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < Step {
		ctx, cancel := context.WithTimeout(d.tab, Step)
		// On the way from one page to the next there is nothing to ask.
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		cancel()
		if err == nil && ok {
			return time.Since(start)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("never true: %s\n%.1500s", expression, JS[string](t, d, "document.body.innerText"))
	return 0
}

// Submit clicks a button of a form, and waits for the page that follows.
func (d *Desk) Submit(t *testing.T, button string) {
	t.Helper()
	JS[bool](t, d, "window.before = true")
	d.Do(t, chromedp.Click(chromedp.CSS(button)))
	d.Until(t, "!window.before && document.readyState === 'complete'")
}

// Shot leaves a screenshot of what can be seen.
func (d *Desk) Shot(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(d.tab, Step)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.shots, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Scripts switches JavaScript off and on again, from the next page on.
func (d *Desk) Scripts(t *testing.T, on bool) {
	t.Helper()
	d.Do(t, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return chromedp.Void{}, err
	})
}

// Phone shows pages as a small phone does, 360 px wide, until Large.
func (d *Desk) Phone(t *testing.T) {
	t.Helper()
	d.Do(t, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// Large shows pages as a desk's screen does.
func (d *Desk) Large(t *testing.T) {
	t.Helper()
	d.Do(t, chromedp.EmulateViewport(1280, 900))
}

// Colours chooses "light" or "dark".
func (d *Desk) Colours(t *testing.T, scheme string) {
	t.Helper()
	d.Do(t, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return chromedp.Void{}, err
	})
}

// Judge runs axe-core: nothing serious or critical may be found.
func (d *Desk) Judge(t *testing.T, where string) {
	t.Helper()
	JS[bool](t, d, d.axe+"; true")
	found := JS[string](t, d, `axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) =>
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
