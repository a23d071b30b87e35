package board

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// port matches 1 to 255 without leading zeros.
const port = `(?:[1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])`

var (
	// validPath is a bus and one to maxPorts ports.
	validPath = regexp.MustCompile(fmt.Sprintf(`^%[1]s-%[1]s(\.%[1]s){0,%[2]d}$`, port, maxPorts-1))
	// validPort is a port of a hub, or one behind further hubs.
	validPort = regexp.MustCompile(fmt.Sprintf(`^%[1]s(\.%[1]s){0,%[2]d}$`, port, maxPorts-2))
)

// pathForm says how a port path looks.
var pathForm = fmt.Sprintf(`not of the form "1-2.3" (bus, root port, then a port for each hub, at most %d)`, maxPorts-1)

// checker collects the faults of a board file.
type checker struct {
	file   string
	at     map[string]Position
	faults []error
}

func (c *checker) fault(key, format string, args ...any) {
	p, ok := c.at[key]
	if !ok { // a table in single brackets, such as [hub], counts as the first of its kind
		p = c.at[strings.Replace(key, "[0]", "", 1)]
	}
	c.faults = append(c.faults, Fault{c.file, p.Line, p.Column, fmt.Sprintf(format, args...)})
}

// faultIn reports a fault at a key of a table, or at the table's heading when the key is absent.
func (c *checker) faultIn(table, key, format string, args ...any) {
	at, single := table+"."+key, strings.Replace(table, "[0]", "", 1)+"."+key
	switch {
	case c.at[at] != Position{}:
	case c.at[single] != Position{}:
		at = single
	default:
		at = table
	}
	c.fault(at, format, args...)
}

// slotFault reports a fault at a slot's key.
func (c *checker) slotFault(i int, key, format string, args ...any) {
	c.faultIn(fmt.Sprintf("slot[%d]", i), key, format, args...)
}

// board checks a file and gives what it describes.
func (c *checker) board(f *file) *Board {
	b := &Board{Name: f.Name, Model: f.Model, Button: f.Button}
	if b.Name == "" {
		c.fault("name", `the board has no name: add name = "..." at the top`)
	}
	c.text("name", b.Name, func(text string) { c.fault("name", "%s", text) })
	if len(f.Slots) > maxSlots || len(f.Hubs) > maxHubs {
		c.fault("slot", "the board has %d slots and %d hubs: at most %d and %d", len(f.Slots), len(f.Hubs), maxSlots, maxHubs)
		return b
	}
	c.controllers(b, f.Controllers)
	c.uplink(b, f.Uplink)
	c.power(b, f.Power)
	c.hubs(b, f.Hubs)
	c.button(b.Button)
	for i, s := range f.Slots {
		b.Slots = append(b.Slots, c.slot(b, i, s))
	}
	c.unique(b.Slots)
	c.leds(b, f.LEDs) // of slots that are there
	c.places(b)
	c.lines(f)
	if len(c.faults) == 0 {
		c.addresses(b)
	}
	return b
}

func (c *checker) slot(b *Board, i int, f fileSlot) Slot {
	s := Slot{Number: f.Number, Path: f.Path, Label: f.Label, Row: f.Row, Column: f.Column}
	if s.Number < 1 || s.Number > maxSlot {
		c.slotFault(i, "number", "slot number %d: give each slot a number from 1 to %d", s.Number, maxSlot)
	}
	c.text("label", s.Label, func(text string) { c.slotFault(i, "label", "slot %d: %s", s.Number, text) })
	if s.Row < 0 || s.Column < 0 || s.Row > maxSlot || s.Column > maxSlot {
		c.slotFault(i, "row", "slot %d: row and column count from 1 to %d", s.Number, maxSlot)
	}
	if f.Hub != "" || f.Port != nil {
		s.Path = c.slotPath(b, i, f)
	} else if !validPath.MatchString(s.Path) {
		c.slotFault(i, "path", "port path %q of slot %d is %s", s.Path, s.Number, pathForm)
	}
	s.Hub, s.Port = nearest(b.Hubs, s.Path)
	return s
}

// slotPath gives the port path of a slot that is written as a hub and a port; "" when that is wrong.
func (c *checker) slotPath(b *Board, i int, f fileSlot) string {
	hub, known := b.Hub(f.Hub)
	text, ok := portText(f.Port)
	switch {
	case f.Path != "":
		c.slotFault(i, "path", "slot %d has a path and a hub with port: keep one of the two", f.Number)
	case !known:
		c.slotFault(i, "hub", "slot %d is on hub %q, which is not in the file: add a [[hub]] with that name", f.Number, f.Hub)
	case !ok:
		c.slotFault(i, "port", `slot %d: write the port as a whole number, or between quotes when it is behind a further hub, such as "4.2"`, f.Number)
	case !validPort.MatchString(text):
		c.slotFault(i, "port", `slot %d: port %q of hub %s is no port: write a number from 1 to 255, or such as "4.2" behind a further hub`, f.Number, text, f.Hub)
	case !validPath.MatchString(hub.Path + "." + text):
		c.slotFault(i, "port", "slot %d: port path %s.%s is %s", f.Number, hub.Path, text, pathForm)
	default:
		return hub.Path + "." + text
	}
	return ""
}

// nearest gives the hub with the longest path that a port lies behind, and the port of it that leads there.
func nearest(hubs []Hub, path string) (name string, number int) {
	length := 0
	for _, h := range hubs {
		if Behind(path, h.Path) && len(h.Path) > length {
			length, name = len(h.Path), h.Name
			number = firstPort(path[length+1:])
		}
	}
	return name, number
}

// firstPort is the first number of a list such as "4.2".
func firstPort(ports string) (n int) {
	head, _, _ := strings.Cut(ports, ".")
	fmt.Sscanf(head, "%d", &n) // checked by validPath, else 0
	return n
}

// text checks a text that is shown to people.
func (c *checker) text(key, s string, fault func(text string)) {
	switch {
	case utf8.RuneCountInString(s) > maxLabel:
		fault(fmt.Sprintf("%s is longer than %d characters: shorten it", key, maxLabel))
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		fault(key + " holds characters that cannot be shown: remove them")
	}
}

// unique refuses two slots with one number or port, and a slot at a port where another slot's hub must be.
func (c *checker) unique(slots []Slot) {
	numbers, paths := map[int]int{}, map[string]int{}
	for i, s := range slots {
		if j, ok := numbers[s.Number]; ok {
			c.slotFault(i, "number", "slot number %d is used twice: the other is at port %s", s.Number, slots[j].Path)
		} else {
			numbers[s.Number] = i
		}
		if s.Path == "" {
			continue // a fault of its own
		}
		if j, ok := paths[s.Path]; ok {
			c.slotFault(i, "path", "port %s is given to slot %d and to slot %d: a port is one slot", s.Path, slots[j].Number, s.Number)
		} else {
			paths[s.Path] = i
		}
	}
	for i, s := range slots {
		for hub := parent(s.Path); hub != ""; hub = parent(hub) {
			if j, ok := paths[hub]; ok {
				c.slotFault(i, "path", "port %s of slot %d lies behind port %s, which is slot %d: a port holds a hub or a phone, not both", s.Path, s.Number, hub, slots[j].Number)
			}
		}
	}
}

// places refuses slots where the file says that something else is.
func (c *checker) places(b *Board) {
	for i, s := range b.Slots {
		for _, h := range b.Hubs {
			switch {
			case leads(s.Path, h.Path) || leads(s.Path, h.Companion):
				c.slotFault(i, "path", "port %s is slot %d, and hub %s is at %s: a port holds a hub or a phone, not both", s.Path, s.Number, h.Name, h.Path)
			case s.Hub == h.Name:
				c.slotOnHub(b, i, s, h)
			}
		}
		if leads(s.Path, b.Uplink) {
			c.slotFault(i, "path", "port %s is slot %d and leads to the uplink: a port is one of the two", s.Path, s.Number)
		}
	}
}

func (c *checker) slotOnHub(b *Board, i int, s Slot, h Hub) {
	at, twin := fmt.Sprintf("%s.%d", h.Path, s.Port), ""
	if h.Companion != "" {
		twin = fmt.Sprintf("%s.%d", h.Companion, s.Port)
	}
	switch {
	case h.Ports > 0 && s.Port > h.Ports:
		c.slotFault(i, "port", "slot %d is on port %d of hub %s, which has %d ports", s.Number, s.Port, h.Name, h.Ports)
	case h.Feed == PortPower && (leads(at, b.Uplink) || leads(twin, b.Uplink)):
		c.slotFault(i, "path", "slot %d shares port %d of hub %s with the uplink, which is never switched: give the slot another port, or add a [[hub]] with the path %s", s.Number, s.Port, h.Name, at)
	case h.Feed == PortPower && s.Path != at:
		c.slotFault(i, "path", "slot %d lies behind a further hub at port %d of hub %s: that port must not be switched; add a [[hub]] with the path %s", s.Number, s.Port, h.Name, at)
	}
}
