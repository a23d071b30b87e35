package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Orders gives out what is to be done now. Each order counts from here on, and is on disk if it takes power or is a
// reboot or reset; it holds its hub until Done, or until a bound has passed. If the records cannot be written, nothing
// is given out.
func (k *Keeper) Orders() ([]Order, error) {
	k.saving.Lock()
	defer k.saving.Unlock()
	orders, r := k.decide()
	if len(r.Slots)+len(r.Phones) > 0 {
		if err := k.save(r); err != nil {
			k.takeBack(orders, r)
			return nil, fmt.Errorf("write down what is to be done about phones: %w", err)
		}
	}
	return orders, nil
}

// decide picks the orders, the one that waits longest first, and the records that go with them.
func (k *Keeper) decide() ([]Order, Remembered) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	r := Remembered{Slots: map[int]SlotRecord{}, Phones: map[string]PhoneRecord{}}
	k.date(now)
	k.expire(now, r)
	k.overdue(now, r)
	if k.maintenance {
		return nil, r
	}
	turn := slices.Clone(k.slots)
	slices.SortStableFunc(turn, func(a, b *place) int { return cmp.Compare(a.ladder.at, b.ladder.at) })
	var given []Order
	for _, s := range turn {
		if s.hub.busy != nil || s.hands || s.dark {
			continue
		}
		rung, ok := k.wants(s, now, r)
		if !ok || rung.ladder() && k.running() >= k.o.Config.Ladder.Actions {
			continue
		}
		given = append(given, k.give(s, rung, now))
		if rung >= Reset && rung.ladder() || rung == Rest {
			r.Slots[s.Slot] = k.record(s)
		}
	}
	return given, r
}

// expire ends quarantines that are over and orders that nobody reported on.
func (k *Keeper) expire(now time.Duration, r Remembered) {
	for _, h := range k.hubs {
		if h.busy != nil && now-h.busy.Given > orderBound {
			k.o.Log.Error("an order was never reported on; its hub goes on", "slot", h.busy.Slot, "rung", h.busy.Rung.String())
			k.finish(*h.busy, Lost, now)
		}
	}
	for phone, q := range k.phones {
		if q.ends > 0 && now >= q.ends {
			k.end(phone, q)
			r.Phones[phone] = k.phoneRecord(phone)
		}
	}
}

// overdue adds the records that have changed without an order.
func (k *Keeper) overdue(now time.Duration, r Remembered) {
	_, trusted := k.o.Wall()
	for _, s := range k.slots {
		if s.dirty || s.keptOff() && s.care.rest.outdated(now, trusted) {
			r.Slots[s.Slot] = k.record(s)
		}
	}
	for phone, q := range k.phones {
		if q.dirty || q.ends != 0 && q.outdated(now, trusted) {
			r.Phones[phone] = k.phoneRecord(phone)
		}
	}
}

// running counts the ladder's orders that are being carried out.
func (k *Keeper) running() int {
	n := 0
	for _, h := range k.hubs {
		if h.busy != nil && h.busy.Rung.ladder() {
			n++
		}
	}
	return n
}

// wants gives the act that a slot needs now. It begins the quarantine of a phone that nothing is left for.
func (k *Keeper) wants(s *place, now time.Duration, r Remembered) (Rung, bool) {
	if s.leased {
		return 0, false
	}
	if rung, ok := k.careWants(s, now); ok {
		return rung, true
	}
	if !k.ill(s, now) {
		return 0, false
	}
	rung, is := k.nextRung(s, now)
	switch is {
	case try:
		return rung, true
	case later:
		return 0, false
	}
	s.ladder.spent = true
	k.settle(s)
	if s.confirmed != Unknown && s.phone != "" {
		k.isolate(s, now)
		r.Phones[s.phone], r.Slots[s.Slot] = k.phoneRecord(s.phone), k.record(s)
	}
	return 0, false
}

// ill tells whether the ladder may do something for a slot now.
func (k *Keeper) ill(s *place, now time.Duration) bool {
	return k.o.Config.Ladder.Enabled && s.confirmed != "" && s.confirmed == s.seen.is && s.agreed > 0 && plan(s.confirmed) != nil && s.care.power &&
		now >= s.ladder.at && now >= s.deaf && !s.ladder.spent && k.quarantineOf(s) == nil && !k.stale(s, now)
}

// What nextRung may answer.
type answer int

const (
	try   answer = iota // this rung, now
	later               // wait and ask again
	none                // nothing is left
)

// nextRung gives the rung that is to be tried.
func (k *Keeper) nextRung(s *place, now time.Duration) (Rung, answer) {
	for _, rung := range plan(s.confirmed) {
		step := k.o.Config.Ladder.step(rung)
		if rung < s.ladder.from || rung == s.ladder.from && s.ladder.tries >= step.Tries {
			continue
		}
		if k.today(s, rung, now) >= step.PerDay {
			continue
		}
		applies := k.applies(s, rung)
		if rung == HubCycle && (applies && !k.hubIsFree(s.hub) || !applies && s.HubPower && k.mayFollow(s)) {
			if s.ladder.waits == 0 {
				s.ladder.waits = now
			}
			if now-s.ladder.waits < k.o.Config.Ladder.Patience.of() {
				s.ladder.at = now + k.o.Config.Probe.Interval.of()
				return 0, later
			}
			continue
		}
		if applies {
			return rung, try
		}
	}
	return 0, none
}

// mayFollow tells whether the hub may be about to lose a second slot: the last look at a neighbour says so, and is not confirmed yet.
func (k *Keeper) mayFollow(s *place) bool {
	return slices.ContainsFunc(s.hub.slots, func(other *place) bool {
		return other != s && other.care.power && other.seen.is.lost() && other.confirmed != other.seen.is
	})
}

// applies tells whether a rung makes sense for what was seen.
func (k *Keeper) applies(s *place, rung Rung) bool {
	switch rung {
	case ClearHalt:
		return s.seen.look.Stall
	case Reset:
		return s.model != "" && slices.Contains(k.o.Config.Ladder.ResetModels, s.model)
	case Reboot:
		return s.seen.look.Greet == GreetOK
	case PortCycle:
		return s.PortPower
	case HubCycle:
		lost := 0
		for _, other := range s.hub.slots {
			if other.confirmed.lost() && other.confirmed == other.seen.is {
				lost++
			}
		}
		return s.HubPower && lost >= 2
	}
	return true
}

// hubIsFree tells whether nobody would be disturbed by a hub's cycle.
func (k *Keeper) hubIsFree(h *hub) bool {
	return !slices.ContainsFunc(h.slots, func(s *place) bool { return s.leased || s.hands || s.dark })
}

// give makes the order and counts it.
func (k *Keeper) give(s *place, rung Rung, now time.Duration) Order {
	k.orders++
	o := Order{Slot: s.Slot, Rung: rung, Hub: s.Hub, Why: s.confirmed, Given: now, number: k.orders}
	if rung == PortCycle || rung == HubCycle {
		o.OffTime = k.o.Config.Ladder.OffTime.of()
	}
	if rung.ladder() {
		if s.ladder.from != rung {
			s.ladder.from, s.ladder.tries = rung, 0
		}
		s.ladder.tries++
		s.ladder.waits = 0
	}
	if rung == HubCycle {
		for _, other := range s.hub.slots {
			if other != s {
				o.Also = append(o.Also, other.Slot)
			}
		}
	}
	if rung == Rest {
		k.beginRest(s, now)
	}
	k.write(s, rung, now)
	s.hub.busy = &o
	k.o.Log.Info("recovery acts on a phone", "slot", s.Slot, "act", rung.String(), "why", string(s.confirmed), "try", s.ladder.tries, "phone", s.phone)
	return o
}

// takeBack undoes orders that could not be written down; their records are tried again.
func (k *Keeper) takeBack(orders []Order, r Remembered) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	for _, o := range orders {
		k.finish(o, Refused, now)
	}
	for n := range r.Slots {
		k.at(n).dirty = true
	}
	for phone := range r.Phones {
		if q := k.phones[phone]; q != nil {
			q.dirty = true
		}
	}
}

// Done reports how an order ended. An order that is not being carried out any more is ignored.
func (k *Keeper) Done(o Order, how Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.hubs[o.Hub]; h != nil && h.busy != nil && h.busy.number == o.number {
		k.finish(o, how, k.o.Now())
	}
}

// finish frees the hub and lets the phone settle.
func (k *Keeper) finish(o Order, how Outcome, now time.Duration) {
	s := k.at(o.Slot)
	if s == nil {
		return
	}
	s.hub.busy = nil
	k.outcome(s, o, how)
	if k.o.Ended != nil {
		k.o.Ended(o.Slot, o.Rung, how)
	}
	if !o.Rung.ladder() {
		off := !s.care.power
		s.care.done(o.Rung, how, now)
		s.dirty = s.dirty || o.Rung == Rest && how != Done || o.Rung == Wake && how == Done // what its port is dark for is over
		if off && o.Rung == Wake && how == Done {
			k.mute(s, now+k.o.Config.Ladder.PortCycle.Settle.of())
		}
		k.settle(s)
		return
	}
	if how == Refused {
		s.ladder.tries = max(0, s.ladder.tries-1)
		s.ladder.at = now + time.Minute
		return
	}
	step := k.o.Config.Ladder.step(o.Rung)
	wait := step.Settle.of() << min(max(s.ladder.tries-1, 0), 16)
	wait = max(step.Settle.of(), min(wait, k.o.Config.Ladder.LongestWait.of()))
	s.ladder.at = now + wait
	k.mute(s, now+step.Settle.of())
	if o.Rung == HubCycle {
		for _, other := range s.hub.slots {
			k.mute(other, now+step.Settle.of())
			if other.confirmed.lost() { // it was tried for all of them
				other.ladder.from, other.ladder.tries = HubCycle, s.ladder.tries
			}
		}
	}
	k.settle(s)
}

// mute ignores looks until a time, and what was seen before: the phone is told anew.
func (k *Keeper) mute(s *place, until time.Duration) {
	s.deaf = max(s.deaf, until)
	s.agreed = 0
	s.seen.at = s.deaf
}
