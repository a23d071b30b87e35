package health

import (
	"strings"
	"testing"
	"time"
)

// TestHubsThatLieAreNamedAndNotReliedOn: power is left out of the ladder for each lie, the other rungs are used, and a port
// that was found to switch after all is used again.
func TestHubsThatLieAreNamedAndNotReliedOn(t *testing.T) {
	for _, l := range []Lie{NoEffect, DataOnly, Repowers, ResetsHub} {
		t.Run(string(l), func(t *testing.T) {
			b := rack(t, 1)
			b.pass(time.Minute)
			b.Switchable(1, l)
			if code := "port_" + string(l); b.state(1) != Attention || !b.has(1, code) {
				t.Errorf("%s, and not %s", b.state(1), code)
			}
			b.phones[1] = hung(1)
			b.pass(time.Hour)
			if rungs := b.rungsOf(1); strings.Contains(rungs, "port_cycle") || strings.Contains(rungs, "rest") || !strings.Contains(rungs, "reboot") || b.state(1) != Quarantined {
				t.Errorf("it is %s after %s", b.state(1), rungs)
			}
			b.Switchable(1, Truthful)
			b.Retry(1)
			if err := b.Release(1); err != nil {
				t.Fatal(err)
			}
			b.pass(time.Hour)
			if rungs := b.rungsOf(1); !strings.Contains(rungs, "port_cycle") || b.has(1, "port_"+string(l)) {
				t.Errorf("after a check that found it to switch: %s", rungs)
			}
		})
	}
}

func TestAHubThatLiesIsNamedAndNotCycled(t *testing.T) {
	for _, l := range []Lie{NoEffect, DataOnly, Repowers} {
		b := rack(t, 2, func(b *bench) {
			for i := range b.places {
				b.places[i].PortPower = false
			}
		})
		b.HubSwitchable(1, l)
		if all := b.Hubs(); codes(all) != "hub_"+string(l) || all[0].Args["hub"] != "1-1" {
			t.Errorf("%s: %v", l, all)
		}
		b.phones[1], b.phones[2] = hung(1), hung(2)
		b.pass(time.Hour)
		if rungs := b.rungsOf(1) + b.rungsOf(2); strings.Contains(rungs, "hub_cycle") {
			t.Errorf("%s: %s", l, rungs)
		}
		b.HubSwitchable(2, Truthful)
		if all := b.Hubs(); len(all) > 0 {
			t.Errorf("%s, found to switch: %v", l, all)
		}
	}
}
