package android

import (
	"math"
	"strconv"
	"time"
)

// Reading is what the battery service tells of the battery.
type Reading struct {
	AC, USB, Wireless, Dock bool
	Status                  int // 1 unknown, 2 charging, 3 discharging, 4 not charging, 5 full
	Health                  int // 1 unknown, 2 good, 3 overheat, 4 dead, 5 over-voltage, 6 failure, 7 cold
	Present                 bool
	Level                   int // percent
	Voltage                 int // mV
	Temperature             int // tenths of a degree Celsius
	Counter                 int // uAh
	Technology              string
}

// plugged is the type of the plug as a bit: 1 AC, 2 USB, 4 wireless, 8 dock; 0 for none.
func (r Reading) plugged() int {
	switch {
	case r.AC:
		return 1
	case r.USB:
		return 2
	case r.Wireless:
		return 4
	case r.Dock:
		return 8
	}
	return 0
}

// battery is the real one and what "dumpsys battery set" makes of it.
type battery struct {
	real    Reading
	fake    Reading
	stopped bool // the service tells fake and takes no updates

	began time.Time     // of the statistics
	ran   time.Duration // on battery since then, until the plug was seen last
	since time.Time     // of when it runs on battery; zero while it is plugged in
}

// plug counts the time on battery. Statistics begin anew when a full phone is unplugged.
func (b *battery) plug(now time.Time) {
	switch plugged := b.shown().plugged() > 0; {
	case plugged && !b.since.IsZero():
		b.ran, b.since = b.onBattery(now), time.Time{}
	case !plugged && b.since.IsZero():
		if b.since = now; b.shown().Status == full {
			b.began, b.ran = now, 0
		}
	}
}

func (b *battery) onBattery(now time.Time) time.Duration {
	if b.since.IsZero() {
		return b.ran
	}
	return b.ran + now.Sub(b.since)
}

const full = 5 // of Reading.Status

func newBattery(now time.Time) battery {
	return battery{began: now, real: Reading{
		USB: true, Status: 2, Health: 2, Present: true, Level: 85, Voltage: 4186, Temperature: 286, Counter: 2844000, Technology: "Li-ion",
	}}
}

func (b *battery) shown() Reading {
	if b.stopped {
		return b.fake
	}
	return b.real
}

// freeze starts faking with what is shown at present.
func (b *battery) freeze() {
	if !b.stopped {
		b.fake, b.stopped = b.real, true
	}
}

func (b *battery) reset() { b.stopped = false }

// SetBattery changes the real battery, which is not what the phone tells while its service
// has stopped to take updates.
func (d *Device) SetBattery(r Reading) {
	d.mu.Lock()
	if r.Technology == "" {
		r.Technology = d.battery.real.Technology
	}
	d.battery.real = r
	d.mu.Unlock()
	d.showBattery()
}

// Battery returns the real battery.
func (d *Device) Battery() Reading {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.battery.real
}

// SetThermal sets the thermal status: 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown.
func (d *Device) SetThermal(status int) {
	d.mu.Lock()
	d.thermal = status
	d.mu.Unlock()
}

func dumpBattery(c *call, args []string) int {
	for len(args) > 1 && args[1] == "-f" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) == 0 || args[0] == "-a" {
		c.batteryState()
		return 0
	}
	switch args[0] {
	case "set":
		return c.batterySet(args[1:])
	case "unplug":
		c.changeBattery(func(r *Reading) { r.AC, r.USB, r.Wireless, r.Dock = false, false, false, false })
		return 0
	case "reset":
		c.mu.Lock()
		c.battery.reset()
		c.mu.Unlock()
		c.showBattery()
		return 0
	}
	c.printf("Unknown command: %s\nBattery service (battery) commands:\n  help\n    Print this help text.\n", args[0])
	return 0
}

func (c *call) changeBattery(fn func(*Reading)) {
	c.mu.Lock()
	c.battery.freeze()
	fn(&c.battery.fake)
	c.mu.Unlock()
	c.showBattery()
}

func (d *Device) showBattery() {
	d.mu.Lock()
	r := d.battery.shown()
	d.battery.plug(d.now())
	d.mu.Unlock()
	d.screen.SetBattery(r.Level, r.plugged() > 0)
}

func (c *call) batterySet(args []string) int {
	if len(args) == 0 {
		c.printf("No property specified\n")
		return 0
	}
	if len(args) < 2 {
		c.printf("No value specified\n")
		return 0
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		c.printf("Bad value: %s\n", args[1])
		return 0
	}
	set := map[string]func(*Reading){
		"ac":       func(r *Reading) { r.AC = n != 0 },
		"usb":      func(r *Reading) { r.USB = n != 0 },
		"wireless": func(r *Reading) { r.Wireless = n != 0 },
		"status":   func(r *Reading) { r.Status = n },
		"level":    func(r *Reading) { r.Level = n },
		"temp":     func(r *Reading) { r.Temperature = n },
		"present":  func(r *Reading) { r.Present = n != 0 },
		"counter":  func(r *Reading) { r.Counter = n },
		"invalid":  func(*Reading) {},
	}[args[0]]
	if args[0] == "dock" && c.release.version >= 13 {
		set = func(r *Reading) { r.Dock = n != 0 }
	}
	if set == nil {
		c.printf("Unknown set option: %s\n", args[0])
		return 0
	}
	c.changeBattery(set)
	return 0
}

func (c *call) batteryState() {
	c.mu.Lock()
	r, stopped := c.battery.shown(), c.battery.stopped
	f := c.faults.Battery
	c.mu.Unlock()
	if f.Absurd {
		r.Level, r.Voltage, r.Temperature, r.Status, r.Health = 250, 0, math.MinInt32, 1, 1
	}
	if f.Absent {
		r = Reading{AC: r.AC, USB: r.USB, Status: 1, Health: 1}
	}
	if f.OddUnits {
		r.Voltage, r.Temperature = (r.Voltage+500)/1000, (r.Temperature+5)/10
	}
	c.printf("Current Battery Service state:\n")
	if stopped {
		c.printf("  (UPDATES STOPPED -- use 'reset' to restart)\n")
	}
	c.printf("  AC powered: %t\n  USB powered: %t\n  Wireless powered: %t\n", r.AC, r.USB, r.Wireless)
	if c.release.version >= 13 {
		c.printf("  Dock powered: %t\n", r.Dock)
	}
	c.printf("  Max charging current: 500000\n  Max charging voltage: 5000000\n  Charge counter: %d\n", r.Counter)
	c.printf("  status: %d\n  health: %d\n  present: %t\n  level: %d\n  scale: 100\n  voltage: %d\n  temperature: %d\n  technology: %s\n",
		r.Status, r.Health, r.Present, r.Level, r.Voltage, r.Temperature, r.Technology)
	if c.release.version >= 15 {
		c.printf("  Charging state: 0\n  Charging policy: 0\n")
	}
	if f.Repeat {
		// A second block of the vendor, with keys of the first in other units.
		c.printf("  batteryMiscEvent: 0\n  batteryCurrentEvent: 0\n  mSecPlugTypeSummary: 2\n  LED Charging: true\n  current now: -312\n"+
			"  charge counter: %d\n  Adaptive Fast Charging Settings: true\n  level: %d\n  status: %d\n",
			r.Counter/1000, r.Level, r.Status)
	}
}

// dumpBatteryStats gives, of the long checkin form, the time on battery, and little else.
func dumpBatteryStats(c *call, args []string) int {
	if len(args) == 0 || args[0] != "-c" && args[0] != "--checkin" {
		c.printf("Battery History (0%% used, 0KB used of 4096KB):\n")
		return 0
	}
	c.mu.Lock()
	now := c.now()
	ran, began, booted := c.battery.onBattery(now), c.battery.began, c.booted
	c.mu.Unlock()
	all := now.Sub(booted).Milliseconds()
	c.printf("9,0,i,vers,36,212,SIM,SIM\n9,0,i,uid,1000,android\n9,0,l,bt,0,%d,%d,%d,%d,%d,%d,%d,4000,4000000,4000000,0\n9,0,l,gn,0,0,0,0,0,0,0,0,0,0\n",
		ran.Milliseconds(), ran.Milliseconds(), all, all, began.UnixMilli(), ran.Milliseconds(), ran.Milliseconds())
	return 0
}
