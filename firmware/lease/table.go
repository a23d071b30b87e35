package lease

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/sync/wire"
)

// Kind says what a lease is for.
type Kind string

// Kinds of lease.
const (
	Task     Kind = "task"
	Hold     Kind = "hold"
	Recovery Kind = "recovery"
	Sign     Kind = "sign" // shows people the way, and gives way: to everybody else the slot is free
)

// Identify is who has recovery's lease while a phone shows where it is.
const Identify = "identify"

// Holder is who has a lease. Who is the person who took the hold or started the task.
type Holder struct {
	Kind    Kind   `json:"kind"`
	Who     string `json:"who"`
	TaskID  string `json:"task_id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
}

// String is the holder as sentences name it.
func (h Holder) String() string {
	switch h.Kind {
	case Task:
		return fmt.Sprintf("task %s, started by %s", h.TaskID, h.Who)
	case Recovery:
		if h.Who == Identify {
			return "identify, which shows where it is"
		}
		return "recovery of the phone"
	}
	return h.Who
}

// DefaultMaxHold bounds a hold.
const DefaultMaxHold = 15 * time.Minute

// Options rule a Table. Only Now is needed.
type Options struct {
	Now     func() time.Duration // monotonic; rackd gives BootTime
	Wall    func() time.Time     // for sentences only; nil means time.Now
	MaxHold time.Duration        // 0 means DefaultMaxHold
}

// State is a lease as others see it.
type State struct {
	Slot   int       `json:"slot"`
	Holder Holder    `json:"holder"`
	Until  time.Time `json:"until"` // by the wall clock, which may be wrong
}

// A Change is sent to watchers when a slot's lease begins, is renewed or ends.
type Change struct {
	Slot  int
	State *State // nil when the slot is free
}

// A Table holds the leases of a rack. It is safe for concurrent use.
type Table struct {
	options Options
	maxHold atomic.Int64 // a time.Duration

	mu       sync.Mutex
	slots    map[int][]*Lease // guarded by mu; the last one is valid, an earlier one is the hold that it covers
	watchers map[chan Change]bool
}

// A Lease is one slot's, until it ends. It is safe for concurrent use.
type Lease struct {
	table  *Table
	slot   int
	holder Holder

	// Guarded by table.mu.
	until    time.Duration
	lent     time.Duration // end of the longest of the acts that borrow it; 0 without one
	users    int           // acts that borrow it at the moment
	explicit bool          // taken for longer than one act
	ended    bool
	done     chan struct{} // closed by end
}

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.MaxHold == 0 {
		o.MaxHold = DefaultMaxHold
	}
	t := &Table{options: o, slots: map[int][]*Lease{}, watchers: map[chan Change]bool{}}
	t.SetMaxHold(o.MaxHold)
	return t
}

// DefaultHold is how long a hold lasts when nothing else is said.
func (t *Table) DefaultHold() time.Duration {
	return min(DefaultMaxHold, time.Duration(t.maxHold.Load()))
}

// SetMaxHold changes how long a hold may be; those that there are keep their ends.
func (t *Table) SetMaxHold(d time.Duration) { t.maxHold.Store(int64(d)) }

// Acquire leases a free slot for d, and ends a sign's lease. The holder of a hold who acquires again renews it and gets the
// same lease; a task of that person covers it. Everyone else is refused with slot_busy.
func (t *Table) Acquire(slot int, h Holder, d time.Duration) (*Lease, error) {
	if err := t.checkTerm(h, d); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepSlot(slot)
	t.oust(slot)
	current := t.current(slot)
	switch {
	case current == nil:
	case current.holder.Kind == Hold && current.holder.Who == h.Who && h.Kind == Hold:
		current.explicit = true
		current.until = t.options.Now() + d
		t.notify(slot)
		return current, nil
	case current.holder.Kind == Hold && current.holder.Who == h.Who && h.Kind == Task && current.users == 0:
	default:
		return nil, t.busy(current)
	}
	return t.add(slot, h, d, true), nil
}

// Borrow gives a person the slot for one act of at most d: under the person's own hold if there is one, else under a
// short hold. An act may outlast the hold, which then ends with it. The returned function ends the act and must be called.
func (t *Table) Borrow(slot int, who string, d time.Duration) (*Lease, func(), error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepSlot(slot)
	t.oust(slot)
	l := t.current(slot)
	switch {
	case l == nil:
		l = t.add(slot, Holder{Kind: Hold, Who: who}, d, false)
	case l.holder.Kind == Hold && l.holder.Who == who:
	default:
		return nil, nil, t.busy(l)
	}
	l.users++
	l.lent = max(l.lent, t.options.Now()+d)
	return l, sync.OnceFunc(func() { t.giveBack(l) }), nil
}

func (t *Table) giveBack(l *Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.lent = 0
	if !l.explicit {
		t.end(l)
	}
	t.sweepSlot(l.slot)
}

// Lookup returns the slot's valid lease, if there is one that others have to wait for: a sign's is none.
func (t *Table) Lookup(slot int) (State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepSlot(slot)
	l := t.current(slot)
	if l == nil || l.holder.Kind == Sign {
		return State{}, false
	}
	return t.state(l), true
}

// Release ends the person's hold on a slot, also one that a task of that person covers. It is no error if there is
// none; another holder is slot_busy.
func (t *Table) Release(slot int, who string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepSlot(slot)
	for _, l := range t.slots[slot] {
		if l.holder.Kind == Hold && l.holder.Who == who {
			t.end(l)
			return nil
		}
	}
	if l := t.current(slot); l != nil && l.holder.Kind != Sign {
		return t.busy(l)
	}
	return nil
}

// Sweep ends the leases whose time is over. Without it they refuse all the same; with it watchers and Done learn of it.
func (t *Table) Sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for slot := range t.slots {
		t.sweepSlot(slot)
	}
}

// Watch returns a channel of changes and a function that ends it. A reader that falls behind by more than 64 changes
// misses some; Lookup tells the truth.
func (t *Table) Watch() (<-chan Change, func()) {
	changes := make(chan Change, 64) // closed by the returned function
	t.mu.Lock()
	t.watchers[changes] = true
	t.mu.Unlock()
	return changes, sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watchers, changes)
		close(changes)
	})
}

func (t *Table) checkTerm(h Holder, d time.Duration) error {
	if d <= 0 {
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": "a lease must last longer than nothing"})
	}
	if most := time.Duration(t.maxHold.Load()); h.Kind == Hold && d > most {
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("a slot can be held for %v at most", most)})
	}
	return nil
}

// The functions below are called with mu held.

func (t *Table) add(slot int, h Holder, d time.Duration, explicit bool) *Lease {
	l := &Lease{table: t, slot: slot, holder: h, until: t.options.Now() + d, explicit: explicit, done: make(chan struct{})}
	t.slots[slot] = append(t.slots[slot], l)
	t.notify(slot)
	return l
}

func (t *Table) current(slot int) *Lease {
	stack := t.slots[slot]
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

// oust ends a sign's lease.
func (t *Table) oust(slot int) {
	if l := t.current(slot); l != nil && l.holder.Kind == Sign {
		t.end(l)
	}
}

// term is when a lease ends: an act that borrows it is not cut by its end.
func (l *Lease) term() time.Duration { return max(l.until, l.lent) }

func (t *Table) sweepSlot(slot int) {
	now := t.options.Now()
	for _, l := range slices.Clone(t.slots[slot]) {
		if l.term() <= now {
			t.end(l)
		}
	}
}

func (t *Table) end(l *Lease) {
	if l.ended {
		return
	}
	l.ended = true
	close(l.done)
	rest := slices.DeleteFunc(t.slots[l.slot], func(other *Lease) bool { return other == l })
	if len(rest) == 0 {
		delete(t.slots, l.slot)
	} else {
		t.slots[l.slot] = rest
	}
	t.notify(l.slot)
}

func (t *Table) notify(slot int) {
	change := Change{Slot: slot}
	if l := t.current(slot); l != nil && l.holder.Kind != Sign {
		state := t.state(l)
		change.State = &state
	}
	for w := range t.watchers {
		select {
		case w <- change:
		default:
		}
	}
}

func (t *Table) state(l *Lease) State {
	left := l.term() - t.options.Now()
	return State{Slot: l.slot, Holder: l.holder, Until: t.options.Wall().Add(left).Round(time.Second)}
}

func (t *Table) busy(l *Lease) error {
	until := t.state(l).Until.UTC().Format(time.RFC3339)
	return wire.Refuse(wire.SlotBusy, map[string]any{"slot": l.slot, "holder": l.holder.String(), "until": until}).
		After(l.term() - t.options.Now())
}
