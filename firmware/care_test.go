package firmware_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/store"
	"phonerack/hal/board"
	"phonerack/hal/button"
	"phonerack/hal/gpio"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/power"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
)

// hasty makes a configuration whose ladder does not take its time.
func hasty(o *firmware.Options) {
	const soon = health.Duration(100 * time.Millisecond)
	h := &o.Config.Health
	h.Probe.Interval = 2 * soon
	h.Ladder.OffTime = 0 // the least
	for _, step := range []*health.Step{
		&h.Ladder.Reopen, &h.Ladder.Resync, &h.Ladder.ClearHalt, &h.Ladder.Reset, &h.Ladder.Reboot, &h.Ladder.PortCycle, &h.Ladder.HubCycle,
	} {
		step.Tries, step.Settle = 1, soon
	}
	o.CareInterval = 50 * time.Millisecond
	o.ADB = adb.Options{HandshakeTimeout: 300 * time.Millisecond}
}

// slots asks how the slots are.
func (b *bench) slots() []action.SlotHealth {
	b.t.Helper()
	var all action.Slots
	if err := b.Call(b.t.Context(), "slots", nil, &all); err != nil {
		b.t.Fatal(err)
	}
	return all.Slots
}

// health waits until a slot is in a state.
func (b *bench) health(slot int, state health.State) action.SlotHealth {
	b.t.Helper()
	var last action.SlotHealth
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, s := range b.slots() {
			if s.Slot == slot {
				last = s
			}
		}
		if last.State == string(state) {
			return last
		}
	}
	b.t.Fatalf("slot %d is %+v, and not %s", slot, last, state)
	return last
}

// within waits for something that comes by itself, and fails when it does not.
func (b *bench) within(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not seen: %s", what)
		}
	}
}

func acts(s action.SlotHealth) string {
	var all []string
	for _, a := range slices.Backward(s.Acts) { // the oldest first
		all = append(all, a.Act+" "+a.Outcome)
	}
	return strings.Join(all, ", ")
}

func TestSlotsTellHowTheyAreAndWhatToDo(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.change = hasty
	b.phones[1].plug(t)
	b.start()
	well := b.health(1, health.Well)
	if well.Main.Code != "fine" || well.Serial != "SIM0001" || well.Power != nil {
		t.Errorf("well: %+v", well)
	}
	if empty := b.health(2, health.Empty); empty.Main.Code != "no_phone" || empty.Main.Title == "" {
		t.Errorf("empty: %+v", empty)
	}
	b.phones[1].unplug()
	gone := b.health(1, health.Quarantined) // nothing here could switch its power
	if gone.Main.Code != "dead" || gone.Main.Why == "" || gone.Main.Do == "" {
		t.Errorf("gone: %+v", gone)
	}
	if err := b.Call(t.Context(), "slot_forget", action.SlotArgs{Slot: 1}, nil); err != nil {
		t.Fatal(err)
	}
	b.health(1, health.Empty)
	if err := b.Call(t.Context(), "power_cycle", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}, nil); !wire.Is(err, wire.PowerFixed) {
		t.Errorf("power that nothing switches: %v", err)
	}
	var rack action.RackStatus
	if err := b.Call(t.Context(), "rack_status", nil, &rack); err != nil || rack.Slots["empty"] != 2 || rack.Slots["well"] != 0 || len(rack.Slots) != len(health.States()) {
		t.Errorf("rack: %+v, %v", rack, err)
	}
}

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

func TestALadderThatEndsInPowerHelpsAPhoneAndTouchesNoOther(t *testing.T) {
	t.Parallel()
	b, ports := newPorts(t, map[int]phonesim.Faults{1: {Hang: true}})
	b.health(2, health.Well)
	other, disturbed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(disturbed)
		for {
			select {
			case <-other:
				return
			default:
			}
			if _, _, err := b.shell(2, "echo well", ""); err != nil {
				disturbed <- err
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	well := b.health(1, health.Well)
	close(other)
	if err := <-disturbed; err != nil {
		t.Errorf("the neighbour was disturbed: %v", err)
	}
	if got, want := acts(well), "reopen done, resync done, port_cycle done"; got != want {
		t.Errorf("the ladder did %s, want %s", got, want)
	}
	if got := ports[1].switched(); got != "false true" {
		t.Errorf("the port was switched %s", got)
	}
	if got := ports[2].switched(); got != "" {
		t.Errorf("the neighbour's port was switched %s", got)
	}
	if _, held := firmware.LeasesOf(b.rack).Lookup(1); held {
		t.Error("recovery kept its lease")
	}
}

func TestAPhoneThatSomebodyHasIsLeftToThem(t *testing.T) {
	t.Parallel()
	b, ports := newPorts(t, map[int]phonesim.Faults{1: {Hang: true}})
	held, err := firmware.LeasesOf(b.rack).Acquire(1, lease.Holder{Kind: lease.Hold, Who: "kim"}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.health(1, health.Recovering)
	time.Sleep(500 * time.Millisecond) // ten rounds
	if s := b.health(1, health.Recovering); len(s.Acts) > 0 {
		t.Errorf("acts under somebody's lease: %s", acts(s))
	}
	held.Release()
	b.health(1, health.Well)
	if got := ports[1].switched(); got != "false true" {
		t.Errorf("the port was switched %s", got)
	}
}

func TestWhatAPersonHasSwitchedOffStaysOff(t *testing.T) {
	t.Parallel()
	b, ports := newPorts(t, nil)
	b.health(1, health.Well)
	args := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}
	if err := b.Call(t.Context(), "power_off", args, nil); err != nil {
		t.Fatal(err)
	}
	off := b.health(1, health.Maintenance)
	if off.Power == nil || off.Power.On || off.Left != "power" {
		t.Errorf("off: %+v", off)
	}
	time.Sleep(time.Second) // recovery would have come by now
	if got := ports[1].switched(); got != "false" {
		t.Errorf("switched %s", got)
	}
	if err := b.Call(t.Context(), "power_on", args, nil); err != nil {
		t.Fatal(err)
	}
	if s := b.health(1, health.Well); s.Left != "" || acts(s) != "wake done" {
		t.Errorf("on: %+v", s)
	}
	if got := ports[1].switched(); got != "false true" {
		t.Errorf("switched %s: recovery did not wait for the phone", got)
	}
}

// TestTheEndOfMaintenanceGivesNoPowerThatAPersonHasTaken: hands come to a slot that is switched off, or it is switched off under
// their hands.
func TestTheEndOfMaintenanceGivesNoPowerThatAPersonHasTaken(t *testing.T) {
	t.Parallel()
	slot := action.RackSlotArgs{Slot: 1}
	off, begin, end := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}, action.MaintenanceArgs{RackSlotArgs: slot}, action.MaintenanceArgs{RackSlotArgs: slot, Off: true}
	for name, calls := range map[string][]string{"off before": {"power_off", "begin", "end"}, "off meanwhile": {"begin", "power_off", "end"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ports := newPorts(t, nil)
			b.health(1, health.Well)
			for _, c := range calls {
				act, args := c, any(off)
				switch c {
				case "begin":
					act, args = "maintenance", begin
				case "end":
					act, args = "maintenance", end
				}
				if err := b.Call(t.Context(), act, args, nil); err != nil {
					t.Fatal(c, err)
				}
			}
			time.Sleep(time.Second) // twenty rounds
			if s := b.health(1, health.Maintenance); s.Left != "power" {
				t.Errorf("left alone: %q", s.Left)
			}
			if got := ports[1].switched(); got != "false" {
				t.Errorf("switched %s", got)
			}
			if err := b.Call(t.Context(), "power_on", off, nil); err != nil {
				t.Fatal(err)
			}
			if s := b.health(1, health.Well); s.Left != "" {
				t.Errorf("left alone: %q", s.Left)
			}
			if got := ports[1].switched(); got != "false true" {
				t.Errorf("switched %s", got)
			}
		})
	}
}

// full is a store of what is wanted that refuses.
type full struct {
	power.Store
	is atomic.Bool
}

// Save implements power.Store.
func (f *full) Save(outlet string, r power.Record) error {
	if f.is.Load() {
		return store.ErrFull
	}
	return f.Store.Save(outlet, r)
}

// TestAnOrderThatTheDiskRefusesLeavesNoSlotDark: that a slot is to be dark is noted before its power is switched; when the one or the
// other cannot be written down, the slot is what it was, also for the next start.
func TestAnOrderThatTheDiskRefusesLeavesNoSlotDark(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		notes int  // that the disk takes
		full  bool // for what is wanted of the outlet
	}{
		"the note of the second slot":              {1, false},
		"what is wanted":                           {1000, true},
		"what is wanted, and the end of the notes": {2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hub strip
			var again firmware.Options
			disk := &full{}
			b, ports := newPorts(t, nil, onBoard(t, lineBoard), func(o *firmware.Options) {
				for _, out := range o.Outlets {
					hub.ports = append(hub.ports, out.Switch.(*socket))
				}
				o.Outlets = []power.Outlet{{Name: "hub A", Hub: "A", HubPath: "1-1", Path: "1-1", Slots: []int{1, 2}, Switch: hub, Default: true, Settle: time.Millisecond}}
				o.Wanted = func(s power.Store) power.Store { disk.Store = s; return disk }
				again = *o
			})
			b.health(1, health.Well)
			b.health(2, health.Well)
			firmware.RefuseNotes(b.rack, test.notes)
			disk.is.Store(test.full)
			off := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}, Hub: true}
			if err := b.Call(t.Context(), "power_off", off, nil); err == nil {
				t.Fatal("it is said to be off")
			}
			for round := range 2 {
				for n := 1; n <= 2; n++ {
					if s := b.health(n, health.Well); s.Left != "" || len(s.Acts) != 0 {
						t.Errorf("start %d: slot %d is left alone: %q, %s", round, n, s.Left, acts(s))
					}
				}
				if round == 0 {
					b.stop()
					b.run(again)
					ports[1].plug()
					ports[2].plug()
				}
			}
			if got := ports[1].switched(); got != "" {
				t.Errorf("switched %s", got)
			}
		})
	}
}

// TestASlotThatNothingFeedsAnyMoreIsNotSwitchedOff: by another board file nobody could switch it on again. With the first one it is off
// as before.
func TestASlotThatNothingFeedsAnyMoreIsNotSwitchedOff(t *testing.T) {
	t.Parallel()
	var before firmware.Options
	b, ports := newPorts(t, nil, func(o *firmware.Options) { before = *o })
	b.health(1, health.Well)
	if err := b.Call(t.Context(), "power_off", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	b.stop()
	other := before
	other.Outlets = before.Outlets[1:]
	b.run(other)
	ports[1].plug() // its port has power again, by hand
	if s := b.health(1, health.Well); s.Left != "" {
		t.Errorf("nothing feeds it, and it is left alone: %+v", s)
	}
	b.stop()
	b.run(before)
	if s := b.health(1, health.Maintenance); s.Main.Code != "dark" {
		t.Errorf("with the board file of before: %+v", s)
	}
}

// TestQuarantineAndMaintenanceSurviveAKill copies the state folder of a rack that runs, as a kill -9 or a cut of power leaves it.
func TestQuarantineAndMaintenanceSurviveAKill(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.change = hasty
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	if err := b.Call(t.Context(), "quarantine", action.QuarantineArgs{SlotArgs: action.SlotArgs{Slot: 1}, Seconds: 3600, Reason: "swollen"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Call(t.Context(), "maintenance", action.MaintenanceArgs{RackSlotArgs: action.RackSlotArgs{Slot: 2}}, nil); err != nil {
		t.Fatal(err)
	}
	state := b.config.Rack.State + "-after"
	copyState(t, b.config.Rack.State, state)
	b.stop()
	b.config.Rack.State = state
	b.start()
	s := b.health(1, health.Quarantined)
	if s.Ends < 50*time.Minute || s.Ends > time.Hour || len(s.Others) != 1 || !strings.Contains(s.Others[0].Why, "swollen") {
		t.Errorf("after the kill: %+v", s)
	}
	if s := b.health(2, health.Maintenance); s.Left != "maintenance" {
		t.Errorf("after the kill: %+v", s)
	}
	if err := b.Call(t.Context(), "quarantine_end", action.SlotArgs{Slot: 1}, nil); err != nil {
		t.Fatal(err)
	}
	b.health(1, health.Well)
}

// lineStore is a store of descriptors of the doubled kernel.
type lineStore struct{ kept gpiotest.Store }

func (s *lineStore) Store(name string, p gpio.Parked) error {
	s.kept.Put(name, p)
	return nil
}

func (s *lineStore) Drop(name string) error {
	s.kept.Drop(name)
	return nil
}

const lineBoard = usbBoard + `[[hub]]
name = "A"
path = "1-1"
power = "line"
line = "HUB1_PWR"
`

// TestNoEdgeOfAHubsLineThatNobodyAskedFor restarts and kills a rack whose hub is fed by a line.
func TestNoEdgeOfAHubsLineThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"OTHER", "HUB1_PWR"}})
	kernel.Preset("HUB1_PWR", true)
	store := &lineStore{}
	run := func(what string, do func(b *bench)) {
		b := newUSBBench(t, newCable(), hasty, func(o *firmware.Options) {
			o.GPIO, o.Parked, o.Descriptors, o.Hubs = kernel, store.kept.Hand(), store, still{}
		}, onBoard(t, lineBoard))
		do(b)
		b.stop()
		kernel.Kill() // what the end of a process does to its handles
		t.Log(what, kernel.Edges())
	}
	run("first", func(*bench) {})
	run("again", func(*bench) {})
	if edges := kernel.Edges(); len(edges) != 0 {
		t.Fatalf("edges that nobody asked for: %v", edges)
	}
	if holder := kernel.Holder("HUB1_PWR"); holder != "rackd-hub-1-1" {
		t.Errorf("the line is held by %q", holder)
	}
	run("off", func(b *bench) {
		if err := b.Call(t.Context(), "power_off", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}, Hub: true}, nil); err != nil {
			t.Fatal(err)
		}
	})
	run("off, again", func(*bench) {})
	if edges := fmt.Sprint(kernel.Edges()); edges != "[HUB1_PWR: high to low]" {
		t.Errorf("edges %s", edges)
	}
}

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

// TestAHubIsCycledWhenTwoOfItsPhonesAreLostAndNobodyHasOne: a hub takes all its phones with it.
func TestAHubIsCycledWhenTwoOfItsPhonesAreLostAndNobodyHasOne(t *testing.T) {
	t.Parallel()
	var hub strip
	hang := phonesim.Faults{Hang: true}
	b, ports := newPorts(t, map[int]phonesim.Faults{1: hang, 2: hang}, onBoard(t, lineBoard), func(o *firmware.Options) {
		for _, out := range o.Outlets {
			hub.ports = append(hub.ports, out.Switch.(*socket))
		}
		o.Outlets = []power.Outlet{{Name: "hub A", Hub: "A", HubPath: "1-1", Path: "1-1", Slots: []int{1, 2}, Switch: hub, Default: true, Settle: time.Millisecond}}
	})
	held, err := firmware.LeasesOf(b.rack).Acquire(2, lease.Holder{Kind: lease.Hold, Who: "kim"}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.within("what can be done on the link alone", func() bool { return acts(b.health(1, health.Recovering)) == "reopen done, resync done" })
	time.Sleep(500 * time.Millisecond) // ten rounds
	if got := ports[1].switched(); got != "" {
		t.Fatalf("the hub of a phone that somebody has was switched %s", got)
	}
	held.Release()
	b.health(1, health.Well)
	b.health(2, health.Well)
	if got := ports[1].switched(); got != "false true" {
		t.Errorf("the hub was switched %s", got)
	}
}

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

func TestAPortThatCutsNothingIsNamed(t *testing.T) {
	t.Parallel()
	b, _ := newPorts(t, nil, func(o *firmware.Options) { o.Outlets[0].Switch = &deaf{on: true} })
	b.health(1, health.Well)
	args := action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}}
	if err := b.Call(t.Context(), "power_cycle", args, nil); !wire.Is(err, wire.PowerNotCut) || !strings.Contains(err.Error(), "does not cut VBUS") {
		t.Errorf("a cycle of a port that cuts nothing: %v", err)
	}
	if s := b.health(1, health.Attention); s.Power == nil || !strings.Contains(s.Power.Cut, "does not cut VBUS") || len(s.Others) != 1 || s.Others[0].Code != "port_no_effect" {
		t.Errorf("the port is shown as %+v, %+v", s.Power, s.Others)
	}
}

// TestTheLightAndTheButtonOfABoard: hands at the rack need no computer for maintenance.
func TestTheLightAndTheButtonOfABoard(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR", "GREEN", "BUTTON"}})
	kernel.Preset("HUB1_PWR", true)
	text := lineBoard + "[[led]]\nname = \"rack\"\nlight = { line = \"GREEN\" }\n[button]\nline = \"BUTTON\"\nactive_low = true\n"
	kernel.Drive("BUTTON", true)
	b := newUSBBench(t, newCable(), hasty, onBoard(t, text), func(o *firmware.Options) { o.GPIO, o.Hubs = kernel, still{} })
	maintenance := func() bool {
		var st action.RackStatus
		if err := b.Call(t.Context(), "rack_status", nil, &st); err != nil {
			t.Fatal(err)
		}
		return st.Maintenance
	}
	b.within("a light", func() bool { return kernel.State("GREEN") == gpiotest.High })
	time.Sleep(300 * time.Millisecond) // the button is read, and is up
	kernel.Drive("BUTTON", false)
	time.Sleep(button.LongFrom + 300*time.Millisecond)
	if maintenance() {
		t.Error("maintenance began before the button was released")
	}
	kernel.Drive("BUTTON", true)
	b.within("maintenance", maintenance)
	if err := b.Call(t.Context(), "maintenance", action.MaintenanceArgs{Off: true}, nil); err != nil || maintenance() {
		t.Errorf("maintenance does not end: %v", err)
	}
	b.stop()
	if got := kernel.State("GREEN"); got == gpiotest.High {
		t.Error("the light shines on although rackd has ended")
	}
}

// TestEachLEDShowsWhatItIsFor: two of the rack the same, one of a slot that slot alone; no LED of the board file is left dark for
// nothing.
func TestEachLEDShowsWhatItIsFor(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR", "FRONT", "BACK", "FIRST", "SECOND"}})
	kernel.Preset("HUB1_PWR", true)
	text := lineBoard + "[[led]]\nname = \"front\"\nlight = { line = \"FRONT\" }\n[[led]]\nname = \"back\"\nlight = { line = \"BACK\" }\n" +
		"[[led]]\nname = \"first\"\nslot = 1\nlight = { line = \"FIRST\" }\n[[led]]\nname = \"second\"\nslot = 2\nlight = { line = \"SECOND\" }\n"
	c := newCable()
	b := newUSBBench(t, c, hasty, onBoard(t, text), func(o *firmware.Options) { o.GPIO, o.Hubs = kernel, still{} })
	c.plug("1-1.1", 5, newSimPhone(t, "", "SIM0001", 14, phonesim.Auth{}), "SIM0001")
	b.health(1, health.Well)
	for _, lit := range []string{"FRONT", "BACK", "FIRST"} {
		b.within(lit+" shines", func() bool { return kernel.State(lit) == gpiotest.High })
	}
	if strings.Contains(fmt.Sprint(kernel.Edges()), "SECOND: low to high") {
		t.Errorf("the LED of the empty slot has shown something: %v", kernel.Edges())
	}
	var seen action.Identified
	if err := b.Call(t.Context(), "identify", action.IdentifyArgs{RackSlotArgs: action.RackSlotArgs{Slot: 2}, Seconds: 1}, &seen); err != nil || len(seen.Slots) != 0 {
		t.Errorf("identify of a slot without a phone, by its LED: %+v, %v", seen, err)
	}
	if !strings.Contains(fmt.Sprint(kernel.Edges()), "SECOND: low to high") {
		t.Errorf("the LED of the slot did not blink: %v", kernel.Edges())
	}
}

// copyState copies a state folder with the modes of its files.
func copyState(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || e.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, rel), 0o700))
		}
		content, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(filepath.Join(to, rel), content, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
}
