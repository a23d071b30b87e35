package firmware_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/hal/board"
	"phonerack/hal/power"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
)

// socket is a port whose power a test sees being switched. Its phone is plugged in anew with the power, and its faults are gone.
type socket struct {
	t     *testing.T
	c     *cable
	path  string
	phone *simPhone

	mu      sync.Mutex
	on      bool
	absent  bool // nothing is plugged in at the start
	vbus    bool // the phone's battery sees that its power is gone
	taken   bool // somebody has taken the phone
	address int
	device  bus.Device
	log     []string
}

func (s *socket) plug() {
	s.address++
	s.device = s.c.plug(s.path, s.address, s.phone, "PHONE"+s.path[len(s.path)-1:])
}

// Set implements power.Switch.
func (s *socket) Set(_ context.Context, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprint(on))
	if s.vbus {
		r := s.phone.device.Battery()
		r.USB = on
		s.phone.device.SetBattery(r)
	}
	switch s.on, on = on, s.on; {
	case s.taken:
	case s.on && !on:
		s.phone.SetFaults(phonesim.Faults{})
		s.plug()
	case !s.on && on:
		s.phone.Unplug()
		s.c.events <- bus.Event{Kind: bus.Removed, Device: s.device}
	}
	return nil
}

// take takes the phone away for good.
func (s *socket) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = true
	s.phone.Unplug()
	s.c.events <- bus.Event{Kind: bus.Removed, Device: s.device}
}

// On implements power.Switch.
func (s *socket) On(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on, nil
}

func (s *socket) switched() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, " ")
}

// still is a hub that never enumerates anew.
type still struct{}

func (still) Generation(string) (int, bool) { return 1, true }

// cutting has ports that cut VBUS when they are switched.
func cutting(o *firmware.Options) {
	for _, out := range o.Outlets {
		out.Switch.(*socket).vbus = true
	}
}

// newPorts makes a bench of two phones at ports that can be switched, which are well unless faults say otherwise.
func newPorts(t *testing.T, faults map[int]phonesim.Faults, change ...func(*firmware.Options)) (*bench, map[int]*socket) {
	c := newCable()
	ports := map[int]*socket{}
	outlets := func(o *firmware.Options) {
		for n := 1; n <= 2; n++ {
			s := &socket{t: t, c: c, path: fmt.Sprintf("1-1.%d", n), on: true, address: 10 * n}
			s.phone = newSimPhone(t, "", fmt.Sprintf("PHONE%d", n), 14, phonesim.Auth{})
			s.phone.SetFaults(faults[n])
			ports[n] = s
			o.Outlets = append(o.Outlets, power.Outlet{
				Name: fmt.Sprintf("hub A port %d", n), Hub: "A", HubPath: "1-1", Path: s.path, Slots: []int{n}, Switch: s, Default: true, Settle: time.Millisecond,
			})
		}
		o.Hubs = still{}
	}
	b := newUSBBench(t, c, append([]func(*firmware.Options){hasty, outlets}, change...)...)
	for _, s := range ports {
		if !s.absent {
			s.plug()
		}
	}
	return b, ports
}

const lineBoard = usbBoard + `[[hub]]
name = "A"
path = "1-1"
power = "line"
line = "HUB1_PWR"
`

// onBoard replaces the board file.
func onBoard(t *testing.T, text string) func(*firmware.Options) {
	return func(o *firmware.Options) {
		path := filepath.Join(t.TempDir(), "board.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := board.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		o.Config.Board = b
	}
}

// strip switches two sockets together, as a hub's line does.
type strip struct{ ports []*socket }

// Set implements power.Switch.
func (s strip) Set(ctx context.Context, on bool) error {
	for _, p := range s.ports {
		if err := p.Set(ctx, on); err != nil {
			return err
		}
	}
	return nil
}

// On implements power.Switch.
func (s strip) On(ctx context.Context) (bool, error) { return s.ports[0].On(ctx) }

// deaf is a port that says what it is told and switches nothing.
type deaf struct {
	mu sync.Mutex
	on bool
}

// Set implements power.Switch.
func (d *deaf) Set(_ context.Context, on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on = on
	return nil
}

// On implements power.Switch.
func (d *deaf) On(context.Context) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on, nil
}
