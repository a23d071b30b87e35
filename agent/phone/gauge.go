package phone

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Gauge is what tells, read twice, whether the phone had power in between.
type Gauge struct {
	Plugged string // as in Battery: "" on battery
	Level   int    // percent; Unknown
	Counter int    // charge in µAh; Unknown. Gauges count in steps of up to a percent, and late
	Faked   bool   // somebody has the phone tell made-up values

	Stats     string        // names the statistics that OnBattery is of; "" if they could not be read
	OnBattery time.Duration // run on battery in these statistics
}

// statsSource gives the line "9,0,l,bt," of the battery statistics' checkin form, which has hundreds of kilobytes. Its fields
// are the number of starts, the times on battery and in all in milliseconds, and when the statistics began.
var statsSource = source{"batterystats", "dumpsys batterystats -c | grep -m 1 '^9,0,l,bt,'"}

// Gauge reads it in one round trip. A phone without readable statistics is no error.
func (p *Phone) Gauge(ctx context.Context) (Gauge, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a, sources := newAnswers(), []source{batterySource, statsSource}
	if err := p.ask(ctx, a, sources); err != nil {
		return Gauge{}, fmt.Errorf("read the battery's gauge: %w", err)
	}
	if err := a.err(sources[:1]); err != nil {
		return Gauge{}, fmt.Errorf("read the battery's gauge: %w", err)
	}
	return parseGauge(a.text(batterySource), a.text(statsSource))
}

func parseGauge(battery, stats string) (Gauge, error) {
	b, err := parseBattery(battery)
	if err != nil {
		return Gauge{}, fmt.Errorf("read the battery's gauge: %w", err)
	}
	g := Gauge{Plugged: b.Plugged, Level: b.Level, Counter: Unknown, Faked: b.Faked}
	for line := range strings.Lines(battery) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "Charge counter:"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 && n < maxCounter {
				g.Counter = n
			}
			break // makers repeat it in other units
		}
	}
	g.Stats, g.OnBattery = parseStats(stats)
	return g, nil
}

const (
	maxCounter   = 100_000_000 // µAh: no phone has 100 Ah
	maxOnBattery = 10 * 365 * 24 * time.Hour
)

// parseStats reads the line of the statistics; "" if it is none.
func parseStats(line string) (stats string, onBattery time.Duration) {
	const starts, ran, began = 4, 5, 9 // fields
	f := strings.Split(strings.TrimSpace(line), ",")
	if len(f) <= began || strings.Join(f[:starts], ",") != "9,0,l,bt" {
		return "", 0
	}
	for _, n := range []int{starts, ran, began} {
		if _, err := strconv.ParseUint(f[n], 10, 63); err != nil {
			return "", 0
		}
	}
	ms, _ := strconv.ParseInt(f[ran], 10, 64)
	if ms > maxOnBattery.Milliseconds() {
		return "", 0
	}
	return f[began] + "/" + f[starts], time.Duration(ms) * time.Millisecond
}
