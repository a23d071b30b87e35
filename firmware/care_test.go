package firmware_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/gpio"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/power"
	"phonerack/sync/wire"
	"phonerack/usb/adb"
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

// status asks how the rack is.
func (b *bench) status() (st action.RackStatus) {
	b.t.Helper()
	if err := b.Call(b.t.Context(), "rack_status", nil, &st); err != nil {
		b.t.Fatal(err)
	}
	return st
}

// says tells whether the rack has a finding whose reason contains text.
func (b *bench) says(code, text string) bool {
	b.t.Helper()
	return slices.ContainsFunc(b.status().Findings, func(s action.Saying) bool { return s.Code == code && strings.Contains(s.Why, text) })
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
