package watchdog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say how a Feeder works. Only Device is needed.
type Options struct {
	Device Device
	// Disarm stops the device at an orderly end; without it the device runs on through the shutdown.
	Disarm bool
	// Late is told which parts are late before feeding stops, and nil when they all report again. It is called from
	// Run, which waits for it: it must not block.
	Late   func([]Lateness)
	Logger *slog.Logger
}

// Lateness is a part that has not reported within its bound.
type Lateness struct {
	Part   string
	Bound  time.Duration
	Silent time.Duration // since its last report
}

// String is for logs.
func (l Lateness) String() string {
	return fmt.Sprintf("%s silent for %v, bound %v", l.Part, l.Silent.Round(time.Millisecond), l.Bound)
}

// A Feeder feeds a device while every part makes progress. It is safe for concurrent use.
type Feeder struct {
	options Options

	mu    sync.Mutex
	parts map[string]*Part // guarded by mu
}

// A Part is one critical part of the program.
type Part struct {
	feeder *Feeder
	name   string
	bound  time.Duration
	seen   time.Time // guarded by feeder.mu
}

// NewFeeder returns a feeder without parts. The device is not fed before Run.
func NewFeeder(o Options) *Feeder {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Feeder{options: o, parts: map[string]*Part{}}
}

// Part registers a critical part that reports at least every bound, counted from now. A second part of the same name
// replaces the first, as when its owner was restarted.
func (f *Feeder) Part(name string, bound time.Duration) *Part {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &Part{feeder: f, name: name, bound: bound, seen: time.Now()}
	f.parts[name] = p
	return p
}

// Progress reports that a round of the part's work is done.
func (p *Part) Progress() {
	p.feeder.mu.Lock()
	defer p.feeder.mu.Unlock()
	p.seen = time.Now()
}

// End takes the part out: it has ended in an orderly way.
func (p *Part) End() {
	p.feeder.mu.Lock()
	defer p.feeder.mu.Unlock()
	if p.feeder.parts[p.name] == p {
		delete(p.feeder.parts, p.name)
	}
}

// Late lists the parts that are late now, by name.
func (f *Feeder) Late() []Lateness {
	f.mu.Lock()
	defer f.mu.Unlock()
	var late []Lateness
	for _, p := range f.parts {
		if silent := time.Since(p.seen); silent > p.bound {
			late = append(late, Lateness{p.name, p.bound, silent})
		}
	}
	slices.SortFunc(late, func(a, b Lateness) int { return strings.Compare(a.Part, b.Part) })
	return late
}

// Run feeds the device until ctx ends, which is the orderly end, then closes it. It looks four times within a timeout.
// Without a single part nothing has shown progress, and nothing is fed.
func (f *Feeder) Run(ctx context.Context) error {
	tick := time.NewTicker(f.options.Device.Timeout() / 4)
	defer tick.Stop()
	var said string
	for {
		said = f.round(said)
		select {
		case <-ctx.Done():
			return f.end()
		case <-tick.C:
		}
	}
}

// round feeds, or says why not; said names the parts that were late before.
func (f *Feeder) round(said string) string {
	f.mu.Lock()
	none := len(f.parts) == 0
	f.mu.Unlock()
	if none {
		return said
	}
	late := f.Late()
	names := make([]string, len(late))
	for i, l := range late {
		names[i] = l.Part
	}
	if now := strings.Join(names, ", "); now != said {
		said = now
		f.say(late)
	}
	if len(late) > 0 {
		return said
	}
	if err := f.options.Device.Feed(); err != nil {
		f.options.Logger.Error("the watchdog cannot be fed", "err", err)
	}
	return said
}

// say tells who is late.
func (f *Feeder) say(late []Lateness) {
	if len(late) == 0 {
		f.options.Logger.Warn("every part makes progress again; the watchdog is fed")
	} else {
		f.options.Logger.Error("a part makes no progress; the watchdog is not fed, and resets the board", "late", fmt.Sprint(late), "within", f.options.Device.Timeout())
	}
	if f.options.Late != nil {
		f.options.Late(late)
	}
}

// end closes the device. One that stays armed gets its whole timeout for the shutdown, if all is well.
func (f *Feeder) end() error {
	if len(f.Late()) == 0 {
		if err := f.options.Device.Feed(); err != nil {
			f.options.Logger.Error("the watchdog cannot be fed", "err", err)
		}
	}
	if k, ok := f.options.Device.(*Kernel); ok && f.options.Disarm && k.Stays() {
		f.options.Logger.Warn("this watchdog cannot be stopped; it resets the board unless something else feeds it", "within", k.Timeout())
	}
	if err := f.options.Device.Close(f.options.Disarm); err != nil {
		return fmt.Errorf("close the watchdog: %w", err)
	}
	return nil
}
