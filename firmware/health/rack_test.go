package health

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"phonerack/firmware/store"
)

// good is a controller that nothing is wrong with.
func good(boot time.Duration) Controller {
	return Controller{
		Boot: boot, Wall: start.Add(boot), Trusted: true, CloudWanted: true, Connected: true,
		Recovery: store.Recovery{Outcome: store.Opened}, DatabaseBytes: 10, DatabaseMost: 100,
		System: System{MemoryFree: 60, DiskFree: 60, DiskWear: -1, Celsius: 55},
	}
}

func codes(all []Finding) string {
	var b []string
	for _, f := range all {
		b = append(b, f.Code)
	}
	return strings.Join(b, " ")
}

func TestControllerChecks(t *testing.T) {
	conf := Defaults().Rack
	for _, c := range []struct {
		name   string
		change func(*Controller)
		want   string
		alarm  Alarm
	}{
		{"nothing wrong", func(*Controller) {}, "", NoAlarm},
		{"no clock", func(c *Controller) { c.Trusted = false }, "clock_unset", NoAlarm},
		{"database restored", func(c *Controller) { c.Recovery.Outcome = store.Restored }, "database_recovered", FaultAlarm},
		{"database begun anew", func(c *Controller) { c.Recovery.Outcome = store.Fresh }, "database_recovered", FaultAlarm},
		{"a new database is no fault", func(c *Controller) { c.Recovery.Outcome = store.Created }, "", NoAlarm},
		{"database at 79 %", func(c *Controller) { c.DatabaseBytes = 79 }, "", NoAlarm},
		{"database at 80 %", func(c *Controller) { c.DatabaseBytes = 80 }, "database_full", FaultAlarm},
		{"disk at 9 %", func(c *Controller) { c.System.DiskFree = 9.9 }, "disk_full", FaultAlarm},
		{"disk not known", func(c *Controller) { c.System.DiskFree = -1 }, "", NoAlarm},
		{"worn", func(c *Controller) { c.System.DiskWear = 80 }, "disk_worn", FaultAlarm},
		{"memory", func(c *Controller) { c.System.MemoryFree = 9 }, "memory_low", FaultAlarm},
		{"memory not known", func(c *Controller) { c.System.MemoryFree = -1 }, "", NoAlarm},
		{"a skill that cannot be read", func(c *Controller) { c.SkillsAside = []string{"local/x"} }, "skill_set_aside", NoAlarm},
		{"an address that is late", func(c *Controller) { c.Absent = []string{"192.0.2.7:80"} }, "address_missing", NoAlarm},
		{"others dispute its name", func(c *Controller) { c.NameDisputed = "rack-1" }, "name_disputed", NoAlarm},
		{"under-voltage", func(c *Controller) { c.System.UnderVoltage = true }, "under_voltage", PowerAlarm},
		{"hot", func(c *Controller) { c.System.Celsius = 80 }, "controller_hot", FaultAlarm},
		{"temperature not known", func(c *Controller) { c.System.Celsius = Unread }, "", NoAlarm},
		{"no broker yet", func(c *Controller) { c.Connected = false }, "", NoAlarm},
		{"a rack on its own has none", func(c *Controller) { c.Connected, c.CloudWanted = false, false }, "", NoAlarm},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := good(time.Hour)
			c.change(&in)
			all := new(Checks).Check(in, conf)
			if codes(all) != c.want || len(all) > 0 && all[0].Alarm() != c.alarm {
				t.Errorf("got %+v, want %s", all, c.want)
			}
		})
	}
}

func TestBrokerIsMissedAfterATime(t *testing.T) {
	conf, checks := Defaults().Rack, &Checks{}
	for _, c := range []struct {
		at        time.Duration
		connected bool
		want      string
	}{
		{0, true, ""},
		{time.Minute, false, ""},
		{3*time.Minute - time.Second, false, ""},
		{3 * time.Minute, false, "broker_lost"},
		{4 * time.Minute, true, ""},
		{5 * time.Minute, false, ""},
		{7 * time.Minute, false, "broker_lost"},
	} {
		in := good(c.at)
		in.Connected = c.connected
		if got := codes(checks.Check(in, conf)); got != c.want {
			t.Errorf("at %v: %q, want %q", c.at, got, c.want)
		}
	}
}

func TestClockThatJumps(t *testing.T) {
	conf, checks := Defaults().Rack, &Checks{}
	conf.JumpShown = 30 * minute
	for _, c := range []struct {
		at      time.Duration
		off     time.Duration // of the wall clock
		trusted bool
		want    string
	}{
		{0, -50 * 365 * day, false, "clock_unset"}, // 1976
		{time.Minute, 0, true, ""},                 // its first setting is no jump
		{2 * time.Minute, 59 * time.Second, true, ""},
		{3 * time.Minute, -time.Hour, true, "clock_jumped"},
		{4 * time.Minute, -time.Hour, true, "clock_jumped"},
		{32 * time.Minute, -time.Hour, true, "clock_jumped"},
		{34 * time.Minute, -time.Hour, true, ""},
	} {
		in := good(c.at)
		in.Wall, in.Trusted = in.Wall.Add(c.off), c.trusted
		if got := codes(checks.Check(in, conf)); got != c.want {
			t.Errorf("at %v: %q, want %q", c.at, got, c.want)
		}
	}
}

func TestServiceThatCrashes(t *testing.T) {
	conf, checks := Defaults().Rack, &Checks{}
	for i := range 3 {
		checks.Crashed("link", time.Duration(i+1)*time.Minute)
		if i < 2 {
			checks.Crashed("page", time.Duration(i+1)*time.Minute)
		}
		if got, want := codes(checks.Check(good(time.Duration(i+1)*time.Minute), conf)), map[int]string{2: "service_crashing"}[i]; got != want {
			t.Errorf("after %d crashes: %q", i+1, got)
		}
	}
	checks = &Checks{}
	for i := range 1000 {
		checks.Crashed("link", time.Duration(i)*time.Second)
	}
	all := checks.Check(good(1000*time.Second), conf)
	if codes(all) != "service_crashing" || all[0].Args["count"] != 200 {
		t.Errorf("%+v", all)
	}
	if got := codes(checks.Check(good(time.Hour), conf)); got != "" {
		t.Errorf("an hour later: %q", got)
	}
}

func TestReadSystem(t *testing.T) {
	files := func(of ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i := 0; i < len(of); i += 2 {
			m[of[i]] = &fstest.MapFile{Data: []byte(of[i+1])}
		}
		return m
	}
	meminfo := "MemTotal:        4000000 kB\nMemFree:          100000 kB\nMemAvailable:    1000000 kB\n"
	for _, c := range []struct {
		name      string
		proc, sys fstest.MapFS
		want      System
		fault     string
	}{
		{"a board that tells nothing", files(), files(), System{-1, -1, -1, Unread, false}, ""},
		{
			"all there is", files("meminfo", meminfo), files(
				"class/thermal/thermal_zone0/temp", "48312\n", "class/thermal/thermal_zone1/temp", "51000\n",
				"class/hwmon/hwmon0/name", "cpu_thermal\n", "class/hwmon/hwmon1/name", "rpi_volt\n", "class/hwmon/hwmon1/in0_lcrit_alarm", "1\n",
				"block/mmcblk0/device/life_time", "0x02 0x03\n",
			), System{25, -1, 30, 51, true}, "",
		},
		{"worn out", files(), files("block/mmcblk0/device/life_time", "0x0b 0x01"), System{-1, -1, 100, Unread, false}, ""},
		{"no alarm", files(), files("class/hwmon/hwmon1/name", "rpi_volt", "class/hwmon/hwmon1/in0_lcrit_alarm", "0"), System{-1, -1, -1, Unread, false}, ""},
		{"another chip's alarm", files(), files("class/hwmon/hwmon1/name", "ina219", "class/hwmon/hwmon1/in0_lcrit_alarm", "1"), System{-1, -1, -1, Unread, false}, ""},
		{"memory that is none", files("meminfo", "MemTotal: lots\n"), files(), System{-1, -1, -1, Unread, false}, "meminfo: MemTotal is"},
		{"more available than there is", files("meminfo", "MemTotal: 1 kB\nMemAvailable: 2 kB\n"), files(), System{-1, -1, -1, Unread, false}, ""},
		{"a temperature that cannot be", files(), files("class/thermal/thermal_zone0/temp", "99999999"), System{-1, -1, -1, Unread, false}, "thermal_zone0/temp is"},
		{"a life that cannot be", files(), files("block/mmcblk0/device/life_time", "0xff zz"), System{-1, -1, -1, Unread, false}, "life_time is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadSystem(c.proc, c.sys)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if (c.fault == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzReadSystem(f *testing.F) {
	f.Add("MemTotal: 4 kB\nMemAvailable: 1 kB\n", "0x02 0x03", "48312", "1")
	f.Fuzz(func(t *testing.T, mem, life, temp, alarm string) {
		s, _ := ReadSystem(fstest.MapFS{"meminfo": {Data: []byte(mem)}}, fstest.MapFS{
			"block/mmcblk0/device/life_time": {Data: []byte(life)}, "class/thermal/thermal_zone0/temp": {Data: []byte(temp)},
			"class/hwmon/hwmon0/name": {Data: []byte("rpi_volt")}, "class/hwmon/hwmon0/in0_lcrit_alarm": {Data: []byte(alarm)},
		})
		if s.MemoryFree > 100 || s.DiskWear > 100 || s.Celsius > 200 {
			t.Error(fmt.Sprint(s))
		}
	})
}

// TestAJumpIsOneOfTheWallClock: the times of this process carry the reading of another clock, which knows of no jump, and which
// Sub prefers. Two of them that differ in that alone cannot be made here.
func TestAJumpIsOneOfTheWallClock(t *testing.T) {
	var c Checks
	c.Check(Controller{Boot: time.Hour, Wall: time.Now(), Trusted: true}, Defaults().Rack)
	if text := c.wall.String(); strings.Contains(text, " m=") {
		t.Errorf("a jump would be looked for in %s", text)
	}
}
