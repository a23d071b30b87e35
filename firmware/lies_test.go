package firmware_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/hal/power"
	"phonerack/hal/power/powertest"
	"phonerack/sync/wire"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
)

// onHub is a simulated phone at a port of a simulated hub. It implements powertest.Phone.
type onHub struct {
	c       *cable
	path    string
	phone   *simPhone
	address int
	device  bus.Device
	listed  bool
}

func (o *onHub) VBUS(on bool) {
	r := o.phone.device.Battery()
	r.USB, r.Status = on, 3
	if on {
		r.Status = 2
	}
	o.phone.device.SetBattery(r)
}

func (o *onHub) Listed(is bool) {
	if is == o.listed {
		return
	}
	if o.listed = is; is {
		o.address++
		o.device = o.c.plug(o.path, o.address, o.phone, "PHONE"+o.path[len(o.path)-1:])
		return
	}
	o.phone.Unplug()
	o.c.events <- bus.Event{Kind: bus.Removed, Device: o.device}
}

// hang makes the phone silent, and loses its link.
func (o *onHub) hang() {
	o.phone.SetFaults(phonesim.Faults{Hang: true})
	o.phone.Unplug()
}

// newHubBench makes a rack of two phones on a hub with these habits, which is switched by requests to it.
func newHubBench(t *testing.T, habits powertest.Habits, change ...func(*firmware.Options)) (*bench, *powertest.Hub, map[int]*onHub) {
	t.Helper()
	h, err := powertest.NewHub(t.TempDir(), "1-1", 2, habits)
	if err != nil {
		t.Fatal(err)
	}
	c, phones := newCable(), map[int]*onHub{}
	outlets := func(o *firmware.Options) {
		usb := h.USB()
		for n := 1; n <= 2; n++ {
			path := fmt.Sprintf("1-1.%d", n)
			if phones[n] == nil {
				phones[n] = &onHub{c: c, path: path, phone: newSimPhone(t, "", fmt.Sprintf("PHONE%d", n), 14, phonesim.Auth{}), address: 10 * n}
				h.Plug(n, phones[n])
			}
			o.Outlets = append(o.Outlets, power.Outlet{
				Name: fmt.Sprintf("hub A port %d", n), Hub: "A", HubPath: "1-1", Path: path, Slots: []int{n}, Switch: usb.Port("1-1", "", n), Default: true, Settle: time.Millisecond,
			})
		}
		o.Hubs = usb
	}
	board := onBoard(t, usbBoard+"[[hub]]\nname = \"A\"\npath = \"1-1\"\npower = \"ports\"\n")
	b := newUSBBench(t, c, append([]func(*firmware.Options){hasty, board, outlets}, change...)...)
	t.Cleanup(h.Close)
	for _, p := range phones {
		p.Listed(true)
	}
	return b, h, phones
}

// TestHubsThatLieInAWholeRack: each lie is recognised, named in the slot's findings, as the page, rackctl and the cloud give them,
// and never relied on again until a person asks for a check, after which the truth counts.
func TestHubsThatLieInAWholeRack(t *testing.T) {
	for title, c := range map[string]struct {
		habits powertest.Habits
		off    time.Duration
		code   string
	}{
		"cuts data only":           {powertest.Habits{DataOnly: true}, 0, "port_data_only"},
		"re-powers after 10 ms":    {powertest.Habits{Repower: 10 * time.Millisecond}, 0, "port_repowers"},
		"comes back after 3 s":     {powertest.Habits{Repower: 3 * time.Second}, 3500 * time.Millisecond, "port_repowers"},
		"resets and re-powers all": {powertest.Habits{Resets: true}, 0, "port_resets_hub"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			b, hub, phones := newHubBench(t, c.habits, func(o *firmware.Options) {
				o.Config.Health.Ladder.OffTime, o.Config.Health.Ladder.Flaps = health.Duration(c.off), 100
			})
			b.health(2, health.Well)
			b.health(1, health.Well)
			cycle := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}
			if c.habits.DataOnly { // a phone that hangs could not tell
				if err := b.Call(t.Context(), "power_cycle", cycle, nil); !wire.Is(err, wire.PowerNotCut) {
					t.Errorf("a cycle: %v", err)
				}
			} else {
				phones[1].hang()
				hung := b.health(1, health.Quarantined)
				if got, want := acts(hung), "reopen done, resync done, port_cycle not_cut"; got != want {
					t.Errorf("the ladder did %s, want %s", got, want)
				}
				phones[1].phone.SetFaults(phonesim.Faults{})
			}
			named := b.health(1, health.Attention)
			if len(named.Others) != 1 || named.Others[0].Code != c.code || named.Others[0].Why == "" || named.Others[0].Do == "" || named.Power == nil || named.Power.Cut == "" {
				t.Errorf("named %+v, %+v", named.Others, named.Power)
			}
			var rack action.RackStatus
			if err := b.Call(t.Context(), "rack_status", nil, &rack); err != nil || len(rack.Outlets) != 2 || rack.Outlets[0].Cut != named.Power.Cut {
				t.Errorf("the rack shows %+v, %v", rack.Outlets, err)
			}
			before := len(hub.Switched())
			phones[1].hang()
			again := b.health(1, health.Quarantined)
			if n := len(hub.Switched()); n != before || strings.Count(acts(again), "port_cycle") > 1 {
				t.Errorf("power was relied on again: %s, %v", acts(again), hub.Switched()[before:])
			}
			if c.habits.Resets {
				if other := b.health(2, health.Attention); len(other.Others) != 1 || other.Others[0].Code != c.code {
					t.Errorf("the neighbour, whose port does the same: %+v", other.Others)
				}
			}
			for _, port := range []int{1, 2} {
				if !hub.VBUS(port) {
					t.Errorf("port %d was left without power", port)
				}
			}
			phones[1].phone.SetFaults(phonesim.Faults{})
			hub.SetHabits(powertest.Habits{}) // somebody has put another hub in
			b.health(1, health.Attention)
			if err := b.Call(t.Context(), "power_cycle", cycle, nil); err != nil {
				t.Errorf("a check of a hub that switches: %v", err)
			}
			if well := b.health(1, health.Well); well.Power == nil || well.Power.Cut != "cuts the power" {
				t.Errorf("after the check: %+v %+v", well.Others, well.Power)
			}
		})
	}
}
