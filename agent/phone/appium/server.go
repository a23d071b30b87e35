package appium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/adb"
)

// instrument runs the server until it ends. Suppressing accessibility services
// is what Android does by default while something reads the screen; the argument
// leaves those of the phone's user alone.
const instrument = "am instrument -w -e disableAnalytics true -e DISABLE_SUPPRESS_ACCESSIBILITY_SERVICES true " +
	testID + "/androidx.test.runner.AndroidJUnitRunner"

const forceStop = "am force-stop " + serverID + "; am force-stop " + testID

// Waits for the server.
const (
	startLimit    = 30 * time.Second
	startInterval = 250 * time.Millisecond
	endLimit      = 2 * time.Second // for the server to end by itself
	closeLimit    = 5 * time.Second // for the port to be closed after that
	stopLimit     = 15 * time.Second
)

// wanted are the settings of a session, read back after they were set. Those
// that are not named here keep the server's default.
var wanted = map[string]any{
	"deferAccessibilityCacheReset": false, // clear the cache before each tree
	"waitForIdleTimeout":           0,     // the tree as it is now; whether the screen rests is the caller's business
	"enableMultiWindows":           true,  // a popup is a window of its own
	"allowInvisibleElements":       false,
	"ignoreUnimportantViews":       false, // condensing is the caller's business, too
	"alwaysTraversableViewClasses": "android.webkit.WebView",
	"snapshotMaxDepth":             100,
	"enableNotificationListener":   false, // a toast has no bounds and stays for seconds
	"wakeLockTimeout":              0,     // the server keeps the screen on for a day otherwise
}

var sessionID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// server is a running server.
type server struct {
	client  *http.Client
	session string // path of its session, empty before it has one

	life context.Context // ends, with the reason as its cause, when the instrumentation does
	end  context.CancelFunc
	// secret is set before it gets a text that nobody else may see. What it prints
	// is in no error from then on: the last words of an app may quote anything.
	secret atomic.Bool
	ended  chan struct{} // closed when its goroutine returns
}

// call sends one request. A server that ends meanwhile ends the call.
func (s *server) call(ctx context.Context, r request) (envelope, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })()
	e, err := do(within, s.client, r)
	if err != nil && ctx.Err() == nil && s.life.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(s.life), err)
	}
	return e, err
}

// tail keeps the end of what a command prints.
type tail struct {
	mu sync.Mutex // guards b
	b  []byte
}

const maxTail = 4096

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-maxTail):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// launch starts the instrumentation and returns at once.
func (h *Helper) launch() *server {
	s := &server{client: newClient(h.conn), ended: make(chan struct{})}
	running, stop := context.WithCancel(context.Background())
	life, over := context.WithCancelCause(context.Background())
	s.life, s.end = life, stop
	go func() {
		defer close(s.ended)
		var out tail
		code, err := h.conn.start(running, instrument, adb.Stdio{Stdout: &out, Stderr: &out})
		stop()
		over(ending(out.String(), code, err, s.secret.Load()))
	}()
	return s
}

// ending says why an instrumentation ended, in its own words unless those are
// secret.
func ending(out string, code int, err error, secret bool) error {
	switch {
	case strings.Contains(out, "Unable to find instrumentation"):
		return ErrNotInstalled
	case strings.Contains(out, "already registered"):
		return fmt.Errorf("%w: %w", ErrServer, ErrUiAutomationTaken)
	case errors.Is(err, adb.ErrDisconnected):
		return err
	case err != nil && strings.TrimSpace(out) == "":
		return fmt.Errorf("it ended: %w: %w", ErrServer, err)
	case secret:
		return fmt.Errorf("it ended with code %d: %w", code, ErrServer)
	}
	return fmt.Errorf("it ended with code %d, %s: %w", code, excerpt(out[max(0, len(out)-maxExcerpt):]), ErrServer)
}

// bringUp makes sure that no server runs, starts one and gives it a session.
// After a failure nothing of it is left, or the error says so.
func (h *Helper) bringUp(ctx context.Context, f phone.Fence) (*server, error) {
	if _, err := h.conn.write(ctx, f, forceStop); err != nil {
		return nil, fmt.Errorf("end an earlier server: %w", err)
	}
	if closed, err := h.portCloses(ctx); err != nil {
		return nil, err
	} else if !closed {
		return nil, ErrPortTaken
	}
	if err := ask(ctx, f); err != nil {
		return nil, err
	}
	s := h.launch()
	err := h.open(ctx, s)
	if err == nil {
		return s, nil
	}
	if gone := h.takeDown(ctx, s); gone != nil && !errors.Is(err, adb.ErrDisconnected) {
		err = fmt.Errorf("%w; %w", err, gone)
	}
	return nil, err
}

// open waits until the server answers, and makes a session with our settings.
func (h *Helper) open(ctx context.Context, s *server) error {
	up, err := poll(ctx, startInterval, startLimit, func(ctx context.Context) (bool, error) {
		if s.life.Err() != nil {
			return false, context.Cause(s.life)
		}
		return h.ready(ctx, s)
	})
	switch {
	case err != nil:
		return err
	case !up:
		return fmt.Errorf("it does not answer within %s: %w", startLimit, ErrServer)
	}
	if err := newSession(ctx, s); err != nil {
		return h.blame(ctx, err)
	}
	return nil
}

// ready asks the server for its state and version. It is not ready as long as
// nothing listens.
func (h *Helper) ready(ctx context.Context, s *server) (bool, error) {
	e, err := s.call(ctx, request{method: http.MethodGet, path: "/status", timeout: probeTimeout})
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, nil
	}
	var state struct {
		Ready   bool   `json:"ready"`
		Message string `json:"message"`
		Build   struct {
			Version string `json:"version"`
			Code    int    `json:"versionCode"`
		} `json:"build"`
	}
	if err := decode(e.Value, &state); err != nil {
		return false, fmt.Errorf("state: %w: %w", ErrServer, err)
	}
	if want := h.app(serverID).Version; state.Build.Version != want {
		return false, fmt.Errorf("version %s answers instead of %s: %w", excerpt(state.Build.Version), want, ErrPortTaken)
	}
	return state.Ready, nil
}

// newSession makes a session and sets and checks the settings.
func newSession(ctx context.Context, s *server) error {
	e, err := s.call(ctx, request{method: http.MethodPost, path: "/session", body: map[string]any{
		"capabilities": map[string]any{"alwaysMatch": map[string]any{}, "firstMatch": []any{map[string]any{}}},
	}})
	switch {
	case err != nil:
		return fmt.Errorf("make a session: %w", err)
	case !sessionID.MatchString(e.Session):
		return fmt.Errorf("session %s: %w", excerpt(e.Session), phone.ErrMalformed)
	}
	s.session = "/session/" + e.Session
	if _, err := s.call(ctx, request{method: http.MethodPost, path: s.session + "/appium/settings", body: map[string]any{"settings": wanted}}); err != nil {
		return fmt.Errorf("set settings: %w", err)
	}
	// The server answers the same whether or not it took them.
	e, err = s.call(ctx, request{method: http.MethodGet, path: s.session + "/appium/settings"})
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	var now map[string]json.RawMessage
	if err := decode(e.Value, &now); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	for name, value := range wanted {
		if want, _ := json.Marshal(value); string(now[name]) != string(want) {
			return fmt.Errorf("setting %s is %s after it was set to %s: %w", name, excerpt(string(now[name])), want, phone.ErrRejected)
		}
	}
	return nil
}

// takeDown ends a server: politely, then by force, and returns when nothing
// listens any more, so that others can read the screen again. Its own time is
// bounded; the end of ctx does not end it.
func (h *Helper) takeDown(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if s.session != "" && s.life.Err() == nil {
		if _, err := s.call(ctx, request{method: http.MethodDelete, path: s.session, timeout: endLimit}); err == nil {
			waitFor(ctx, s.ended, endLimit)
		}
	}
	_, err := h.conn.send(ctx, forceStop)
	s.end()
	if !waitFor(ctx, s.ended, closeLimit) {
		return fmt.Errorf("its shell does not end: %w", ErrStillThere)
	}
	closed, perr := h.portCloses(ctx)
	switch {
	case perr != nil:
		return fmt.Errorf("%w: %w", ErrStillThere, perr)
	case closed:
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStillThere, err)
	}
	return fmt.Errorf("something listens on port %s: %w", port, ErrStillThere)
}

// waitFor waits until c is closed, ctx ends or d has passed.
func waitFor(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// portCloses waits until nothing listens on the server's port.
func (h *Helper) portCloses(ctx context.Context) (bool, error) {
	return poll(ctx, startInterval, closeLimit, func(ctx context.Context) (bool, error) {
		listening, err := h.listening(ctx)
		return err == nil && !listening, err
	})
}

// listening reports whether something listens on the server's port.
func (h *Helper) listening(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	s, err := h.conn.open(ctx, "tcp:"+port)
	switch {
	case err == nil:
		return true, s.Close()
	case errors.Is(err, adb.ErrRefused):
		return false, nil
	}
	return false, fmt.Errorf("look at port %s: %w", port, err)
}
