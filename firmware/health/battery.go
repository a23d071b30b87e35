package health

import (
	"slices"
	"strings"
	"time"

	"phonerack/agent/phone"
)

// careRetry is how long care waits before it tries an act again.
const careRetry = 10 * time.Minute

// care is what is done for a phone besides healing it.
type care struct {
	power     bool          // the port is on, as far as is known
	rest      *rest         // what the port is switched off for, also before it is; nil if it is on
	undecided time.Duration // a port that was found off at the start has no power before a look at its slot, or before then
	relight   bool          // the phone stayed, or came back by itself: the power that it has is to be wanted again
	drained   time.Duration // until when the power stays off: nothing helped against a phone that hangs
	wantRest  bool
	wanted    bool          // somebody waits for the phone
	retry     time.Duration // no act of care before it
	hot       bool          // from stop_hot until resume_hot
	charging  bool          // from low until high
	hotStops  []time.Duration
	top       level // the highest level while it was powered, for the cable
	heard     time.Duration
	spoken    bool               // heard holds a time
	findings  []Finding          // computed from notes
	notes     map[string]Finding // by what they are about
	tcp       bool
	faked     bool
	acts      map[Rung][]time.Duration // of CloseTCP and BatteryReset
}

// level is a battery's, in percent, with its time.
type level struct {
	percent int
	at      time.Duration
}

// Battery takes what a phone says of its battery.
func (k *Keeper) Battery(slot int, b phone.Battery) {
	k.with(slot, func(s *place, now time.Duration) {
		hot, charging := s.care.hot, s.care.charging
		s.care.read(s.Slot, b, now, k.o.Config.Battery)
		if s.care.hot != hot || s.care.charging != charging && k.o.Config.Battery.Windows {
			s.dirty = true // a restart must not end a charge half-way, nor wake what is hot
		}
	})
}

// Wanted notes that somebody waits for the slot's phone: its power comes back early.
func (k *Keeper) Wanted(slot int, is bool) {
	k.with(slot, func(s *place, _ time.Duration) { s.care.wanted = is })
}

// Resting tells about a slot whose phone has no power for its battery's sake: its serial number, "" if it is not known, and
// whether it is too hot to be woken.
func (k *Keeper) Resting(slot int) (serial string, hot, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.at(slot)
	if s == nil {
		return "", false, false
	}
	serial, _ = strings.CutPrefix(s.phone, bySerial)
	if serial == s.phone {
		serial = ""
	}
	return serial, s.care.hot, k.stateNow(s) == Resting
}

// Darkened tells that a person has the port switched off. As long as the slot is left alone for it, it stays so.
func (k *Keeper) Darkened(slot int) {
	k.with(slot, func(s *place, now time.Duration) {
		s.care.power, s.care.relight, s.care.undecided, s.present = false, false, 0, 0
		s.care.rest = &rest{term: term{ends: now}}
	})
}

// Lit tells that a person has given the port its power, whatever it was off for. The phone gets its time to come back.
func (k *Keeper) Lit(slot int) {
	k.with(slot, func(s *place, now time.Duration) {
		if s.care.power {
			return
		}
		s.care.drained = 0
		s.care.done(Wake, Done, now)
		s.dirty = true
		k.mute(s, now+k.o.Config.Ladder.PortCycle.Settle.of())
	})
}

// with runs fn on a slot.
func (k *Keeper) with(slot int, fn func(*place, time.Duration)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.at(slot); s != nil {
		fn(s, k.o.Now())
		k.settle(s)
	}
}

// read judges a reading. What cannot be believed changes nothing but the findings.
func (c *care) read(slot int, r phone.Battery, now time.Duration, b Battery) {
	args := map[string]any{"slot": slot}
	if r.Level != phone.Unknown {
		args["percent"] = r.Level
	}
	if r.Temperature != phone.Unknown {
		args["celsius"] = float64(r.Temperature) / 10
	}
	c.faked = r.Faked
	doubt := doubt(r)
	c.note("reading", doubt, args)
	if !r.Faked {
		c.heat(r, now, b)
		failing := r.Health == "dead" || r.Health == "over-voltage" || r.Health == "failure" || len(c.hotStops) >= b.HotStops
		c.note("cells", pick(failing, "battery_swelling"), args)
	}
	c.note("heat", pick(c.hot, "battery_hot"), args)
	if doubt == "" {
		c.charge(r.Level, b)
		c.cable(r.Level, r.Plugged != "", now, b, args)
	}
	c.wantRest = c.hot || b.Windows && doubt == "" && !c.charging
}

// doubt is the code of what is wrong with a reading; "" if its level can be believed. A phone that answers has no
// level of 0: Tradefed reads that as a phone without a battery.
func doubt(r phone.Battery) string {
	switch {
	case r.Faked:
		return "battery_faked"
	case !r.Present:
		return "battery_missing"
	case r.Level == phone.Unknown || r.Level <= 0 || r.Level > 100:
		return "battery_unreadable"
	}
	return ""
}

// heat stops charging at one temperature and lets it go on at a lower one.
func (c *care) heat(r phone.Battery, now time.Duration, b Battery) {
	c.hotStops = recent(c.hotStops, now-b.HotWindow.of())
	celsius, overheat := float64(r.Temperature)/10, r.Health == "overheat"
	if r.Temperature == phone.Unknown && !overheat {
		return
	}
	switch {
	case !c.hot && (celsius >= b.StopHot || overheat):
		c.hot = true
		c.hotStops = append(c.hotStops, now)
	case c.hot && celsius <= b.ResumeHot && !overheat:
		c.hot = false
	}
}

// charge begins at low and ends at high.
func (c *care) charge(percent int, b Battery) {
	switch {
	case percent <= b.Low:
		c.charging = true
	case percent >= b.High:
		c.charging = false
	}
}

// cable looks for a battery that empties although it is powered.
func (c *care) cable(percent int, powered bool, now time.Duration, b Battery, args map[string]any) {
	if !powered {
		c.top = level{}
		c.note("cable", pick(c.power, "cable_no_power"), args)
		return
	}
	if c.top.percent <= percent || now-c.top.at > b.CableTime.of() {
		c.top = level{percent, now}
	}
	c.note("cable", pick(c.top.percent-percent >= b.CableDrop, "cable_weak"), args)
}

func pick(is bool, code string) string {
	if is {
		return code
	}
	return ""
}

// note keeps one finding for each thing that findings are about; "" takes it away.
func (c *care) note(about, code string, args map[string]any) {
	if c.notes == nil {
		c.notes = map[string]Finding{}
	}
	delete(c.notes, about)
	if code != "" {
		c.notes[about] = finding(code, args)
	}
	c.findings = c.findings[:0:0]
	for _, f := range c.notes {
		c.findings = append(c.findings, f)
	}
}

// careWants gives the act of care that a slot needs now.
func (k *Keeper) careWants(s *place, now time.Duration) (Rung, bool) {
	c := &s.care
	early := c.wanted && !c.hot && now >= c.drained
	switch {
	case now < c.retry:
	case !c.power:
		return Wake, c.over(now) || early
	case c.relight: // else what switches ports takes it again and again
		return Wake, true
	case !s.PortPower || s.notCut:
	case now < c.drained:
		return Rest, true
	case c.wantRest && (c.hot || !c.wanted):
		return Rest, true
	}
	if now < c.retry || s.confirmed != Fine || k.quarantineOf(s) != nil {
		return 0, false
	}
	switch {
	case c.tcp && k.o.Config.Phone.CloseTCP && c.may(CloseTCP, k.o.Config.Phone, now):
		return CloseTCP, true
	case c.faked && c.may(BatteryReset, k.o.Config.Phone, now):
		return BatteryReset, true
	}
	return 0, false
}

func (c *care) may(r Rung, p Phone, now time.Duration) bool {
	return len(recent(slices.Clone(c.acts[r]), now-day)) < p.MendsPerDay
}

// done notes how an act of care ended.
func (c *care) done(r Rung, how Outcome, now time.Duration) {
	c.retry = now + careRetry
	if r == Rest && how != Done {
		c.rest = nil // it has its power
	}
	if how == Refused {
		c.retry = now + time.Minute
		return
	}
	if r == CloseTCP || r == BatteryReset {
		if c.acts == nil {
			c.acts = map[Rung][]time.Duration{}
		}
		c.acts[r] = append(recent(c.acts[r], now-day), now)
		return
	}
	if how != Done {
		return
	}
	c.retry, c.wantRest, c.top, c.relight = 0, false, level{}, false
	if r == Wake {
		c.lightUp()
		return
	}
	c.power = false
}

// drain keeps the power off until a time.
func (c *care) drain(until time.Duration) { c.drained = until }

// release ends a drain.
func (c *care) release(now time.Duration) {
	if c.drained > now {
		c.drained = 0
		if c.rest != nil {
			c.rest.ends = now
		}
	}
}

// resting tells whether the power is off.
func (c *care) resting() bool { return !c.power }

// list gives the findings, in no order.
func (c *care) list() []Finding { return slices.Clone(c.findings) }
