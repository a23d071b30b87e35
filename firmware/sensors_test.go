package firmware_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/health"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/led"
)

// sysfs writes a file below the folder that stands for sysfs.
func sysfs(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestUnderVoltageAndOverCurrentReachStatusAndLight reads a board's sensors from files that stand for sysfs: a hub with a SuperSpeed
// half, of which the second port's half counts, and a Raspberry Pi's sensor.
func TestUnderVoltageAndOverCurrentReachStatusAndLight(t *testing.T) {
	t.Parallel()
	const (
		alarm = "class/hwmon/hwmon1/in0_lcrit_alarm"
		count = "bus/usb/devices/2-1:1.0/2-1-port2/over_current_count"
	)
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR", "GREEN"}})
	kernel.Preset("HUB1_PWR", true)
	text := lineBoard + "companion = \"2-1\"\nports = 2\n[[led]]\nname = \"rack\"\nlight = { line = \"GREEN\" }\n"
	var root string
	b := newUSBBench(t, newCable(), hasty, onBoard(t, text), func(o *firmware.Options) {
		root, o.GPIO, o.Hubs = o.Config.USB.Sysfs, kernel, still{}
		for name, text := range map[string]string{
			"class/hwmon/hwmon0/name": "cpu_thermal", "class/hwmon/hwmon1/name": "rpi_volt", alarm: "0",
			"bus/usb/devices/1-1:1.0/1-1-port1/over_current_count": "0", "bus/usb/devices/1-1:1.0/1-1-port2/over_current_count": "0", count: "0",
		} {
			sysfs(t, root, name, text)
		}
	})
	found := func() (codes []string) {
		for _, f := range b.status().Findings {
			if f.Code == "under_voltage" || f.Code == "hub_overload" {
				codes = append(codes, f.Code)
			}
		}
		return codes
	}
	await := func(light led.Condition, codes ...string) {
		t.Helper()
		for end := time.Now().Add(25 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			got, shown := found(), firmware.ShownBy(b.rack)
			if slices.Equal(got, codes) && shown == light {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("found %v and the light shows %v, want %v and %v", got, shown, codes, light)
			}
		}
	}
	b.health(2, health.Empty)
	await(led.Unprovisioned)
	sysfs(t, root, alarm, "1")
	await(led.Power, "under_voltage")
	sysfs(t, root, alarm, "0")
	sysfs(t, root, count, "2")
	await(led.Power, "hub_overload")
}
