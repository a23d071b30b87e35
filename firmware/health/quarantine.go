package health

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of a quarantine.
const (
	ShortestQuarantine = 10 * time.Minute
	LongestQuarantine  = 7 * day
)

// Presets are the lengths that people choose from.
func Presets() []time.Duration {
	return []time.Duration{10 * time.Minute, 30 * time.Minute, time.Hour, 8 * time.Hour, day, LongestQuarantine}
}

var (
	// ErrLength means that a quarantine is too short or too long.
	ErrLength = errors.New("a quarantine lasts from 10 minutes to 7 days")
	// ErrNoPhone means that a slot has no phone, and had none.
	ErrNoPhone = errors.New("no phone is known in this slot")
)

// ByLadder is who gave a quarantine that the ladder ends in, as the finding "quarantined" names it.
const ByLadder = "recovery"

// quarantine belongs to a phone: it goes with it to another slot.
type quarantine struct {
	term   // ends is 0 when there is none and only level is remembered
	By     string
	Reason string
	level  int  // how often the ladder gave one since the phone was proven well
	dirty  bool // its record is to be written with the next orders
}

// quarantineOf gives the one that holds for a slot, or nil. It ends by itself.
func (k *Keeper) quarantineOf(s *place) *quarantine {
	if s.phone == "" {
		return nil
	}
	q := k.phones[s.phone]
	if q == nil || q.ends == 0 || k.o.Now() >= q.ends {
		return nil
	}
	return q
}

// isolate begins the quarantine that a ladder ends in; each is twice as long as the one before. A phone that hangs and
// whose port can be switched loses its power for the time, so that it drains (flutter#144057).
func (k *Keeper) isolate(s *place, now time.Duration) {
	q := k.phones[s.phone]
	if q == nil {
		q = &quarantine{}
		k.phones[s.phone] = q
	}
	length, longest := k.o.Config.Quarantine.First.of(), k.o.Config.Quarantine.Longest.of()
	for n := 0; n < q.level && length < longest; n++ {
		length *= 2 // of less than longest: it cannot overflow
	}
	length = min(length, longest)
	q.level++
	q.By, q.Reason, q.ends = ByLadder, string(s.confirmed), now+length
	if s.confirmed == Hung && s.PortPower {
		s.care.drain(q.ends)
	}
	k.o.Log.Warn("a phone is left alone: nothing helped", "slot", s.Slot, "phone", s.phone, "for", length, "diagnosis", string(s.confirmed))
	k.settle(s)
}

// end finishes a quarantine. The ladder begins anew in the phone's slot.
func (k *Keeper) end(phone string, q *quarantine) {
	k.lift(phone, q, k.o.Now())
	q.dirty = true // a restart must not take the power of a phone that somebody has helped meanwhile
	for _, s := range k.slots {
		if s.phone == phone {
			k.settle(s)
		}
	}
}

// lift is what follows from the end of a quarantine.
func (k *Keeper) lift(phone string, q *quarantine, now time.Duration) {
	q.ends, q.until = 0, 0
	for _, s := range k.slots {
		if s.phone == phone {
			s.ladder = ladder{at: now}
			s.care.release(now)
		}
	}
}

// forgive ends what the ladder gave to a phone that is well, and lets a phone that was proven well begin with the
// shortest one again.
func (k *Keeper) forgive(s *place) {
	q := k.phones[s.phone]
	if q == nil || q.By != ByLadder {
		return
	}
	now := k.o.Now()
	if q.ends > now && s.agreed >= k.o.Config.Probe.Confirm {
		k.end(s.phone, q)
	}
	if q.ends == 0 && s.wellAt > 0 && now-s.wellAt >= k.o.Config.Ladder.ProvenAfter.of() {
		q.dirty = q.dirty || q.level != 0
		q.level = 0
	}
}

// Quarantine leaves the phone of a slot alone for a time, on behalf of a person. It is on disk when it returns nil.
func (k *Keeper) Quarantine(slot int, length time.Duration, by, reason string) error {
	if length < ShortestQuarantine || length > LongestQuarantine {
		return fmt.Errorf("%w, not %v", ErrLength, length)
	}
	return k.change(slot, func(phone string, now time.Duration) {
		level := 0
		if q := k.phones[phone]; q != nil {
			level = q.level
		}
		k.phones[phone] = &quarantine{By: bounded(by), Reason: bounded(reason), term: term{ends: now + length}, level: level}
	})
}

// Release ends the quarantine of a slot's phone, on behalf of a person. It is on disk when it returns nil.
func (k *Keeper) Release(slot int) error {
	return k.change(slot, func(phone string, now time.Duration) {
		if q := k.phones[phone]; q != nil {
			k.lift(phone, q, now)
		}
	})
}

// change lets a person change the quarantine of a slot's phone: with all that follows from it, or, when it cannot be written down, nothing.
// Looks come and orders end while it is being written: fn changes things only then, and before that for the record alone.
func (k *Keeper) change(slot int, fn func(phone string, now time.Duration)) error {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.Lock()
	s := k.at(slot)
	if s == nil || s.phone == "" {
		k.mu.Unlock()
		return fmt.Errorf("slot %d: %w", slot, ErrNoPhone)
	}
	phone, now := s.phone, k.o.Now()
	r := k.recordOf(s, func() { fn(phone, now) })
	k.mu.Unlock()
	if err := k.save(r); err != nil {
		return fmt.Errorf("write down the quarantine of slot %d: %w", slot, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	fn(phone, now)
	k.phoneRecord(phone) // it is written down
	for _, s := range k.slots {
		k.settle(s) // the phone may be in another one by now
	}
	return nil
}

// recordOf gives the records of a slot and its phone as fn would make them, and leaves both as they are.
func (k *Keeper) recordOf(s *place, fn func()) Remembered {
	was, phone := *s, copied(k.phones[s.phone])
	was.care.rest = copied(s.care.rest)
	fn()
	r := Remembered{Slots: map[int]SlotRecord{s.Slot: k.record(s)}, Phones: map[string]PhoneRecord{s.phone: k.phoneRecord(s.phone)}}
	*s = was
	if k.phones[s.phone] = phone; phone == nil {
		delete(k.phones, s.phone)
	}
	return r
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// bounded cuts what a person wrote.
func bounded(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
