package android

import (
	"strings"
	"testing"
)

func TestOddReadings(t *testing.T) {
	p := newPhone(t, 14, func(c *Config) { c.Faults.Battery.Absurd = true })
	wantContains(t, "absurd", p.ok("dumpsys battery"), "  level: 250\n", "  voltage: 0\n", "  temperature: -2147483648\n", "  status: 1\n")
	p.fault(func(f *Faults) { f.Battery = BatteryFaults{Absent: true} })
	wantContains(t, "absent", p.ok("dumpsys battery"), "  present: false\n", "  level: 0\n", "  health: 1\n")
	p.fault(func(f *Faults) { f.Thermal = ThermalZeros })
	if out := p.ok("dumpsys thermalservice"); strings.Count(out, "mValue=0.0,") != 8 || !strings.Contains(out, "HAL Ready: true") {
		t.Errorf("zeros in\n%s", out)
	}
	p.fault(func(f *Faults) { f.Thermal = ThermalNoHAL })
	if out := p.ok("dumpsys thermalservice"); strings.Contains(out, "mValue") || !strings.Contains(out, "HAL Ready: false\n") {
		t.Errorf("no HAL in\n%s", out)
	}
	old := newPhone(t, 9, nil)
	if out, errOut, _ := old.sh("dumpsys thermalservice"); out != "" || errOut != "Can't find service: thermalservice\n" {
		t.Errorf("Android 9: %q %q", out, errOut)
	}
}

func TestFullStorageIsTold(t *testing.T) {
	p := newPhone(t, 14, func(c *Config) { c.Faults.StorageFull = true })
	wantContains(t, "df", p.ok("df /data"), " 0 100% /data/user/0\n")
	wantContains(t, "diskstats", p.ok("dumpsys diskstats"), "Data-Free: 0K / 65536K total = 0% free\n")
}

func TestAnimationScaleThatWasNeverSet(t *testing.T) {
	p := newPhone(t, 14, nil)
	if out := p.ok("settings get global animator_duration_scale"); out != "null\n" {
		t.Errorf("%q", out)
	}
	p.ok("settings put global window_animation_scale 0; settings put global transition_animation_scale 0; settings put global animator_duration_scale 0")
	p.screen.take()
	p.ok("settings delete global animator_duration_scale")
	if did := p.screen.take(); did != "animation 1" {
		t.Errorf("did %q", did)
	}
}
