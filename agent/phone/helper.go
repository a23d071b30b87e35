package phone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Helpers are helper apps on the phone, which do some things that plain ADB
// cannot. An error of Type or SetClipboard leaves open whether it happened,
// unless it wraps ErrRejected or is a *wire.Refusal. Whoever starts them does so
// within [Phone.Still].
type Helpers interface {
	// Running reports whether the helper that reads the screen runs. While it
	// does the stock dumper is not used.
	Running() bool
	Tree(ctx context.Context) ([]byte, error)
	Type(ctx context.Context, text string) error // any Unicode into the field that has the focus
	SetClipboard(ctx context.Context, text string) error
	Clipboard(ctx context.Context) (string, error)
	Stop(ctx context.Context) error // afterwards the stock dumper works
}

// What Helpers may be besides.
type (
	// leasable helpers ask the fence that they are given before each write.
	leasable interface{ Under(f Fence) Helpers }
	// watchful helpers want to know of each write to the phone: the screen may
	// have changed.
	watchful interface{ Acted() }
	// doubted helpers prove their next tree if it is the one before, and tell
	// whether that is worth another look.
	doubted interface{ Doubt() bool }
)

// byHelper has the helper write, which takes about lasts by itself. The fence is
// asked by the helper, or once before it.
func (c *Controls) byHelper(ctx context.Context, lasts time.Duration, do func(context.Context, Helpers) error) error {
	h := c.phone.options.Helpers
	f := c.fence
	if l, ok := h.(leasable); ok && f != nil {
		h, f = l.Under(f), always{}
	}
	ctx, cancel := context.WithTimeout(ctx, c.phone.options.WriteTimeout+lasts)
	defer cancel()
	if err := permitted(ctx, f); err != nil {
		return err
	}
	return outcome(do(ctx, h))
}

// always is the fence of what asks another one.
type always struct{}

func (always) Check() error { return nil }

// acted tells the helper of a write.
func (p *Phone) acted() {
	if w, ok := p.options.Helpers.(watchful); ok {
		w.Acted()
	}
}

// Doubt tells that the last tree is about to be held against an act: the text is
// not where it was typed, the list has not moved. It reports whether the next
// tree tells more: the helper then shows that it is no old one. The phone's own
// dumper needs no proof. It writes nothing by itself.
func (c *Controls) Doubt() bool {
	d, ok := c.phone.options.Helpers.(doubted)
	return ok && d.Doubt()
}

// Bounds of the helper's trees. A helper that fails is not asked again for
// twice as long each time in a row.
const (
	helperTreeTime = 15 * time.Second
	helperStopTime = 10 * time.Second
	helperFirst    = 30 * time.Second
	helperLongest  = 30 * time.Minute
)

// retry says when something that failed is tried again. The zero value is now.
type retry struct {
	at   time.Time
	wait time.Duration // before the next try if this one fails
}

// helperTree reads the tree through the helper. Without an error and a tree, the
// stock dumper may be used: the helper does not run, any more. It is called
// within Still.
func (p *Phone) helperTree(ctx context.Context) ([]byte, error) {
	h := p.options.Helpers
	if h == nil || !h.Running() {
		return nil, nil
	}
	p.mu.Lock()
	due := !time.Now().Before(p.helper.at)
	p.mu.Unlock()
	if due {
		tree, err := p.askHelper(ctx, h)
		if errors.Is(err, ErrNoRoot) {
			return nil, err // it works, but there is nothing to be seen yet
		}
		if err == nil {
			p.mu.Lock()
			p.helper = retry{}
			p.mu.Unlock()
			return tree, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		p.log.Warn("helper gives no tree and is stopped", "serial", p.info.Serial, "err", err)
		p.mu.Lock()
		wait := max(p.helper.wait, helperFirst)
		p.helper = retry{at: time.Now().Add(wait), wait: min(2*wait, helperLongest)}
		p.mu.Unlock()
	}
	return nil, p.stopHelper(ctx, h)
}

// askHelper has the helper give a tree, and checks it as the dumper's.
func (p *Phone) askHelper(ctx context.Context, h Helpers) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTreeTime)
	defer cancel()
	tree, err := h.Tree(ctx)
	for attempt := 1; errors.Is(err, ErrNoRoot) && attempt < treeAttempts && pause(ctx, treePause) == nil; attempt++ {
		tree, err = h.Tree(ctx)
	}
	if err != nil {
		return nil, err
	}
	if len(tree) > maxTree {
		return nil, fmt.Errorf("more than %d bytes: %w", maxTree, ErrTooLarge)
	}
	start := treeStart.FindIndex(tree)
	if start == nil || len(bytes.TrimSpace(tree[:start[0]])) > 0 {
		return nil, fmt.Errorf("the helper gave %q: %w", excerpt(tree[:min(len(tree), maxExcerpt)]), ErrMalformed)
	}
	return cutTree(tree[start[0]:])
}

// stopHelper stops the helper and sees that it has stopped.
func (p *Phone) stopHelper(ctx context.Context, h Helpers) error {
	ctx, cancel := context.WithTimeout(ctx, helperStopTime)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		return fmt.Errorf("stop the helper: %w", err)
	}
	if h.Running() {
		return fmt.Errorf("the helper still runs: %w", ErrTaken)
	}
	return nil
}
