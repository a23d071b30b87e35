package watchdog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Options say how a Feeder works. Only Device is needed.
type Options struct {
	Device Device
	Parts  *Parts // that have to make progress; nil for some of its own, at first none
	// Disarm stops the device at an orderly end; without it the device runs on through the shutdown.
	Disarm bool
	// Late is told which parts are late before feeding stops, and nil when they all report again. It is called from
	// Run, which waits for it: it must not block.
	Late   func([]Lateness)
	Logger *slog.Logger
}

// A Feeder feeds a device while every part makes progress. It is safe for concurrent use.
type Feeder struct {
	*Parts
	options Options
}

// NewFeeder returns a feeder of the parts in the options. The device is not fed before Run.
func NewFeeder(o Options) *Feeder {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Parts == nil {
		o.Parts = NewParts()
	}
	return &Feeder{Parts: o.Parts, options: o}
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
	if f.none() {
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
