package health

import (
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	adb := Look{Bus: BusADB, Open: OpenOK, Greet: GreetOK, Kind: "device"}
	change := func(fn func(*Look)) Look { l := adb; fn(&l); return l }
	for _, c := range []struct {
		name     string
		look     Look
		expected bool
		want     Diagnosis
	}{
		{"an empty slot", Look{Bus: BusEmpty}, false, NoPhone},
		{"a phone that has vanished", Look{Bus: BusEmpty}, true, Dead},
		{"flutter#134555 #140894: a hung phone is not one with developer mode off", change(func(l *Look) { l.Shell = ShellSilent }), true, Hung},
		{"flutter#134555: a look that did not come to the shell", adb, true, Unknown},
		{"a shell that is refused says not why", change(func(l *Look) { l.Shell = ShellRefused }), true, Unknown},
		{"a link that breaks says not why", change(func(l *Look) { l.Shell = ShellLost }), true, Unknown},
		{"nothing was seen", Look{}, true, Unknown},
		{"the interface was not opened", Look{Bus: BusADB}, true, Unknown},
		{"it was opened and not greeted", Look{Bus: BusADB, Open: OpenOK}, true, Unknown},
		{"appium-adb#499, GADS#295: silent at CNXN is offline", change(func(l *Look) { l.Greet = GreetSilent }), true, Offline},
		{"a halted endpoint", change(func(l *Look) { l.Greet = GreetStalled }), true, Offline},
		{"stale data instead of CNXN", change(func(l *Look) { l.Greet = GreetGarbled }), true, Offline},
		{"libusb fails to open", Look{Bus: BusADB, Open: OpenFailed}, true, Offline},
		{"flutter#149362, scrcpy#6060: AUTH without a key", change(func(l *Look) { l.Greet = GreetAsked }), true, Unauthorized},
		{"adb_shell#213 #225: an adb server holds the interface", Look{Bus: BusADB, Open: OpenHeld}, true, HeldByOther},
		{"no udev rule", Look{Bus: BusADB, Open: OpenDenied}, true, AccessDenied},
		{"recovery", change(func(l *Look) { l.Kind = "recovery" }), true, RecoveryMode},
		{"sideload", change(func(l *Look) { l.Kind = "sideload" }), true, RecoveryMode},
		{"rescue", change(func(l *Look) { l.Kind = "rescue" }), true, RecoveryMode},
		{"the boot loader", change(func(l *Look) { l.Kind = "bootloader" }), true, FastbootMode},
		{"fastboot's interface", Look{Bus: BusFastboot}, true, FastbootMode},
		{"MTP alone", Look{Bus: BusOther}, true, ChargingOnly},
		{"the kernel cannot enumerate it", Look{Bus: BusFailed}, true, NotEnumerated},
		{"UH#276, openstf#966: no room at the controller", Look{Bus: BusFull}, true, ControllerFull},
		{"a booting phone", change(func(l *Look) { l.Shell = ShellOK }), true, Booting},
		{"a phone that works", change(func(l *Look) { l.Shell, l.Booted = ShellOK, true }), true, Fine},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Classify(c.look, c.expected); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOneSlowLookMakesNoPhoneIll(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = hung(1)
	b.pass(30 * time.Second)
	b.phones[1] = fine(1)
	b.pass(10 * time.Minute)
	if b.state(1) != Well || len(b.acts) != 0 {
		t.Errorf("%s after one look: %v", b.state(1), b.acts)
	}
}

// STF#560: a dead socket was still shown as connected.
func TestSTF560_AStateHasAFreshness(t *testing.T) {
	b := rack(t, 2)
	b.pass(time.Minute)
	b.quiet[1] = true
	b.pass(b.conf.Probe.FreshFor.of() - time.Minute)
	if b.state(1) != Well {
		t.Errorf("too early: %s", b.state(1))
	}
	b.pass(2 * time.Minute)
	if b.state(1) != UnknownHow || !b.has(1, "unknown") || b.state(2) != Well {
		t.Errorf("slot 1 %s, slot 2 %s", b.state(1), b.state(2))
	}
	if len(b.acts) != 0 {
		t.Errorf("what is not seen is not acted on: %v", b.acts)
	}
	b.quiet[1] = false
	b.pass(time.Minute)
	if b.state(1) != Well {
		t.Errorf("after a look: %s", b.state(1))
	}
}

func TestEveryDiagnosisHasAStateAndEveryStateIsCounted(t *testing.T) {
	b := rack(t, 1)
	for _, s := range States() {
		if _, ok := b.Count()[s]; !ok {
			t.Errorf("%s is not counted", s)
		}
	}
	for _, d := range Diagnoses() {
		if _, ok := b.Count()[stateOf(d)]; !ok {
			t.Errorf("%s has the state %s", d, stateOf(d))
		}
	}
}
