//go:build rig

package hardwarerig_test

import (
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/hal/led"
)

// lamps picks the changes of the two lamps.
func lamps(c rig.Change) bool { return c.Line == green || c.Line == red }

// shows waits until the light has shown a pattern (docs/led.md).
func (b *bench) shows(t *testing.T, pattern func([]rig.Change) bool) {
	t.Helper()
	began := time.Now()
	for end := began.Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		all := b.relays.Changes(lamps)
		for len(all) > 0 && all[0].At.Before(began) {
			all = all[1:]
		}
		if pattern(all) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the light does not show it:\n%v", all)
		}
	}
}

// rises are the changes by which a lamp came on.
func rises(all []rig.Change) (on []rig.Change) {
	for _, c := range all {
		if c.On {
			on = append(on, c)
		}
	}
	return on
}

// about tells whether something took as long as it should on a processor that is emulated.
func about(d, should time.Duration) bool {
	return d > should*6/10 && d < should*16/10
}

// run is the longest run of rises in which each follows the one before as it should, in number.
func run(on []rig.Change, follows func(before, now rig.Change) bool) int {
	longest, length := 0, 1
	for i := 1; i < len(on); i++ {
		if length++; !follows(on[i-1], on[i]) {
			length = 1
		}
		longest = max(longest, length)
	}
	return longest
}

// identify: green and red in turn, 1/4 s each.
func identify(all []rig.Change) bool {
	return run(rises(all), func(before, now rig.Change) bool {
		return now.Line != before.Line && about(now.At.Sub(before.At), 250*time.Millisecond)
	}) >= 8
}

// fast: short red flashes without a pause, almost 3 a second.
func fast(all []rig.Change) bool {
	return run(rises(all), func(before, now rig.Change) bool {
		return before.Line == red && now.Line == red && about(now.At.Sub(before.At), 340*time.Millisecond)
	}) >= 6
}

// threeFlashes: three of them, red, and a pause, twice.
func threeFlashes(all []rig.Change) bool {
	const flash, pause = 400 * time.Millisecond, 1400 * time.Millisecond
	on, rhythm := rises(all), []time.Duration{pause, flash, flash, pause, flash, flash, pause}
	for first := range max(0, len(on)-len(rhythm)) {
		same := true
		for i, should := range rhythm {
			same = same && on[first+i+1].Line == red && about(on[first+i+1].At.Sub(on[first+i].At), should)
		}
		if same {
			return true
		}
	}
	return false
}

// dark waits until a light whose program has died while it was lit must be off, and sees whether the kernel has done that: the lamp
// that went off last had been lit for longer than rackd leaves one without setting it again.
func (b *bench) dark(t *testing.T, died time.Time) {
	t.Helper()
	time.Sleep(time.Until(died.Add(led.Grace + time.Second)))
	lit := map[int]time.Time{} // since when each is
	var last time.Duration     // that a lamp was lit
	for _, c := range b.relays.Changes(lamps) {
		if c.On {
			lit[c.Line] = c.At
			if c.At.After(died) {
				t.Errorf("a lamp came on after its program had died: %v", c)
			}
			continue
		}
		last = c.At.Sub(lit[c.Line])
		delete(lit, c.Line)
	}
	if len(lit) > 0 || last < led.Grace/2 {
		t.Errorf("still lit: %v; the last one that went off was lit for %v", lit, last)
	}
}

// TestPatternsAreToldApart: each judge of the light knows its own pattern of docs/led.md among all, with the jitter of an emulated
// processor.
func TestPatternsAreToldApart(t *testing.T) {
	type step struct {
		lamps string // g, r, both or none
		ms    int
	}
	repeat := func(n int, pause int, lamps string) (all []step) {
		for range n {
			all = append(all, step{lamps, 200}, step{"", 200})
		}
		all[len(all)-1].ms = pause
		return all
	}
	patterns := map[string][]step{
		"identify": {{"g", 250}, {"r", 250}}, "fault": {{"r", 100}, {"", 240}}, "updating": {{"gr", 1500}, {"", 300}},
		"a slot needs hands": repeat(2, 1200, "r"), "power": repeat(3, 1200, "r"), "no cloud": repeat(4, 1200, "gr"), "four red": repeat(4, 1200, "r"),
		"no identity": {{"gr", 1000}, {"", 300}, {"gr", 200}, {"", 1500}}, "recovering": {{"gr", 100}, {"", 2900}}, "well": {{"g", 3000}, {"", 100}},
	}
	for judge, judges := range map[string]func([]rig.Change) bool{"identify": identify, "fault": fast, "power": threeFlashes} {
		for name, steps := range patterns {
			var all []rig.Change
			at, lit := time.Now(), map[int]bool{}
			for i := range 60 {
				s := steps[i%len(steps)]
				for _, lamp := range []struct {
					line int
					on   bool
				}{{green, strings.Contains(s.lamps, "g")}, {red, strings.Contains(s.lamps, "r")}} {
					if lamp.on != lit[lamp.line] {
						lit[lamp.line] = lamp.on
						all = append(all, rig.Change{At: at, Line: lamp.line, On: lamp.on})
					}
				}
				at = at.Add(time.Duration(s.ms+i*7%30) * time.Millisecond)
			}
			if got := judges(all); got != (judge == name) {
				t.Errorf("the judge of %s says %v to %s", judge, got, name)
			}
		}
	}
}
