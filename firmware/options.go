package firmware

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"phonerack/agent/planner"
	"phonerack/firmware/config"
	"phonerack/firmware/logbook"
	"phonerack/firmware/mdns"
	"phonerack/hal/gpio"
	"phonerack/hal/power"
	"phonerack/hal/watchdog"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// Options are what a Rack is made of.
type Options struct {
	Config  *config.Config
	Planner planner.Planner // nil: the one of the configuration
	Dialer  Dialer          // of USB links; nil without USB
	// Documents is the command line of the child that reads documents; nil: documents cannot be read.
	Documents []string
	Logger    *slog.Logger
	Book      *logbook.Book   // of Logger; nil: the log cannot be read through the rack
	Kept      *logbook.Folder // of Logger; nil: nothing of the log is kept
	Level     *slog.LevelVar  // of Logger, for the cloud and a reload to change; nil: it stays as it is
	// ReadConfig reads the configuration anew; nil: it stays as it is.
	ReadConfig func() (*config.Config, error)

	ADB       adb.Options          // bounds of the connections to phones; the keys are the rack's own
	Clock     func() time.Duration // of the leases; nil is lease.BootTime
	StoreSize int                  // most bytes of the database; 0 is store.DefaultMaxSize

	// Watch gives the events of the bus until ctx ends; nil is the kernel's own.
	Watch func(ctx context.Context) <-chan bus.Event
	// Of the board's equipment. GPIO is the kernel's own if nil; Parked are handles of lines that an earlier process has left in
	// Descriptors, which may be nil; Watchdog is fed while rackd makes progress, nil for none.
	GPIO        gpio.Kernel
	Parked      map[string]gpio.Parked
	Descriptors Descriptors
	Watchdog    watchdog.Device
	Manager     Manager        // whose watchdog is fed as the hardware's; nil for none
	Outlets     []power.Outlet // in place of the board's; for tests, as Hubs and Wanted
	Hubs        power.Hubs
	Wanted      func(power.Store) power.Store // around what keeps which outlets are wanted on
	// Kernel is the kernel's log; nil is the one of this machine, if it can be read.
	Kernel bus.Records
	// Holder names who holds a phone's interface; nil looks among the processes of this machine.
	Holder func(context.Context, bus.Device) string

	// Addresses are those of this machine, and Multicast is what the rack's name is announced over; nil: the kernel's own.
	Addresses func() ([]netip.Addr, error)
	Multicast mdns.Network

	CareInterval time.Duration // between two rounds of looking after the slots; 0 is a second
	Patience     time.Duration // that a phone has for the answer to a harmless question; 0 is 20 s
	StoreBound   time.Duration // within which the store has to show progress; 0 is a minute

	// OnReady is called when the control socket answers; may be nil.
	OnReady func()
}
