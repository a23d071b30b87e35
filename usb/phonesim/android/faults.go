package android

import (
	"slices"
	"time"

	"phonerack/usb/phonesim/android/uia2"
	"phonerack/usb/phonesim/screen"
)

// Faults is what is wrong with a phone. The zero value is a healthy one.
type Faults struct {
	// Dump is how "uiautomator dump" fails.
	Dump DumpFailure
	// DumpRate is how often it fails so, 0 to 1; 0 with a Dump set means always. Which dumps fail
	// follows from Config.Seed.
	DumpRate float64
	// SlowTree is added to the time of each dump, whatever Config.Latency is.
	SlowTree time.Duration
	// NeverIdle is an animation without an end: dumps fail after 10 s, except compressed ones
	// and while the three animation scales of the settings are 0.
	NeverIdle bool
	// Server is what is wrong with the UiAutomator2 server.
	Server uia2.Faults
	// NoTTY is a phone on which /dev/tty cannot be opened.
	NoTTY bool

	// DropText and SwapText are how often a typed character is lost, or changes places with the next: 0 to 1.
	DropText, SwapText float64
	// DropFirst loses the first character of each "input text", SwapFirst swaps its first two.
	DropFirst, SwapFirst bool
	// Composing is an input method that holds letters until SPACE or ENTER commits them, as those for Chinese do.
	Composing bool
	// Capitalize and Autocorrect change what is typed: the first letter of a sentence, some words.
	Capitalize, Autocorrect bool
	// TextDelay is over what time the characters of one "input text" reach the field after the command has ended.
	TextDelay time.Duration
	// InjectDenied refuses all input with a SecurityException, as phones do whose maker wants a
	// further switch for debugging.
	InjectDenied bool
	// ClipboardLie makes "cmd clipboard" say nothing at all and succeed, instead of
	// "No shell command implementation.".
	ClipboardLie bool
	// SettingsDenied refuses to change settings and input methods for want of WRITE_SECURE_SETTINGS.
	SettingsDenied bool
	// InstallDenied refuses every installation as MIUI does, GrantDenied every change of a permission as ColorOS does:
	// both want a further switch.
	InstallDenied, GrantDenied bool
	// LateMethod makes the first "ime enable" after an installation fail, whatever time has passed.
	LateMethod bool
	// NoKeys makes monkey fail unless --pct-syskeys 0 is given: a phone without physical keys.
	NoKeys bool

	// Black makes every screenshot black, as FLAG_SECURE does.
	Black bool
	// Truncate cuts each screenshot after so many bytes; 0 is whole.
	Truncate int
	// Pixels is the format of raw screenshots.
	Pixels Pixels
	// DisplayWarning makes screencap warn of several displays although there is one.
	DisplayWarning bool

	// Battery fakes readings.
	Battery BatteryFaults
	// Thermal fakes those of the thermal service.
	Thermal ThermalFault
	// StorageFull makes each write of new space fail.
	StorageFull bool
	// ExtraFocus adds windows of a second display, with null among them, to what
	// dumpsys tells of the focus.
	ExtraFocus bool
	// NullFocus makes dumpsys tell of no focused window, as in a transition that does not end.
	NullFocus bool
}

// DumpFailure is a way in which "uiautomator dump" fails. The exit status is 0 in all of them,
// and a file of an earlier dump stays.
type DumpFailure uint8

// The ways.
const (
	DumpOK       DumpFailure = iota
	DumpNullRoot             // "null root node" on standard error
	DumpNoIdle               // "could not get idle state" on standard error, after 10 s
	DumpSilent               // killed by an exception that only the log tells of
	DumpCutOff               // the status line, but half the document
)

// BatteryFaults are readings of a bad or odd battery.
type BatteryFaults struct {
	// Repeat prints vendor lines that repeat keys, as Samsung's do.
	Repeat bool
	// Absurd prints what no battery has: a level of 250, no volts, the least temperature that a number can be.
	Absurd bool
	// Absent is a phone without a battery.
	Absent bool
	// OddUnits prints volts and degrees where millivolts and tenths belong, as TV boxes do.
	OddUnits bool
}

// Faults returns what is wrong at present.
func (d *Device) Faults() Faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// ChangeFaults lets fn change what is wrong; it takes effect at once. fn must not call the Device.
func (d *Device) ChangeFaults(fn func(*Faults)) {
	d.mu.Lock()
	fn(&d.faults)
	d.files.SetFull(d.faults.StorageFull)
	d.mu.Unlock()
	d.showTyping()
}

// showTyping tells the screen how the present input method and the Faults treat what is typed.
func (d *Device) showTyping() {
	d.mu.Lock()
	f := d.faults
	method := d.settings["secure"]["default_input_method"]
	d.mu.Unlock()
	noKeys := slices.Contains(keyless, method)
	d.screen.SetTyping(screen.Typing{
		NoKeys: noKeys, Composing: f.Composing && !noKeys || method == pinyinIME, Capitalize: f.Capitalize, Autocorrect: f.Autocorrect, Delay: f.TextDelay,
	})
}

// chance draws from the seeded generator.
func (d *Device) chance(rate float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return rate > 0 && d.rng.Float64() < rate
}
