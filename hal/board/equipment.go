package board

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds and defaults, docs/boards.md has them for people.
const (
	maxBus        = 255
	maxOffset     = 1023 // of a line in its chip
	maxKernelName = 31   // bytes of a line's name or a chip's label: the kernel has room for 32 with the zero
	maxLEDs       = 16
	maxCandidates = 8   // names of an LED in sysfs
	usbAddresses  = 126 // devices on a bus whose controller is not known: 127 less the root hub

	maxOff, maxSettle, maxStagger = time.Minute, 30 * time.Second, 10 * time.Second

	defaultOff        = 5 * time.Second
	defaultLineSettle = 3 * time.Second // a hub may be silent for so long after a cycle (mvp/uhubctl#25)
	defaultPortSettle = 500 * time.Millisecond
	defaultStagger    = 500 * time.Millisecond // inrush of 120 µF and more a port: one after the other
	defaultConcurrent = 2
)

// chipNumber is how the kernel names a chip's file: the one name that must not be in a board file.
var chipNumber = regexp.MustCompile(`^(/dev/)?gpiochip[0-9]+$`)

func (c *checker) controllers(b *Board, list []Controller) {
	owner := map[int]string{}
	for i, k := range list {
		at := fmt.Sprintf("controller[%d]", i)
		c.named(at, "controller", k.Name)
		if k.Devices < 1 || k.Devices > usbAddresses*maxBus {
			c.faultIn(at, "devices", "controller %s can address %d devices: say how many, hubs included", k.Name, k.Devices)
		}
		if len(k.Buses) == 0 {
			c.faultIn(at, "buses", "controller %s has no buses: list their numbers, as lsusb -t shows them", k.Name)
		}
		for _, bus := range k.Buses {
			switch other, ok := owner[bus]; {
			case bus < 1 || bus > maxBus:
				c.faultIn(at, "buses", "bus %d of controller %s: buses count from 1 to %d", bus, k.Name, maxBus)
			case ok:
				c.faultIn(at, "buses", "bus %d belongs to controller %s and to %s: a bus has one controller", bus, other, k.Name)
			}
			owner[bus] = k.Name
		}
	}
	b.Controllers = list
}

// named checks the name of a table.
func (c *checker) named(at, kind, name string) {
	if name == "" {
		c.faultIn(at, "name", `the %s has no name: add name = "..."`, kind)
	}
	c.text("name", name, func(text string) { c.faultIn(at, "name", "%s: %s", kind, text) })
}

func (c *checker) uplink(b *Board, u *fileUplink) {
	if u == nil {
		return
	}
	if !validPath.MatchString(u.Path) {
		c.faultIn("uplink", "path", "port path %q of the uplink is %s", u.Path, pathForm)
		return
	}
	b.Uplink = u.Path
}

func (c *checker) power(b *Board, p *filePower) {
	b.Power = Power{defaultStagger, defaultConcurrent}
	if p == nil {
		return
	}
	b.Power.Stagger = c.duration("power", "stagger", p.Stagger, 0, maxStagger, defaultStagger)
	if p.Concurrent != nil {
		b.Power.Concurrent = *p.Concurrent
	}
	if n := b.Power.Concurrent; n < 1 || n > maxSlots {
		c.faultIn("power", "concurrent", "concurrent is %d: let 1 to %d be switched at the same time", n, maxSlots)
	}
}

func (c *checker) duration(at, key string, v *duration, least, most, otherwise time.Duration) time.Duration {
	if v == nil {
		return otherwise
	}
	d := time.Duration(*v)
	if d != 0 && d.Abs() < time.Millisecond { // a bare number counts nanoseconds, and people mean seconds or milliseconds
		c.faultIn(at, key, `%s is %d without a unit: write it like "5s" or "500ms"`, key, int64(d))
		return otherwise
	}
	if d < least || d > most {
		c.faultIn(at, key, "%s is %v: choose %v to %v", key, d, least, most)
	}
	return d
}

func (c *checker) hubs(b *Board, list []fileHub) {
	names, paths := map[string]bool{}, map[string]string{}
	for i, f := range list {
		at := fmt.Sprintf("hub[%d]", i)
		h := c.hub(at, f)
		if names[h.Name] {
			c.faultIn(at, "name", "two hubs are called %s: give each its own name", h.Name)
		}
		names[h.Name] = true
		for _, half := range []struct{ key, path string }{{"path", h.Path}, {"companion", h.Companion}} {
			if other, ok := paths[half.path]; ok && half.path != "" {
				c.faultIn(at, half.key, "hub %s and hub %s are both at %s: a port holds one hub", other, h.Name, half.path)
			}
			paths[half.path] = h.Name
		}
		if h.Feed == Lines && (leads(h.Path, b.Uplink) || leads(h.Companion, b.Uplink)) {
			c.faultIn(at, "line", `hub %s at %s is fed by line %s, and the uplink at %s depends on it: switching it would cut the rack off; write power = "none", or connect the uplink elsewhere`,
				h.Name, h.Path, h.Line, b.Uplink)
		}
		b.Hubs = append(b.Hubs, h)
	}
}

// leads reports whether the way to the port path goes through the port, or ends there.
func leads(port, path string) bool {
	return port != "" && path != "" && (path == port || Behind(path, port))
}

func (c *checker) hub(at string, f fileHub) Hub {
	h := Hub{Name: f.Name, Path: f.Path, Companion: f.Companion, Ports: f.Ports, Feed: f.Feed, Line: f.Line, On: f.Default != "off", OverCurrent: f.OverCurrent}
	c.named(at, "hub", h.Name)
	if !validPath.MatchString(h.Path) {
		c.faultIn(at, "path", "port path %q of hub %s is %s", h.Path, h.Name, pathForm)
	}
	if h.Companion != "" && (!validPath.MatchString(h.Companion) || bus(h.Companion) == bus(h.Path)) {
		c.faultIn(at, "companion", "companion %q of hub %s: give the port path of its SuperSpeed half, which is on another bus", h.Companion, h.Name)
	}
	if h.Ports < 0 || h.Ports > 255 {
		c.faultIn(at, "ports", "hub %s has %d ports: write 1 to 255, or leave the key out", h.Name, h.Ports)
	}
	if f.Default != "" && f.Default != "on" && f.Default != "off" {
		c.faultIn(at, "default", `default of hub %s is %q: write "on" or "off"`, h.Name, f.Default)
	}
	settle := defaultLineSettle
	switch h.Feed {
	case Lines:
		c.line(at, "hub "+h.Name, h.Line)
	case PortPower:
		settle = defaultPortSettle
	case Unswitched, "":
		h.Feed = Unswitched
	default:
		c.faultIn(at, "power", `power of hub %s is %q: write "line", "ports" or "none"`, h.Name, h.Feed)
	}
	if h.Feed != Lines && h.Line != (Line{}) {
		c.faultIn(at, "line", `hub %s names a GPIO line, but its power is %q: write power = "line", or remove the line`, h.Name, h.Feed)
	}
	if h.Feed == Unswitched && f.Default == "off" {
		c.faultIn(at, "default", `hub %s cannot be off by default: its power is "none"`, h.Name)
	}
	if h.OverCurrent != nil {
		c.line(at, "over_current of hub "+h.Name, *h.OverCurrent)
	}
	h.OffTime = c.duration(at, "off_time", f.OffTime, MinOff, maxOff, defaultOff)
	h.Settle = c.duration(at, "settle", f.Settle, 0, maxSettle, settle)
	return h
}

// bus is the number before the dash of a port path.
func bus(path string) string {
	b, _, _ := strings.Cut(path, "-")
	return b
}

// line checks how a GPIO line is named; what is what the line is for.
func (c *checker) line(at, what string, l Line) {
	switch {
	case l.Name != "" && (l.Chip != "" || l.Offset != 0):
		c.faultIn(at, "line", "%s names its line and a chip with offset: keep one of the two", what)
	case l.Name == "" && l.Chip == "":
		c.faultIn(at, "line", `%s needs a GPIO line: write line = "NAME" as gpioinfo shows it, or chip = "LABEL" and offset`, what)
	case chipNumber.MatchString(l.Chip):
		c.faultIn(at, "chip", "%s: chip %q is a number that changes between kernels: write the label that gpiodetect shows in brackets", what, l.Chip)
	case l.Offset < 0 || l.Offset > maxOffset:
		c.faultIn(at, "offset", "%s: offset %d: lines of a chip count from 0 to %d", what, l.Offset, maxOffset)
	case !kernelName(l.Name) || !kernelName(l.Chip):
		c.faultIn(at, "line", "%s: %q is no name of a line or chip: at most %d printable characters", what, l.String(), maxKernelName)
	}
}

func kernelName(s string) bool {
	return len(s) <= maxKernelName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func (c *checker) leds(b *Board, list []fileLED) {
	if len(list) > maxLEDs {
		c.fault("led", "the board has %d LEDs, more than %d", len(list), maxLEDs)
		return
	}
	names := map[string]bool{}
	used := map[string]string{} // name in sysfs to the LED that has it
	for i, f := range list {
		at := fmt.Sprintf("led[%d]", i)
		c.named(at, "LED", f.Name)
		if names[f.Name] {
			c.faultIn(at, "name", "two LEDs are called %s: give each its own name", f.Name)
		}
		names[f.Name] = true
		led := LED{Name: f.Name}
		if f.Slot != nil {
			led.Slot = *f.Slot
			if _, there := b.Slot(led.Slot); !there {
				c.faultIn(at, "slot", "LED %s is of slot %d, which the board does not have: correct the number, or leave slot out for an LED of the rack", f.Name, led.Slot)
			}
		}
		for _, l := range f.lights() {
			made := c.light(at, "LED "+f.Name, l.colour, *l.light)
			led.Lights = append(led.Lights, made)
			for _, name := range made.Sysfs {
				if other, twice := used[name]; twice && other != f.Name+string(l.colour) {
					c.faultIn(at, string(l.colour), "LED %s: %s is a light of another LED or colour already: each shows one thing", f.Name, name)
				}
				used[name] = f.Name + string(l.colour)
			}
		}
		switch {
		case len(led.Lights) == 0:
			c.fault(at, `LED %s has no light: write light = { sysfs = ["NAME"] }, or green and red`, f.Name)
		case f.Light != nil && len(led.Lights) > 1:
			c.faultIn(at, "light", "LED %s has a light without colour and coloured ones: keep one of the two", f.Name)
		}
		b.LEDs = append(b.LEDs, led)
	}
}

func (c *checker) light(at, what string, colour Colour, f fileLight) Light {
	l := Light{Colour: colour, Sysfs: f.Sysfs}
	key := string(colour)
	if len(f.Sysfs) > maxCandidates {
		c.faultIn(at, key, "%s: %d names for one light, more than %d", what, len(f.Sysfs), maxCandidates)
	}
	for _, name := range f.Sysfs {
		if name == "" || len(name) > 63 || strings.ContainsAny(name, "/\\") || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			c.faultIn(at, key, "%s: %q is no name below /sys/class/leds", what, name)
		}
	}
	if f.Line != (Line{}) {
		c.line(at, what, f.Line)
		l.Line = &f.Line
	} else if len(f.Sysfs) == 0 {
		c.faultIn(at, key, "%s: its %s names neither sysfs nor a GPIO line", what, key)
	}
	return l
}

func (c *checker) button(b *Button) {
	if b == nil {
		return
	}
	c.line("button", "the button", b.Line)
	if !slices.Contains([]string{"", "up", "down", "none"}, b.Pull) {
		c.faultIn("button", "pull", `pull of the button is %q: write "up", "down" or "none"`, b.Pull)
	}
}

// lines refuses a GPIO line that is used for two things.
func (c *checker) lines(f *file) {
	users, shared := map[Line]string{}, map[Line]bool{}
	use := func(at, key, what string, l Line) {
		l.ActiveLow = false
		if l == (Line{}) {
			return
		}
		if other, ok := users[l]; ok {
			c.faultIn(at, key, "line %s is used for %s and for %s: a line is one thing", l, other, what)
		}
		users[l] = what
	}
	for i, h := range f.Hubs {
		use(fmt.Sprintf("hub[%d]", i), "line", "hub "+h.Name, h.Line)
		if h.OverCurrent != nil && !shared[*h.OverCurrent] {
			shared[*h.OverCurrent] = true // one flag for several hubs is common
			use(fmt.Sprintf("hub[%d]", i), "over_current", "over-current of hub "+h.Name, *h.OverCurrent)
		}
	}
	for i, l := range f.LEDs {
		for _, light := range l.lights() {
			use(fmt.Sprintf("led[%d]", i), string(light.colour), fmt.Sprintf("LED %s (%s)", l.Name, light.colour), light.light.Line)
		}
	}
	if f.Button != nil {
		use("button", "line", "the button", f.Button.Line)
	}
}
