package health

import (
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestConfigIsReadOverItsDefaults(t *testing.T) {
	c := Defaults()
	text := `
[ladder]
reset_models = ["Pixel 4"]
[ladder.port_cycle]
per_day = 3
[battery]
windows = true
stop_hot = 38.5
[quarantine]
first = "1h"
`
	decoder := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Ladder.ResetModels, want.Ladder.PortCycle.PerDay = []string{"Pixel 4"}, 3
	want.Battery.Windows, want.Battery.StopHot, want.Quarantine.First = true, 38.5, hour
	if f := c.Faults(); len(f) > 0 || c.Ladder.PortCycle != want.Ladder.PortCycle || c.Battery != want.Battery || c.Quarantine != want.Quarantine {
		t.Errorf("%v\n%+v", f, c)
	}
	var d Duration
	if err := d.UnmarshalText([]byte("soon")); err == nil || err.Error() != `"soon" is not a duration: write it as 90s, 15m or 1h30m` {
		t.Error(err)
	}
}

func TestThresholdsThatDoHarmAreRefused(t *testing.T) {
	for _, c := range []struct {
		key    string
		change func(*Config)
	}{
		{"ladder.off_time", func(c *Config) { c.Ladder.OffTime = Duration(1e9) }},         // UH#23
		{"battery.stop_hot", func(c *Config) { c.Battery.StopHot = 46 }},                  // or the battery swells
		{"battery.resume_hot", func(c *Config) { c.Battery.ResumeHot = 37 }},              // no hysteresis
		{"battery.hot_window", func(c *Config) { c.Battery.HotWindow = hour / 2 }},        //
		{"battery.wanted_for", func(c *Config) { c.Battery.WantedFor = 4 * minute }},      // it rests before it has started
		{"ladder.flap_window", func(c *Config) { c.Ladder.FlapWindow = 25 * hour }},       //
		{"battery.high", func(c *Config) { c.Battery.High = 31 }},                         //
		{"battery.rest_for", func(c *Config) { c.Battery.RestFor = 121 * hour }},          // the key lapses
		{"quarantine.longest", func(c *Config) { c.Quarantine.Longest = 121 * hour }},     // the key lapses
		{"quarantine.first", func(c *Config) { c.Quarantine.First = 9 * minute }},         //
		{"phone.key_touch", func(c *Config) { c.Phone.KeyTouch = 168 * hour }},            // too late
		{"probe.fresh_for", func(c *Config) { c.Probe.FreshFor = c.Probe.Interval }},      // always stale
		{"ladder.port_cycle.per_day", func(c *Config) { c.Ladder.PortCycle.PerDay = 25 }}, // more than the ledger holds
		{"ladder.reopen.tries", func(c *Config) { c.Ladder.Reopen.Tries = 0 }},            //
		{"ladder.reset_models", func(c *Config) { c.Ladder.ResetModels = []string{""} }},  //
		{"rack.crashes", func(c *Config) { c.Rack.Crashes = 0 }},                          //
	} {
		t.Run(c.key, func(t *testing.T) {
			conf := Defaults()
			if f := conf.Faults(); len(f) > 0 {
				t.Fatalf("the defaults: %v", f)
			}
			c.change(&conf)
			f := conf.Faults()
			if len(f) != 1 || f[0].Key != c.key || f[0].Text == "" {
				t.Errorf("%+v", f)
			}
		})
	}
}
