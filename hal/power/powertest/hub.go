package powertest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"phonerack/hal/power"
)

// Habits are what a hub does besides what its ports are told. The zero value is a hub that switches well.
type Habits struct {
	DataOnly bool          // CLEAR_FEATURE takes the data, VBUS stays
	Repower  time.Duration // a port's power comes back by itself after so long; 0 for never
	Resets   bool          // it starts anew, all ports on, when one of them is switched off
	Away     time.Duration // how long it is gone then; 0 is half a second
}

// A Phone sits at a port. Calls come one at a time, from goroutines of the hub.
type Phone interface {
	VBUS(on bool)   // at once
	Listed(is bool) // the kernel has lost or enumerated it
}

// Hub is a hub behind the requests of power.USB: an old kernel's folders in place of sysfs, without the attribute "disable", and
// control transfers. Its ports say what they were told, or what came back. It goes by time.Now and timers.
type Hub struct {
	path, root string
	habits     Habits

	calling sync.Mutex // held while a phone is told; before mu

	mu       sync.Mutex // guards all below
	ports    []hubPort  // from port 1
	address  int
	away     bool
	switched []string // "3 off"
	timers   []*time.Timer
	running  sync.WaitGroup
	closed   bool
}

type hubPort struct {
	phone  Phone
	on     bool
	turn   int  // changes with on: what was begun for another turn is void
	listed bool // as the phone was told
	vbus   bool
}

const (
	hubBus     = 1
	firstDev   = 7
	portsOfHub = 15 // more than any hub has
	usualAway  = 500 * time.Millisecond
)

// NewHub makes a hub with all ports on at a port path, such as "1-1", in an empty folder that stands for sysfs.
func NewHub(root, path string, ports int, habits Habits) (*Hub, error) {
	h := &Hub{path: path, root: root, habits: habits, address: firstDev, ports: make([]hubPort, min(ports, portsOfHub))}
	h.habits.Away = cmp.Or(habits.Away, usualAway)
	for i := range h.ports {
		h.ports[i].on, h.ports[i].vbus, h.ports[i].listed = true, true, true
	}
	return h, h.write()
}

// write makes the hub's folder what the kernel shows.
func (h *Hub) write() error {
	dir := filepath.Join(h.root, "bus/usb/devices", h.path)
	if h.away {
		return os.RemoveAll(dir)
	}
	err := os.MkdirAll(dir, 0o755)
	for name, text := range map[string]string{"busnum": fmt.Sprint(hubBus), "devnum": fmt.Sprint(h.address), "speed": "480"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
	}
	return err
}

// USB is what reads and switches the hub.
func (h *Hub) USB() *power.USB { return &power.USB{Sysfs: h.root, Control: h.control} }

// Plug puts a phone that is listed already at a port.
func (h *Hub) Plug(port int, p Phone) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ports[port-1].phone = p
}

// SetHabits puts another hub in its place.
func (h *Hub) SetHabits(habits Habits) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.habits = habits
	h.habits.Away = cmp.Or(habits.Away, usualAway)
}

// Switched lists what was asked of ports, as "3 off".
func (h *Hub) Switched() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.switched)
}

// VBUS reports whether a port gives power, whatever it says.
func (h *Hub) VBUS(port int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ports[port-1].on || h.habits.DataOnly
}

// Close stops the hub and waits for what it has begun.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, t := range h.timers {
		if t.Stop() {
			h.running.Done()
		}
	}
	h.mu.Unlock()
	h.running.Wait()
}

// control is a power.USB's Control: requests of USB 2.0, chapter 11.24.
func (h *Hub) control(file string, s power.Setup, data []byte, _ time.Duration) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away || h.closed || !strings.HasSuffix(file, fmt.Sprintf("bus/usb/%03d/%03d", hubBus, h.address)) {
		return 0, syscall.ENODEV
	}
	n := int(s.Index)
	if n < 1 || n > len(h.ports) {
		return 0, syscall.EPIPE
	}
	switch p := &h.ports[n-1]; s {
	case power.Setup{Type: 0x23, Request: 1, Value: 8, Index: s.Index}:
		h.switched = append(h.switched, fmt.Sprintf("%d off", n))
		h.turn(n, false)
		switch {
		case h.habits.Resets:
			h.reset()
		case h.habits.Repower > 0:
			turn := p.turn
			h.after(h.habits.Repower, func() {
				if p.turn == turn {
					h.turn(n, true)
				}
			})
		}
		return 0, nil
	case power.Setup{Type: 0x23, Request: 3, Value: 8, Index: s.Index}:
		h.switched = append(h.switched, fmt.Sprintf("%d on", n))
		h.turn(n, true)
		return 0, nil
	case power.Setup{Type: 0xa3, Request: 0, Index: s.Index}:
		status := [4]byte{}
		if p.on {
			status[1] = 1 // PORT_POWER
		}
		if p.listed {
			status[0] = 3 // connected and enabled
		}
		return copy(data, status[:]), nil
	}
	return 0, syscall.EPIPE
}

// turn changes what a port says, and with it VBUS and data. h.mu is held.
func (h *Hub) turn(n int, on bool) {
	p := &h.ports[n-1]
	if p.on == on {
		return
	}
	p.on = on
	p.turn++
	turn := p.turn
	h.after(0, func() { h.tell(n) })
	wait := Leave
	if on {
		wait = Enumerate
	}
	h.after(wait, func() {
		// The kernel notices that a device went even when power is back by then.
		if !on || p.turn == turn {
			p.listed = on
			h.after(0, func() { h.tell(n) })
		}
	})
}

// reset has the hub start anew. h.mu is held.
func (h *Hub) reset() {
	h.away = true
	h.address++
	h.write()
	for n := range h.ports {
		h.turn(n+1, false)
	}
	h.after(h.habits.Away, func() {
		h.away = false
		h.write()
		for n := range h.ports {
			h.turn(n+1, true)
		}
	})
}

// after runs f with h.mu held, later. h.mu is held.
func (h *Hub) after(d time.Duration, f func()) {
	if h.closed {
		return
	}
	h.running.Add(1)
	h.timers = append(h.timers, time.AfterFunc(d, func() {
		defer h.running.Done()
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.closed {
			f()
		}
	}))
}

// tell tells a phone what has changed for it. h.mu is held, and let go meanwhile.
func (h *Hub) tell(n int) {
	h.mu.Unlock()
	defer h.mu.Lock()
	h.calling.Lock()
	defer h.calling.Unlock()
	h.mu.Lock()
	p := &h.ports[n-1]
	phone, vbus, listed := p.phone, p.on || h.habits.DataOnly, p.listed
	powered := p.vbus != vbus
	p.vbus = vbus
	h.mu.Unlock()
	if phone == nil {
		return
	}
	if powered {
		phone.VBUS(vbus)
	}
	phone.Listed(listed)
}
