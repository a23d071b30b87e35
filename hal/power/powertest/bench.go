// Package powertest doubles hubs and phones for tests of what switches their power. A Bench has ports
// that tell the truth or one of the lies that hubs are known for, and phones behind them. It goes by
// time.Now, so that testing/synctest rules it.
package powertest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"phonerack/hal/power"
)

// ErrSilent is what hardware says that does not answer.
var ErrSilent = errors.New("the hub does not answer")

// Times that phones take.
const (
	Leave     = 300 * time.Millisecond // from the loss of data until a phone has left the bus
	Enumerate = 800 * time.Millisecond // from power until it is there
)

// Port says what a port does and who sits behind it. The zero value switches well.
type Port struct {
	Name  string // of the outlet
	Hub   string
	Path  string // port path; its hub is the part before the last dot
	Slots []int  // all of them hold a phone, unless Empty
	Empty bool

	DataOnly bool          // switching takes the data, phones go on charging
	NoEffect bool          // switching takes nothing, and the port says that it is off
	Repower  time.Duration // power comes back by itself after so long; 0 for never
	Repowers int           // how often it does so; 0 for each time
	Hidden   bool          // what comes back by itself is not admitted
	Silent   time.Duration // it does not answer for so long after it was switched on
	Stuck    bool          // it takes what it is told and does nothing
	Leave    time.Duration // that phones take to leave the bus; 0 for the usual
}

// Event is a change that a Supply has made.
type Event struct {
	At     time.Time
	Outlet string
	On     bool
}

// Bench is a rack of ports. It implements power.Phones and power.Hubs.
type Bench struct {
	// Blind phones do not tell whether they have charged.
	Blind bool

	mu          sync.Mutex // guards all below
	ports       []*port
	events      []Event
	generations map[string]int
}

type port struct {
	Port
	bench *Bench

	on       bool // as told, or after a reset
	at       time.Time
	comeback int  // times that power came back since the beginning
	itself   bool // it is on because the power came back
}

// New makes a bench whose ports are on, with phones that are there.
func New(ports ...Port) *Bench {
	b := &Bench{generations: map[string]int{}}
	for _, p := range ports {
		b.ports = append(b.ports, &port{Port: p, bench: b, on: true, at: time.Now().Add(-time.Hour)})
		b.generations[hubPath(p.Path)] = 1
	}
	return b
}

func hubPath(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return path
}

// Outlets gives the ports as a Supply takes them, with these times.
func (b *Bench) Outlets(offTime, settle time.Duration) (all []power.Outlet) {
	for _, p := range b.ports {
		all = append(all, power.Outlet{
			Name: p.Name, Hub: p.Hub, HubPath: hubPath(p.Path), Path: p.Path, Slots: p.Slots, Switch: p,
			Default: true, OffTime: offTime, Settle: settle,
		})
	}
	return all
}

// AllOff takes the power of all ports, as before a first start.
func (b *Bench) AllOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.ports {
		p.on, p.at = false, time.Now().Add(-time.Hour)
	}
}

// Reset makes the hub at the port path enumerate anew, with all its ports on.
func (b *Bench) Reset(hub string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.generations[hub]++
	for _, p := range b.ports {
		if hubPath(p.Path) == hub {
			p.on, p.at = true, time.Now()
		}
	}
}

// Events gives what was switched so far, by whom it may.
func (b *Bench) Events() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

// Powered tells whether the outlet's phones have power, whatever it says.
func (b *Bench) Powered(outlet string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.port(outlet)
	p.settle()
	return p.on || p.DataOnly || p.NoEffect
}

func (b *Bench) port(outlet string) *port {
	i := slices.IndexFunc(b.ports, func(p *port) bool { return p.Name == outlet })
	return b.ports[i] // a test that asks for another outlet is wrong
}

// settle applies what has happened by itself. The lock is held.
func (p *port) settle() {
	if p.on || p.Repower == 0 || p.Repowers > 0 && p.comeback >= p.Repowers || time.Since(p.at) < p.Repower {
		return
	}
	p.on, p.at = true, p.at.Add(p.Repower)
	p.comeback++
	p.itself = true
}

// Set implements power.Switch.
func (p *port) Set(ctx context.Context, on bool) error {
	p.bench.mu.Lock()
	defer p.bench.mu.Unlock()
	p.settle()
	if err := cmp.Or(ctx.Err(), p.silence()); err != nil {
		return err
	}
	p.itself = false
	if p.on != on && !p.Stuck {
		p.on, p.at = on, time.Now()
		p.bench.events = append(p.bench.events, Event{time.Now(), p.Name, on})
	}
	return nil
}

func (p *port) silence() error {
	if p.on && time.Since(p.at) < p.Silent {
		return ErrSilent
	}
	return nil
}

// On implements power.Switch.
func (p *port) On(ctx context.Context) (bool, error) {
	p.bench.mu.Lock()
	defer p.bench.mu.Unlock()
	p.settle()
	if err := cmp.Or(ctx.Err(), p.silence()); err != nil {
		return false, err
	}
	return p.on && !(p.Hidden && p.itself), nil
}

// Present implements power.Phones.
func (b *Bench) Present(slots []int) (there []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.ports {
		p.settle()
		since := time.Since(p.at)
		if p.Empty || !p.NoEffect && (p.on && since < Enumerate || !p.on && since >= cmp.Or(p.Leave, Leave)) {
			continue
		}
		for _, s := range p.Slots {
			if slices.Contains(slots, s) {
				there = append(there, s)
			}
		}
	}
	slices.Sort(there)
	return there
}

// Mark implements power.Phones.
func (b *Bench) Mark(_ context.Context, slots []int) []int {
	if b.Blind {
		return nil
	}
	return slots
}

// Charged implements power.Phones: phones of ports that lie say so, unless the bench is Blind.
func (b *Bench) Charged(_ context.Context, slots []int, _, _ time.Time) (power.Answer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := power.Unknown
	for _, p := range b.ports {
		if b.Blind || !slices.ContainsFunc(p.Slots, func(s int) bool { return slices.Contains(slots, s) }) {
			continue
		}
		if p.DataOnly || p.NoEffect {
			return power.Yes, true
		}
		answer = power.No
	}
	return answer, true
}

// Generation implements power.Hubs.
func (b *Bench) Generation(path string) (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.generations[path]
	return n, ok
}

// Store is a power.Store in memory.
type Store struct {
	mu      sync.Mutex // guards records
	records map[string]power.Record
	Fault   error // of Save, set before it is used
}

// Load implements power.Store.
func (s *Store) Load() (map[string]power.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]power.Record{}
	for name, r := range s.records {
		out[name] = r
	}
	return out, nil
}

// Save implements power.Store.
func (s *Store) Save(outlet string, r power.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Fault != nil {
		return s.Fault
	}
	if s.records == nil {
		s.records = map[string]power.Record{}
	}
	s.records[outlet] = r
	return nil
}
