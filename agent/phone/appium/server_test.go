package appium

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
)

// started is a helper whose server runs on f.
func started(t *testing.T, f *fake) *Helper {
	t.Helper()
	h, _ := helperOf(t, f)
	if err := h.Start(t.Context(), live()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, h, f) })
	return h
}

// end stops the server and checks that nothing of it is left.
func end(t *testing.T, h *Helper, f *fake) {
	t.Helper()
	if err := h.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil || h.Running() {
		t.Error("a server is left")
	}
}

func treeOf(t *testing.T, h *Helper) string {
	t.Helper()
	b, err := h.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTreeComesFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		if !h.Running() {
			t.Error("not running")
		}
		if tree := treeOf(t, h); !strings.Contains(tree, `text="hello"`) || !strings.HasSuffix(strings.TrimSpace(tree), "</hierarchy>") || !strings.Contains(tree, `rotation="0"`) {
			t.Errorf("tree %s", tree)
		}
		f.set(func() { f.windows = []string{window1("com.example.notes", "emoji \U0001F600 & العربية")} })
		if tree := treeOf(t, h); !strings.Contains(tree, "emoji \U0001F600 & العربية") {
			t.Errorf("tree %s", tree)
		}
		f.mu.Lock()
		settings := f.server.settings
		f.mu.Unlock()
		if settings["wakeLockTimeout"] != 0.0 || settings["deferAccessibilityCacheReset"] != false || settings["keyInjectionDelay"] != 0 {
			t.Errorf("settings %v", settings)
		}
		if got := f.did("am instrument"); len(got) != 1 || !strings.Contains(got[0], "DISABLE_SUPPRESS_ACCESSIBILITY_SERVICES true") {
			t.Errorf("started by %q", got)
		}
	})
}

// TestStartTwiceChecksOnly: a second Start brings its fence and nothing else.
func TestStartTwiceChecksOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		before := len(f.writes())
		second := live()
		if err := h.Start(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if more := f.writes()[before:]; len(more) != 0 {
			t.Errorf("writes %q", more)
		}
		if err := h.Type(t.Context(), "x"); err != nil || second.asked == 0 {
			t.Errorf("%v, the new fence was asked %d times", err, second.asked)
		}
	})
}

func TestStartEndsAnEarlierServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.stranded = true
		h := started(t, f)
		treeOf(t, h)
	})
}

func TestStartFails(t *testing.T) {
	for name, c := range map[string]struct {
		phone  func(*fake)
		fence  phone.Fence
		is     []error
		starts int // instrumentations that were started
	}{
		"Android 7":         {func(f *fake) { f.sdk = 25 }, live(), []error{ErrNotSupported}, 0},
		"not installed":     {func(f *fake) { f.apps = nil }, live(), []error{ErrNotInstalled}, 1},
		"port taken":        {func(f *fake) { f.squatter = true }, live(), []error{ErrPortTaken}, 0},
		"another version":   {func(f *fake) { f.behave.version = "9.9.9" }, live(), []error{ErrPortTaken}, 1},
		"crash":             {func(f *fake) { f.crash = "INSTRUMENTATION_RESULT: shortMsg=java.lang.NullPointerException\n" }, live(), []error{ErrServer}, 2},
		"never listens":     {func(f *fake) { f.behave.silent = true }, live(), []error{ErrServer}, 2},
		"settings ignored":  {func(f *fake) { f.behave.deaf = true }, live(), []error{ErrServer, phone.ErrRejected}, 2},
		"no lease":          {func(*fake) {}, nil, []error{phone.ErrNoFence}, 0},
		"lease over":        {func(*fake) {}, &lease{}, []error{errOver}, 0},
		"lease over midway": {func(*fake) {}, &lease{left: 1}, []error{errOver}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				c.phone(f)
				h, _ := helperOf(t, f)
				err := h.Start(t.Context(), c.fence)
				for _, is := range c.is {
					if !errors.Is(err, is) {
						t.Errorf("error %v is not %v", err, is)
					}
				}
				if wire.Is(err, wire.AndroidTooOld) != (name == "Android 7") {
					t.Errorf("error %v", err)
				}
				if got := len(f.did("am instrument")); got != c.starts {
					t.Errorf("%d starts, want %d", got, c.starts)
				}
				end(t, h, f)
			})
		})
	}
}

// TestReport12_UiAutomationTakenByAnotherProgram: the outcome names the cause,
// and no server stays half up.
func TestReport12_UiAutomationTakenByAnotherProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.crash = "INSTRUMENTATION_STATUS: stack=java.lang.IllegalStateException: UiAutomationService android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@1 already registered!\nINSTRUMENTATION_CODE: 0\n"
		h, _ := helperOf(t, f)
		if err := h.Start(t.Context(), live()); !errors.Is(err, ErrUiAutomationTaken) {
			t.Errorf("error %v", err)
		}
		end(t, h, f)
	})
}

// TestServerIsRestartedOnceThenGivenUp: each fault ends the server, starts it
// once more, and after the second one the phone is free for its own dumper.
func TestServerIsRestartedOnceThenGivenUp(t *testing.T) {
	const sound = `{"value":"<hierarchy><a /></hierarchy>","sessionId":"` + fakeSession + `"}`
	long := `{"value":"` + strings.Repeat("x", maxSource) + `","sessionId":"` + fakeSession + `"}`
	for name, c := range map[string]struct {
		fault  func(*habit, int)
		mended bool // the fault goes away with a restart
	}{
		"connection breaks off":   {func(h *habit, n int) { h.dead = n }, true},
		"hangs":                   {func(h *habit, n int) { h.hang = n }, true},
		"instrumentation crashes": {func(h *habit, n int) { h.die = n }, true},
		"UiAutomation disconnected": {func(h *habit, n int) {
			h.fail, h.message = n, "java.lang.IllegalStateException: UiAutomation not connected!"
		}, true},
		"dead object":              {func(h *habit, n int) { h.fail, h.message = n, "android.os.DeadObjectException" }, true},
		"no JSON":                  {func(h *habit, _ int) { h.raw = "<html>" }, false},
		"ends with an open stream": {func(h *habit, n int) { h.orphan = n }, true},
		"two values":               {func(h *habit, _ int) { h.raw = sound + "{}" }, false},
		"unknown field":            {func(h *habit, _ int) { h.raw = strings.Replace(sound, "{", `{"x":1,`, 1) }, false},
		"number for a tree":        {func(h *habit, _ int) { h.raw = `{"value":7,"sessionId":"` + fakeSession + `"}` }, false},
		"another session":          {func(h *habit, _ int) { h.raw = `{"value":"<hierarchy/>","sessionId":"other"}` }, false},
		"tree cut short":           {func(h *habit, _ int) { h.raw = `{"value":"<hierarchy><a>","sessionId":"` + fakeSession + `"}` }, false},
		"no tree":                  {func(h *habit, _ int) { h.raw = `{"value":"hello","sessionId":"` + fakeSession + `"}` }, false},
		"redirect":                 {func(h *habit, _ int) { h.raw, h.status = "{}", 302 }, false},
		"error without one":        {func(h *habit, _ int) { h.raw, h.status = `{"value":null,"sessionId":""}`, 500 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake().withApps()
				h := started(t, f)
				if c.mended {
					f.set(func() { c.fault(f.behave, 1) })
					if tree := treeOf(t, h); !strings.Contains(tree, "hello") {
						t.Errorf("after the restart: %s", tree)
					}
					if got := len(f.did("am instrument")); got != 2 {
						t.Errorf("started %d times", got)
					}
				}
				f.set(func() { c.fault(f.behave, 1000) })
				_, err := h.Tree(t.Context())
				if !errors.Is(err, ErrGaveUp) || errors.Is(err, ErrStillThere) || h.Running() {
					t.Errorf("running %t, error %v", h.Running(), err)
				}
				if got := len(f.did("am instrument")); got != 2 {
					t.Errorf("started %d times", got)
				}
				if _, err := h.Tree(t.Context()); !errors.Is(err, ErrNotRunning) {
					t.Errorf("after giving up: %v", err)
				}
				f.set(func() { f.behave = &habit{raw: sound} })
				if err := h.Start(t.Context(), live()); err != nil {
					t.Errorf("cannot be started again: %v", err)
				}
			})
		})
	}
	t.Run("a redirect is not followed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			h := started(t, f)
			f.set(func() { f.behave.raw, f.behave.status, f.asked = "{}", 302, nil })
			if _, err := h.source(t.Context()); err == nil || len(f.asked) != 1 {
				t.Errorf("asked %q, error %v", f.asked, err)
			}
		})
	})
	t.Run("too large is the screen's fault", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			h := started(t, f)
			f.set(func() { f.behave.raw = long })
			if _, err := h.Tree(t.Context()); !errors.Is(err, phone.ErrTooLarge) || !h.Running() {
				t.Errorf("running %t, error %v", h.Running(), err)
			}
			f.set(func() {
				f.behave.raw, f.windows = "", []string{strings.Repeat("<a>", maxLevels) + strings.Repeat("</a>", maxLevels)}
			})
			if _, err := h.Tree(t.Context()); !errors.Is(err, phone.ErrTooLarge) || !h.Running() {
				t.Errorf("running %t, error %v", h.Running(), err)
			}
		})
	})
}

// TestEndOfTheInstrumentationEndsTheWait: nobody waits for an answer that cannot
// come any more.
func TestEndOfTheInstrumentationEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.behave.orphan = 1 })
		begun := time.Now()
		if treeOf(t, h); time.Since(begun) > 2*time.Second {
			t.Errorf("it took %s", time.Since(begun))
		}
	})
}

// TestRestartsAreRationed: a fault ten minutes after a restart is a new one.
func TestRestartsAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		for range 3 {
			f.set(func() { f.behave.dead = 1 })
			treeOf(t, h)
			time.Sleep(restartRest)
		}
		if got := len(f.did("am instrument")); got != 4 {
			t.Errorf("started %d times", got)
		}
	})
}

func TestRestartAsksTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.behave.dead = 1 })
		over := &lease{}
		_, err := h.Under(over).Tree(t.Context())
		if !errors.Is(err, ErrGaveUp) || !errors.Is(err, errOver) || h.Running() || len(f.did("am instrument")) != 1 {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
	})
}

// TestNobodyWaitingIsNoFault: a caller that goes away leaves the server alone.
func TestNobodyWaitingIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.behave.hang = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.Tree(ctx); !errors.Is(err, context.DeadlineExceeded) || !h.Running() {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
		treeOf(t, h)
		if got := len(f.did("am instrument")); got != 1 {
			t.Errorf("started %d times", got)
		}
	})
}

func TestNoWindowIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.windows = nil
		h := started(t, f)
		f.set(func() { f.windows = []string{window1("com.example.notes", "hello")} })
		treeOf(t, h)
		f.set(func() { f.windows = nil })
		if _, err := h.Tree(t.Context()); !errors.Is(err, phone.ErrNoRoot) || !h.Running() {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
		f.set(func() {
			f.behave.fail, f.behave.message = 1, "Timed out after 10012ms waiting for the root AccessibilityNodeInfo in the active window."
		})
		if _, err := h.Tree(t.Context()); !errors.Is(err, phone.ErrNoRoot) || !h.Running() {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
	})
}

// TestLostPhone: without a connection there is nothing to restart or to stop.
func TestLostPhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		sound, lost := h.conn, connOf(&gonePhone{f})
		h.conn, h.run.client = lost, newClient(lost)
		if _, err := h.Tree(t.Context()); !errors.Is(err, adb.ErrDisconnected) || h.Running() || errors.Is(err, ErrGaveUp) {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
		if err := h.Stop(t.Context()); !errors.Is(err, adb.ErrDisconnected) {
			t.Errorf("stopped what cannot be reached: %v", err)
		}
		h.conn = sound
	})
}

// TestReport09_StaleTreeIsNotAScene: a server that goes on showing what it
// showed first is found out by the first act; what the caller gets is the truth.
func TestReport09_StaleTreeIsNotAScene(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		f.behave.stale = 100
		h := started(t, f)
		for n, text := range []string{"second", "third"} {
			f.set(func() { f.windows = []string{window1("com.example.notes", text)} })
			h.Acted()
			time.Sleep(reaction)
			tree, err := h.Tree(t.Context())
			switch {
			case n == 0 && (err != nil || !strings.Contains(string(tree), text)):
				t.Errorf("%s, %v", tree, err)
			case n == 1 && (!errors.Is(err, ErrGaveUp) || !errors.Is(err, ErrStale) || h.Running()):
				t.Errorf("running %t, error %v", h.Running(), err)
			}
		}
	})
}

// TestHonestServerIsRarelyDoubted: acts that change nothing cost a restart only
// as long as the server was never seen to change its answer.
func TestHonestServerIsRarelyDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		nothing := func(n int) {
			for range n {
				h.Acted()
				h.Acted() // at once: the same act
				before := len(f.did("am instrument"))
				treeOf(t, h)
				if len(f.did("am instrument")) != before {
					t.Error("doubted before the screen could react")
				}
				time.Sleep(reaction)
				treeOf(t, h)
			}
		}
		starts := func(want int) {
			t.Helper()
			if got := len(f.did("am instrument")); got != want {
				t.Errorf("started %d times, want %d", got, want)
			}
		}
		starts(1)
		nothing(1)
		starts(2)
		nothing(2)
		starts(2)
		f.set(func() { f.windows = []string{window1("com.example.notes", "other")} })
		treeOf(t, h)
		nothing(2)
		starts(2)
		f.set(func() { f.windows = []string{window1("com.example.notes", "another")} })
		treeOf(t, h)
		nothing(3)
		starts(3)
	})
}

// TestChangeDuringARestartIsNoLie: once may be chance, and a change of the
// server's own answer clears it.
func TestChangeDuringARestartIsNoLie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		for n := range 4 {
			f.set(func() {
				f.onStart = func() { f.windows = []string{window1("com.example.notes", fmt.Sprint("during restart ", n))} }
			})
			for range patience {
				h.Acted()
				time.Sleep(reaction)
				treeOf(t, h)
				if len(f.did("am instrument")) > n+1 {
					break
				}
			}
			f.set(func() {
				f.onStart = nil
				f.windows = []string{window1("com.example.notes", fmt.Sprint("by itself ", n))}
			})
			treeOf(t, h)
		}
		if got := len(f.did("am instrument")); got != 5 {
			t.Errorf("started %d times", got)
		}
	})
}

// TestReport09_DoubtedTreeIsProved: what somebody doubts is proved, however often
// the server was seen to change before, and not before the screen had its time.
func TestReport09_DoubtedTreeIsProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		show := func(text string) { f.set(func() { f.windows = []string{window1("com.example.notes", text)} }) }
		sees := func(text string, starts int) {
			t.Helper()
			if tree := treeOf(t, h); !strings.Contains(tree, `"`+text+`"`) {
				t.Errorf("no %s in %s", text, tree)
			}
			if got := len(f.did("am instrument")); got != starts {
				t.Errorf("started %d times, want %d", got, starts)
			}
		}
		if h.Doubt() {
			t.Error("a server that is fresh has nothing to prove")
		}
		show("first")
		sees("first", 1)
		h.Acted()
		sees("first", 1) // three such acts would be believed
		acted := time.Now()
		time.AfterFunc(reaction/2, func() { show("second") })
		if !h.Doubt() {
			t.Error("nothing to prove")
		}
		if sees("second", 1); time.Since(acted) < reaction {
			t.Errorf("it was asked after %s", time.Since(acted))
		}
		h.Doubt()
		sees("second", 2)
		time.Sleep(reaction)
		h.Doubt()
		show("third")
		sees("third", 2) // it has changed by itself
		sees("third", 2)
	})
}

// TestReport09_OneContradictionMakesSuspect: a change of its own does not give the
// server back the patience that it had; three proofs do.
func TestReport09_OneContradictionMakesSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		n := 0
		change := func() {
			n++
			f.set(func() { f.windows = []string{window1("com.example.notes", fmt.Sprint("page ", n))} })
		}
		act := func(restarts bool) {
			t.Helper()
			before := len(f.did("am instrument"))
			h.Acted()
			time.Sleep(reaction)
			treeOf(t, h)
			if got := len(f.did("am instrument")) > before; got != restarts {
				t.Errorf("page %d: restarted %t", n, got)
			}
		}
		change()
		treeOf(t, h)
		act(false)
		f.set(func() { f.onStart = func() { f.windows = []string{window1("com.example.notes", "the truth")} } })
		h.Doubt()
		treeOf(t, h)
		f.set(func() { f.onStart = nil })
		for range suspicion {
			change()
			treeOf(t, h)
			act(true)
		}
		change()
		treeOf(t, h)
		act(false)
	})
}

func TestStopFreesTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.asked = nil })
		if err := h.Stop(t.Context()); err != nil || h.Running() {
			t.Errorf("running %t, error %v", h.Running(), err)
		}
		if len(f.asked) != 1 || f.asked[0] != "DELETE /session/"+fakeSession {
			t.Errorf("asked %q", f.asked)
		}
	})
	t.Run("of an earlier program's server, too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			f.stranded = true
			h, _ := helperOf(t, f)
			if err := h.Stop(t.Context()); err != nil || f.stranded {
				t.Errorf("still there: %t, %v", f.stranded, err)
			}
			f.apps = nil
			before := len(f.writes())
			if err := h.Stop(t.Context()); err != nil || len(f.writes()) != before {
				t.Errorf("without the apps: %v, %q", err, f.writes()[before:])
			}
		})
	})
	t.Run("and says if it does not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			h := started(t, f)
			f.set(func() { f.immortal = true })
			begun := time.Now()
			if err := h.Stop(t.Context()); !errors.Is(err, ErrStillThere) || time.Since(begun) > stopLimit {
				t.Errorf("error %v after %s", err, time.Since(begun))
			}
			f.set(func() { f.immortal = false; f.forceStop() })
		})
	})
	t.Run("although its caller has gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake().withApps()
			h := started(t, f)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := h.Stop(ctx); err != nil || h.Running() {
				t.Errorf("running %t, error %v", h.Running(), err)
			}
		})
	})
}

// TestRunningDoesNotWait: it answers while a tree is read.
func TestRunningDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() { f.behave.hang = 1 })
		done := make(chan error)
		go func() {
			_, err := h.Tree(t.Context())
			done <- err
		}()
		synctest.Wait()
		if !h.Running() {
			t.Error("not running")
		}
		h.Acted()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestReport04_PopupsAreWindowsOfTheirOwn: all windows are in the tree, the
// highest first.
func TestReport04_PopupsAreWindowsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		h := started(t, f)
		f.set(func() {
			f.windows = []string{statusBar("09:41"), window1("com.example.notes", "popup"), window1("com.example.notes", "below")}
		})
		tree := treeOf(t, h)
		if below, above := strings.Index(tree, "below"), strings.Index(tree, "popup"); above < 0 || below < above || !strings.Contains(tree, "09:41") {
			t.Errorf("tree %s", tree)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.server.settings["enableMultiWindows"] != true {
			t.Errorf("settings %v", f.server.settings)
		}
	})
}

// TestReport03_ScreenThatNeverRests and the WebView of report 10: the server is
// told to wait for nothing, and to walk into a page that Android calls invisible.
func TestReport03_ScreenThatNeverRests(t *testing.T) { testSetting(t, "waitForIdleTimeout", 0.0) }

func TestReport10_WebViewCalledInvisible(t *testing.T) {
	testSetting(t, "alwaysTraversableViewClasses", "android.webkit.WebView")
}

func testSetting(t *testing.T, name string, want any) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		started(t, f)
		f.mu.Lock()
		defer f.mu.Unlock()
		if got := f.server.settings[name]; got != want {
			t.Errorf("%s is %v", name, got)
		}
	})
}

// TestRunningClockIsNoProof: that the system's own bar changes does not show
// that the app's window does.
func TestRunningClockIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake().withApps()
		notes := f.windows[0]
		h := started(t, f)
		for n := range 2 {
			f.set(func() { f.windows = []string{statusBar(fmt.Sprint("09:4", n)), notes} })
			h.Acted()
			time.Sleep(reaction)
			treeOf(t, h)
		}
		if got := len(f.did("am instrument")); got != 2 {
			t.Errorf("started %d times", got)
		}
	})
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		h, _ := helperOf(t, f)
		s, err := h.Status(t.Context())
		if err != nil || installed(s) || s.Running || s.Listening || !s.Supported || s.SDK != 34 || s.Keyboard != latin || len(s.Apps) != 3 || s.Apps[0].Present {
			t.Errorf("%+v, %v", s, err)
		}
		f.withApps()
		if err := h.Start(t.Context(), live()); err != nil {
			t.Fatal(err)
		}
		s, err = h.Status(t.Context())
		if err != nil || !installed(s) || !s.Running || !s.Listening || s.Apps[0].Version != "10.6.6" || s.Apps[0].Code != 278 || !s.Apps[1].Present {
			t.Errorf("%+v, %v", s, err)
		}
		f.apps[serverID] = "10.6.5 277"
		if s, err = h.Status(t.Context()); err != nil || installed(s) || s.Apps[0].Pinned || s.Apps[1].Pinned || !s.Apps[2].Pinned {
			t.Errorf("%+v, %v", s, err)
		}
		end(t, h, f)
	})
}

// gonePhone is a phone whose connection has ended.
type gonePhone struct{ *fake }

func (g *gonePhone) Shell(context.Context, string) (adb.Result, error) {
	return adb.Result{}, adb.ErrDisconnected
}

func (g *gonePhone) Open(context.Context, string) (net.Conn, error) { return nil, adb.ErrDisconnected }

// installed reports whether all apps are there in the pinned release.
func installed(s Status) bool {
	for _, a := range s.Apps {
		if !a.Pinned {
			return false
		}
	}
	return len(s.Apps) > 0
}
