package firmware_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
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
