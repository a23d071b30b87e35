package board

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	maxFile  = 1 << 20 // bytes of a board file
	maxSlots = 512
	maxSlot  = 999 // largest slot number: three digits fit every label and page
	maxLabel = 32  // runes
	maxPorts = 6   // ports in a path: the root port and one for each of five hubs, USB's limit
	maxHubs  = 128
)

// Board is a board file that has passed every check. What the file leaves out is filled in from its
// model and with the defaults that docs/boards.md lists.
type Board struct {
	Name  string
	Model string // the model that the file builds upon; "" for none

	Controllers []Controller
	Uplink      string // port path of what the rack reaches its network by; "" when that is not on USB
	Power       Power
	Hubs        []Hub // in the order of the file
	LEDs        []LED
	Button      *Button // nil for none
	Slots       []Slot  // ordered by number
}

// Slot is a physical place for one phone: one USB port.
type Slot struct {
	Number int    // 1 to 999, unique
	Path   string // USB port path such as "1-1.2", unique
	Label  string // what is written on the rack; "" for none
	Row    int    // place in the rack, from 1; 0 when not given
	Column int    // place in the rack, from 1; 0 when not given
	Hub    string // name of the nearest hub of the file that the slot lies behind; "" for none
	Port   int    // port of that hub that leads to the slot; 0 without a hub
}

// String names the slot as people do.
func (s Slot) String() string {
	if s.Label == "" {
		return fmt.Sprintf("slot %d", s.Number)
	}
	return fmt.Sprintf("slot %d (%s)", s.Number, s.Label)
}

// Controller is a USB host controller and how much it can hold.
type Controller struct {
	Name    string
	Buses   []int // numbers of its buses; a USB 3 controller has two
	Devices int   // how many devices it can address, hubs included, root hubs not
}

// Power says how switching is spread over time.
type Power struct {
	Stagger    time.Duration // least time between two things that are switched on
	Concurrent int           // how many may be switched, or settle, at the same time
}

// Hub is a USB hub that slots refer to.
type Hub struct {
	Name      string
	Path      string // its port path on the USB 2 side
	Companion string // port path of its SuperSpeed half; "" when the hub or its cable is USB 2
	Ports     int    // number of ports; 0 when not given
	Feed      Feed
	Line      Line // for Lines: active means that the hub has power

	OverCurrent *Line // active while the hub takes too much; nil for none

	On      bool          // state that is wanted while nobody has said otherwise
	OffTime time.Duration // how long off when it is cycled, at least MinOff
	Settle  time.Duration // after it was switched on, until the next one may be and until it must answer
}

// MinOff is the shortest time without power: shorter ones make devices vanish until the next plug
// (mvp/uhubctl#23: "connect-debounce failed" after cycles of 0.5 s).
const MinOff = 2 * time.Second

// Feed is the kind of a hub's power.
type Feed string

// Kinds of a hub's power.
const (
	Unswitched Feed = "none"  // always on
	Lines      Feed = "line"  // the whole hub, by a GPIO line
	PortPower  Feed = "ports" // each port, by requests to the hub
)

// Line is a GPIO line: either a name, as the kernel has it, or a chip's label and an offset. A
// chip's number is no way to name it: it changes between kernels.
type Line struct {
	Name      string `toml:"line"`
	Chip      string `toml:"chip"`
	Offset    int    `toml:"offset"`
	ActiveLow bool   `toml:"active_low"`
}

// String names the line as gpioinfo shows it.
func (l Line) String() string {
	if l.Name != "" {
		return l.Name
	}
	return fmt.Sprintf("%s %d", l.Chip, l.Offset)
}

// LED is an indicator with one light, or with one a colour.
type LED struct {
	Name   string
	Slot   int // whose state it shows; 0: the rack's
	Lights []Light
}

// Light is one light of an LED.
type Light struct {
	Colour Colour
	Sysfs  []string // names below /sys/class/leds, the first one that is there is used
	Line   *Line    // used when there is no name
}

// Colour of a light.
type Colour string

// Colours: a light of an LED with a single one is Plain.
const (
	Plain Colour = "light"
	Green Colour = "green"
	Red   Colour = "red"
)

// Button is a push button.
type Button struct {
	Line
	Pull string `toml:"pull"` // "up", "down", "none", or "" to leave it as the board has it
}

// SlotAt gives the slot whose port path is path. A phone that came up at SuperSpeed is on the other half of its
// hub; its slot is found all the same when the hub's companion is in the file.
func (b *Board) SlotAt(path string) (Slot, bool) {
	for _, h := range b.Hubs {
		if h.Companion != "" && Behind(path, h.Companion) {
			path = h.Path + path[len(h.Companion):]
			break
		}
	}
	return first(b.Slots, func(s Slot) bool { return s.Path == path })
}

// Slot gives the slot with the number n.
func (b *Board) Slot(n int) (Slot, bool) {
	return first(b.Slots, func(s Slot) bool { return s.Number == n })
}

// Hub gives the hub with this name.
func (b *Board) Hub(name string) (Hub, bool) {
	return first(b.Hubs, func(h Hub) bool { return h.Name == name })
}

func first[T any](list []T, is func(T) bool) (T, bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	var none T
	return none, false
}

// Load reads and checks a board file. The error joins every fault found, each a Fault or a fault
// of reading the file.
func Load(path string) (*Board, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data)
}

// absent is the path of a board file that is not there. It is fs.ErrNotExist.
type absent string

func (a absent) Error() string {
	return fmt.Sprintf("board file %s does not exist: correct the path, or have rackctl board learn make it", string(a))
}

// Is implements what errors.Is asks.
func (a absent) Is(target error) bool { return target == fs.ErrNotExist }

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read board file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read board file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("board file %s is larger than %d bytes: is it a board file?", path, maxFile)
	}
	return Text(path, data)
}

// Text is what is in a TOML file, without the byte order mark that editors of Windows begin it with. A file in UTF-16, as some of them
// save it, is a Fault.
func Text(path string, data []byte) ([]byte, error) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return nil, Fault{File: path, Text: "the file is in UTF-16: save it as UTF-8"}
		}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// Fault is one thing wrong in a board file.
type Fault struct {
	File         string
	Line, Column int    // from 1; 0 when the fault has no place in the file
	Text         string // what is wrong and what to do
}

// Error implements error.
func (f Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
}

// Behind reports whether the port path lies behind the hub at the port path hub.
func Behind(path, hub string) bool {
	return strings.HasPrefix(path, hub+".")
}

// parent gives the port of the hub that a port belongs to, "" for a root port.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i]
	}
	return ""
}
