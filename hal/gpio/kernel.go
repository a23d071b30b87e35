package gpio

import (
	"io"
	"time"
)

// Kernel is the GPIO character device, as narrow as Lines needs it.
type Kernel interface {
	// Chips names the chips that are there now. The names mean nothing beyond a call of Open.
	Chips() ([]string, error)
	Open(name string) (Chip, error)
	// Adopt makes a handle of a parked file, which stays the caller's.
	Adopt(Parked) (Handle, error)
}

// Chip is an open GPIO chip.
type Chip interface {
	Name() string  // as the kernel numbers it: only to compare with Place
	Label() string // such as "pinctrl-bcm2711"
	Lines() int
	Info(offset int) (Info, error)
	// Request takes a line. It fails with syscall.EBUSY when somebody holds it.
	Request(offset int, consumer string, c Config) (Handle, error)
	io.Closer
}

// Info is what the kernel tells of a line without a request.
type Info struct {
	Name      string
	Consumer  string // who holds it, "" for nobody or somebody without a name
	Used      bool
	Output    bool
	ActiveLow bool
}

// Config is how a line is to be. Without Output and Input it is left as it is.
type Config struct {
	Output, Input bool
	Active        bool // value of an output
	ActiveLow     bool
	Pull          Pull // of an input
	Rising        bool // edges of an input that become events, in logical terms
	Falling       bool
}

// Pull is the bias of an input.
type Pull uint8

// Biases: PullKeep leaves the line as it is.
const (
	PullKeep Pull = iota
	PullNone
	PullUp
	PullDown
)

// Handle is a line that was requested. Closing its last copy, in whichever process, releases the line.
type Handle interface {
	Value() (active bool, err error)
	Set(active bool) error
	Configure(Config) error
	// Event waits for an edge that Config asked for; timeout < 0 waits for ever. It fails with
	// os.ErrDeadlineExceeded when there was none, with os.ErrClosed after Close.
	Event(timeout time.Duration) error
	// Place says which line the kernel holds it for; ok is false when this kernel does not tell.
	Place() (p Place, ok bool, err error)
	// Park copies the handle for somebody who keeps it open.
	Park() (Parked, error)
	io.Closer
}

// Place is a line as the kernel numbers it.
type Place struct {
	Chip   string // such as "gpiochip0"
	Offset int
}

// Parked is a copy of a handle that outlives it; *os.File is one.
type Parked interface {
	Fd() uintptr
	io.Closer
}
