package appium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/agent/phone"
	"phonerack/usb/adb"
)

// Options of New; the zero value is usable.
type Options struct {
	Logger *slog.Logger // none if nil
}

// Helper drives the helper apps of one phone over one ADB connection. Its
// methods may be called at the same time; they wait for each other, Running and
// Acted apart. Stop it before the connection is closed.
type Helper struct {
	conn     conn
	log      *slog.Logger
	packages []Package

	up   atomic.Bool   // Running
	turn chan struct{} // cap 1: holds the right to what follows

	android int // SDK, 0 if not yet read
	run     *server
	fence   phone.Fence // of the last Start
	retried time.Time   // when the server was restarted after a fault

	mu    sync.Mutex // guards trust
	trust trust
}

var _ phone.Helpers = (*Helper)(nil)

// New returns a Helper of the phone behind a. It does not speak to the phone.
func New[S Stream](a ADB[S], o Options) *Helper {
	h := &Helper{conn: connOf(a), log: o.Logger, packages: Packages(), turn: make(chan struct{}, 1)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	return h
}

// alone runs do while no other call does.
func (h *Helper) alone(ctx context.Context, do func() error) error {
	select {
	case h.turn <- struct{}{}: // a free turn is taken even if ctx has ended
	default:
		select {
		case h.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-h.turn }()
	return do()
}

// app returns the pinned app of an Android package.
func (h *Helper) app(id string) App {
	for _, p := range h.packages {
		for _, a := range p.Apps {
			if a.ID == id {
				return a
			}
		}
	}
	return App{}
}

// Running reports whether the server was started and not given up or stopped.
// While it is true the phone's own dumper does not work.
func (h *Helper) Running() bool { return h.up.Load() }

func (h *Helper) hold(s *server) {
	h.run = s
	h.up.Store(s != nil)
}

// Start runs the server and checks that it works; f is what restarts, typing
// and the clipboard ask from now on. If it runs already, it is only checked. It
// blocks for at most two and a half minutes. On failure nothing is left running,
// else the error wraps ErrStillThere.
func (h *Helper) Start(ctx context.Context, f phone.Fence) error {
	return h.alone(ctx, func() error {
		if err := h.startUp(ctx, f); err != nil {
			return fmt.Errorf("start the UiAutomator2 server: %w", err)
		}
		h.fence = f
		return nil
	})
}

func (h *Helper) startUp(ctx context.Context, f phone.Fence) error {
	if err := h.supported(ctx); err != nil {
		return err
	}
	if h.run != nil {
		if ok, err := h.ready(ctx, h.run); ok && h.run.life.Err() == nil {
			return nil
		} else if ctx.Err() != nil {
			return err
		}
		if err := h.drop(ctx); err != nil {
			return err
		}
	}
	h.retried = time.Time{}
	err := h.probe(ctx, f)
	if errors.Is(err, ErrServer) && !errors.Is(err, ErrStillThere) && ctx.Err() == nil {
		h.log.Warn("the UiAutomator2 server did not come up, once more", "err", err)
		err = h.probe(ctx, f)
	}
	return err
}

// probe brings a server up and takes one tree.
func (h *Helper) probe(ctx context.Context, f phone.Fence) error {
	s, err := h.bringUp(ctx, f)
	if err != nil {
		return err
	}
	h.hold(s)
	h.mu.Lock()
	h.trust.begin()
	h.mu.Unlock()
	l, err := h.source(ctx)
	switch {
	case err == nil:
		h.note(l)
		return nil
	case errors.Is(err, phone.ErrNoRoot), errors.Is(err, phone.ErrTooLarge):
		return nil // the screen's fault
	}
	if gone := h.drop(ctx); gone != nil {
		err = fmt.Errorf("%w; %w", err, gone)
	}
	return err
}

// drop ends the server, if one runs.
func (h *Helper) drop(ctx context.Context) error {
	s := h.run
	if s == nil {
		return nil
	}
	h.hold(nil)
	return h.takeDown(ctx, s)
}

// Stop ends the server, closes its stream and returns when nothing of it is
// left, so that the phone's own dumper works again; it also ends a server that an
// earlier program left. It needs no fence: it ends nothing but this package's own
// process. ctx bounds only the wait for another call.
func (h *Helper) Stop(ctx context.Context) error {
	return h.alone(ctx, func() error {
		end := h.drop
		if h.run == nil {
			end = h.endStranded
		}
		if err := end(ctx); err != nil {
			return fmt.Errorf("stop the UiAutomator2 server: %w", err)
		}
		return nil
	})
}

// endStranded ends a server that this Helper has not started, if there is one.
func (h *Helper) endStranded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	out, err := h.conn.read(ctx, "pm path "+serverID)
	if err != nil || !strings.Contains(out, "package:") {
		return err
	}
	_, err = h.conn.send(ctx, forceStop)
	return err
}

// Recover puts right what an earlier program left on the phone: a server that
// still runs, and the helper's input method as the current one. It writes only
// if there is something.
func (h *Helper) Recover(ctx context.Context, f phone.Fence) error {
	return h.alone(ctx, func() error {
		if err := h.recoverServer(ctx, f); err != nil {
			return fmt.Errorf("end an earlier UiAutomator2 server: %w", err)
		}
		if err := h.recoverIME(ctx, f); err != nil {
			return fmt.Errorf("put the input method back: %w", err)
		}
		return nil
	})
}

func (h *Helper) recoverServer(ctx context.Context, f phone.Fence) error {
	listening, err := h.listening(ctx)
	if err != nil || !listening || h.run != nil {
		return err
	}
	if out, err := h.conn.read(ctx, "pm path "+serverID); err != nil || !strings.Contains(out, "package:") {
		return err // somebody else's
	}
	_, err = h.conn.write(ctx, f, forceStop)
	return err
}

func (h *Helper) recoverIME(ctx context.Context, f phone.Fence) error {
	k, err := h.conn.keyboards(ctx)
	switch {
	case err != nil:
		return err
	case ours(k.current):
		k.recorded, k.enabled = k.before(), nil
		return h.restoreIME(ctx, f, k)
	case k.recorded != "":
		_, err = h.conn.write(ctx, f, "rm -f "+imeRecord)
	}
	return err
}

// Tree returns the element tree: XML with a hierarchy element, below it all
// windows, the highest first, those of the system and the keyboard too; elements
// are named after their classes. It fails with ErrNotRunning, with
// phone.ErrNoRoot if no window is there, and with ErrGaveUp after a fault that a
// restart did not mend; from then on the server does not run.
func (h *Helper) Tree(ctx context.Context) ([]byte, error) {
	return h.treeUnder(ctx, func() phone.Fence { return h.fence })
}

// Type types text, also what is not ASCII, into the field that has the focus.
// The server need not run. The phone's keyboard is changed meanwhile and changed
// back on each way out. It fails with a *wire.Refusal of code wire.CannotType if
// text cannot be typed, with phone.ErrPartlyTyped if a part was, and with
// ErrKeyboardLeft alone if the text was typed and only the way back failed. The phone says nothing about
// what arrived: read the field back.
func (h *Helper) Type(ctx context.Context, text string) error {
	return h.alone(ctx, func() error { return h.typeText(ctx, h.fence, text) })
}

// SetClipboard puts text of at most 32 KiB into the clipboard; the server has to
// run, else it fails with a *wire.Refusal of code wire.ClipboardFailed. It returns what the server says; read the clipboard where it matters.
func (h *Helper) SetClipboard(ctx context.Context, text string) error {
	return h.setClipboardUnder(ctx, func() phone.Fence { return h.fence }, text)
}

// Clipboard returns the text in the clipboard, empty if there is none. From
// Android 10 on the keyboard is changed meanwhile, as Type does it.
func (h *Helper) Clipboard(ctx context.Context) (string, error) {
	return h.clipboardUnder(ctx, func() phone.Fence { return h.fence })
}

func (h *Helper) treeUnder(ctx context.Context, f func() phone.Fence) (b []byte, err error) {
	err = h.alone(ctx, func() error {
		b, err = h.tree(ctx, f())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("element tree by UiAutomator2: %w", err)
	}
	return b, nil
}

func (h *Helper) setClipboardUnder(ctx context.Context, f func() phone.Fence, text string) error {
	err := h.alone(ctx, func() error { return h.setClipboard(ctx, f(), text) })
	if err != nil {
		return fmt.Errorf("set the clipboard: %w", err)
	}
	return nil
}

func (h *Helper) clipboardUnder(ctx context.Context, f func() phone.Fence) (text string, err error) {
	err = h.alone(ctx, func() error {
		text, err = h.clipboard(ctx, f())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the clipboard: %w", err)
	}
	return text, nil
}

// Under returns the Helper's everyday methods under another fence: that of the
// lease that uses the phone now.
func (h *Helper) Under(f phone.Fence) phone.Helpers { return &leased{helper: h, fence: f} }

// leased is a Helper under a fence.
type leased struct {
	helper *Helper
	fence  phone.Fence
}

func (l *leased) asked() phone.Fence { return l.fence }

func (l *leased) Tree(ctx context.Context) ([]byte, error) { return l.helper.treeUnder(ctx, l.asked) }

func (l *leased) Type(ctx context.Context, text string) error {
	return l.helper.alone(ctx, func() error { return l.helper.typeText(ctx, l.fence, text) })
}

func (l *leased) SetClipboard(ctx context.Context, text string) error {
	return l.helper.setClipboardUnder(ctx, l.asked, text)
}

func (l *leased) Clipboard(ctx context.Context) (string, error) {
	return l.helper.clipboardUnder(ctx, l.asked)
}

func (l *leased) Running() bool { return l.helper.Running() }

func (l *leased) Stop(ctx context.Context) error { return l.helper.Stop(ctx) }

func (l *leased) Acted() { l.helper.Acted() }

// gone reports whether the connection itself has ended.
func gone(err error) bool { return errors.Is(err, adb.ErrDisconnected) }
