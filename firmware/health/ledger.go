package health

import (
	"slices"
	"time"
)

// ledgerMax bounds the entries of a slot. It holds 24 hours of every rung at its largest bound.
const ledgerMax = (int(HubCycle) + 1) * maxPerDay

// An entry is one act in the ledger of a slot.
type entry struct {
	rung   Rung
	at     time.Duration // boot time; negative for an act before this boot
	number uint64        // of its order; 0 for an act before this boot
	unix   int64         // wall time of an act before this boot; 0 if it is not known
	how    Outcome
}

// Entry is an act as people see it.
type Entry struct {
	Rung    string        `json:"act"`
	Ago     time.Duration `json:"-"`
	Outcome Outcome       `json:"outcome"`
}

// write puts an order into the ledger of its slot, and a hub's cycle into its hub's.
func (k *Keeper) write(s *place, rung Rung, now time.Duration) {
	e := entry{rung: rung, at: now, number: k.orders}
	s.ledger = append(s.ledger, e)
	if len(s.ledger) > ledgerMax {
		s.ledger = slices.Delete(s.ledger, 0, len(s.ledger)-ledgerMax)
	}
	if rung == HubCycle {
		s.hub.cycles = append(slices.DeleteFunc(s.hub.cycles, func(e entry) bool { return now-e.at >= day }), e)
	}
}

// outcome completes the entry of an order; one that was refused is taken out, as if it had not been given.
func (k *Keeper) outcome(s *place, o Order, how Outcome) {
	is := func(e entry) bool { return e.number == o.number && e.number != 0 }
	if how == Refused {
		s.ledger = slices.DeleteFunc(s.ledger, is)
		s.hub.cycles = slices.DeleteFunc(s.hub.cycles, is)
		return
	}
	if i := slices.IndexFunc(s.ledger, is); i >= 0 {
		s.ledger[i].how = how
	}
}

// today counts the acts of a rung in the last 24 hours: of the slot, or of its hub for the hub's.
func (k *Keeper) today(s *place, rung Rung, now time.Duration) int {
	of := s.ledger
	if rung == HubCycle {
		of = s.hub.cycles
	}
	n := 0
	for _, e := range of {
		if e.rung == rung && now-e.at < day {
			n++
		}
	}
	return n
}

// Ledger lists the acts on a slot that are remembered, the newest first.
func (k *Keeper) Ledger(slot int) []Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.at(slot)
	if s == nil {
		return nil
	}
	now := k.o.Now()
	all := make([]Entry, 0, len(s.ledger))
	for _, e := range slices.Backward(s.ledger) {
		all = append(all, Entry{e.rung.String(), now - e.at, e.how})
	}
	return all
}
