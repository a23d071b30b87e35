package phonesim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config describes a phone.
type Config struct {
	// Serial is the phone's serial number, in its USB descriptors; see USB.Serial for the unusual ones.
	Serial string
	// Android is the version whose daemon the phone runs: 7 to 12, 14 or 15. 0 is 14.
	Android int
	// HighSpeed makes the phone a 480 Mbit/s device with packets of 512 bytes; else it is one of 12 Mbit/s with 64.
	HighSpeed bool
	// USB is what else the phone says of itself on the bus.
	USB USB
	// ZeroPackets is how the daemon takes the zero-length packets that the protocol wants.
	ZeroPackets ZeroPackets

	// System is the Android behind the daemon. A bridge needs none.
	System System
	// Auth is whom the phone lets in. The zero value is everybody.
	Auth Auth
	// Window is how many bytes the phone takes on a stream before it acknowledges any, if delayed
	// acknowledgement is on; 0 is 32 MiB.
	Window int

	// RebootDelay is how long the phone is away after it was told to reboot; 0 is 2 s.
	RebootDelay time.Duration
	// OnReboot, if set, is called with the target of a reboot ("", "bootloader"...) when the phone leaves.
	OnReboot func(target string)
	// OnPrompt, if set, is called when the phone asks its user whether to trust a key.
	OnPrompt func(fingerprint string)

	// Faults is what is wrong with the phone at first.
	Faults Faults
	// Logger gets what happens; nil is nothing.
	Logger *slog.Logger
}

// USB is what a phone says of itself on the bus. Empty fields have the values of an ordinary phone.
type USB struct {
	VendorID, ProductID   uint16
	Manufacturer, Product string
	Serial                SerialForm
}

// SerialForm is the form in which a phone gives its serial number.
type SerialForm uint8

// Forms of serial numbers. All of them exist in phones.
const (
	SerialString  SerialForm = iota // Config.Serial; absent if that is empty
	SerialAbsent                    // the device descriptor names no serial string
	SerialEmpty                     // a string of length 0
	SerialGarbage                   // control characters and half surrogate pairs
	SerialStalled                   // named, but the request for it stalls
)

// ZeroPackets is how a daemon takes zero-length packets.
type ZeroPackets uint8

// The kinds of daemon.
const (
	// ZeroPacketsRequired is the daemon of most phones: a payload that fills its last packet does not end without one.
	ZeroPacketsRequired ZeroPackets = iota
	// ZeroPacketsOptional is the daemon since 2024: it counts bytes and overlooks zero-length packets.
	ZeroPacketsOptional
	// ZeroPacketsForbidden is the recovery of some phones: it takes a zero-length packet for a bad header.
	ZeroPacketsForbidden
)

// Auth is whom a phone lets in.
type Auth struct {
	// Required makes the phone want a signature by a key that it knows. It asks its user about other keys:
	// Phone.AcceptPrompt answers.
	Required bool
	// Keys are the keys it knows at first, one line each as in adbkey.pub.
	Keys []string
	// AcceptAfter is how long the user takes to accept a key; 0 leaves it to Phone.AcceptPrompt.
	AcceptAfter time.Duration
	// AcceptAlways lets that user tick "always allow from this computer".
	AcceptAlways bool
}

const (
	defaultWindow      = 32 << 20
	defaultRebootDelay = 2 * time.Second
)

// New returns a phone whose daemon is the one of this package.
func New(c Config) (*Phone, error) {
	if c.System == nil {
		return nil, errors.New("phonesim: a phone needs a System")
	}
	p, err := newPhone(c)
	if err != nil {
		return nil, err
	}
	p.backend = func(ctx context.Context, l link) (backend, error) { return newDaemon(ctx, p, l), nil }
	return p, nil
}

// NewBridge returns a phone whose daemon is a real one that dial reaches, once for each time that the
// phone is plugged in or reset. System and Auth have no meaning for it.
func NewBridge(c Config, dial func(ctx context.Context) (net.Conn, error)) (*Phone, error) {
	if dial == nil {
		return nil, errors.New("phonesim: a bridge needs a dial function")
	}
	p, err := newPhone(c)
	if err != nil {
		return nil, err
	}
	p.backend = func(ctx context.Context, l link) (backend, error) { return newBridge(ctx, l, dial) }
	return p, nil
}

func newPhone(c Config) (*Phone, error) {
	if c.Android == 0 {
		c.Android = 14
	}
	release, ok := releases[c.Android]
	if !ok {
		return nil, fmt.Errorf("phonesim: no daemon of Android %d; there are 7 to 12, 14 and 15", c.Android)
	}
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.Window < 0 || c.Window > 1<<30 {
		return nil, fmt.Errorf("phonesim: a window of %d bytes is not between 1 and 1 GiB", c.Window)
	}
	if c.RebootDelay == 0 {
		c.RebootDelay = defaultRebootDelay
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.USB.setDefaults(c.Serial, c.System)
	p := &Phone{config: c, release: release, log: c.Logger.With("serial", c.Serial), plugs: map[*plug]struct{}{}}
	p.faults.set(c.Faults)
	for _, line := range c.Auth.Keys {
		if err := p.AuthorizeKey(line); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (u *USB) setDefaults(serial string, system System) {
	if u.VendorID == 0 {
		u.VendorID, u.ProductID = 0x18d1, 0x4ee7
	}
	if u.Manufacturer == "" {
		u.Manufacturer = "phonerack"
	}
	if u.Product == "" && system != nil {
		u.Product = system.Property("ro.product.model")
	}
	if u.Product == "" {
		u.Product = "Simulated phone"
	}
	if u.Serial == SerialString && serial == "" {
		u.Serial = SerialAbsent
	}
}
