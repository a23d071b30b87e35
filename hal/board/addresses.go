package board

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Use is what a controller has to address.
type Use struct {
	Controller Controller
	Hubs       int // each half of a USB 3 hub is one
	Others     int // the uplink
	Phones     int
}

// Devices is how many addresses are taken when every slot holds a phone.
func (u Use) Devices() int { return u.Hubs + u.Others + u.Phones }

// String says it to people.
func (u Use) String() string {
	return fmt.Sprintf("%s: %d of %d devices (%d hubs, %d phones, %d others)", u.Controller.Name, u.Devices(), u.Controller.Devices, u.Hubs, u.Phones, u.Others)
}

// Uses counts what each controller has to address, in the order of the file; a bus without a
// controller in the file comes last, as one of its own with USB's own limit.
func (b *Board) Uses() []Use {
	uses := make([]Use, len(b.Controllers))
	for i, k := range b.Controllers {
		uses[i].Controller = k
	}
	of := func(path string) *Use {
		n, _ := strconv.Atoi(bus(path)) // checked by validPath
		for i := range uses {
			if slices.Contains(uses[i].Controller.Buses, n) {
				return &uses[i]
			}
		}
		uses = append(uses, Use{Controller: Controller{Name: fmt.Sprintf("bus %d", n), Buses: []int{n}, Devices: usbAddresses}})
		return &uses[len(uses)-1]
	}
	for _, path := range slices.Sorted(maps.Keys(b.hubPaths())) {
		of(path).Hubs++
	}
	if b.Uplink != "" && !b.hubPaths()[b.Uplink] {
		of(b.Uplink).Others++
	}
	for _, s := range b.Slots {
		of(s.Path).Phones++
	}
	return uses
}

// hubPaths are the ports at which there must be a hub: those that the file names, and those that
// something lies behind.
func (b *Board) hubPaths() map[string]bool {
	paths := map[string]bool{}
	above := func(path string) {
		for hub := parent(path); hub != ""; hub = parent(hub) {
			paths[hub] = true
		}
	}
	for _, h := range b.Hubs {
		paths[h.Path] = true
		above(h.Path)
		if h.Companion != "" {
			paths[h.Companion] = true
			above(h.Companion)
		}
	}
	for _, s := range b.Slots {
		above(s.Path)
	}
	above(b.Uplink)
	return paths
}

// addresses refuses the slots that a controller cannot address. Without this the phones beyond its
// limit never appear, and no fault is seen on them (raspberrypi/linux#3366, openstf/stf#966).
func (c *checker) addresses(b *Board) {
	for _, u := range b.Uses() {
		over := u.Devices() - u.Controller.Devices
		if over <= 0 {
			continue
		}
		room := max(u.Phones-over, 0)
		for i, s := range b.Slots {
			n, _ := strconv.Atoi(bus(s.Path))
			if !slices.Contains(u.Controller.Buses, n) {
				continue
			}
			if room--; room < 0 {
				c.slotFault(i, "path", "slot %d at %s does not fit: controller %s addresses %d devices, hubs included, and there are %d hubs, %d others and %d phones; remove %d slots, or move them to another controller",
					s.Number, s.Path, u.Controller.Name, u.Controller.Devices, u.Hubs, u.Others, u.Phones, over)
				break
			}
		}
	}
}
