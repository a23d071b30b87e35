package phone

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Unknown is a reading that the phone does not give, or that cannot be true.
const Unknown = -1 << 31

// Battery is what the phone tells of its battery.
type Battery struct {
	Level       int    `json:"level"`       // percent; Unknown
	Voltage     int    `json:"voltage"`     // mV; Unknown
	Temperature int    `json:"temperature"` // tenths of a degree Celsius; Unknown
	Status      string `json:"status"`      // "charging", "discharging", "not charging", "full" or "unknown"
	Health      string `json:"health"`      // "good", "overheat", "dead", "over-voltage", "failure", "cold" or "unknown"
	Plugged     string `json:"plugged"`     // "ac", "usb", "wireless", "dock", or "" on battery
	Present     bool   `json:"present"`

	Faked       bool     `json:"faked,omitempty"`       // somebody has the phone tell made-up values
	Implausible []string `json:"implausible,omitempty"` // readings that cannot be true and are Unknown here
}

var batterySource = source{"battery", "dumpsys battery"}

// Battery reads the battery.
func (p *Phone) Battery(ctx context.Context) (Battery, error) {
	out, err := p.one(ctx, batterySource)
	if err != nil {
		return Battery{}, fmt.Errorf("read battery: %w", err)
	}
	b, err := parseBattery(out)
	if err != nil {
		return Battery{}, fmt.Errorf("read battery: %w", err)
	}
	return b, nil
}

// one asks one source.
func (p *Phone) one(ctx context.Context, s source) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a := newAnswers()
	if err := p.ask(ctx, a, []source{s}); err != nil {
		return "", err
	}
	return a.text(s), a.err([]source{s})
}

// Bounds of readings of one to four cells.
const (
	minVoltage     = 2000 // mV
	maxVoltage     = 20000
	minTemperature = -400 // tenths of a degree Celsius
	maxTemperature = 1000
	maxScale       = 10000
	// A phone that prints volts prints degrees too: below this, in tenths, a
	// temperature next to such a voltage is meant in degrees.
	degreesBelow = 100
)

// Words for the numbers of BatteryManager.
var (
	batteryStatus = map[string]string{"2": "charging", "3": "discharging", "4": "not charging", "5": "full"}
	batteryHealth = map[string]string{"2": "good", "3": "overheat", "4": "dead", "5": "over-voltage", "6": "failure", "7": "cold"}
	plugs         = []struct{ key, name string }{{"AC powered", "ac"}, {"USB powered", "usb"}, {"Wireless powered", "wireless"}, {"Dock powered", "dock"}}
)

// parseBattery reads the battery service's dump. Makers add lines of their own
// behind it, which repeat keys in other units: the first of each counts.
func parseBattery(out string) (Battery, error) {
	values := map[string]string{}
	faked := false
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		faked = faked || strings.HasPrefix(line, "(UPDATES STOPPED")
		key, value, ok := strings.Cut(line, ":")
		if _, known := values[key]; ok && !known && len(values) < 200 {
			values[key] = strings.TrimSpace(value)
		}
	}
	_, level := values["level"]
	if _, status := values["status"]; !level || !status {
		return Battery{}, fmt.Errorf("no level or no status: %w", ErrMalformed)
	}
	b := Battery{
		Status: word(batteryStatus, values["status"]), Health: word(batteryHealth, values["health"]),
		Present: values["present"] == "true", Faked: faked,
	}
	for _, plug := range plugs {
		if values[plug.key] == "true" {
			b.Plugged = plug.name
			break
		}
	}
	b.Level = b.within("level", values["level"], 0, maxScale)
	if scale := b.within("scale", values["scale"], 1, maxScale); scale == Unknown || b.Level > scale {
		b.Implausible = append(b.Implausible, "level")
		b.Level = Unknown
	} else if b.Level != Unknown {
		b.Level = b.Level * 100 / scale
	}
	b.Voltage = b.within("voltage", values["voltage"], minVoltage, maxVoltage)
	coldest := minTemperature
	if b.Voltage == Unknown && values["voltage"] != "" {
		coldest = degreesBelow
	}
	b.Temperature = b.within("temperature", values["temperature"], coldest, maxTemperature)
	return b, nil
}

func word(words map[string]string, number string) string {
	if w, ok := words[number]; ok {
		return w
	}
	return "unknown"
}

// within reads a number; one outside its bounds is noted as implausible.
func (b *Battery) within(name, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	switch {
	case value == "":
		return Unknown
	case err != nil || n < least || n > most:
		b.Implausible = append(b.Implausible, name)
		return Unknown
	}
	return n
}
