package appium

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"phonerack/agent/phone"
)

// Rules of doubt; the package comment explains them.
const (
	reaction    = time.Second      // that a screen takes to show an act
	patience    = 3                // acts without a change before a server that was seen to change is doubted
	maxLies     = 2                // old trees before a server is given up
	suspicion   = 3                // proofs for a server after one against it, until acts without a change are believed again
	restartRest = 10 * time.Minute // between two restarts after a fault

	// A screen may change by itself, such as one that loads, and nobody acts on it meanwhile: a tree that stays is proved
	// once, after so many looks over so much time.
	stillLooks = 6
	stillTime  = 6 * time.Second
)

// trust is what is known about the server's honesty.
type trust struct {
	sum   [sha256.Size]byte // of the last tree
	any   bool              // there was one
	since time.Time         // when that was seen first
	looks int               // that showed it
	sure  bool              // a fresh server showed it too
	acts  int               // since the tree changed
	acted time.Time         // the last of them
	calm  int               // acts without a change that are believed
	lies  int               // old trees in a row that a fresh server contradicted
	owes  int               // proofs until it is believed again; other than lies it outlives a change
	fresh time.Time         // when the server was; its first tree is no old one
	doubt bool              // Doubt was called: the next tree is proved unless it is another one
}

// look is a tree as the server gave it.
type look struct {
	xml []byte
	sum [sha256.Size]byte
}

// begin forgets what an earlier server was seen to do.
func (t *trust) begin() {
	t.any, t.acts, t.calm = false, 0, 1
	t.fresh, t.doubt = time.Now(), false
}

// believe has the server's word taken for some acts without a change, unless a
// proof against it is too near.
func (t *trust) believe() {
	if t.owes == 0 {
		t.calm = patience
	}
}

// Acted says that something was done that a person would expect to see on the
// screen. The tree that follows is doubted if it does not show a change.
func (h *Helper) Acted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, now := &h.trust, time.Now()
	if t.acts == 0 || now.Sub(t.acted) >= reaction {
		t.acts++ // what follows at once, such as more keys of a text, is the same act
	}
	t.acted = now
}

// Doubt says that the last tree is about to be held against an act: that the text
// is not where it was typed, say. The next tree, if it is the same, is proved,
// whatever is believed otherwise. It reports whether a proof would tell more: not
// if the server does not run, or was fresh a moment ago and nothing was done since.
func (h *Helper) Doubt() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &h.trust
	t.doubt = h.Running() && (t.acts > 0 || time.Since(t.fresh) >= reaction)
	return t.doubt
}

// react waits until the screen has had the time to show the last act, if the next
// tree is to be proved: a change is no contradiction.
func (h *Helper) react(ctx context.Context) error {
	h.mu.Lock()
	left := time.Duration(0)
	if h.trust.doubt {
		left = reaction - time.Since(h.trust.acted)
	}
	h.mu.Unlock()
	if left <= 0 {
		return nil
	}
	return pause(ctx, left)
}

// doubtful takes a tree into account and reports whether it has to be proved.
func (h *Helper) doubtful(l *look) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &h.trust
	if !t.any || l.sum != t.sum {
		if t.any { // it has changed its answer by itself
			t.lies = 0
			t.believe()
		}
		t.sum, t.any, t.acts, t.doubt = l.sum, true, 0, false
		t.since, t.looks, t.sure = time.Now(), 1, false
		return false
	}
	t.looks++
	if t.doubt {
		return true
	}
	if t.acts >= t.calm && time.Since(t.acted) >= reaction {
		return true
	}
	return !t.sure && t.looks >= stillLooks && time.Since(t.since) >= stillTime
}

// note takes the first tree of a server.
func (h *Helper) note(l *look) { h.doubtful(l) }

// tree returns a tree that can be trusted, restarting the server if need be.
func (h *Helper) tree(ctx context.Context, f phone.Fence) ([]byte, error) {
	if h.run == nil {
		return nil, ErrNotRunning
	}
	if err := h.react(ctx); err != nil {
		return nil, err
	}
	l, err := h.source(ctx)
	switch {
	case err == nil && !h.doubtful(l):
		return l.xml, nil
	case err == nil:
		return h.prove(ctx, f, l)
	case !errors.Is(err, ErrServer):
		return nil, err
	case !h.retried.IsZero() && time.Since(h.retried) < restartRest:
		return nil, h.giveUp(ctx, err)
	}
	h.log.Warn("the UiAutomator2 server failed, restarting it", "err", err)
	h.retried = time.Now()
	return h.afresh(ctx, f)
}

// prove asks a fresh server for a tree that should have changed and has not.
func (h *Helper) prove(ctx context.Context, f phone.Fence, old *look) ([]byte, error) {
	h.log.Info("the UiAutomator2 server shows no change, asking a fresh one")
	h.mu.Lock()
	lies := h.trust.lies
	h.mu.Unlock()
	b, err := h.afresh(ctx, f)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	t := &h.trust
	if old.sum == t.sum {
		t.owes = max(0, t.owes-1)
		t.sure, lies = true, 0
		t.believe()
	} else {
		lies++ // or the screen has changed in the meantime; twice is no chance
		t.owes = suspicion
	}
	t.lies = lies
	h.mu.Unlock()
	if lies >= maxLies {
		return nil, h.giveUp(ctx, ErrStale)
	}
	return b, nil
}

// afresh restarts the server and returns its first tree, or gives it up.
func (h *Helper) afresh(ctx context.Context, f phone.Fence) ([]byte, error) {
	err := h.drop(ctx)
	if err == nil {
		var s *server
		if s, err = h.bringUp(ctx, f); err == nil {
			h.hold(s)
			h.mu.Lock()
			h.trust.begin()
			h.mu.Unlock()
		}
	}
	if err != nil {
		return nil, h.giveUp(ctx, err)
	}
	l, err := h.source(ctx)
	switch {
	case errors.Is(err, ErrServer):
		return nil, h.giveUp(ctx, err)
	case err != nil:
		return nil, err
	}
	h.note(l)
	return l.xml, nil
}

// giveUp ends the server for good.
func (h *Helper) giveUp(ctx context.Context, cause error) error {
	err := fmt.Errorf("%w: %w", ErrGaveUp, cause)
	if left := h.drop(ctx); left != nil {
		err = fmt.Errorf("%w; %w", err, left)
	}
	h.log.Warn("the UiAutomator2 server is given up", "err", err)
	return err
}

// source asks the server for the tree, once. Faults of the server wrap
// ErrServer. If the connection has ended so has the server, for this Helper.
func (h *Helper) source(ctx context.Context) (*look, error) {
	s := h.run
	e, err := s.call(ctx, request{method: http.MethodGet, path: s.session + "/source", limit: maxSource, timeout: sourceTimeout})
	if err != nil {
		return nil, h.blame(ctx, err)
	}
	var xml string
	switch err := json.Unmarshal(e.Value, &xml); {
	case err != nil:
		return nil, fmt.Errorf("the tree is no text: %w: %w", ErrServer, phone.ErrMalformed)
	case "/session/"+e.Session != s.session:
		return nil, fmt.Errorf("the tree is of session %s: %w", excerpt(e.Session), ErrServer)
	}
	b := []byte(xml)
	windows, err := layOut(b)
	switch {
	case errors.Is(err, phone.ErrNoRoot), errors.Is(err, phone.ErrTooLarge):
		return nil, err // the screen's fault
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrServer, err)
	}
	return &look{xml: b, sum: fingerprint(b, windows)}, nil
}

// blame finds out whose fault an error is.
func (h *Helper) blame(ctx context.Context, err error) error {
	var answer *serverError
	switch {
	case gone(err):
		if s := h.run; s != nil {
			h.hold(nil)
			s.end()
			waitFor(context.WithoutCancel(ctx), s.ended, closeLimit)
		}
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, phone.ErrTooLarge), errors.Is(err, ErrServer):
		return err
	case errors.As(err, &answer) && answer.mentions("waiting for the root AccessibilityNodeInfo"):
		return fmt.Errorf("%w: %w", phone.ErrNoRoot, err)
	}
	return fmt.Errorf("%w: %w", ErrServer, err)
}
