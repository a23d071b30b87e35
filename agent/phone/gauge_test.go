package phone

import (
	"testing"
	"time"
)

const gaugeBattery = "Current Battery Service state:\n  USB powered: true\n  Charge counter: 2844000\n  status: 2\n  present: true\n  level: 85\n  scale: 100\n  charge counter: 2844\n"

func TestGaugeIsReadOrSaysThatItIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		battery, stats string
		want           Gauge
	}{
		"all":               {gaugeBattery, "9,0,l,bt,3,5000,4000,90000,80000,1700000000123,1,2,4000\n", Gauge{"usb", 85, 2844000, false, "1700000000123/3", 5 * time.Second}},
		"no statistics":     {gaugeBattery, "", Gauge{"usb", 85, 2844000, false, "", 0}},
		"another line":      {gaugeBattery, "9,0,l,gn,3,5000,4000,90000,80000,1700000000123\n", Gauge{"usb", 85, 2844000, false, "", 0}},
		"too short":         {gaugeBattery, "9,0,l,bt,3,5000\n", Gauge{"usb", 85, 2844000, false, "", 0}},
		"no number":         {gaugeBattery, "9,0,l,bt,N/A,5000,4000,90000,80000,1700000000123\n", Gauge{"usb", 85, 2844000, false, "", 0}},
		"longer than a man": {gaugeBattery, "9,0,l,bt,3,9223372036854775807,4000,90000,80000,1700000000123\n", Gauge{"usb", 85, 2844000, false, "", 0}},
		"no counter":        {"  status: 3\n  present: true\n  level: 5\n  scale: 100\n", "", Gauge{"", 5, Unknown, false, "", 0}},
		"absurd counter":    {"  Charge counter: -2147483648\n  status: 3\n  level: 5\n  scale: 100\n", "", Gauge{"", 5, Unknown, false, "", 0}},
		"made up":           {"  (UPDATES STOPPED -- use 'reset' to restart)\n  status: 3\n  level: 5\n  scale: 100\n", "", Gauge{"", 5, Unknown, true, "", 0}},
	} {
		if g, err := parseGauge(c.battery, c.stats); err != nil || g != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, g, err, c.want)
		}
	}
	if _, err := parseGauge("Can't find service: battery\n", ""); err == nil {
		t.Error("a phone that does not tell its level")
	}
}

func FuzzGauge(f *testing.F) {
	f.Add(gaugeBattery, "9,0,l,bt,3,5000,4000,90000,80000,1700000000123,1,2,4000\n")
	f.Add("", "9,0,l,bt,,,,,,")
	f.Fuzz(func(t *testing.T, battery, stats string) {
		g, err := parseGauge(battery, stats)
		if err == nil && (g.OnBattery < 0 || g.OnBattery > maxOnBattery || g.Counter != Unknown && (g.Counter <= 0 || g.Counter >= maxCounter)) {
			t.Errorf("%+v", g)
		}
	})
}
