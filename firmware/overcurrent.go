package firmware

import (
	"slices"
	"time"

	conn "periph.io/x/conn/v3/gpio"

	"phonerack/hal/board"
	"phonerack/hal/gpio"
	"phonerack/hal/power"
)

// overcurrent watches for hubs that take too much current: by a line of theirs, and by what the kernel counts at each of their ports.
type overcurrent struct {
	hubs  []board.Hub
	slots []board.Slot
	usb   *power.USB
	pins  map[string]*gpio.Pin // active while a hub takes too much, by its name

	// Of the one who asks.
	counts map[port]int
	until  map[string]time.Duration // boot time until which a hub is named
}

// port is one of a hub, by the hub's path.
type port struct {
	hub    string
	number int
}

// watchOvercurrent takes the lines by which hubs say that they take too much.
func (r *Rack) watchOvercurrent() {
	c := &overcurrent{usb: &power.USB{Sysfs: r.config.USB.Sysfs}, pins: map[string]*gpio.Pin{}, counts: map[port]int{}, until: map[string]time.Duration{}}
	r.overcurrent = c
	if r.config.Board == nil || r.lines == nil {
		return
	}
	c.hubs, c.slots = r.config.Board.Hubs, r.config.Board.Slots
	for _, h := range c.hubs {
		if h.OverCurrent == nil {
			continue
		}
		pin, err := r.lines.Input(lineSpec(*h.OverCurrent, "rackd-current-"+h.Path), conn.PullNoChange)
		if err != nil {
			r.log.Error("whether a hub takes too much cannot be read", "hub", h.Name, "err", err)
			continue
		}
		r.pins = append(r.pins, pin)
		c.pins[h.Name] = pin
	}
}

// hubsNow gives the names of the hubs that take too much, in order. One whose port did is named for a time: the kernel switches such
// a port off at once, so that only its count tells.
func (c *overcurrent) hubsNow(now, named time.Duration) (hubs []string) {
	for _, h := range c.hubs {
		ports := h.Ports
		for _, s := range c.slots { // of a hub whose ports nobody has counted those that are known
			if s.Hub == h.Name {
				ports = max(ports, s.Port)
			}
		}
		for _, path := range []string{h.Path, h.Companion} {
			for n := range ports {
				if path != "" && c.grown(port{path, n + 1}) {
					c.until[h.Name] = now + named
				}
			}
		}
		says := false
		if pin := c.pins[h.Name]; pin != nil {
			level, err := pin.Level()
			says = err == nil && level == conn.High
		}
		if says || now < c.until[h.Name] {
			hubs = append(hubs, h.Name)
		}
	}
	slices.Sort(hubs)
	return hubs
}

// grown tells whether the kernel has counted more at a port than when it was asked last. What it had counted before that is no
// news, and a hub that comes anew begins at 0. A kernel that does not count, or a hub that is away, shows nothing.
func (c *overcurrent) grown(p port) bool {
	n, ok, err := c.usb.OverCurrent(p.hub, p.number)
	if err != nil || !ok {
		return false
	}
	before, known := c.counts[p]
	c.counts[p] = n
	return known && n > before
}
