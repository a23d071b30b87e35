package firmware

import (
	"testing"
	"time"

	"phonerack/agent/phone"
	"phonerack/hal/power"
)

func TestWhetherABatteryHadPowerIsKnownOrNot(t *testing.T) {
	before := phone.Gauge{Plugged: "usb", Level: 80, Counter: 3_000_000, Stats: "1/0", OnBattery: time.Hour}
	for name, c := range map[string]struct {
		off    time.Duration
		change func(g *phone.Gauge)
		want   power.Answer
	}{
		"ran on battery":                         {5 * time.Second, func(g *phone.Gauge) { g.OnBattery += 4800 * time.Millisecond }, power.No},
		"ran on battery, and till it was back":   {5 * time.Second, func(g *phone.Gauge) { g.OnBattery += 9 * time.Second }, power.No},
		"never on battery":                       {5 * time.Second, func(*phone.Gauge) {}, power.Yes},
		"a glitch when the data went":            {5 * time.Second, func(g *phone.Gauge) { g.OnBattery += time.Second }, power.Yes},
		"half and half":                          {5 * time.Second, func(g *phone.Gauge) { g.OnBattery += 2 * time.Second }, power.Unknown},
		"was full: statistics begin anew":        {5 * time.Second, func(g *phone.Gauge) { g.Stats, g.OnBattery = "2/0", 4*time.Second }, power.No},
		"was restarted":                          {5 * time.Second, func(g *phone.Gauge) { g.Stats, g.OnBattery = "1/1", time.Second }, power.Unknown},
		"restarted, with statistics of long ago": {5 * time.Second, func(g *phone.Gauge) { g.Stats, g.OnBattery = "1/1", 3*time.Hour }, power.Unknown},
		"time that went back":                    {5 * time.Second, func(g *phone.Gauge) { g.OnBattery -= time.Minute }, power.Unknown},
		"made up":                                {5 * time.Second, func(g *phone.Gauge) { g.Faked = true }, power.Unknown},
		"no statistics":                          {5 * time.Second, func(g *phone.Gauge) { g.Stats = ""; g.Counter -= 40_000 }, power.Unknown},
		"no statistics, long off, counter fell":  {time.Hour, func(g *phone.Gauge) { g.Stats = ""; g.Counter -= 40_000 }, power.No},
		"no statistics, long off, counter rose":  {time.Hour, func(g *phone.Gauge) { g.Stats = ""; g.Counter += 40_000 }, power.Yes},
		"no counter, long off, level fell":       {time.Hour, func(g *phone.Gauge) { g.Stats, g.Counter, g.Level = "", phone.Unknown, 79 }, power.No},
		"no counter, long off, level stays":      {time.Hour, func(g *phone.Gauge) { g.Stats, g.Counter = "", phone.Unknown }, power.Unknown},
	} {
		after := before
		c.change(&after)
		if got := charged(before, after, c.off); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
