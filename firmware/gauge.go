package firmware

import (
	"context"
	"slices"
	"sync"
	"time"

	"phonerack/agent/phone"
	"phonerack/hal/power"
)

// gauges are what phones said of their batteries before their power was taken, by slot.
type gauges struct {
	mu     sync.Mutex // guards marked
	marked map[int]phone.Gauge
}

// Mark implements power.Phones. A phone that has another source of power than its cable can tell nothing.
func (p onTheBus) Mark(ctx context.Context, slots []int) (marked []int) {
	read := p.read(ctx, slots)
	p.r.gauges.mu.Lock()
	defer p.r.gauges.mu.Unlock()
	for _, n := range slots {
		delete(p.r.gauges.marked, n)
		if g, ok := read[n]; ok && !g.Faked && (g.Plugged == "usb" || g.Plugged == "ac") {
			p.r.gauges.marked[n] = g
			marked = append(marked, n)
		}
	}
	return marked
}

// Charged implements power.Phones. Each phone is asked once, when it is back. One that was on battery while its power was off
// answers for all: theirs went with it.
func (p onTheBus) Charged(ctx context.Context, slots []int, from, to time.Time) (a power.Answer, over bool) {
	p.r.gauges.mu.Lock()
	slots = slices.DeleteFunc(slices.Clone(slots), func(n int) bool { _, ok := p.r.gauges.marked[n]; return !ok })
	p.r.gauges.mu.Unlock()
	read := p.read(ctx, slots)
	p.r.gauges.mu.Lock()
	defer p.r.gauges.mu.Unlock()
	for n, g := range read {
		is := charged(p.r.gauges.marked[n], g, to.Sub(from))
		p.r.log.Info("a phone tells of the time when its power was off", "slot", n, "had_power", is.String(), "off", to.Sub(from))
		if delete(p.r.gauges.marked, n); is == power.No || a == power.Unknown {
			a = is
		}
	}
	return a, a != power.Unknown || len(read) == len(slots)
}

// longOff is how long the power must have been off for a battery's level and counter to tell: they move in steps, and late.
const longOff = 15 * time.Minute

// charged compares what a phone says of its battery with what it said before its power was off for so long. Android counts the
// time that it runs on battery, to which the steps of a gauge are nothing.
func charged(before, after phone.Gauge, off time.Duration) power.Answer {
	if after.Faked {
		return power.Unknown
	}
	if before.Stats != "" && after.Stats != "" {
		ran, same := after.OnBattery-before.OnBattery, after.Stats == before.Stats
		switch {
		case same && ran >= off/2:
			return power.No
		case same && ran >= 0 && ran <= off/4:
			return power.Yes
		case !same && after.OnBattery >= off/2 && after.OnBattery <= off+longOff:
			return power.No // they begin anew when a full phone is unplugged
		}
	}
	if off < longOff {
		return power.Unknown
	}
	for _, pair := range [][2]int{{before.Counter, after.Counter}, {before.Level, after.Level}} {
		switch was, is := pair[0], pair[1]; {
		case was == phone.Unknown || is == phone.Unknown:
		case is < was:
			return power.No
		case is > was:
			return power.Yes
		}
	}
	return power.Unknown
}

// read asks the phones of slots at once, and gives those that have answered.
func (p onTheBus) read(ctx context.Context, slots []int) map[int]phone.Gauge {
	var (
		mu     sync.Mutex // guards all
		all    = map[int]phone.Gauge{}
		asking sync.WaitGroup
	)
	for _, n := range slots {
		s := p.r.slots[n]
		if s == nil {
			continue
		}
		_, l := s.snapshot()
		if l == nil || l.phone == nil {
			continue
		}
		asking.Go(func() {
			defer s.survive("reading a battery")
			g, err := l.phone.Gauge(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all[n] = g
		})
	}
	asking.Wait()
	return all
}
