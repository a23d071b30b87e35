package health

import (
	"encoding/json"
	"strings"
	"time"
)

// Why the rack itself keeps a port without power. What people want is not kept here.
const (
	forBattery = "battery" // a charge window
	forHeat    = "heat"
	forHang    = "hang" // nothing helped against a phone that hangs: it drains
)

// rest is a port that the rack has switched off for a phone's sake, or is about to. It is on disk before the port is switched: who
// finds a port without power after a restart knows what for, and until when at most, whatever the phone's battery is like by then.
type rest struct {
	term
	why string // "" if nobody knows, or a person has taken the power
}

// RestRecord is why the rack keeps a port without power.
type RestRecord struct {
	Why   string `json:"why"`
	Until int64  `json:"until,omitempty"` // Unix time; 0 when there was no clock
	Left  int64  `json:"left,omitempty"`  // seconds, when it was written
}

// beginRest notes what a slot's port is about to be switched off for.
func (k *Keeper) beginRest(s *place, now time.Duration) {
	c, rules := &s.care, k.o.Config.Battery
	switch {
	case now < c.drained:
		c.rest = &rest{term{ends: c.drained}, forHang}
	case c.hot:
		c.rest = &rest{term{ends: now + rules.CoolFor.of()}, forHeat}
	default:
		c.rest = &rest{term{ends: now + rules.RestFor.of()}, forBattery}
	}
}

// longestRest is how long the configuration in force lets a port be without power; 0 for a reason of another version.
func (k *Keeper) longestRest(why string) time.Duration {
	switch why {
	case forBattery:
		if k.o.Config.Battery.Windows {
			return k.o.Config.Battery.RestFor.of()
		}
	case forHeat:
		return k.o.Config.Battery.CoolFor.of()
	case forHang:
		return k.o.Config.Quarantine.Longest.of()
	}
	return 0
}

// FoundOff tells that a slot's port is wanted off at the start. It stays so for the time that it was switched off for. When that is
// over, or nobody knows what for, its power comes back as any does, in its turn; but not before the slot was looked at.
func (k *Keeper) FoundOff(slot int) {
	k.with(slot, func(s *place, now time.Duration) {
		c := &s.care
		c.power, c.relight = false, false
		c.undecided = now + k.o.Config.Probe.FreshFor.of() // a look that does not come darkens no phone for good
		if c.rest == nil {
			c.rest = &rest{term: term{ends: now}}
		}
	})
}

// over tells whether nothing keeps a port without power any more.
func (c *care) over(now time.Duration) bool {
	return now >= c.drained && (c.rest == nil || now >= c.rest.ends) && now >= c.undecided
}

// lightUp ends what a port was without power for.
func (c *care) lightUp() { c.power, c.rest, c.undecided = true, nil, 0 }

// keptOff tells whether the rack keeps a slot's port without power, or is about to take it. Else a person does, or what is noted was
// noted before a crash and never done.
func (s *place) keptOff() bool {
	r, order := s.care.rest, s.hub.busy
	ordered := order != nil && order.Slot == s.Slot && order.Rung == Rest
	return r != nil && r.why != "" && (!s.care.power || ordered)
}

// restRecord is what is remembered of a port without power; nil if it has some, or a person has taken it.
func (k *Keeper) restRecord(s *place, now time.Duration) *RestRecord {
	if !s.keptOff() {
		return nil
	}
	wall, trusted := k.o.Wall()
	r := &RestRecord{Why: s.care.rest.why}
	r.Left, r.Until = s.care.rest.record(now, wall, trusted)
	return r
}

// recallRest goes on from what was remembered: with what was left, until a clock tells that it is less. The record is written anew
// with the first orders, since a port that has its power needs none.
func (k *Keeper) recallRest(s *place, r *RestRecord, now time.Duration) {
	s.care.rest = &rest{recalled(now, r.Left, r.Until, k.longestRest(r.Why)), r.Why}
	s.dirty = true
}

// OfPower tells what of a record in the bucket BucketName is about ports without power, and gives that alone: a factory reset
// forgets the rest and switches nothing. ok is false for a record of which nothing is.
func OfPower(key string, value []byte) (kept []byte, ok bool) {
	var r SlotRecord
	if !strings.HasPrefix(key, bySlot) || json.Unmarshal(value, &r) != nil || r.Rest == nil {
		return nil, false
	}
	kept, err := json.Marshal(SlotRecord{Rest: r.Rest, Hot: r.Hot})
	return kept, err == nil
}
