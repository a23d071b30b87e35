package health

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNothingHarmsThatIsWellOrLeased lets phones fall ill and come back as they like, people lease and hold slots, and
// orders succeed, fail, are refused or are never reported on, over restarts with and without a clock. More of it:
// -rapid.checks=10000.
func TestNothingHarmsThatIsWellOrLeased(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const slots = 8
		b := rack(t, slots, models("Pixel"), windows)
		b.step = 30 * time.Second
		leased, held := map[int]bool{}, map[int]bool{}
		type act struct {
			key string
			at  time.Time
		}
		var given []act
		busy := map[string]time.Duration{} // until when a hub is taken at the latest
		check := func(o Order) Outcome {
			s := b.at(o.Slot)
			switch until, taken := busy[o.Hub]; {
			case taken && b.now <= until:
				rt.Fatalf("two orders at a time on hub %s: %+v", o.Hub, o)
			case leased[o.Slot] || held[o.Slot] || held[0]:
				rt.Fatalf("%s on a slot that is leased or in maintenance: %+v", o.Rung, o)
			case o.Rung.ladder() && s.seen.is == Fine:
				rt.Fatalf("%s on a phone that was well at the last look", o.Rung)
			case o.Rung.ladder() && b.quarantineOf(s) != nil:
				rt.Fatalf("%s on a phone in quarantine", o.Rung)
			}
			key, most := fmt.Sprint(o.Rung, " of slot ", o.Slot), b.conf.Ladder.PortCycle.PerDay
			if o.Rung.ladder() {
				most = b.conf.Ladder.step(o.Rung).PerDay
			}
			if o.Rung == HubCycle {
				key = fmt.Sprint(o.Rung, " of ", o.Hub)
				lost := 0
				for _, other := range s.hub.slots {
					if leased[other.Slot] {
						rt.Fatalf("the hub of leased slot %d is cycled", other.Slot)
					}
					if other.confirmed.lost() {
						lost++
					}
				}
				if lost < 2 {
					rt.Fatalf("a hub is cycled for %d slots", lost)
				}
			}
			how := rapid.SampledFrom([]Outcome{Done, Done, Failed, Refused, ""}).Draw(rt, "outcome")
			if how != Refused && o.Rung >= Reset && o.Rung.ladder() {
				n := 1
				for _, a := range given {
					if a.key == key && b.wall.Sub(a.at) < day {
						n++
					}
				}
				if n > most {
					rt.Fatalf("%s for the %dth time in a day", key, n)
				}
				given = append(given, act{key, b.wall})
			}
			if how == "" {
				busy[o.Hub] = b.now + orderBound
			}
			return how
		}
		b.helps = check
		kinds := []func(int) func() Look{fine, fine, hung, offline, gone, func(n int) func() Look { return with(n, func(l *Look) { l.Greet = GreetAsked }) }}
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			n := rapid.IntRange(1, slots).Draw(rt, "slot")
			switch rapid.IntRange(0, 7).Draw(rt, "event") {
			case 0, 1, 2:
				b.phones[n] = rapid.SampledFrom(kinds).Draw(rt, "kind")(n)
			case 3:
				leased[n] = !leased[n]
				b.Leased(n, leased[n])
			case 4:
				if n == slots {
					n = 0
				}
				held[n] = !held[n]
				b.Maintain(n, held[n])
			case 5:
				b.Battery(n, charge(rapid.IntRange(1, 100).Draw(rt, "level"), rapid.IntRange(250, 400).Draw(rt, "heat")))
			case 6:
				b.trusted = rapid.Bool().Draw(rt, "clock")
				b.restart(time.Duration(rapid.IntRange(1, 36).Draw(rt, "hours off")) * time.Hour)
				clear(busy)
				for n := range leased {
					leased[n] = false
				}
				for n := range held {
					held[n] = false
				}
			case 7:
				b.Retry(n)
			}
			for range rapid.IntRange(1, 4).Draw(rt, "minutes") {
				b.pass(5 * time.Minute)
			}
		}
		for _, st := range b.All() {
			if _, known := b.Count()[st.State]; !known {
				rt.Fatalf("state %q", st.State)
			}
		}
	})
}
