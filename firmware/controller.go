package firmware

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"phonerack/firmware/health"
	"phonerack/hal/led"
	"phonerack/sync/link"
)

const (
	checkRounds = 10 // of care, from one check of the controller to the next: 10 s, unless a test is in a hurry
	procPath    = "/proc"
)

// check looks how the controller is.
func (c *care) check(now time.Duration) {
	r := c.rack
	wall, trusted := r.wall()
	in := health.Controller{
		Boot: now, Wall: wall, Trusted: trusted, CloudWanted: r.cloud != nil, Recovery: r.store.Recovery(), DatabaseMost: int64(r.room),
		NameDisputed: r.disputed(), Absent: r.absent.list(),
	}
	if r.skills != nil {
		in.SkillsAside = r.skills.Registry().SetAside()
	}
	if r.cloud != nil {
		in.Connected = r.cloud.link.Status().State == link.Online
	}
	if info, err := os.Stat(filepath.Join(r.config.Rack.State, databaseFile)); err == nil {
		in.DatabaseBytes = info.Size()
	}
	var err error
	if in.System, err = health.ReadSystem(os.DirFS(procPath), os.DirFS(r.config.USB.Sysfs)); err != nil {
		c.log.Debug("not all of the controller could be read", "err", err)
	}
	in.System.DiskFree = diskFree(r.config.Rack.State)
	c.mu.Lock()
	limits := c.limits
	c.mu.Unlock()
	hubs, crowded := r.overcurrent.hubsNow(now, time.Duration(limits.OverloadFor)), c.ports.full()
	r.tally.overcurrent(hubs)
	for _, end := range r.watch.Take() {
		c.checks.Crashed(end.Part, end.At)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[string]bool{}
	for _, f := range c.findings {
		before[about(f)] = true
	}
	c.findings = slices.Concat(c.checks.Check(in, limits), c.keeper.Hubs(), crowded)
	for _, hub := range hubs {
		c.findings = append(c.findings, health.Overload(hub))
	}
	for _, f := range c.findings {
		if before[about(f)] {
			continue
		}
		_, why, _ := f.Say("en")
		level := slog.LevelInfo
		if f.Alarm() != health.NoAlarm {
			level = slog.LevelWarn
		}
		c.log.Log(context.Background(), level, "the controller needs a look", "finding", f.Code, "why", why)
	}
}

// about is what a finding is about: its figures may change from one check to the next.
func about(f health.Finding) string {
	return fmt.Sprint(f.Code, " ", f.Args["hub"], " ", f.Args["service"], " ", f.Args["address"], " ", f.Args["skill"])
}

// wall is the board's clock, and whether it is right: the cloud's time says so, or the kernel's own discipline (NTP). The link
// knows the time, and sets no clock.
func (r *Rack) wall() (time.Time, bool) {
	if r.cloud != nil && confirms(r.cloud.link.Status()) {
		return time.Now(), true
	}
	var t unix.Timex
	const timeError = 5 // TIME_ERROR: the clock is not synchronised, adjtimex(2)
	state, err := unix.Adjtimex(&t)
	return time.Now(), err == nil && state != timeError
}

// clockOff is how far the board's clock may be from the cloud's time.
const clockOff = time.Minute

func confirms(s link.Status) bool { return s.Trusted && s.Offset.Abs() < clockOff }

// diskFree is how much of a folder's file system can be had, in percent; below 0 if that is not known.
func diskFree(folder string) float64 {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil || s.Blocks == 0 {
		return -1
	}
	return math.Min(100, float64(s.Bavail)/float64(s.Blocks)*100)
}

// setLimits changes thresholds that are only compared with: those of the controller count from its next check on, those of
// phones from their next readings.
func (c *care) setLimits(rack health.Rack, phone health.Phone) {
	c.mu.Lock()
	c.limits = rack
	c.mu.Unlock()
	c.keeper.SetPhone(phone)
}

// controller is what the last check has found.
func (c *care) controller() []health.Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]health.Finding(nil), c.findings...)
}

// shine shows on the LEDs how the rack and its slots are.
func (c *care) shine() {
	if len(c.lights) == 0 {
		return
	}
	count := c.keeper.Count()
	alarms := map[health.Alarm]bool{}
	for _, f := range c.controller() {
		alarms[f.Alarm()] = true
	}
	rack := c.lights[0]
	rack.set(led.Fault, alarms[health.FaultAlarm])
	rack.set(led.Power, alarms[health.PowerAlarm])
	rack.set(led.NoCloud, alarms[health.CloudAlarm])
	rack.set(led.Unprovisioned, c.rack.cloud == nil)
	rack.set(led.NeedsHands, count[health.NeedsHands] > 0 || c.givenUp())
	rack.set(led.Recovering, count[health.Recovering]+count[health.Maintenance] > 0)
	rack.set(led.Well, true) // the last of all: shown when nothing else is
	for _, st := range c.keeper.All() {
		own := c.lights[st.Slot]
		own.set(led.NeedsHands, st.State == health.NeedsHands || leftByLadder(st))
		own.set(led.Recovering, st.State == health.Recovering || st.State == health.Maintenance)
		own.set(led.Well, slices.Contains([]health.State{health.Well, health.Attention, health.Resting}, st.State))
	}
}

// givenUp tells whether recovery has left a phone alone because nothing helped. What a person has left alone is no call for hands.
func (c *care) givenUp() bool { return slices.ContainsFunc(c.keeper.All(), leftByLadder) }

func leftByLadder(st health.Status) bool {
	return st.State == health.Quarantined && slices.ContainsFunc(st.Others, func(f health.Finding) bool {
		return f.Code == "quarantined" && f.Args["by"] == health.ByLadder
	})
}

// tellable are the states that the cloud hears of; the others last but a moment, or say nothing new.
var tellable = map[health.State]bool{
	health.NeedsHands: true, health.Quarantined: true, health.Attention: true, health.Maintenance: true, health.Resting: true,
}

// tell gives the cloud word of slots that somebody should look at, and of their end.
func (c *care) tell() {
	for _, st := range c.keeper.All() {
		before, was := c.told[st.Slot]
		switch {
		case st.State == before, !tellable[st.State] && !(was && st.State == health.Well):
			continue
		case st.State == health.Well:
			delete(c.told, st.Slot)
		default:
			c.told[st.Slot] = st.State
		}
		c.rack.events.health(st, c.rack.serialOf(st.Slot))
	}
}

func (r *Rack) serialOf(slot int) string {
	state, _ := r.slots[slot].snapshot()
	return state.Serial
}
