package rackrig

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

// PhoneSpec describes a simulated phone and the slot it sits in. Zero values are those of an
// English phone with Android 14 that answers at once and lets every key in.
type PhoneSpec struct {
	Slot   int
	Port   string // "1-2" on the controller, at high speed; "1-1.3" on a hub, at full speed
	Serial string

	Android       int
	Language      string
	Width, Height int // pixels
	Density       int // dots per inch
	Seed          int64
	Latency       float64       // 1 makes commands as slow as on a real phone
	AcceptAfter   time.Duration // time until somebody accepts the rack's key; 0 asks nobody
	USB           phonesim.USB
	Faults        phonesim.Faults
	AndroidFaults android.Faults
	Storage       int64
	RebootDelay   time.Duration // that a restart takes; 0 is 2 s
	OnReboot      func(target string)
	Logger        *slog.Logger
}

// Phone is a simulated phone with all its sides.
type Phone struct {
	PhoneSpec
	Screen  *screen.Engine
	Android *android.Device
	USB     *phonesim.Phone
}

// Simulate makes a phone. Nothing is plugged in yet.
func Simulate(s PhoneSpec) (*Phone, error) {
	display, err := screen.New(screen.Config{Width: s.Width, Height: s.Height, Density: s.Density, Language: s.Language, Seed: s.Seed})
	if err != nil {
		return nil, fmt.Errorf("display of %s: %w", s.Serial, err)
	}
	device, err := android.New(android.Config{
		Version: s.Android, Serial: s.Serial, Model: "Sim " + s.Serial, Screen: display, Latency: s.Latency, Faults: s.AndroidFaults, Storage: s.Storage,
	})
	if err != nil {
		return nil, fmt.Errorf("system of %s: %w", s.Serial, err)
	}
	usb, err := phonesim.New(phonesim.Config{
		Serial: s.Serial, Android: s.Android, HighSpeed: OnController(s.Port), USB: s.USB, System: device, Faults: s.Faults, Logger: s.Logger,
		RebootDelay: s.RebootDelay, OnReboot: s.OnReboot,
		Auth: phonesim.Auth{Required: s.AcceptAfter > 0, AcceptAfter: s.AcceptAfter, AcceptAlways: true},
	})
	if err != nil {
		return nil, fmt.Errorf("daemon of %s: %w", s.Serial, err)
	}
	return &Phone{PhoneSpec: s, Screen: display, Android: device, USB: usb}, nil
}

// OnController tells whether a port is the controller's own and not a hub's: there phones run at high speed.
func OnController(port string) bool { return !strings.Contains(port, ".") }

// Sent counts how often a message to Ana was really sent, on whichever phone.
func Sent(phones []*Phone, text string) (n int) {
	for _, p := range phones {
		for _, entry := range p.Screen.Journal() {
			if entry == "message sent to Ana: "+text {
				n++
			}
		}
	}
	return n
}

// Did tells whether an app has noted something that contains text: the judge of a task.
func (p *Phone) Did(text string) bool {
	for _, entry := range p.Screen.Journal() {
		if strings.Contains(entry, text) {
			return true
		}
	}
	return false
}
