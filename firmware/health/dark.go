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

// dark is a port that the rack has switched off for a phone's sake, or is about to. It is on disk before the port is switched: who
// finds a port without power after a restart knows what for, and until when at most, whatever the phone's battery is like by then.
type dark struct {
	why  string
	ends time.Duration // boot time

	until int64         // Unix time of its end, of one of before this boot; 0 if it is not known
	dated bool          // its record has its end as wall time
	noted time.Duration // boot time of its record
}

// noteAgain is how old the record of a port without power, or of a quarantine, gets while there is no clock. A restart goes on with what
// the record says is left: with one that never changed, restarts that come faster than its end would keep a port dark for good.
const noteAgain = 10 * time.Minute

// outdated tells whether a record that was noted then, with its end as wall time or not, says less than is known by now.
func outdated(now, noted time.Duration, dated, trusted bool) bool {
	return trusted && !dated || !trusted && now-noted >= noteAgain
}

// DarkRecord is why a port has no power.
type DarkRecord struct {
	Why   string `json:"why"`
	Until int64  `json:"until,omitempty"` // Unix time; 0 when there was no clock
	Left  int64  `json:"left,omitempty"`  // seconds, when it was written
}

// darken notes what a slot's port is about to be switched off for.
func (k *Keeper) darken(s *place, now time.Duration) {
	c, rules := &s.care, k.o.Config.Battery
	switch {
	case now < c.drained:
		c.dark = &dark{why: forHang, ends: c.drained}
	case c.hot:
		c.dark = &dark{why: forHeat, ends: now + rules.CoolFor.of()}
	default:
		c.dark = &dark{why: forBattery, ends: now + rules.RestFor.of()}
	}
}

// longestDark bounds what a record may say: the configuration may have changed, and the record may be damaged.
func (k *Keeper) longestDark(why string) time.Duration {
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

// FoundDark tells that a slot's port is wanted off at the start. It stays so for the time that it was switched off for. When that is
// over, or nobody knows what for, its power comes back as any does, in its turn; but not before the slot was looked at.
func (k *Keeper) FoundDark(slot int) {
	k.with(slot, func(s *place, now time.Duration) {
		c := &s.care
		c.power, c.relight = false, false
		c.undecided = now + k.o.Config.Probe.FreshFor.of() // a look that does not come darkens no phone for good
		if c.dark == nil {
			c.dark = &dark{ends: now}
		}
	})
}

// over tells whether nothing keeps a port without power any more.
func (c *care) over(now time.Duration) bool {
	return now >= c.drained && (c.dark == nil || now >= c.dark.ends) && now >= c.undecided
}

// lightUp ends what a port was without power for.
func (c *care) lightUp() { c.power, c.dark, c.undecided = true, nil, 0 }

// keptDark tells whether the rack keeps a slot's port without power, or is about to take it. Else a person does, or what is noted was
// noted before a crash and never done.
func (s *place) keptDark() bool {
	d, order := s.care.dark, s.hub.busy
	resting := order != nil && order.Slot == s.Slot && order.Rung == Rest
	return d != nil && d.why != "" && (!s.care.power || resting)
}

// darkRecord is what is remembered of a port without power; nil if it has some, or a person has taken it.
func (k *Keeper) darkRecord(s *place, now time.Duration) *DarkRecord {
	if !s.keptDark() {
		return nil
	}
	d := s.care.dark
	left := max(0, d.ends-now)
	r := &DarkRecord{Why: d.why, Left: int64(left / time.Second), Until: d.until}
	if wall, trusted := k.o.Wall(); trusted {
		r.Until = wall.Add(left).Unix()
	}
	d.dated, d.noted = r.Until != 0, now
	return r
}

// recallDark goes on from what was remembered: with what was left, until a clock tells that it is less. The record is written anew
// with the first orders, since a port that has its power needs none.
func (k *Keeper) recallDark(s *place, r *DarkRecord, now time.Duration) {
	left := min(time.Duration(min(max(r.Left, 0), int64(LongestQuarantine/time.Second)))*time.Second, k.longestDark(r.Why))
	s.care.dark = &dark{why: r.Why, ends: now + left, until: r.Until, dated: r.Until != 0}
	s.dirty = true
}

// date gives a port's rest of before this boot its end by the clock. Never later than it was to end: the clock may have been set back,
// and a person may have ended it.
func (d *dark) date(now time.Duration, wall time.Time) {
	if d == nil || d.until == 0 {
		return
	}
	left := max(0, min(time.Unix(d.until, 0).Sub(wall), d.ends-now))
	d.ends, d.until = now+left, 0
}

// OfPower tells what of a record in the bucket BucketName is about ports without power, and gives that alone: a factory reset
// forgets the rest and switches nothing. ok is false for a record of which nothing is.
func OfPower(key string, value []byte) (kept []byte, ok bool) {
	var r SlotRecord
	if !strings.HasPrefix(key, bySlot) || json.Unmarshal(value, &r) != nil || r.Dark == nil {
		return nil, false
	}
	kept, err := json.Marshal(SlotRecord{Dark: r.Dark, Hot: r.Hot})
	return kept, err == nil
}
