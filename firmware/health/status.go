package health

import (
	"cmp"
	"slices"
	"time"
)

// settle computes the state of a slot anew and logs its change. k.mu is held.
func (k *Keeper) settle(s *place) {
	is := k.stateNow(s)
	if is == s.state {
		return
	}
	now := k.o.Now()
	k.o.Log.Info("health of a slot changed", "slot", s.Slot, "state", string(is), "diagnosis", string(s.confirmed), "was", string(s.state), "phone", s.phone)
	s.state, s.since = is, now
}

// stateNow is the state that follows from everything that is known. k.mu is held.
func (k *Keeper) stateNow(s *place) State {
	now := k.o.Now()
	switch {
	case k.maintenance || s.hands || s.dark:
		return Maintenance
	case k.quarantineOf(s) != nil:
		return Quarantined
	case s.care.resting():
		return Resting
	case s.confirmed == "":
		return Starting
	case k.stale(s, now), s.gone():
		return UnknownHow
	}
	is := stateOf(s.confirmed)
	if is == Recovering && (!k.o.Config.Ladder.Enabled || s.ladder.spent) {
		return NeedsHands
	}
	if is == Well && len(k.extras(s, now)) > 0 {
		return Attention
	}
	return is
}

// gone tells whether the phone has left the bus, and what is known of it is of before that. One that was lost already stays so.
func (s *place) gone() bool {
	return s.left && s.confirmed != "" && s.confirmed != NoPhone && stateOf(s.confirmed) != Recovering
}

// stale tells whether the last look is too old to say anything (STF#560): orders apart, during which nobody looks.
func (k *Keeper) stale(s *place, now time.Duration) bool {
	return s.hub.busy == nil && now >= s.deaf && now-max(s.seen.at, s.deaf) > k.o.Config.Probe.FreshFor.of()
}

// Status tells how a slot is; false if the board has no such slot.
func (k *Keeper) Status(slot int) (Status, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.at(slot)
	if s == nil {
		return Status{}, false
	}
	return k.status(s), true
}

// All tells how all slots are, by number.
func (k *Keeper) All() []Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]Status, len(k.slots))
	for i, s := range k.slots {
		all[i] = k.status(s)
	}
	return all
}

func (k *Keeper) status(s *place) Status {
	k.settle(s) // time alone may have changed it
	now := k.o.Now()
	st := Status{Slot: s.Slot, State: s.state, Since: s.since, Others: k.extras(s, now), Paused: s.care.hot || s.state != Well && s.state != Attention}
	is := s.confirmed
	if is == "" || k.stale(s, now) && s.state == UnknownHow {
		is = Unknown
	}
	if s.state == Starting && s.confirmed == "" {
		is = Booting
	}
	st.Main = finding(string(is), map[string]any{"slot": s.Slot, "phone": s.phone, "holder": s.seen.look.Holder, "kind": s.seen.look.Kind})
	if s.gone() {
		st.Main = finding("left", map[string]any{"slot": s.Slot, "phone": s.phone})
	}
	if s.dark {
		st.Main = finding("dark", map[string]any{"slot": s.Slot})
	}
	switch {
	case k.maintenance || s.hands:
		st.Others = append(st.Others, finding("maintenance", map[string]any{"slot": s.Slot}))
	case s.state == Resting:
		st.Main = finding("resting", map[string]any{"slot": s.Slot})
	}
	if q := k.quarantineOf(s); q != nil {
		st.Ends = q.ends
		st.Others = append(st.Others, finding("quarantined", map[string]any{"slot": s.Slot, "by": q.By, "left": (q.ends - now).Round(time.Second), "reason": q.Reason}))
	}
	if b := s.hub.busy; b != nil && b.Slot == s.Slot {
		order := *b
		st.Ordered, st.Rung = &order, b.Rung.String()
	} else if s.state == Recovering {
		st.Rung, st.Next = s.ladder.from.String(), max(s.ladder.at, s.deaf)
	}
	return st
}

// extras are the findings about a phone besides its diagnosis.
func (k *Keeper) extras(s *place, now time.Duration) []Finding {
	all := append(s.care.list(), k.key(s, now)...)
	window := k.o.Config.Ladder.FlapWindow.of()
	if n := len(recent(slices.Clone(s.losses), now-window)); n >= k.o.Config.Ladder.Flaps {
		all = append(all, finding("cable_suspect", map[string]any{"slot": s.Slot, "losses": n, "within": window}))
	}
	if f, is := portLie(s.lie, s.Slot); is {
		all = append(all, f)
	} else if s.notCut {
		all = append(all, finding("port_not_cut", map[string]any{"slot": s.Slot}))
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.Code, b.Code) })
	return slices.CompactFunc(all, func(a, b Finding) bool { return a.Code == b.Code })
}

// Hubs are the hubs that lie about their power, and those of which all phones are gone, two at least: then the hub, its supply
// or its cable is at fault, and hardly the phones.
func (k *Keeper) Hubs() []Finding {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Finding
	for path, h := range k.hubs {
		if f, is := hubLie(h.lie, path); is {
			all = append(all, f)
		}
		expected, gone := 0, 0
		for _, s := range h.slots {
			if s.phone != "" && s.care.power {
				expected++
				if s.confirmed == Dead || s.confirmed == NotEnumerated {
					gone++
				}
			}
		}
		if gone >= 2 && gone == expected {
			all = append(all, finding("hub_lost", map[string]any{"hub": path, "count": gone}))
		}
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Args["hub"].(string), b.Args["hub"].(string)), cmp.Compare(a.Code, b.Code))
	})
	return all
}

// Count gives how many slots are in each state, those with none too.
func (k *Keeper) Count() map[State]int {
	counts := map[State]int{}
	for _, s := range States() {
		counts[s] = 0
	}
	for _, s := range k.All() {
		counts[s.State]++
	}
	return counts
}
