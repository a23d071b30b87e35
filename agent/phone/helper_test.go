package phone

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
)

// assistant is a helper app of which a test rules everything.
type assistant struct {
	mu       sync.Mutex // guards what follows
	running  bool
	tree     string
	err      error // of Tree, Type and SetClipboard
	stuck    bool  // Stop does nothing
	stopErr  error
	hang     bool
	lost     string // what the clipboard has instead of the text
	trees    int
	stops    int
	typed    []string
	clip     string
	onTree   func()
	shortest time.Duration // of Tree
}

func (a *assistant) Running() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running
}

func (a *assistant) Tree(ctx context.Context) ([]byte, error) {
	a.mu.Lock()
	a.trees++
	tree, err, on, hang := a.tree, a.err, a.onTree, a.hang
	a.mu.Unlock()
	if on != nil {
		on()
	}
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(a.shortest)
	return []byte(tree), err
}

func (a *assistant) Type(_ context.Context, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.typed = append(a.typed, text)
	}
	return a.err
}

func (a *assistant) SetClipboard(_ context.Context, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clip = text; a.lost != "" {
		a.clip = a.lost
	}
	return a.err
}

func (a *assistant) Clipboard(context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clip, nil
}

func (a *assistant) Stop(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stops++
	if a.stopErr == nil && !a.stuck {
		a.running = false
	}
	return a.stopErr
}

func (a *assistant) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// assisted attaches a phone with a helper.
func assisted(t *testing.T, h Helpers, extra func(phonetest.Request) (phonetest.Reply, bool)) (*Phone, *phonetest.ADB) {
	t.Helper()
	p, a := attached(t, phonetest.Handset{Tree: goodTree}, extra)
	p.options.Helpers = h
	return p, a
}

const helperTree = `<?xml version='1.0' encoding='UTF-8'?><hierarchy rotation="0"><android.widget.TextView text="OK" package="com.shop" /></hierarchy>`

// dumped counts the dumps that the phone made.
func dumps(a *phonetest.ADB) int {
	n := 0
	for _, r := range a.Sent() {
		if strings.HasPrefix(r.Command, "uiautomator") {
			n++
		}
	}
	return n
}

func TestTheHelperGoesFirst(t *testing.T) {
	h := &assistant{running: true, tree: helperTree}
	p, a := assisted(t, h, nil)
	if got, err := p.Tree(t.Context()); err != nil || string(got) != helperTree || len(a.Sent()) != 0 {
		t.Errorf("%q, %v after %v", got, err, a.Sent())
	}
	h.set(func() { h.running = false })
	if got, err := p.Tree(t.Context()); err != nil || string(got) != goodTree || h.trees != 1 {
		t.Errorf("a helper that does not run: %q, %v", got, err)
	}
}

// TestReport12_NeverTwoReadersAtOnce: a helper that fails is stopped, seen to be
// stopped, and only then the phone's own dumper is used.
func TestReport12_NeverTwoReadersAtOnce(t *testing.T) {
	for name, fail := range map[string]func(*assistant){
		"an error":     func(h *assistant) { h.err = errLost },
		"hangs":        func(h *assistant) { h.hang = true },
		"no XML":       func(h *assistant) { h.tree = "UiAutomation not connected" },
		"cut off":      func(h *assistant) { h.tree = helperTree[:60] },
		"too large":    func(h *assistant) { h.tree = helperTree + strings.Repeat(" ", maxTree) },
		"no element":   func(h *assistant) { h.tree = `<hierarchy rotation="0"><x y="1"/></hierarchy>` },
		"text before":  func(h *assistant) { h.tree = "x" + helperTree },
		"no hierarchy": func(h *assistant) { h.tree = `<?xml version='1.0'?><html package="a.b"></html>` },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &assistant{running: true, tree: helperTree}
				fail(h)
				p, a := assisted(t, h, func(r phonetest.Request) (phonetest.Reply, bool) {
					if strings.HasPrefix(r.Command, "uiautomator") && h.Running() {
						t.Error("the dumper was used while the helper ran")
					}
					return phonetest.Reply{}, false
				})
				if got, err := p.Tree(t.Context()); err != nil || string(got) != goodTree || h.stops != 1 || dumps(a) != 1 {
					t.Errorf("%q, %v, stopped %d times, %d dumps", got, err, h.stops, dumps(a))
				}
			})
		})
	}
}

func TestNoTreeWhileTheHelperCannotBeStopped(t *testing.T) {
	for name, c := range map[string]struct {
		h   *assistant
		err error
	}{
		"it says so":       {&assistant{running: true, err: errLost, stopErr: errLost}, errLost},
		"it does not stop": {&assistant{running: true, err: errLost, stuck: true}, ErrTaken},
	} {
		p, a := assisted(t, c.h, nil)
		if _, err := p.Tree(t.Context()); !errors.Is(err, c.err) || dumps(a) != 0 {
			t.Errorf("%s: %v, %d dumps", name, err, dumps(a))
		}
	}
}

func TestAHelperWithoutAWindowIsNotStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &assistant{running: true, err: ErrNoRoot}
		p, a := assisted(t, h, nil)
		if _, err := p.Tree(t.Context()); !errors.Is(err, ErrNoRoot) || h.stops != 0 || dumps(a) != 0 || h.trees != treeAttempts {
			t.Errorf("%v, stopped %d times after %d trees", err, h.stops, h.trees)
		}
		h.set(func() {
			h.onTree = func() { h.set(func() { h.err, h.tree, h.onTree = nil, helperTree, nil }) }
		})
		if got, err := p.Tree(t.Context()); err != nil || string(got) != helperTree {
			t.Errorf("then %q, %v", got, err)
		}
	})
}

// A helper that failed and was started again is stopped, not asked, until its
// time has come; each failure in a row makes that twice as long.
func TestAHelperThatFailsIsLeftAloneForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &assistant{tree: helperTree}
		p, _ := assisted(t, h, nil)
		for i, wait := range []time.Duration{helperFirst, 2 * helperFirst, 4 * helperFirst} {
			h.set(func() { h.running, h.err, h.trees = true, errLost, 0 })
			if _, err := p.Tree(t.Context()); err != nil || h.trees != 1 {
				t.Fatalf("failure %d: %v after %d trees", i, err, h.trees)
			}
			time.Sleep(wait - time.Second)
			h.set(func() { h.running, h.err = true, nil })
			if _, err := p.Tree(t.Context()); err != nil || h.trees != 1 || h.Running() {
				t.Fatalf("failure %d: asked too early: %v", i, err)
			}
			time.Sleep(time.Second)
		}
		h.set(func() { h.running, h.err = true, nil })
		if got, err := p.Tree(t.Context()); err != nil || string(got) != helperTree {
			t.Errorf("in the end: %q, %v", got, err)
		}
		if p.helper != (retry{}) {
			t.Errorf("it works, but %+v", p.helper)
		}
	})
}

// TestTreesAreReadOneAtATime: a helper is started by somebody while trees are
// being read by others.
func TestTreesAreReadOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &assistant{tree: helperTree, shortest: 30 * time.Millisecond}
		var reading sync.Mutex
		one := func() {
			if !reading.TryLock() {
				t.Error("two read the screen")
				return
			}
			time.Sleep(20 * time.Millisecond)
			reading.Unlock()
		}
		h.onTree = one
		p, _ := assisted(t, h, func(r phonetest.Request) (phonetest.Reply, bool) {
			if strings.HasPrefix(r.Command, "uiautomator") {
				one()
			}
			return phonetest.Reply{}, false
		})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					if _, err := p.Tree(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			time.Sleep(50 * time.Millisecond)
			err := p.Still(t.Context(), func(context.Context) error {
				one()
				h.set(func() { h.running = true })
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if h.trees == 0 || h.trees == 20 {
			t.Errorf("%d of 20 trees are the helper's", h.trees)
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		<-p.looking
		if _, err := p.Tree(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("somebody else looks: %v", err)
		}
	})
}

// A server that an earlier connection has left running is ended once.
func TestALeftServerIsEnded(t *testing.T) {
	const taken = "java.lang.IllegalStateException: UiAutomationService android.accessibilityservice.IAccessibilityServiceClient$Stub$Proxy@1 already registered!\n"
	synctest.Test(t, func(t *testing.T) {
		for _, mended := range []bool{true, false} {
			h := &assistant{}
			p, _ := assisted(t, h, func(r phonetest.Request) (phonetest.Reply, bool) {
				return phonetest.Reply{Stdout: taken}, strings.HasPrefix(r.Command, "uiautomator") && (h.stops == 0 || !mended)
			})
			_, err := p.Tree(t.Context())
			if mended && err != nil || !mended && !errors.Is(err, ErrTaken) || h.stops != 1 {
				t.Errorf("mended %t: %v, stopped %d times", mended, err, h.stops)
			}
		}
		p, a := attached(t, phonetest.Handset{}, replies("uiautomator", phonetest.Reply{Stderr: taken}))
		if _, err := p.Tree(t.Context()); !errors.Is(err, ErrTaken) || dumps(a) != 1 {
			t.Errorf("without a helper: %v after %d dumps", err, dumps(a))
		}
	})
}

// leased is a helper that asks the fence itself.
type leased struct {
	*assistant
	fence Fence
	acts  *int
}

func (l leased) Under(f Fence) Helpers {
	l.fence = f
	return l
}

func (l leased) Acted() { *l.acts++ }

func (l leased) Type(ctx context.Context, text string) error {
	for range 3 { // three commands
		if err := l.fence.Check(); err != nil {
			return err
		}
	}
	return l.assistant.Type(ctx, text)
}

func TestAHelperAsksTheFenceOfTheControls(t *testing.T) {
	h := leased{&assistant{running: true}, nil, new(int)}
	p, _ := assisted(t, h, nil)
	fence := &lease{left: 3}
	if err := p.Under(fence).InputText(t.Context(), "好"); err != nil || fence.left != 0 {
		t.Errorf("%v, %d left", err, fence.left)
	}
	if err := p.Under(&lease{left: 2}).InputText(t.Context(), "好"); !wire.Is(err, wire.NotLeased) {
		t.Errorf("the lease ends: %v", err)
	}
	if err := p.Under(nil).InputText(t.Context(), "好"); !errors.Is(err, ErrNoFence) {
		t.Errorf("no lease: %v", err)
	}
	if err := p.Under(forever()).Tap(t.Context(), 1, 1); err != nil || *h.acts != 1 {
		t.Errorf("%v, told of %d writes", err, *h.acts)
	}
	if err := p.Under(&lease{}).Tap(t.Context(), 1, 1); err == nil || *h.acts != 1 {
		t.Errorf("%v, told of %d writes", err, *h.acts)
	}
}
