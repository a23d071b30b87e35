package health

import (
	"slices"
	"strings"
	"time"

	"phonerack/firmware/store"
)

// Alarm says which condition of the rack's light a finding belongs to.
type Alarm string

// Alarms.
const (
	NoAlarm    Alarm = ""
	FaultAlarm Alarm = "fault"
	PowerAlarm Alarm = "power"
	CloudAlarm Alarm = "no_cloud"
)

var alarms = map[string]Alarm{
	"database_recovered": FaultAlarm, "database_full": FaultAlarm, "disk_full": FaultAlarm, "disk_worn": FaultAlarm, "memory_low": FaultAlarm,
	"controller_hot": FaultAlarm, "service_crashing": FaultAlarm, "under_voltage": PowerAlarm, "hub_lost": PowerAlarm, "hub_overload": PowerAlarm, "broker_lost": CloudAlarm,
}

// Alarm is the finding's.
func (f Finding) Alarm() Alarm { return alarms[f.Code] }

// Crowded is the finding about a USB controller that has no room for what is plugged in at some ports; most is how many devices
// it supports, 0 if it did not say.
func Crowded(ports []string, most int) Finding {
	const shown = 4
	text := strings.Join(ports[:min(len(ports), shown)], ", ")
	if len(ports) > shown {
		text += ", …"
	}
	args := map[string]any{"count": len(ports), "ports": text}
	if most > 0 {
		args["most"] = most
	}
	return finding("usb_full", args)
}

// Overload is the finding about a hub that says that it takes too much current.
func Overload(hub string) Finding { return finding("hub_overload", map[string]any{"hub": hub}) }

// Controller is what is known of the controller at one time.
type Controller struct {
	Boot    time.Duration // time since the start
	Wall    time.Time
	Trusted bool // the wall clock was set by something that knows

	CloudWanted bool // the rack has an identity
	Connected   bool // to the broker

	Recovery      store.Recovery
	DatabaseBytes int64
	DatabaseMost  int64

	SkillsAside  []string // skills whose records could not be read
	Absent       []string // addresses that the page or metrics are to be served at, and that the machine does not have
	NameDisputed string   // the name on the network that the rack has not, because others dispute each; "" if it has one, or wants none

	System System
}

// System is what the kernel says; a value below 0 is not known.
type System struct {
	MemoryFree   float64 // percent that can be had
	DiskFree     float64 // percent of the file system with the state folder
	DiskWear     float64 // percent of the storage's life
	Celsius      float64 // of the processor; Unread if not known
	UnderVoltage bool
}

// Unread is a value that could not be read.
const Unread = -1000

// Checks follow the controller. The zero value begins.
type Checks struct {
	boot    time.Duration
	wall    time.Time
	trusted bool
	offline time.Duration // since when there is no broker; valid while away
	away    bool
	jumped  time.Duration // by how much, last
	jumpAt  time.Duration
	crashes map[string][]time.Duration
}

// Crashed notes that a service ended although it should not.
func (c *Checks) Crashed(service string, at time.Duration) {
	if c.crashes == nil {
		c.crashes = map[string][]time.Duration{}
	}
	const most = 200
	c.crashes[service] = append(c.crashes[service], at)
	if n := len(c.crashes[service]); n > most {
		c.crashes[service] = slices.Delete(c.crashes[service], 0, n-most)
	}
}

// Check gives what should be known about the controller, by code.
func (c *Checks) Check(in Controller, conf Rack) []Finding {
	var all []Finding
	add := func(is bool, code string, args map[string]any) {
		if is {
			all = append(all, finding(code, args))
		}
	}
	add(!in.Trusted, "clock_unset", nil)
	c.clock(in, conf)
	add(c.jumpAt > 0 && in.Boot-c.jumpAt < conf.JumpShown.of(), "clock_jumped", map[string]any{"by": c.jumped.Round(time.Second)})
	silent := c.broker(in)
	add(silent >= conf.BrokerAfter.of() && c.away, "broker_lost", map[string]any{"since": silent.Round(time.Second)})
	add(in.Recovery.Outcome == store.Restored || in.Recovery.Outcome == store.Fresh, "database_recovered", map[string]any{"outcome": string(in.Recovery.Outcome), "reason": in.Recovery.Reason})
	if in.DatabaseMost > 0 {
		percent := in.DatabaseBytes * 100 / in.DatabaseMost
		add(percent >= int64(conf.DatabaseFull), "database_full", map[string]any{"percent": percent})
	}
	for _, skill := range in.SkillsAside {
		add(true, "skill_set_aside", map[string]any{"skill": skill})
	}
	for _, address := range in.Absent {
		add(true, "address_missing", map[string]any{"address": address})
	}
	add(in.NameDisputed != "", "name_disputed", map[string]any{"name": in.NameDisputed})
	s := in.System
	add(s.DiskFree >= 0 && s.DiskFree < float64(conf.DiskFree), "disk_full", map[string]any{"percent": int(s.DiskFree)})
	add(s.DiskWear >= float64(conf.DiskWear), "disk_worn", map[string]any{"percent": int(s.DiskWear)})
	add(s.MemoryFree >= 0 && s.MemoryFree < float64(conf.MemoryFree), "memory_low", map[string]any{"percent": int(s.MemoryFree)})
	add(s.UnderVoltage, "under_voltage", nil)
	add(s.Celsius >= conf.Temperature, "controller_hot", map[string]any{"celsius": s.Celsius})
	for service, times := range c.crashes {
		times = recent(times, in.Boot-conf.CrashWindow.of())
		c.crashes[service] = times
		add(len(times) >= conf.Crashes, "service_crashing", map[string]any{"service": service, "count": len(times), "window": conf.CrashWindow.of()})
	}
	slices.SortFunc(all, func(a, b Finding) int { return strings.Compare(a.Code+name(a), b.Code+name(b)) })
	return all
}

func name(f Finding) string {
	s, _ := f.Args["service"].(string)
	return s
}

// clock compares both clocks with the last check. The first setting of a clock is no jump.
func (c *Checks) clock(in Controller, conf Rack) {
	in.Wall = in.Wall.Round(0) // without its monotonic reading, which a clock that is set does not change
	if c.trusted && in.Trusted {
		by := in.Wall.Sub(c.wall) - (in.Boot - c.boot)
		if by.Abs() >= conf.ClockJump.of() {
			c.jumped, c.jumpAt = by, max(in.Boot, 1)
		}
	}
	c.boot, c.wall, c.trusted = in.Boot, in.Wall, in.Trusted
}

// broker gives how long there was none.
func (c *Checks) broker(in Controller) time.Duration {
	away := in.CloudWanted && !in.Connected
	if away && !c.away {
		c.offline = in.Boot
	}
	c.away = away
	if !away {
		return 0
	}
	return in.Boot - c.offline
}
