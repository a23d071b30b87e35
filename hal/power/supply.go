package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"phonerack/hal/board"
)

// By says on whose behalf something is switched.
type By string

// Who switches: Automatic is refused during maintenance.
const (
	Automatic By = "automatic"
	Person    By = "person"
)

// Errors that callers decide on.
var (
	ErrMaintenance = errors.New("maintenance: nothing is switched that nobody has asked for")
	ErrNoOutlet    = errors.New("there is no such outlet")
	ErrUplink      = errors.New("the rack's own uplink would lose its power")
	ErrNotSet      = errors.New("the hardware does not do what it was told")
	ErrOvertaken   = errors.New("somebody has asked for the contrary meanwhile")
)

// Record is what is remembered of an outlet.
type Record struct {
	On  bool `json:"on"` // wanted
	Cut Cut  `json:"cut,omitempty"`
}

// Store keeps records over restarts. Save returns when the record would outlive a cut of power.
type Store interface {
	Load() (map[string]Record, error)
	Save(outlet string, r Record) error
}

// Phones tells what is seen of the phones in slots. Calls must not block for long.
type Phones interface {
	// Present gives those of the slots whose phone is on the bus: the kernel lists it, and, where that can be
	// told, it answers. A port that was switched by a request may leave a dead phone on the list.
	Present(slots []int) []int
	// Mark has the phones of slots, whose outlet is about to be switched off, say what Charged compares with. It gives those
	// that did.
	Mark(ctx context.Context, slots []int) (marked []int)
	// Charged tells whether the phones of the slots had power between two moments in which their outlet was off:
	// they say so afterwards. Unknown is an honest answer; over is false while they have not been asked and may still
	// come back to say it.
	Charged(ctx context.Context, slots []int, from, to time.Time) (a Answer, over bool)
}

// Hubs tells when a hub has come anew; *USB is one.
type Hubs interface {
	// Generation is a number that changes when the hub at the port path enumerates; false while it is not there.
	Generation(path string) (n int, ok bool)
}

// Config says what a supply is made of. The zero value of a duration is its default.
type Config struct {
	Outlets    []Outlet
	Uplink     string // port path that must keep its power; "" for none
	Stagger    time.Duration
	Concurrent int
	Store      Store
	Phones     Phones
	Hubs       Hubs
	Logger     *slog.Logger // nil for silence

	Poll    time.Duration // between two looks whether all is as wanted; 2 s
	Leave   time.Duration // how long phones may take to leave the bus; 3 s
	Return  time.Duration // how long phones may take to come back after a cycle, before it is over; 15 s
	Silence time.Duration // how long hardware may be silent before it has failed; 5 s
}

// Supply switches the outlets of a rack. Its methods may be called by several goroutines.
type Supply struct {
	config  Config
	log     *slog.Logger
	outlets []*outlet
	hubs    map[string]chan struct{} // a token for each hub: one operation at a time
	room    chan struct{}            // a token for each of Config.Concurrent
	wake    chan struct{}            // makes Run look at once

	saving sync.Mutex // held from the making of a record until it is stored; before mu

	mu          sync.Mutex // guards the following, and the fields of outlets that say so
	nextOn      time.Time  // earliest moment for the next thing to be switched on
	maintenance bool
}

// outlet is an Outlet with what is known of it.
type outlet struct {
	Outlet

	// Guarded by Supply.mu.
	record    Record
	offAt     time.Time // when power was taken last; zero when that was before us and is not known
	setAt     time.Time // when it was switched last
	trial     *trial    // its phones have not said yet what the last taking did; nil for none
	busy      string    // what is being done, "" for nothing
	fault     error     // of the last operation
	repowered int       // times that it had power without being asked for
	inARow    int       // times that it was not as wanted, since it was so for a while
	wrongAt   time.Time // when that was last
	resets    int       // times that its hub's reset gave it power
	silent    time.Duration
	restAfter time.Time // nothing is put right before
}

// State is what is known of an outlet.
type State struct {
	Name, Hub string
	Slots     []int
	Wanted    bool // on
	Cut       Cut
	Busy      string        // "switching on", "switching off", "cycling", or ""
	Fault     error         // of the last operation
	Repowered int           // times that power came back by itself
	Resets    int           // times that a reset of the hub gave power back
	Silent    time.Duration // longest time that the hardware did not answer after switching
}

// New checks a configuration and reads the store; nothing is switched yet.
func New(c Config) (*Supply, error) {
	c.Stagger = cmp.Or(c.Stagger, 500*time.Millisecond)
	c.Concurrent = max(c.Concurrent, 1)
	c.Poll = cmp.Or(c.Poll, 2*time.Second)
	c.Leave = cmp.Or(c.Leave, 3*time.Second)
	c.Return = cmp.Or(c.Return, 15*time.Second)
	c.Silence = cmp.Or(c.Silence, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	records, err := c.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("read the wanted states: %w", err)
	}
	s := &Supply{config: c, log: c.Logger, hubs: map[string]chan struct{}{}, room: make(chan struct{}, c.Concurrent), wake: make(chan struct{}, 1)}
	names := map[string]bool{}
	for _, o := range c.Outlets {
		switch {
		case names[o.Name]:
			return nil, fmt.Errorf("two outlets are called %s", o.Name)
		case o.cuts(c.Uplink):
			return nil, fmt.Errorf("%s feeds port %s: %w", o.Name, c.Uplink, ErrUplink)
		}
		names[o.Name] = true
		o.OffTime = max(o.OffTime, board.MinOff)
		r, known := records[o.Name]
		if !known {
			r.On = o.Default
		}
		s.outlets = append(s.outlets, &outlet{Outlet: o, record: r})
		if s.hubs[o.Hub] == nil {
			s.hubs[o.Hub] = make(chan struct{}, 1)
		}
	}
	return s, nil
}

// States gives all outlets in the order of the configuration.
func (s *Supply) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []State
	for _, o := range s.outlets {
		all = append(all, State{
			Name: o.Name, Hub: o.Hub, Slots: slices.Clone(o.Slots), Wanted: o.record.On, Cut: o.record.Cut, Busy: o.busy,
			Fault: o.fault, Repowered: o.repowered, Resets: o.resets, Silent: o.silent,
		})
	}
	return all
}

// SetMaintenance begins or ends maintenance. At its end what is wanted is applied again.
func (s *Supply) SetMaintenance(on bool) {
	s.mu.Lock()
	s.maintenance = on
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // a look is due already
	}
}

// Maintenance reports whether it is on.
func (s *Supply) Maintenance() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maintenance
}

// find gives an outlet that may be switched now.
func (s *Supply) find(name string, by By) (*outlet, error) {
	i := slices.IndexFunc(s.outlets, func(o *outlet) bool { return o.Name == name })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%s: %w", name, ErrNoOutlet)
	case s.still(by) != nil:
		return nil, fmt.Errorf("switch %s: %w", name, ErrMaintenance)
	}
	return s.outlets[i], nil
}

// Set says what is wanted of an outlet and does it. It blocks until that is done and its effect was
// looked for, or the context ends; then the wanted state stays, and Run applies it. A NotCutError says that
// phones have their power all the same. What somebody has asked for last is done: an order that waited for its turn meanwhile,
// ErrOvertaken, would be undone at once.
func (s *Supply) Set(ctx context.Context, name string, on bool, by By) error {
	o, err := s.find(name, by)
	if err != nil {
		return err
	}
	was := s.wanted(o)
	if err := s.want(o, on); err != nil {
		return err
	}
	doing := "switching off"
	if on {
		doing = "switching on"
	}
	s.log.Info("power", "outlet", name, "on", on, "by", by)
	err = s.operate(ctx, o, doing, by, on, func() error {
		if !on {
			return s.turnOff(ctx, o, by)
		}
		if is, ok := s.isOn(ctx, o); ok && is {
			return nil // nothing is touched that is as wanted
		}
		return s.turnOn(ctx, o, by)
	})
	if errors.Is(err, ErrMaintenance) && s.wanted(o) == on { // what was refused is not wanted afterwards either
		err = errors.Join(err, s.want(o, was))
	}
	return err
}

// Cycle takes the power of an outlet for its OffTime and gives it back; what is wanted is on from then.
// It blocks until the phones that were there are back, or could have been. When the context ends meanwhile,
// the power is given back all the same, after board.MinOff: this takes a few seconds.
func (s *Supply) Cycle(ctx context.Context, name string, by By) error {
	o, err := s.find(name, by)
	if err != nil {
		return err
	}
	if err := s.want(o, true); err != nil { // a cut of power now must not leave it off
		return err
	}
	s.log.Info("power", "outlet", name, "cycle", o.OffTime, "by", by)
	return s.operate(ctx, o, "cycling", by, true, func() error { return s.cycle(ctx, o, by) })
}

// want stores what is wanted before it is done.
func (s *Supply) want(o *outlet, on bool) error {
	if err := s.change(o, func(r *Record) { r.On = on }); err != nil {
		return fmt.Errorf("store what is wanted of %s: %w", o.Name, err)
	}
	return nil
}

// found remembers what switching an outlet off does. It returns nil, or a NotCutError when it takes no power. That a hub resets,
// or does not any more, holds for all its ports: each further one would take all its phones away to be found out.
func (s *Supply) found(o *outlet, cut Cut) error {
	was := s.recordOf(o).Cut
	err := s.remember(o, cut)
	for _, other := range s.outlets {
		switch {
		case other == o || other.Hub != o.Hub || !other.isPort():
		case cut == ResetsHub:
			err = errors.Join(err, s.remember(other, cut))
		case was == ResetsHub && cut.Works() && s.recordOf(other).Cut == was:
			err = errors.Join(err, s.remember(other, Unseen))
		}
	}
	if err != nil {
		return err
	}
	if !cut.Works() {
		return &NotCutError{o.Name, cut}
	}
	return nil
}

func (s *Supply) remember(o *outlet, cut Cut) error {
	err := s.change(o, func(r *Record) {
		if r.Cut != cut {
			s.log.Info("effect of switching off", "outlet", o.Name, "is", cut.String())
		}
		r.Cut = cut
	})
	if err != nil {
		return fmt.Errorf("store what switching %s off does: %w", o.Name, err)
	}
	return nil
}

// change stores a record that differs from the one before.
func (s *Supply) change(o *outlet, f func(*Record)) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	was := s.recordOf(o)
	r := was
	if f(&r); r == was {
		return nil
	}
	if err := s.config.Store.Save(o.Name, r); err != nil {
		return err
	}
	s.note(o, func() { o.record = r })
	return nil
}

func (s *Supply) recordOf(o *outlet) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.record
}
