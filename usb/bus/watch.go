//go:build linux

package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Kind says what happened to a phone.
type Kind int

const (
	Added   Kind = iota + 1 // the phone is there now
	Removed                 // the attachment has ended: unplugged, unpowered, rebooted or re-enumerated
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	switch k {
	case Added:
		return "added"
	case Removed:
		return "removed"
	}
	return "unknown"
}

// Event is one change of the list. A phone that was replugged at its port gives Removed, then
// Added with a new Address.
type Event struct {
	Kind   Kind
	Device Device
}

// Options says how to watch. The zero value watches /sys, hears the kernel and re-reads every 3 s.
type Options struct {
	Sysfs  string        // where sysfs is mounted, "" for /sys
	Reread time.Duration // at most this long until a missed event is made good; 0 for 3 s
	Settle time.Duration // wait after an event, so that a burst of them makes one re-read; 0 for 50 ms
	Logger *slog.Logger  // nil for silence
	Round  func()        // called after each re-read, and not while an event waits for its reader; may be nil

	// listen replaces the kernel's socket in tests; nil for the kernel's.
	listen func() (events, error)
}

// events is where a Watcher hears that it should look again.
type events interface {
	wait() error // blocks until something happened
	close() error
}

// Watcher keeps the list of phones. Its goroutines end with the context given to Watch.
type Watcher struct {
	opts   Options
	events chan Event // closed by run when the context ends
	wake   chan struct{}
	seen   map[string]Device // by port path; only run touches it
	fault  string            // the last scan's fault, so that it is logged once
}

// Watch starts watching. Phones that are there already come as Added events.
func Watch(ctx context.Context, opts Options) *Watcher {
	if opts.Reread <= 0 {
		opts.Reread = 3 * time.Second
	}
	if opts.Settle <= 0 {
		opts.Settle = 50 * time.Millisecond
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.listen == nil {
		opts.listen = func() (events, error) { return listenUevents() }
	}
	w := &Watcher{opts: opts, events: make(chan Event), wake: make(chan struct{}, 1), seen: map[string]Device{}}
	go w.run(ctx)
	return w
}

// Events gives the changes in order. The channel is closed when the context has ended and
// nothing of the watcher runs any more. A slow reader delays only what it reads.
func (w *Watcher) Events() <-chan Event { return w.events }

func (w *Watcher) run(ctx context.Context) {
	defer close(w.events)
	var hearing sync.WaitGroup
	defer hearing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hearing.Go(func() { w.hear(ctx) })

	tick := time.NewTicker(w.opts.Reread)
	defer tick.Stop()
	for w.look(ctx) {
		if w.opts.Round != nil {
			w.opts.Round()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.wake:
			select {
			case <-ctx.Done():
				return
			case <-time.After(w.opts.Settle):
			}
		}
	}
}

// look re-reads sysfs and sends what changed; false when the context has ended. A phone that
// could not be read just now is not taken for gone: only what sysfs no longer shows is.
func (w *Watcher) look(ctx context.Context) bool {
	devices, faults, err := scan(w.opts.Sysfs, w.seen)
	w.report(faults, err)
	if err != nil {
		return ctx.Err() == nil
	}
	now := make(map[string]Device, len(devices))
	for _, d := range devices {
		now[d.Path] = d
	}
	for path, was := range w.seen {
		if is, ok := now[path]; ok && is.Same(was) || faults[path] != nil {
			continue
		}
		if !w.send(ctx, Event{Removed, was}) {
			return false
		}
		delete(w.seen, path)
	}
	for _, d := range devices {
		if _, ok := w.seen[d.Path]; ok {
			continue
		}
		if !w.send(ctx, Event{Added, d}) {
			return false
		}
		w.seen[d.Path] = d
	}
	return ctx.Err() == nil
}

func (w *Watcher) send(ctx context.Context, e Event) bool {
	select {
	case w.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// report logs a fault of scanning when it is new, and its end.
func (w *Watcher) report(faults map[string]error, err error) {
	now := ""
	switch {
	case err != nil:
		now = err.Error()
	case len(faults) > 0:
		now = fmt.Sprint(faults) // maps print in the order of their keys
	}
	switch {
	case now == w.fault:
	case now != "":
		w.opts.Logger.Warn("some USB devices cannot be read", "err", now)
	default:
		w.opts.Logger.Info("all USB devices can be read again")
	}
	w.fault = now
}

// hear turns kernel events into wake-ups. Without them the periodic re-read still finds everything,
// so a fault here is logged, and the socket opened anew after a while.
func (w *Watcher) hear(ctx context.Context) {
	for ctx.Err() == nil {
		w.hearOnce(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(w.opts.Reread):
		}
	}
}

func (w *Watcher) hearOnce(ctx context.Context) {
	source, err := w.opts.listen()
	if err != nil {
		w.opts.Logger.Warn("no kernel events: plugs are noticed by re-reading only", "every", w.opts.Reread, "err", err)
		return
	}
	stop := context.AfterFunc(ctx, func() { source.close() })
	defer func() {
		if stop() {
			source.close()
		}
	}()
	for {
		if err := source.wait(); err != nil {
			if ctx.Err() == nil {
				w.opts.Logger.Warn("kernel events ended", "err", err)
			}
			return
		}
		select {
		case w.wake <- struct{}{}:
		default: // a look is due already
		}
	}
}
