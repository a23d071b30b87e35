package phone

import (
	"errors"
	"reflect"
	"testing"
)

const pixel = `Current Battery Service state:
  AC powered: false
  USB powered: true
  Wireless powered: false
  Dock powered: false
  Max charging current: 500000
  Charge counter: 2844000
  status: 2
  health: 2
  present: true
  level: 85
  scale: 100
  voltage: 4186
  temperature: 286
  technology: Li-ion
`

func TestParseBattery(t *testing.T) {
	good := Battery{Level: 85, Voltage: 4186, Temperature: 286, Status: "charging", Health: "good", Plugged: "usb", Present: true}
	with := func(change func(*Battery)) Battery {
		b := good
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		out  string
		want Battery
		err  error
	}{
		"as it is": {pixel, good, nil},
		"CRLF":     {"Current Battery Service state:\r\n  status: 3\r\n  level: 7\r\n  scale: 10\r\n", Battery{Level: 70, Voltage: Unknown, Temperature: Unknown, Status: "discharging", Health: "unknown"}, nil},
		"made up": {
			"Current Battery Service state:\n  (UPDATES STOPPED -- use 'reset' to restart)\n" + pixel,
			with(func(b *Battery) { b.Faked = true }), nil,
		},
		"a maker's second block": {
			pixel + "  batteryMiscEvent: 0\n  charge counter: 2844\n  level: 8\n  status: 5\n  voltage: 4\n  temperature: 29\n  health: 3\n", good, nil,
		},
		"volts and degrees of a TV box": {
			"  AC powered: true\n  status: 2\n  health: 1\n  present: true\n  level: 100\n  scale: 100\n  voltage: 13\n  temperature: 26\n",
			Battery{Level: 100, Voltage: Unknown, Temperature: Unknown, Status: "charging", Health: "unknown", Plugged: "ac", Present: true, Implausible: []string{"voltage", "temperature"}},
			nil,
		},
		"colder than a battery can be": {
			"  status: 4\n  level: 50\n  scale: 100\n  voltage: 3700\n  temperature: -2732\n",
			Battery{Level: 50, Voltage: 3700, Temperature: Unknown, Status: "not charging", Health: "unknown", Implausible: []string{"temperature"}},
			nil,
		},
		"cold, but it may be": {
			"  status: 5\n  level: 100\n  scale: 100\n  voltage: 3700\n  temperature: -55\n",
			Battery{Level: 100, Voltage: 3700, Temperature: -55, Status: "full", Health: "unknown"},
			nil,
		},
		"more than full": {
			"  status: 2\n  level: 255\n  scale: 100\n", Battery{Level: Unknown, Voltage: Unknown, Temperature: Unknown, Status: "charging", Health: "unknown", Implausible: []string{"level"}}, nil,
		},
		"no scale": {
			"  status: 2\n  level: 50\n  scale: 0\n",
			Battery{Level: Unknown, Voltage: Unknown, Temperature: Unknown, Status: "charging", Health: "unknown", Implausible: []string{"scale", "level"}},
			nil,
		},
		"no numbers": {
			"  status: 2\n  level: 50\n  scale: 100\n  voltage: 9999999999999999999999\n  temperature: warm\n",
			Battery{Level: 50, Voltage: Unknown, Temperature: Unknown, Status: "charging", Health: "unknown", Implausible: []string{"voltage", "temperature"}},
			nil,
		},
		"no service": {"Can't find service: battery\n", Battery{}, ErrMalformed},
		"nothing":    {"", Battery{}, ErrMalformed},
	} {
		got, err := parseBattery(c.out)
		if !reflect.DeepEqual(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
