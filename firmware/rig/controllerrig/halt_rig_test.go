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
	number, before := map[int]string{}, map[int]string{}
	for n, s := range b.until(t, "all slots are well", func(all map[int]action.SlotHealth) bool { return well(all, 1, 2, 3) }) {
		number[n], before[n] = b.number(t, ports[n]), acts(s)
		b.heard[n].since()
	}
	since := func(all map[int]action.SlotHealth, n int) string {
		return strings.TrimPrefix(strings.TrimPrefix(acts(all[n]), before[n]), ", ")
	}
	b.phones[1].USB.SetFaults(phonesim.Faults{FailIn: phonesim.Stall, FailCount: 1})
	b.phones[3].USB.SetFaults(phonesim.Faults{FailOut: phonesim.Stall, FailCount: 1})
	b.phones[2].USB.SetFaults(phonesim.Faults{FailIn: phonesim.Stall})
	all := b.until(t, "two phones are well again, and the third loses its power", func(all map[int]action.SlotHealth) bool {
		return well(all, 1, 3) && since(all, 1) != "" && since(all, 3) != "" && strings.Contains(since(all, 2), "port_cycle")
	})
	b.phones[2].USB.SetFaults(phonesim.Faults{})

	for n, endpoint := range map[int]string{1: "81", 3: "01"} {
		if got := since(all, n); !cleared(got) {
			t.Errorf("slot %d: the ladder did %s", n, got)
		}
		if clears, resets := b.heard[n].since(); !slices.Equal(clears, []string{endpoint}) || resets > 0 {
			t.Errorf("slot %d: the halts of endpoints %v were cleared, want %s, and the port was reset %d times", n, clears, endpoint, resets)
		}
		if now := b.number(t, ports[n]); now != number[n] {
			t.Errorf("slot %d: the phone was device %s and is device %s", n, number[n], now)
		}
	}
	if first, _, _ := strings.Cut(since(all, 2), ", port_cycle"); !cleared(first) {
		t.Errorf("slot 2: the ladder did %s", since(all, 2))
	}
	if clears, _ := b.heard[2].since(); !slices.Equal(clears, []string{"81"}) {
		t.Errorf("slot 2: the halts of endpoints %v were cleared, want 81", clears)
	}
	b.honest(t)
}

// cleared tells whether the ladder has cleared a halt, after milder acts only. It begins with a later one for a phone that was ill
// just before, as a slow machine's are at the start.
func cleared(acts string) bool {
	return strings.HasSuffix(acts, "clear_halt done") && strings.HasSuffix("reopen done, resync done, clear_halt done", acts)
}
