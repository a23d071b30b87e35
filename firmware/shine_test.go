package firmware_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/hal/button"
	"phonerack/hal/gpio/gpiotest"
	"phonerack/hal/led"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

// TestTheLightShowsHowTheRackIs: each finding of the controller has the light that docs/health.md gives it, and slots have theirs, the
// most urgent first.
func TestTheLightShowsHowTheRackIs(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR", "GREEN"}})
	kernel.Preset("HUB1_PWR", true)
	c := newCable()
	b := newUSBBench(t, c, hasty, onBoard(t, lineBoard+"[[led]]\nname = \"rack\"\nlight = { line = \"GREEN\" }\n"), func(o *firmware.Options) {
		o.GPIO, o.Hubs = kernel, still{}
		o.Config.Bundle = wire.Bundle{V: 1, Rack: "r1", Tenant: "acme", Bearer: "b", KID: "k1", MACSecret: base64.StdEncoding.EncodeToString(make([]byte, wire.SecretBytes)), Broker: "tcp://127.0.0.1:9"}
		o.Config.Cloud.Identity, o.Config.Cloud.Broker = "identity.json", o.Config.Bundle.Broker
	})
	shows := func(want led.Condition, codes ...string) {
		t.Helper()
		var all []health.Finding
		for _, code := range codes {
			all = append(all, health.Finding{Code: code})
		}
		// Once more if a round of rackd's own came between.
		b.within(fmt.Sprintf("%v with %v", want, codes), func() bool { return firmware.ShownWith(b.rack, all) == want })
	}
	c.plug("1-1.1", 5, newSimPhone(t, "", "SIM0001", 14, phonesim.Auth{}), "SIM0001")
	b.health(1, health.Well)
	shows(led.Well)
	for code, want := range map[string]led.Condition{
		"clock_unset": led.Well, "clock_jumped": led.Well, "usb_full": led.Well, "hub_data_only": led.Well, "name_disputed": led.Well,
		"broker_lost": led.NoCloud, "under_voltage": led.Power, "hub_overload": led.Power, "hub_lost": led.Power,
		"database_recovered": led.Fault, "database_full": led.Fault, "disk_full": led.Fault, "disk_worn": led.Fault, "memory_low": led.Fault,
		"controller_hot": led.Fault, "service_crashing": led.Fault,
	} {
		shows(want, code)
	}
	for _, off := range []bool{false, true} {
		if err := b.Call(t.Context(), "maintenance", action.MaintenanceArgs{Off: off}, nil); err != nil {
			t.Fatal(err)
		}
		shows(map[bool]led.Condition{false: led.Recovering, true: led.Well}[off])
	}
	c.plug("1-1.2", 6, newSimPhone(t, "", "SIM0002", 14, phonesim.Auth{Required: true}), "SIM0002")
	b.health(2, health.NeedsHands)
	shows(led.NeedsHands)
	shows(led.NeedsHands, "broker_lost", "under_voltage")
	shows(led.Fault, "broker_lost", "disk_full")
}

// TestTheLightAndTheButtonOfABoard: hands at the rack need no computer for maintenance.
func TestTheLightAndTheButtonOfABoard(t *testing.T) {
	t.Parallel()
	kernel := gpiotest.New(gpiotest.Chip{Label: "pinctrl-bcm2711", Lines: []string{"HUB1_PWR", "GREEN", "BUTTON"}})
	kernel.Preset("HUB1_PWR", true)
	text := lineBoard + "[[led]]\nname = \"rack\"\nlight = { line = \"GREEN\" }\n[button]\nline = \"BUTTON\"\nactive_low = true\n"
	kernel.Drive("BUTTON", true)
	b := newUSBBench(t, newCable(), hasty, onBoard(t, text), func(o *firmware.Options) { o.GPIO, o.Hubs = kernel, still{} })
	maintenance := func() bool { return b.status().Maintenance }
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
