//go:build rig

package hardwarerig_test

import (
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

// rises are the moments at which a lamp came on.
func rises(all []rig.Change, lamp int) (at []time.Time) {
	for _, c := range all {
		if c.Line == lamp && c.On {
			at = append(at, c.At)
		}
	}
	return at
}

// about tells whether something took as long as it should on a processor that is emulated.
func about(d, should time.Duration) bool {
	return d > should*6/10 && d < should*16/10
}

// run is the longest run of rises that follow each other after a time, in number.
func run(at []time.Time, every time.Duration) int {
	longest, now := 0, 1
	for i := 1; i < len(at); i++ {
		if now++; !about(at[i].Sub(at[i-1]), every) {
			now = 1
		}
		longest = max(longest, now)
	}
	return longest
}

// identify: green and red in turn, 1/4 s each.
func identify(all []rig.Change) bool {
	greens, reds := rises(all, green), rises(all, red)
	if run(greens, 500*time.Millisecond) < 4 || run(reds, 500*time.Millisecond) < 4 {
		return false
	}
	turns := 0
	for i := 1; i < len(all); i++ {
		if all[i].On && all[i-1].Line != all[i].Line && !all[i-1].On { // one goes off, then the other comes on
			turns++
		}
	}
	return turns >= 6
}

// fast: short red flashes without a pause, almost 3 a second.
func fast(all []rig.Change) bool { return run(rises(all, red), 340*time.Millisecond) >= 6 }

// threeFlashes: three of them, red, and a pause.
func threeFlashes(all []rig.Change) bool {
	at := rises(all, red)
	for i := 1; i+3 < len(at); i++ {
		if about(at[i].Sub(at[i-1]), 1400*time.Millisecond) && about(at[i+1].Sub(at[i]), 400*time.Millisecond) &&
			about(at[i+2].Sub(at[i+1]), 400*time.Millisecond) && about(at[i+3].Sub(at[i+2]), 1400*time.Millisecond) {
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
