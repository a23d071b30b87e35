//go:build rig

package controllerrig_test

import (
	"slices"
	"strings"
	"testing"

	"phonerack/firmware/action"
	"phonerack/usb/phonesim"
)

// haltCleared halts an endpoint of each phone: the one that it sends with, at full speed; the one that it hears with, at high
// speed; and one that halts again as soon as it is cleared. A simulated phone answers STALL until CLEAR_FEATURE has come to it.
func haltCleared(t *testing.T, b *bench) {
	before := map[int]string{}
	for n, port := range ports {
		before[n] = b.number(t, port)
		b.heard[n].since()
	}
	b.phones[1].USB.SetFaults(phonesim.Faults{FailIn: phonesim.Stall, FailCount: 1})
	b.phones[3].USB.SetFaults(phonesim.Faults{FailOut: phonesim.Stall, FailCount: 1})
	b.phones[2].USB.SetFaults(phonesim.Faults{FailIn: phonesim.Stall})

	const helped = "reopen done, resync done, clear_halt done"
	all := b.until(t, "the phone that halts again loses its power", func(all map[int]action.SlotHealth) bool {
		return strings.Contains(acts(all[2]), "port_cycle")
	})
	b.phones[2].USB.SetFaults(phonesim.Faults{})
	if got := acts(all[2]); !strings.HasPrefix(got, helped+", port_cycle") {
		t.Errorf("slot 2: the ladder did %s", got)
	}
	all = b.until(t, "all slots are well again", func(all map[int]action.SlotHealth) bool {
		return well(all, 1, 2, 3) && acts(all[1]) != "" && acts(all[3]) != ""
	})
	for n, endpoint := range map[int]string{1: "81", 3: "01"} {
		if got := acts(all[n]); got != helped {
			t.Errorf("slot %d: the ladder did %s, want %s", n, got, helped)
		}
		if clears, resets := b.heard[n].since(); !slices.Equal(clears, []string{endpoint}) || resets > 0 {
			t.Errorf("slot %d: the halts of endpoints %v were cleared, want %s, and the port was reset %d times", n, clears, endpoint, resets)
		}
		if now := b.number(t, ports[n]); now != before[n] {
			t.Errorf("slot %d: the phone was device %s and is device %s", n, before[n], now)
		}
	}
	if clears, resets := b.heard[2].since(); !slices.Equal(clears, []string{"81"}) || resets == 0 {
		t.Errorf("slot 2: the halts of endpoints %v were cleared, and the port was reset %d times", clears, resets)
	}
	b.honest(t)
}
