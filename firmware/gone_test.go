package firmware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/status"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/usb/bus"
	"phonerack/usb/phonesim"
)

// saidWithin is how soon the page says that phones have left. What is held to it does not run beside other tests.
const saidWithin = 2 * time.Second

// unhurried looks as often as a rack does by itself.
func unhurried(o *firmware.Options) {
	o.CareInterval = 0
	o.Config.Health.Probe.Interval = health.Duration(30 * time.Second)
}

// saysGone waits until the page says that slots have no phone, reading it only when its stream tells of a change, as a browser does,
// and gives when that was. Both the page of the rack and those of the slots have to, as JSON and as HTML, and words have to be on
// the latter.
func (v *visitor) saysGone(changes <-chan time.Time, words []string, slots ...int) time.Time {
	v.t.Helper()
	missing := "a change"
	for end := time.After(20 * time.Second); ; {
		select {
		case <-changes:
		case <-end:
			v.t.Fatalf("the page does not say that the phones have left: it lacks %s", missing)
		}
		if missing = v.lacks(words, slots); missing == "" {
			return time.Now()
		}
	}
}

// lacks names what the page does not say yet; "" if nothing.
func (v *visitor) lacks(words []string, slots []int) string {
	v.t.Helper()
	var snap status.Snapshot
	if err := json.Unmarshal([]byte(v.get("/")), &snap); err != nil {
		v.t.Fatal(err)
	}
	_, rack := v.ask("GET", "/", "", true)
	for _, n := range slots {
		if s := snap.Slots[n-1]; s.Phone != nil || s.State == health.Well {
			return fmt.Sprintf("slot %d as JSON: %s, %+v", n, s.State, s.Phone)
		}
		if !strings.Contains(rack, fmt.Sprintf(`id="s-%d"`, n)) || strings.Contains(rack, fmt.Sprintf(`s-well" id="s-%d"`, n)) {
			return fmt.Sprintf("slot %d on the rack's page", n)
		}
		_, page := v.ask("GET", fmt.Sprint("/slot/", n), "", true)
		for _, want := range append([]string{"no phone is known", "the phone left"}, words...) {
			if !strings.Contains(page, want) || strings.Contains(page, "The phone in slot "+fmt.Sprint(n)+" answers.") {
				return fmt.Sprintf("%q on the page of slot %d", want, n)
			}
		}
	}
	return ""
}

// TestThePageSaysSoWithin2sWhenAHubsLineTakesItsPhonesAway: a closed loop over the line, with the times of a rack that nobody hurries.
func TestThePageSaysSoWithin2sWhenAHubsLineTakesItsPhonesAway(t *testing.T) {
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR"}})
	kernel.Preset("HUB1_PWR", true)
	serve, v := withPage(t, io.Discard)
	c := newCable()
	b := newUSBBench(t, c, onBoard(t, lineBoard), serve, func(o *firmware.Options) { o.GPIO, o.Hubs = kernel, still{} })
	phones := map[*simPhone]bus.Device{}
	for path, serial := range map[string]string{"1-1.1": "SIM0001", "1-1.2": "SIM0002"} {
		p := newSimPhone(t, "", serial, 14, phonesim.Auth{})
		phones[p] = c.plug(path, len(phones)+5, p, serial)
	}
	b.health(1, health.Well)
	b.health(2, health.Well)
	var left time.Time
	var loop, asked sync.WaitGroup
	asking, goAway := context.WithCancel(t.Context())
	defer asked.Wait()
	defer goAway()
	loop.Go(func() { // phones without power leave the bus
		for kernel.State("HUB1_PWR") != gpiotest.Low && t.Context().Err() == nil {
			time.Sleep(2 * time.Millisecond)
		}
		left = time.Now()
		for p, d := range phones {
			p.Unplug()
			c.events <- bus.Event{Kind: bus.Removed, Device: d}
		}
	})
	changes := v.stream()
	<-changes         // what it begins with
	asked.Go(func() { // takes longer: the supply watches what comes of it
		if err := b.Call(asking, "power_off", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}, Hub: true}, nil); err != nil && asking.Err() == nil {
			t.Error(err)
		}
	})
	said := v.saysGone(changes, []string{"power off", "A person has switched slot"}, 1, 2)
	loop.Wait()
	took := said.Sub(left)
	if took > saidWithin {
		t.Errorf("the page said so after %v", took)
	}
	t.Logf("phones of a hub's line: on the page %v after they left", took.Round(time.Millisecond))
}

// TestWhoIsThereWhenPowerIsTaken: a phone has left with its link, although the kernel lists it for a second more on a loaded
// board; taken for back, it made a good hub one whose power comes back by itself. One that is slow to answer has not left.
func TestWhoIsThereWhenPowerIsTaken(t *testing.T) {
	t.Parallel()
	c := newCable()
	b := newUSBBench(t, c)
	p := newSimPhone(t, "", "SIM0001", 14, phonesim.Auth{})
	d := c.plug("1-1.1", 5, p, "SIM0001")
	there := func() bool { return len(firmware.PresentOn(b.rack, 1)) == 1 }
	b.within("the phone is there", there)
	b.within("it is ready", func() bool { return b.state(1).State == action.Ready })
	p.SetFaults(phonesim.Faults{Hang: true})
	if !there() {
		t.Error("a phone that does not answer has not left")
	}
	p.Unplug()
	b.within("the link has ended", func() bool { return b.state(1).State != action.Ready })
	if there() {
		t.Error("a phone whose link has ended has left")
	}
	p.SetFaults(phonesim.Faults{})
	c.events <- bus.Event{Kind: bus.Removed, Device: d}
	c.plug("1-1.1", 6, p, "SIM0001")
	b.within("it is there again", there)
}

// TestAHubIsCycledFromThePage: where lines feed hubs that is all that a technician's power can do, also for a hub that a person has
// switched off.
func TestAHubIsCycledFromThePage(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR"}})
	kernel.Preset("HUB1_PWR", true)
	serve, v := withPage(t, io.Discard)
	b := newUSBBench(t, newCable(), onBoard(t, lineBoard), serve, func(o *firmware.Options) { o.GPIO, o.Hubs = kernel, still{} })
	v.signIn("kim")
	if code, body := v.act("power_cycle", 1); code != http.StatusConflict || !strings.Contains(body, "cannot be switched by itself") {
		t.Errorf("a port that is fed by its hub alone: %d %s", code, body)
	}
	if err := b.Call(t.Context(), "power_off", action.PowerArgs{SlotArgs: action.SlotArgs{Slot: 1}, Hub: true}, nil); err != nil {
		t.Fatal(err)
	}
	if s, _ := v.slot(2); s.Fed != "A" || s.Power != status.PowerOff || s.Main.Code != "dark" {
		t.Errorf("a slot of a hub that is off: %+v", s)
	}
	if code, body := v.act("hub_cycle", 2); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	b.within("the hub has its power", func() bool { return kernel.State("HUB1_PWR") == gpiotest.High })
	b.within("nobody has it switched off any more", func() bool {
		s, _ := v.slot(1)
		return s.Power == status.PowerOn && s.Main.Code != "dark"
	})
}

// TestThePageSaysSoWithin2sWhenItsOwnCycleTakesAPhoneAway: asked for on the page itself, with the PIN.
func TestThePageSaysSoWithin2sWhenItsOwnCycleTakesAPhoneAway(t *testing.T) {
	serve, v := withPage(t, io.Discard)
	b, ports := newPorts(t, nil, onBoard(t, usbBoard+"[[hub]]\nname = \"A\"\npath = \"1-1\"\npower = \"ports\"\n"), serve, unhurried, cutting, func(o *firmware.Options) {
		o.Config.Health.Ladder.OffTime = health.Duration(4 * time.Second) // so that it is not over before it is seen
	})
	b.health(1, health.Well)
	b.health(2, health.Well)
	v.signIn("kim")
	changes := v.stream()
	<-changes
	var pressed sync.WaitGroup
	pressed.Go(func() {
		if code, body := v.act("power_cycle", 1); code != http.StatusOK {
			t.Errorf("%d %s", code, body)
		}
	})
	defer pressed.Wait()
	began := time.Now() // the phone leaves after this
	took := v.saysGone(changes, []string{"is being switched off and on", "has just left USB"}, 1).Sub(began)
	if took > saidWithin {
		t.Errorf("the page said so after %v", took)
	}
	t.Logf("a phone whose port is cycled: on the page %v after the button was pressed", took.Round(time.Millisecond))
	b.within("the power is back", func() bool { return ports[1].switched() == "false true" })
	if got := ports[2].switched(); got != "" {
		t.Errorf("the neighbour's port was switched %s", got)
	}
}
