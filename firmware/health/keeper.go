package health

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A Place is a slot as the board has it.
type Place struct {
	Slot      int
	Hub       string // port path of its hub; slots with the same one lose their power together in a HubCycle
	PortPower bool   // the port can be switched alone, and its VBUS is really cut (UH#319, #617)
	HubPower  bool   // the hub can be switched
}

// Memory is where ledger and quarantines are kept. *Records is one.
type Memory interface {
	// Load gives what was saved last; what cannot be read is left out.
	Load() (Remembered, error)
	// Save replaces the records in r and leaves the others; all are on disk when it returns nil, or none.
	Save(r Remembered) error
}

// Options are what a Keeper works with. Log and Wall may be nil.
type Options struct {
	Config Config
	Places []Place
	Memory Memory
	Now    func() time.Duration     // boot time: never goes back, runs on in suspend
	Wall   func() (time.Time, bool) // the wall clock, and whether it can be trusted
	Log    *slog.Logger
	// Ended is called when an order has ended, lost ones too. It must not block, nor call the keeper; nil for nobody.
	Ended func(slot int, rung Rung, how Outcome)
}

// A Keeper follows the health of a rack's slots. It is safe for concurrent use.
type Keeper struct {
	o Options

	saving sync.Mutex // held from the making of a record until it is on disk, so that no older one comes last; before mu

	mu          sync.Mutex // guards what follows; not held while Memory works
	slots       []*place   // by number
	hubs        map[string]*hub
	phones      map[string]*quarantine // by phone
	maintenance bool
	orders      uint64
	undated     bool // acts of before this boot wait for a clock
}

// hub is what slots share.
type hub struct {
	path   string
	slots  []*place
	busy   *Order  // the one that is being carried out
	lie    Lie     // what its power does instead of going
	cycles []entry // its power cycles, newest last
}

// place is one slot with what sits there.
type place struct {
	Place
	hub *hub

	phone     string // key of the phone that is there or was there last; "" if none is expected
	model     string
	confirmed Diagnosis
	seen      seen
	agreed    int           // looks in a row with the diagnosis of seen
	deaf      time.Duration // looks before this time are of a phone that is still settling
	nextLook  time.Duration
	state     State
	since     time.Duration // of state
	wellAt    time.Duration // since when it is well; 0 if it is not
	losses    []time.Duration
	leased    bool
	hands     bool // maintenance of this slot
	dark      bool // a person has switched it off
	left      bool // it has left the bus since it was seen last
	lie       Lie  // what the port's power does instead of going
	notCut    bool // its port was off, and the phone stayed
	present   int  // looks in a row that saw a phone at a port that is off
	dirty     bool // its record is to be written with the next orders

	ladder ladder
	care   care
	ledger []entry // oldest first
}

// ladder is how far an episode of illness is.
type ladder struct {
	from  Rung          // milder ones are done with
	tries int           // of from, in this episode
	at    time.Duration // next act at the earliest
	spent bool          // nothing is left to try: until something changes
	waits time.Duration // since when a hub's cycle waits for leases; 0 if it does not
}

// New returns a keeper that goes on where the records end.
func New(o Options) (*Keeper, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wall == nil {
		o.Wall = func() (time.Time, bool) { return time.Time{}, false }
	}
	k := &Keeper{o: o, hubs: map[string]*hub{}, phones: map[string]*quarantine{}}
	now := o.Now()
	for i, p := range o.Places {
		h := k.hubs[p.Hub]
		if h == nil {
			h = &hub{path: p.Hub}
			k.hubs[p.Hub] = h
		}
		// Looks are spread over the interval, so that a rack's phones are not asked all at once.
		spread := o.Config.Probe.Interval.of() * time.Duration(i) / time.Duration(len(o.Places))
		s := &place{Place: p, hub: h, state: Starting, since: now, nextLook: now + spread}
		s.care.power = true
		h.slots = append(h.slots, s)
		k.slots = append(k.slots, s)
	}
	slices.SortFunc(k.slots, func(a, b *place) int { return a.Slot - b.Slot })
	for i := 1; i < len(k.slots); i++ {
		if k.slots[i].Slot == k.slots[i-1].Slot {
			return nil, fmt.Errorf("health: slot %d is there twice", k.slots[i].Slot)
		}
	}
	if o.Memory != nil {
		remembered, err := o.Memory.Load()
		if err != nil {
			return nil, fmt.Errorf("read what is remembered of the slots' health: %w", err)
		}
		k.recall(remembered, now)
	}
	return k, nil
}

func (k *Keeper) at(n int) *place {
	if i, ok := slices.BinarySearchFunc(k.slots, n, func(s *place, n int) int { return s.Slot - n }); ok {
		return k.slots[i]
	}
	return nil
}

// Due lists the slots whose phones are to be looked at now, and gives when to ask again. Each slot's looks keep their
// own time, whatever other slots do.
func (k *Keeper) Due() (slots []int, next time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	interval := k.o.Config.Probe.Interval.of()
	next = now + interval
	for _, s := range k.slots {
		if s.nextLook <= now {
			slots = append(slots, s.Slot)
			s.nextLook += interval * (1 + (now-s.nextLook)/interval) // the phase stays after a delay
		}
		next = min(next, s.nextLook)
	}
	return slots, next
}

// Leased notes who may not be disturbed: it is called when a lease of a slot begins and ends, recovery's own apart.
func (k *Keeper) Leased(slot int, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.at(slot); s != nil {
		s.leased = is
	}
}

// Maintain switches maintenance of a slot, or of the whole rack for slot 0. In maintenance no order is given.
func (k *Keeper) Maintain(slot int, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slot == 0 {
		k.maintenance = is
	}
	for _, s := range k.slots {
		if s.Slot == slot {
			s.hands = is
		}
		k.settle(s)
	}
}

// Dark notes that a person has switched a slot off, or that this is over. Meanwhile no order is given for it.
func (k *Keeper) Dark(slot int, is bool) {
	k.with(slot, func(s *place, _ time.Duration) { s.dark = is })
}

// Left notes that a slot's phone has left the bus. What it showed before says nothing any more from then on; that it is lost, looks
// have to agree on, as phones also come anew by themselves.
func (k *Keeper) Left(slot int) {
	k.with(slot, func(s *place, _ time.Duration) { s.left = true })
}

// Look takes what was seen of a slot's phone. A look at a phone that is still settling after an order is dropped.
func (k *Keeper) Look(slot int, l Look) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.at(slot)
	if s == nil {
		return
	}
	now := k.o.Now()
	s.care.undecided = 0
	if l.Greet == GreetOK && l.Phone != "" && bySerial+l.Phone == s.phone {
		s.care.heard, s.care.spoken = now, true // it took the key, whatever else the look is worth
	}
	if l.Bus != BusEmpty && l.Bus != "" && l.Shell != ShellLost { // not one that began before it left
		s.left = false
	}
	if busy := s.hub.busy; now < s.deaf || busy != nil && (busy.Slot == slot || busy.Rung == HubCycle) {
		return
	}
	if !s.care.power && !k.uncut(s, l) {
		return // its power is off
	}
	k.meet(s, l)
	if l.Greet == GreetOK {
		s.care.heard, s.care.spoken = now, true
	}
	is := Classify(l, s.phone != "")
	if is == s.seen.is {
		s.agreed++
	} else {
		s.agreed = 1
	}
	s.seen = seen{l, now, is}
	if s.agreed >= k.o.Config.Probe.Confirm || is == Fine || s.confirmed == "" && stateOf(is) != Recovering {
		k.confirm(s, is, now)
	}
	k.settle(s)
}

// stayed is how many looks in a row, at least, show that a phone stayed on a port that is off: one may be of the moment before.
const stayed = 2

// uncut tells whether the phone of a port that was switched off is still there: looks in a row have to agree. Such a
// port cuts data at most (UH#319), or came back by itself (UH#96), and is not switched off again.
func (k *Keeper) uncut(s *place, l Look) bool {
	switch {
	case l.Bus == BusEmpty, l.Bus == "":
		s.present = 0
		return false
	case l.Shell == ShellLost: // the look began before it left
		return false
	}
	if s.present++; s.present < max(k.o.Config.Probe.Confirm, stayed) {
		return false
	}
	s.care.lightUp()
	s.care.relight, s.notCut, s.present, s.dirty = true, true, 0, true
	return true
}

// What the key of a phone begins with: its own serial number follows, or the slot of one that has none.
const (
	bySerial = "serial:"
	byPlace  = "slot:"
)

// meet notes which phone a look is of. Another phone than before begins anew.
func (k *Keeper) meet(s *place, l Look) {
	if l.Bus == BusEmpty || l.Bus == "" || l.Bus == BusFull {
		return
	}
	key := bySerial + l.Phone
	if l.Phone == "" {
		key = fmt.Sprint(byPlace, s.Slot)
		if s.phone != "" && !known(l) {
			return // nothing was asked yet: it may be the same one
		}
	}
	if l.Model != "" {
		s.model = l.Model
	}
	if key == s.phone {
		return
	}
	for _, other := range k.slots {
		if other != s && other.phone == key {
			other.phone, other.dirty = "", true // it has moved
			other.ladder = ladder{}
		}
	}
	s.phone, s.dirty = key, true
	s.ladder, s.losses = ladder{}, nil
	s.care = care{power: s.care.power, relight: s.care.relight}
	s.confirmed, s.agreed, s.seen, s.wellAt = "", 0, seen{}, 0
}

// known tells whether a look came far enough to read a serial number.
func known(l Look) bool { return l.Greet == GreetOK }

// confirm enters a diagnosis that several looks agree on.
func (k *Keeper) confirm(s *place, is Diagnosis, now time.Duration) {
	before := s.confirmed
	s.confirmed = is
	switch {
	case is == Fine:
		if s.wellAt == 0 {
			s.wellAt = now
		}
		if now-s.wellAt >= k.o.Config.Ladder.ProvenAfter.of() {
			s.ladder = ladder{}
		}
		k.forgive(s)
	case before != is:
		if before == Fine && is.lost() {
			s.losses = append(recent(s.losses, now-k.o.Config.Ladder.FlapWindow.of()), now)
		}
		s.wellAt = 0
		s.ladder.spent, s.ladder.waits = false, 0
		if plan(is) != nil && s.ladder.at < now {
			s.ladder.at = now
		}
	}
}

// recent drops times before the bound.
func recent(times []time.Duration, bound time.Duration) []time.Duration {
	return slices.DeleteFunc(times, func(t time.Duration) bool { return t < bound })
}

// Retry lets the ladder begin anew on a slot, also one whose acts are spent. Daily bounds stay.
func (k *Keeper) Retry(slot int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.at(slot); s != nil {
		s.ladder = ladder{at: k.o.Now()}
		k.settle(s)
	}
}

// Forget says that a slot is empty on purpose: its phone is not missed.
func (k *Keeper) Forget(slot int) error {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.Lock()
	s := k.at(slot)
	if s == nil {
		k.mu.Unlock()
		return nil
	}
	s.phone, s.model, s.ladder, s.losses = "", "", ladder{}, nil
	s.confirmed, s.seen, s.agreed = "", seen{}, 0
	k.settle(s)
	r := Remembered{Slots: map[int]SlotRecord{slot: k.record(s)}}
	k.mu.Unlock()
	if err := k.save(r); err != nil {
		k.with(slot, func(s *place, _ time.Duration) { s.dirty = true })
		return fmt.Errorf("write down that slot %d is empty: %w", slot, err)
	}
	return nil
}

func (k *Keeper) save(r Remembered) error {
	if k.o.Memory == nil {
		return nil
	}
	return k.o.Memory.Save(r)
}
