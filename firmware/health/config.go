package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Duration is a time.Duration written as in "15m".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as 90s, 15m or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}

// String is the duration as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

func (d Duration) of() time.Duration { return time.Duration(d) }

// Config holds every threshold of this package.
type Config struct {
	Probe      Probe      `toml:"probe"`
	Ladder     Ladder     `toml:"ladder"`
	Quarantine Quarantine `toml:"quarantine"`
	Battery    Battery    `toml:"battery"`
	Phone      Phone      `toml:"phone"`
	Rack       Rack       `toml:"rack"`
}

// Probe says how phones are looked at.
type Probe struct {
	Interval Duration `toml:"interval"`  // between two looks at a phone
	Confirm  int      `toml:"confirm"`   // looks in a row that have to agree before a phone counts as ill
	FreshFor Duration `toml:"fresh_for"` // a look that is older says nothing: the slot is unknown
}

// Ladder says how a phone that is ill is helped.
type Ladder struct {
	Enabled     bool     `toml:"enabled"`
	Actions     int      `toml:"actions"`      // at the same time on the whole rack; one a hub in any case
	ProvenAfter Duration `toml:"proven_after"` // a phone that was well so long begins at the first rung again
	Flaps       int      `toml:"flaps"`        // losses within flap_window that make a cable suspect
	FlapWindow  Duration `toml:"flap_window"`
	OffTime     Duration `toml:"off_time"`     // of a power cycle
	LongestWait Duration `toml:"longest_wait"` // bound of the pause between two tries of a rung
	Patience    Duration `toml:"patience"`     // how long a hub's cycle waits for the leases of its slots
	ResetModels []string `toml:"reset_models"` // models that survive a USB reset; none by default

	Reopen    Step `toml:"reopen"`
	Resync    Step `toml:"resync"`
	ClearHalt Step `toml:"clear_halt"`
	Reset     Step `toml:"usb_reset"`
	Reboot    Step `toml:"reboot"`
	PortCycle Step `toml:"port_cycle"`
	HubCycle  Step `toml:"hub_cycle"`
}

// Step is one rung.
type Step struct {
	Tries  int      `toml:"tries"`   // in a row, before the next rung
	PerDay int      `toml:"per_day"` // in any 24 hours, of a slot, or of a hub; 0 leaves the rung out
	Settle Duration `toml:"settle"`  // before the phone is looked at again; doubled for each further try
}

// Quarantine says how long a phone that the ladder did not help is left alone.
type Quarantine struct {
	First   Duration `toml:"first"`   // then twice as long each time
	Longest Duration `toml:"longest"` // that the ladder gives; people may give up to 7 days
}

// Battery says how batteries are cared for.
type Battery struct {
	Interval  Duration `toml:"interval"` // between two readings
	Windows   bool     `toml:"windows"`  // charge by switching the port; only for hubs that cut VBUS
	Low       int      `toml:"low"`      // percent: charge from here
	High      int      `toml:"high"`     // percent: to here
	StopHot   float64  `toml:"stop_hot"` // degrees Celsius: no charging and no new task from here
	ResumeHot float64  `toml:"resume_hot"`
	RestFor   Duration `toml:"rest_for"` // a port is off before the battery is read again
	CoolFor   Duration `toml:"cool_for"` // the same, after heat
	CableDrop int      `toml:"cable_drop"`
	CableTime Duration `toml:"cable_time"` // the level falls by cable_drop percent within it although powered: bad cable
	HotStops  int      `toml:"hot_stops"`  // within hot_window: the battery is suspect
	HotWindow Duration `toml:"hot_window"`
	WantedFor Duration `toml:"wanted_for"` // a phone that rested and that somebody has asked for keeps its power so long without being used
}

// Phone has the other thresholds of a phone.
type Phone struct {
	StorageFree  int      `toml:"storage_free"`  // percent of /data: less is reported
	StorageBytes int64    `toml:"storage_bytes"` // bytes of /data: less is reported
	KeyTouch     Duration `toml:"key_touch"`     // each phone is spoken to at least so often
	KeyLapse     Duration `toml:"key_lapse"`     // Android forgets a key after it (adb_allowed_connection_time)
	CloseTCP     bool     `toml:"close_tcp"`     // an open port 5555 is closed, not only reported
	MendsPerDay  int      `toml:"mends_per_day"` // how often it is closed, and faked readings are ended, in any 24 hours
}

// Rack has the thresholds of the controller.
type Rack struct {
	ClockJump    Duration `toml:"clock_jump"`    // of the wall clock against the boot clock, between two checks
	JumpShown    Duration `toml:"jump_shown"`    // how long a jump of the clock is said
	OverloadFor  Duration `toml:"overload_for"`  // how long a hub is named after one of its ports took too much
	BrokerAfter  Duration `toml:"broker_after"`  // without a broker
	DatabaseFull int      `toml:"database_full"` // percent of its bound
	DiskFree     int      `toml:"disk_free"`     // percent of the state folder's file system
	DiskWear     int      `toml:"disk_wear"`     // percent of its life used
	MemoryFree   int      `toml:"memory_free"`   // percent that can be had
	Temperature  float64  `toml:"temperature"`   // degrees Celsius of the processor
	Crashes      int      `toml:"crashes"`       // of a service within crash_window
	CrashWindow  Duration `toml:"crash_window"`
}

const (
	minute = Duration(time.Minute)
	hour   = Duration(time.Hour)
	day    = 24 * time.Hour
)

// Defaults are the thresholds that docs/health.md gives the reasons of.
func Defaults() Config {
	return Config{
		Probe: Probe{Interval: minute / 2, Confirm: 2, FreshFor: 3 * minute},
		Ladder: Ladder{
			Enabled: true, Actions: 4, ProvenAfter: 10 * minute, Flaps: 3, FlapWindow: hour, OffTime: minute / 6, LongestWait: 30 * minute, Patience: 30 * minute,
			ResetModels: []string{},
			Reopen:      Step{2, 24, minute / 6},
			Resync:      Step{2, 24, minute / 6},
			ClearHalt:   Step{1, 12, minute / 6},
			Reset:       Step{1, 6, minute / 2},
			Reboot:      Step{1, 4, 4 * minute},
			PortCycle:   Step{2, 6, 2 * minute},
			HubCycle:    Step{1, 2, 3 * minute},
		},
		Quarantine: Quarantine{First: 30 * minute, Longest: 24 * hour},
		Battery: Battery{
			Interval: 15 * minute, Low: 30, High: 60, StopHot: 37, ResumeHot: 35, RestFor: 4 * hour, CoolFor: 15 * minute,
			CableDrop: 5, CableTime: hour, HotStops: 3, HotWindow: 24 * hour, WantedFor: 10 * minute,
		},
		Phone: Phone{StorageFree: 10, StorageBytes: 500 << 20, KeyTouch: 144 * hour, KeyLapse: 168 * hour, CloseTCP: true, MendsPerDay: 6},
		Rack: Rack{
			ClockJump: minute, JumpShown: hour, OverloadFor: 10 * minute, BrokerAfter: 2 * minute, DatabaseFull: 80, DiskFree: 10, DiskWear: 80, MemoryFree: 10,
			Temperature: 80, Crashes: 3, CrashWindow: 10 * minute,
		},
	}
}

// Fault is a value that cannot be used, by its key below "health".
type Fault struct{ Key, Text string }

// Faults are all values that cannot be used.
func (c *Config) Faults() []Fault {
	var f faults
	between(&f, "probe.interval", c.Probe.Interval, Duration(5*time.Second), hour)
	between(&f, "probe.confirm", c.Probe.Confirm, 1, 10)
	between(&f, "probe.fresh_for", c.Probe.FreshFor, 2*c.Probe.Interval, 24*hour)
	c.Ladder.check(&f)
	between(&f, "quarantine.first", c.Quarantine.First, Duration(ShortestQuarantine), c.Quarantine.Longest)
	between(&f, "quarantine.longest", c.Quarantine.Longest, Duration(ShortestQuarantine), c.Phone.KeyTouch-24*hour)
	between(&f, "battery.interval", c.Battery.Interval, minute, 6*hour)
	between(&f, "battery.low", c.Battery.Low, 5, 90)
	between(&f, "battery.high", c.Battery.High, c.Battery.Low+5, 100)
	between(&f, "battery.stop_hot", c.Battery.StopHot, 30, 45)
	between(&f, "battery.resume_hot", c.Battery.ResumeHot, 20, c.Battery.StopHot-1)
	between(&f, "battery.rest_for", c.Battery.RestFor, 10*minute, c.Phone.KeyTouch-24*hour)
	between(&f, "battery.cool_for", c.Battery.CoolFor, minute, 6*hour)
	between(&f, "battery.cable_drop", c.Battery.CableDrop, 1, 50)
	between(&f, "battery.cable_time", c.Battery.CableTime, 10*minute, 24*hour)
	between(&f, "battery.hot_stops", c.Battery.HotStops, 1, 100)
	between(&f, "battery.hot_window", c.Battery.HotWindow, hour, 168*hour)
	between(&f, "battery.wanted_for", c.Battery.WantedFor, 5*minute, 24*hour) // a phone has 4 minutes to start
	between(&f, "phone.storage_free", c.Phone.StorageFree, 0, 90)
	between(&f, "phone.storage_bytes", c.Phone.StorageBytes, 0, 1<<40)
	between(&f, "phone.key_touch", c.Phone.KeyTouch, 48*hour, c.Phone.KeyLapse-24*hour)
	between(&f, "phone.key_lapse", c.Phone.KeyLapse, 72*hour, 1000*hour)
	between(&f, "phone.mends_per_day", c.Phone.MendsPerDay, 0, maxPerDay)
	between(&f, "rack.clock_jump", c.Rack.ClockJump, Duration(time.Second), hour)
	between(&f, "rack.jump_shown", c.Rack.JumpShown, minute, 24*hour)
	between(&f, "rack.overload_for", c.Rack.OverloadFor, Duration(10*time.Second), 24*hour)
	between(&f, "rack.broker_after", c.Rack.BrokerAfter, Duration(10*time.Second), 24*hour)
	between(&f, "rack.database_full", c.Rack.DatabaseFull, 10, 100)
	between(&f, "rack.disk_free", c.Rack.DiskFree, 0, 90)
	between(&f, "rack.disk_wear", c.Rack.DiskWear, 10, 100)
	between(&f, "rack.memory_free", c.Rack.MemoryFree, 0, 90)
	between(&f, "rack.temperature", c.Rack.Temperature, 40, 110)
	between(&f, "rack.crashes", c.Rack.Crashes, 1, 100)
	between(&f, "rack.crash_window", c.Rack.CrashWindow, minute, 24*hour)
	return f
}

func (l *Ladder) check(f *faults) {
	between(f, "ladder.actions", l.Actions, 1, 64)
	between(f, "ladder.proven_after", l.ProvenAfter, minute, 24*hour)
	between(f, "ladder.flaps", l.Flaps, 2, 100)
	between(f, "ladder.flap_window", l.FlapWindow, 10*minute, 24*hour)
	between(f, "ladder.off_time", l.OffTime, Duration(2*time.Second), 5*minute) // UH#23: less than 2 s does not debounce
	between(f, "ladder.longest_wait", l.LongestWait, minute, 24*hour)
	between(f, "ladder.patience", l.Patience, minute, 24*hour)
	if slices.Contains(l.ResetModels, "") {
		f.add("ladder.reset_models", "a model has no name")
	}
	for r := Reopen; r <= HubCycle; r++ {
		s := l.step(r)
		between(f, "ladder."+r.String()+".tries", s.Tries, 1, 10)
		between(f, "ladder."+r.String()+".per_day", s.PerDay, 0, maxPerDay)
		between(f, "ladder."+r.String()+".settle", s.Settle, Duration(time.Second), hour)
	}
}

// step gives the configuration of a rung.
func (l *Ladder) step(r Rung) Step {
	return [...]Step{l.Reopen, l.Resync, l.ClearHalt, l.Reset, l.Reboot, l.PortCycle, l.HubCycle}[r]
}

type faults []Fault

func (f *faults) add(key, text string) { *f = append(*f, Fault{key, text}) }

func between[T cmp.Ordered](f *faults, key string, v, low, high T) {
	if v < low || v > high {
		f.add(key, fmt.Sprintf("%v is out of range: write %v to %v", v, low, high))
	}
}
