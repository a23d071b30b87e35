package health

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestQuarantineEndsByItself(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	for _, d := range Presets() {
		if err := b.Quarantine(1, d, "lee", "back cover bulges"); err != nil {
			t.Fatalf("preset %v: %v", d, err)
		}
	}
	if err := b.Quarantine(1, 10*time.Minute, "lee", "back cover bulges"); err != nil {
		t.Fatal(err)
	}
	b.phones[1] = hung(1)
	b.pass(10*time.Minute - 5*time.Second)
	if b.state(1) != Quarantined || len(b.acts) != 0 || !b.has(1, "quarantined") {
		t.Errorf("%s, %v", b.state(1), b.acts)
	}
	b.pass(time.Minute)
	if b.state(1) != Recovering || len(b.acts) == 0 {
		t.Errorf("after it: %s, %v", b.state(1), b.acts)
	}
}

func TestQuarantineOfAPersonStaysWhenThePhoneIsWell(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	if err := b.Quarantine(1, 8*time.Hour, "lee", ""); err != nil {
		t.Fatal(err)
	}
	b.pass(7 * time.Hour)
	if b.state(1) != Quarantined {
		t.Errorf("it is %s", b.state(1))
	}
	if err := b.Release(1); err != nil || b.state(1) != Well {
		t.Errorf("after its release %s, %v", b.state(1), err)
	}
}

func TestQuarantineOfTheLadderEndsWhenHandsHaveHelped(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = gone(1)
	b.pass(20 * time.Minute)
	if b.state(1) != Quarantined {
		t.Fatalf("it is %s", b.state(1))
	}
	b.phones[1] = fine(1)
	b.pass(2 * time.Minute)
	if b.state(1) != Well {
		t.Errorf("it is well, and the slot is %s", b.state(1))
	}
}

func TestEachQuarantineOfTheLadderIsTwiceAsLongUntilThePhoneIsProvenWell(t *testing.T) {
	b := rack(t, 1, noPower)
	b.pass(time.Minute)
	b.phones[1] = gone(1)
	var lengths []time.Duration
	var before time.Duration
	next := func() time.Duration {
		t.Helper()
		for range 24 * 60 {
			b.pass(time.Minute)
			if st, _ := b.Status(1); st.State == Quarantined && st.Ends != before {
				before = st.Ends
				return (st.Ends - b.now).Round(10 * time.Minute)
			}
		}
		t.Fatal("no quarantine within a day")
		return 0
	}
	for range 3 {
		lengths = append(lengths, next())
	}
	if lengths[0] != 30*time.Minute || lengths[1] != time.Hour || lengths[2] != 2*time.Hour {
		t.Errorf("lengths %v", lengths)
	}
	b.phones[1] = fine(1)
	b.pass(b.conf.Ladder.ProvenAfter.of() + time.Minute)
	b.phones[1] = gone(1)
	if got := next(); got != 30*time.Minute {
		t.Errorf("after it was proven well: %v", got)
	}
}

// TestALongQuarantineStaysLong: twice as long again and again is more than a duration holds.
func TestALongQuarantineStaysLong(t *testing.T) {
	for _, level := range []int{1, 14, 16, 1 << 40} {
		b := rack(t, 1, noPower, func(b *bench) { b.conf.Quarantine = Quarantine{First: 48 * hour, Longest: 100 * hour} })
		b.pass(time.Minute)
		b.Keeper.phones["serial:S001"] = &quarantine{level: level}
		b.phones[1] = gone(1)
		b.pass(10 * time.Minute)
		if st, _ := b.Status(1); st.State != Quarantined || st.Ends-b.now < 95*time.Hour {
			t.Errorf("level %d: %s until %v", level, st.State, st.Ends)
		}
	}
}

func TestQuarantineSurvivesRestarts(t *testing.T) {
	for _, c := range []struct {
		name    string
		trusted bool          // before the restart
		after   bool          // and after it
		off     time.Duration // how long the board is off
		set     time.Duration // by how much the clock is wrong afterwards
		min     time.Duration // what is left at least
		max     time.Duration // and at most
	}{
		{"at once", true, true, time.Second, 0, 50 * time.Minute, 51 * time.Minute},
		{"half an hour later", true, true, 30 * time.Minute, 0, 20 * time.Minute, 21 * time.Minute},
		{"two hours later", true, true, 2 * time.Hour, 0, 0, 0},
		{"no clock afterwards: it never ends early", true, false, 2 * time.Hour, 0, time.Hour, time.Hour},
		{"no clock before", false, true, time.Minute, 0, time.Hour, time.Hour},
		{"the clock was set back by a year: it is not longer than it was", true, true, time.Minute, -365 * day, time.Hour, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 1)
			b.trusted = c.trusted
			b.pass(time.Minute)
			if err := b.Quarantine(1, time.Hour, "lee", "battery"); err != nil {
				t.Fatal(err)
			}
			b.pass(10 * time.Minute)
			b.trusted, b.wall = c.after, b.wall.Add(c.set)
			b.restart(c.off)
			st, _ := b.Status(1)
			left := st.Ends - b.now
			if st.Ends == 0 {
				left = 0
			}
			if left < c.min-time.Minute || left > c.max || (c.max > 0) != (st.State == Quarantined) {
				t.Errorf("%s, left %v", st.State, left)
			}
		})
	}
}

func TestAClockThatComesLaterDatesWhatWasRemembered(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = gone(1)
	b.pass(10 * time.Minute) // two port cycles
	b.trusted, b.phones[1] = false, fine(1)
	b.restart(25 * time.Hour)
	b.pass(time.Minute)
	if got := b.today(b.at(1), PortCycle, b.now); got != 2 {
		t.Errorf("without a clock %d port cycles count", got)
	}
	b.trusted = true
	b.pass(5 * time.Second)
	if got := b.today(b.at(1), PortCycle, b.now); got != 0 {
		t.Errorf("with the clock %d port cycles of yesterday count", got)
	}
}

func TestLengthsOutOfBoundsAreRefused(t *testing.T) {
	b := rack(t, 2)
	b.phones[2] = gone(2)
	b.pass(time.Minute)
	for _, d := range []time.Duration{0, -time.Hour, ShortestQuarantine - 1, LongestQuarantine + 1} {
		if err := b.Quarantine(1, d, "lee", ""); !errors.Is(err, ErrLength) {
			t.Errorf("%v: %v", d, err)
		}
	}
	if err := b.Quarantine(2, time.Hour, "lee", ""); !errors.Is(err, ErrNoPhone) {
		t.Errorf("an empty slot: %v", err)
	}
	b.memory.fault = errors.New("disk full")
	if err := b.Quarantine(1, time.Hour, "lee", ""); !errors.Is(err, b.memory.fault) || b.state(1) != Well {
		t.Errorf("what cannot be written down does not hold: %v, %s", err, b.state(1))
	}
}

// TestAPhoneDrainsNoLongerThanItsQuarantine, over a time in which the board was off: only its clock tells that it is over.
func TestAPhoneDrainsNoLongerThanItsQuarantine(t *testing.T) {
	for _, clock := range []bool{true, false} { // at once, or a minute after the start
		b := rack(t, 1)
		b.pass(time.Minute)
		b.phones[1] = hung(1)
		b.pass(15 * time.Minute) // quarantine for half an hour, power off
		b.acts, b.trusted = nil, clock
		b.restart(2 * time.Hour)
		b.FoundOff(1)
		b.pass(time.Minute)
		b.trusted = true
		b.pass(30 * time.Second)
		if !strings.HasPrefix(b.rungsOf(1), "wake") {
			t.Errorf("clock at once %v: its quarantine is over, and it is %s: %v", clock, b.state(1), b.acts)
		}
		if p := b.memory.kept.Phones["serial:S001"]; p.Left != 0 {
			t.Errorf("clock at once %v: remembered %+v", clock, p)
		}
	}
}

// TestAReleaseThatCannotBeWrittenDownReleasesNothing: neither the quarantine nor the power that it took.
func TestAReleaseThatCannotBeWrittenDownReleasesNothing(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = hung(1)
	b.pass(15 * time.Minute) // quarantine for half an hour, power off
	if !b.off[1] {
		t.Fatalf("it does not drain: %v", b.acts)
	}
	b.acts, b.memory.fault = nil, errors.New("disk full")
	if err := b.Release(1); !errors.Is(err, b.memory.fault) {
		t.Errorf("%v", err)
	}
	b.memory.fault = nil
	b.pass(10 * time.Minute)
	if b.state(1) != Quarantined || len(b.acts) != 0 {
		t.Errorf("it is %s: %v", b.state(1), b.acts)
	}
	if err := b.Release(1); err != nil {
		t.Error(err)
	}
	if d := b.memory.kept.Slots[1].Rest; d == nil || d.Left != 0 {
		t.Errorf("a release that holds, and a restart would keep the port dark: %+v", d)
	}
	b.pass(10 * time.Second)
	if b.rungsOf(1) != "wake" {
		t.Errorf("released: %v", b.acts)
	}
}

// TestAnOrderThatEndsWhileAReleaseIsRefusedKeepsItsWait: the disk may take its time to refuse.
func TestAnOrderThatEndsWhileAReleaseIsRefusedKeepsItsWait(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = offline(1)
	var given []Order
	b.helps = func(o Order) Outcome {
		given = append(given, o)
		return ""
	}
	for len(given) == 0 {
		b.pass(b.step)
	}
	b.memory.fault = errors.New("disk full")
	b.memory.meanwhile = func(Remembered) { b.Done(given[0], Failed) }
	if err := b.Release(1); !errors.Is(err, b.memory.fault) {
		t.Fatalf("%v", err)
	}
	b.memory.fault, b.memory.meanwhile = nil, nil
	if wait, want := b.at(1).ladder.at-b.now, b.conf.Ladder.step(given[0].Rung).Settle.of(); wait != want {
		t.Errorf("after %s the next act comes in %v, must wait %v", given[0].Rung, wait, want)
	}
	if is := b.at(1).ladder; is.tries != 1 || is.from != given[0].Rung {
		t.Errorf("its try does not count: %+v", is)
	}
}

// TestWhatEndedAQuarantineEndsItForTheNextStartToo: the phone hung, a person gave it its power, and it is well. Its port must not go
// dark again since rackd was restarted.
func TestWhatEndedAQuarantineEndsItForTheNextStartToo(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = hung(1)
	b.pass(15 * time.Minute) // quarantine for half an hour, power off
	if !b.off[1] {
		t.Fatalf("it does not drain: %v", b.acts)
	}
	b.phones[1], b.off[1] = fine(1), false
	b.Lit(1)
	b.pass(5 * time.Minute)
	if b.state(1) != Well {
		t.Fatalf("helped, it is %s", b.state(1))
	}
	b.acts = nil
	b.restart(0)
	b.pass(5 * time.Minute)
	if b.state(1) != Well || len(b.acts) != 0 {
		t.Errorf("after a restart it is %s: %v", b.state(1), b.acts)
	}
}
