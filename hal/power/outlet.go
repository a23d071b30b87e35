package power

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	conn "periph.io/x/conn/v3/gpio"

	"phonerack/hal/board"
)

// Switch turns one thing on and off. Calls end with their context at the latest.
type Switch interface {
	Set(ctx context.Context, on bool) error
	// On asks the hardware, not what was set last.
	On(ctx context.Context) (bool, error)
}

// Outlet is one thing that can be switched and the slots that it feeds.
type Outlet struct {
	Name    string // "hub A" or "hub A port 3", unique: the key in the store
	Hub     string // one outlet of a hub is switched at a time
	HubPath string // port path of the hub
	Path    string // port path of all that loses power: of the hub, or of the port
	Twin    string // the same on the hub's SuperSpeed half; "" for none
	Slots   []int
	Switch  Switch

	Default bool          // what is wanted when the store does not know
	OffTime time.Duration // of a cycle, at least board.MinOff
	Settle  time.Duration // after it was switched on, until the next one may be
}

// Pin is the line of a hub, active when the hub has power; *gpio.Pin of hal/gpio is one.
type Pin interface {
	Out(conn.Level) error
	Level() (conn.Level, error)
}

// ByLine makes a switch of a line.
func ByLine(p Pin) Switch { return lineSwitch{p} }

type lineSwitch struct{ pin Pin }

func (s lineSwitch) Set(_ context.Context, on bool) error { return s.pin.Out(conn.Level(on)) }

func (s lineSwitch) On(context.Context) (bool, error) {
	level, err := s.pin.Level()
	return bool(level), err
}

// Outlets gives those of a board: a hub that is fed by a line is one, with all slots behind it, and of a
// hub that switches its ports each port with a slot is one. pins are the lines by the name of their hub.
func Outlets(b *board.Board, pins map[string]Pin, usb *USB) ([]Outlet, error) {
	var all []Outlet
	var missing error
	for _, h := range b.Hubs {
		o := Outlet{Name: "hub " + h.Name, Hub: h.Name, HubPath: h.Path, Path: h.Path, Twin: h.Companion, Default: h.On, OffTime: h.OffTime, Settle: h.Settle}
		switch h.Feed {
		case board.Lines:
			if pins[h.Name] == nil {
				missing = errors.Join(missing, fmt.Errorf("%s has no line to switch it by", o.Name))
				continue
			}
			o.Switch = ByLine(pins[h.Name])
			for _, s := range b.Slots {
				if board.Behind(s.Path, h.Path) {
					o.Slots = append(o.Slots, s.Number)
				}
			}
			all = append(all, o)
		case board.PortPower:
			for _, s := range b.Slots {
				if s.Hub != h.Name {
					continue
				}
				port := o
				port.Name, port.Path, port.Slots = fmt.Sprintf("hub %s port %d", h.Name, s.Port), s.Path, []int{s.Number}
				if h.Companion != "" {
					port.Twin = fmt.Sprintf("%s.%d", h.Companion, s.Port)
				}
				port.Switch = usb.Port(h.Path, h.Companion, s.Port)
				all = append(all, port)
			}
		}
	}
	return all, missing
}

// cuts reports whether the port path loses its power, or its way to the controller, with the outlet.
func (o *Outlet) cuts(path string) bool {
	under := func(top string) bool { return top != "" && (path == top || strings.HasPrefix(path, top+".")) }
	return under(o.Path) || under(o.Twin)
}

// isPort reports whether the outlet is a part of its hub, which itself keeps its power.
func (o *Outlet) isPort() bool { return o.Path != o.HubPath }

// Cut says what taking an outlet's power does, as far as it was seen.
type Cut string

// What was seen. All from NoEffect on do not cut the power: recovery by it is in vain.
const (
	Unseen    Cut = ""           // no phone was there to see it by
	LeavesBus Cut = "leaves_bus" // phones leave the bus; whether they charged is not known
	Cuts      Cut = "cuts"       // phones leave the bus and do not charge

	NoEffect  Cut = "no_effect"  // phones stay on the bus
	DataOnly  Cut = "data_only"  // phones leave the bus and go on charging
	Repowers  Cut = "repowers"   // power comes back without being asked for, time after time
	ResetsHub Cut = "resets_hub" // the hub starts anew, with power for all its ports: others are disturbed, and nothing is cut
)

// Works reports whether the outlet may take the power: it is not known not to.
func (c Cut) Works() bool { return c == Unseen || c == LeavesBus || c == Cuts }

// String says it to people.
func (c Cut) String() string {
	switch c {
	case Unseen:
		return "not seen yet"
	case LeavesBus:
		return "takes the data, perhaps the power"
	case Cuts:
		return "cuts the power"
	case NoEffect:
		return "does not cut VBUS: phones stay on the bus"
	case DataOnly:
		return "does not cut VBUS: phones lose the data only and go on charging"
	case Repowers:
		return "does not cut VBUS for long: the power comes back by itself"
	case ResetsHub:
		return "does not cut VBUS: the hub resets and powers all its ports"
	}
	return string(c)
}

// NotCutError says that power was switched off and that the phones have it all the same.
type NotCutError struct {
	Outlet string
	Cut    Cut
}

// Error implements error.
func (e *NotCutError) Error() string { return fmt.Sprintf("%s %v", e.Outlet, e.Cut) }

// Answer is what may not be known.
type Answer int

// Answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// String implements fmt.Stringer.
func (a Answer) String() string { return [...]string{"unknown", "no", "yes"}[a] }
