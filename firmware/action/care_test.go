package action_test

import (
	"strings"
	"testing"
	"time"

	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

func TestWhatPeopleDoAboutSlots(t *testing.T) {
	b := newBench()
	for _, c := range []struct{ name, args, want string }{
		{"power_off", `{"slot":1}`, "power 1 hub false on false"},
		{"power_on", `{"slot":1,"hub":true}`, "power 1 hub true on true"},
		{"power_cycle", `{"slot":2}`, "cycle 2 hub false"},
		{"quarantine", `{"slot":1,"seconds":600,"reason":"swollen"}`, "quarantine 1 for 10m0s by lee because swollen"},
		{"quarantine", `{"slot":1}`, "quarantine 1 for 1h0m0s by lee because "},
		{"quarantine_end", `{"slot":1}`, "end quarantine 1"},
		{"maintenance", `{}`, "maintenance 0 true"},
		{"maintenance", `{"slot":2,"off":true}`, "maintenance 2 false"},
		{"identify", `{"seconds":9}`, "identify 0 for 9s"},
		{"identify", `{"slot":1}`, "identify 1 for 4s"},
		{"sign", `{}`, "sign 0 for 2m0s"},
		{"sign", `{"slot":2,"seconds":9}`, "sign 2 for 9s"},
		{"sign_end", `{}`, "end sign 0"},
		{"reboot", `{"slot":1}`, "reboot 1"},
		{"slot_retry", `{"slot":1}`, "retry 1"},
		{"slot_forget", `{"slot":2}`, "forget 2"},
	} {
		if _, err := b.call("lee", c.name, c.args); err != nil {
			t.Errorf("%s %s: %v", c.name, c.args, err)
		}
		if !strings.HasSuffix(b.rack.Log(), c.want) {
			t.Errorf("%s %s did %q, want %q", c.name, c.args, b.rack.Log(), c.want)
		}
	}
	for _, c := range []struct {
		name, args string
		code       wire.Code
	}{
		{"power_off", `{"slot":9}`, wire.SlotUnknown},
		{"quarantine", `{"slot":9}`, wire.SlotUnknown},
		{"quarantine", `{"slot":1,"seconds":604801}`, wire.BadRequest},
		{"maintenance", `{"slot":9}`, wire.SlotUnknown},
		{"identify", `{"seconds":601}`, wire.BadRequest},
		{"sign", `{"slot":9}`, wire.SlotUnknown},
		{"sign", `{"seconds":601}`, wire.BadRequest},
		{"sign_end", `{"slot":9}`, wire.SlotUnknown},
		{"reboot", `{"slot":2}`, wire.SlotEmpty},
		{"screenshot", `{"slot":2}`, wire.SlotEmpty},
		{"slots", `{"lang":"xx"}`, wire.BadRequest},
	} {
		if _, err := b.call("lee", c.name, c.args); !wire.Is(err, c.code) {
			t.Errorf("%s %s: %v, want %s", c.name, c.args, err, c.code)
		}
	}
	if out, err := b.call("lee", "slots", `{"lang":"zh"}`); err != nil || !strings.Contains(out, "phone hangs in zh") {
		t.Errorf("slots: %s, %v", out, err)
	}
}

// TestPowerNeedsQuiet: the power of a hub is nobody's while anybody else has one of its phones.
func TestPowerNeedsQuiet(t *testing.T) {
	b := newBench()
	if _, err := b.leases.Acquire(2, lease.Holder{Kind: lease.Hold, Who: "kim"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"power_on", "power_off", "power_cycle"} {
		if _, err := b.call("lee", name, `{"slot":1,"hub":true}`); !wire.Is(err, wire.SlotBusy) {
			t.Errorf("%s of the hub: %v", name, err)
		}
	}
	if log := b.rack.Log(); log != "" {
		t.Errorf("something was switched: %s", log)
	}
	if _, err := b.call("lee", "power_cycle", `{"slot":1}`); err != nil {
		t.Errorf("the port of a slot that nobody has: %v", err)
	}
	if _, err := b.call("kim", "power_cycle", `{"slot":1,"hub":true}`); err != nil {
		t.Errorf("the hub, for its holder: %v", err)
	}
	if _, held := b.leases.Lookup(1); held {
		t.Error("an act kept a lease")
	}
}
