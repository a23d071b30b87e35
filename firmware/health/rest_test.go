package health

import (
	"strings"
	"testing"
	"time"
)

// TestWhatIsDarkOnPurposeStaysDarkOverARestart: for the time that was left, less what the board was off if there is a clock, and its
// power then comes back as any does.
func TestWhatIsDarkOnPurposeStaysDarkOverARestart(t *testing.T) {
	window := func(b *bench) { b.Battery(1, charge(80, 300)) }
	heat := func(b *bench) { b.Battery(1, charge(50, 380)) }
	hang := func(b *bench) {
		b.phones[1] = hung(1)
		for !b.off[1] && b.now < time.Hour {
			b.pass(b.step)
		}
	}
	for _, c := range []struct {
		name         string
		why          func(*bench)
		before, off  time.Duration // after it went dark; the board is off, 0 for a kill of rackd alone
		clock        bool          // before the restart and after it
		wanted       bool
		least, after time.Duration // after the restart
	}{
		{"a charge window, rackd is killed", window, time.Hour, 0, true, false, 2*time.Hour + 55*time.Minute, 3 * time.Hour},
		{"the same without a clock: what was left 10 minutes ago at most", window, time.Hour, 0, false, false, 2*time.Hour + 55*time.Minute, 3*time.Hour + 10*time.Minute},
		{"the board was off for an hour", window, time.Hour, time.Hour, true, false, 115 * time.Minute, 2 * time.Hour},
		{"the board was off for longer", window, time.Hour, 5 * time.Hour, true, false, 0, time.Minute},
		{"somebody wants the phone", window, time.Hour, 0, true, true, 0, time.Minute},
		{"heat", heat, 5 * time.Minute, 0, true, false, 9 * time.Minute, 10 * time.Minute},
		{"heat, and somebody wants the phone", heat, 5 * time.Minute, 0, true, true, 9 * time.Minute, 10 * time.Minute},
		{"a phone that hung drains", hang, 10 * time.Minute, 0, true, false, 19 * time.Minute, 20 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 2, windows)
			b.trusted = c.clock
			b.pass(time.Minute)
			c.why(b)
			b.pass(10 * time.Second)
			if !b.off[1] {
				t.Fatalf("it is not dark: %v", b.acts)
			}
			b.pass(c.before)
			b.acts = nil
			b.restart(c.off)
			b.FoundOff(1)
			b.Wanted(1, c.wanted)
			b.phones[1] = fine(1)
			since := b.now
			if b.pass(c.least); c.least > 0 && len(b.acts) > 0 {
				t.Errorf("it was switched before: %v", b.acts)
			}
			b.pass(c.after - c.least + time.Minute)
			if b.rungsOf(1) != "wake" || len(b.acts) != 1 {
				t.Fatalf("after %v: %v, %s", b.now-since, b.acts, b.state(1))
			}
			b.pass(time.Minute)
			if b.memory.kept.Slots[1].Rest != nil {
				t.Errorf("its record says that it is dark: %+v", b.memory.kept.Slots[1].Rest)
			}
		})
	}
}

// TestARestOfAnotherConfiguration lasts no longer than the one in force says.
func TestARestOfAnotherConfiguration(t *testing.T) {
	for name, change := range map[string]func(*Battery){
		"windows are off": func(b *Battery) { b.Windows = false },
		"a shorter rest":  func(b *Battery) { b.RestFor = Duration(time.Minute) },
	} {
		b := rack(t, 1, windows)
		b.pass(time.Minute)
		b.Battery(1, charge(80, 300))
		b.pass(time.Minute)
		change(&b.conf.Battery)
		b.acts = nil
		b.restart(0)
		b.FoundOff(1)
		b.pass(2 * time.Minute)
		if b.rungsOf(1) != "wake" {
			t.Errorf("%s: %v, %s", name, b.acts, b.state(1))
		}
	}
}

// TestACrashBetweenARecordAndItsSwitch: what is wanted of the port's power, which is stored after the record and before the switch,
// says which of both it is.
func TestACrashBetweenARecordAndItsSwitch(t *testing.T) {
	b := rack(t, 1, windows)
	b.pass(time.Minute)
	b.Battery(1, charge(80, 300))
	orders, err := b.Orders()
	if err != nil || len(orders) != 1 || orders[0].Rung != Rest || b.memory.kept.Slots[1].Rest == nil {
		t.Fatalf("an order to rest is not written down: %v, %v, %+v", orders, err, b.memory.kept.Slots[1])
	}
	before := b.memory.kept.Slots[1]
	b.restart(0) // the port is wanted on
	b.pass(time.Hour)
	if len(b.acts) != 0 || b.state(1) != Well || b.memory.kept.Slots[1].Rest != nil {
		t.Errorf("before the switch: %v, %s, remembered %+v", b.acts, b.state(1), b.memory.kept.Slots[1].Rest)
	}
	b.memory.kept.Slots[1] = before
	b.off[1] = true
	b.restart(0)
	b.FoundOff(1)
	b.pass(2 * time.Hour)
	if len(b.acts) != 0 || b.state(1) != Resting {
		t.Errorf("after it: %v, %s", b.acts, b.state(1))
	}
}

// TestAPortThatNobodyKnowsTheReasonOf has no power before its slot was looked at; looks that do not come darken it not for good.
func TestAPortThatNobodyKnowsTheReasonOf(t *testing.T) {
	for _, looked := range []bool{true, false} {
		b := rack(t, 1)
		b.quiet[1], b.off[1] = !looked, looked
		b.FoundOff(1)
		if orders, err := b.Orders(); err != nil || len(orders) != 0 {
			t.Errorf("before any look: %v, %v", orders, err)
		}
		b.pass(2 * time.Minute)
		if got, want := b.rungsOf(1), map[bool]string{true: "wake"}[looked]; got != want {
			t.Errorf("looked at %v: after 2 minutes %q", looked, got)
		}
		b.pass(2 * time.Minute)
		if got := b.rungsOf(1); got != "wake" {
			t.Errorf("looked at %v: after 4 minutes %q", looked, got)
		}
	}
}

// TestARestartEndsNoChargeHalfWay, nor the pause of what is hot.
func TestARestartEndsNoChargeHalfWay(t *testing.T) {
	b := rack(t, 2, windows)
	b.pass(time.Minute)
	b.Battery(1, charge(30, 300))
	b.Leased(2, true)
	b.Battery(2, charge(30, 380))
	b.pass(time.Minute)
	b.restart(0)
	b.pass(time.Minute)
	if st, _ := b.Status(2); !st.Paused || !b.has(2, "battery_hot") {
		t.Errorf("what was hot: %+v", st)
	}
	b.Battery(1, charge(45, 300))
	b.pass(time.Minute)
	if strings.Contains(b.rungsOf(1), "rest") {
		t.Errorf("45 percent, charged from 30: %v", b.acts)
	}
	b.Battery(1, charge(60, 300))
	b.pass(time.Minute)
	if b.rungsOf(1) != "rest" {
		t.Errorf("60 percent: %v", b.acts)
	}
}

// TestTheRecordOfAPortThatHasItsPowerIsNotWrittenAgainAndAgain: one that was written without a clock, of a port that a crash left on.
func TestTheRecordOfAPortThatHasItsPowerIsNotWrittenAgainAndAgain(t *testing.T) {
	b := rack(t, 1, windows)
	b.trusted = false
	b.pass(time.Minute)
	b.Battery(1, charge(80, 300))
	if orders, err := b.Orders(); err != nil || len(orders) != 1 || orders[0].Rung != Rest {
		t.Fatal(orders, err)
	}
	b.restart(0) // the port is wanted on
	b.pass(time.Minute)
	b.trusted = true
	b.pass(time.Minute)
	before := len(b.memory.saves)
	if b.pass(time.Hour); len(b.memory.saves) > before+1 {
		t.Errorf("within an hour the record was written %d times", len(b.memory.saves)-before)
	}
}

// TestRestartsWithoutAClockDoNotKeepAPortDarkForGood: each goes on with what is left by then.
func TestRestartsWithoutAClockDoNotKeepAPortDarkForGood(t *testing.T) {
	b := rack(t, 1, windows)
	b.trusted = false
	b.pass(time.Minute)
	b.Battery(1, charge(80, 300))
	b.pass(10 * time.Second)
	if !b.off[1] {
		t.Fatalf("it is not dark: %v", b.acts)
	}
	for range 13 { // 6.5 h
		b.pass(30 * time.Minute)
		b.restart(0)
		if b.off[1] {
			b.FoundOff(1)
		}
	}
	if b.off[1] {
		t.Errorf("a port that rests for %v is dark after 6.5 h: %+v", b.conf.Battery.RestFor, b.memory.kept.Slots[1].Rest)
	}
}

// TestRestartsWithoutAClockEndAQuarantine, and with it what a phone that hung drains for.
func TestRestartsWithoutAClockEndAQuarantine(t *testing.T) {
	b := rack(t, 1)
	b.trusted = false
	b.phones[1] = hung(1)
	for !b.off[1] && b.now < time.Hour {
		b.pass(b.step)
	}
	b.phones[1] = fine(1)
	for range 10 { // 200 minutes; it has 30
		b.pass(20 * time.Minute)
		b.restart(0)
		if b.off[1] {
			b.FoundOff(1)
		}
	}
	if b.pass(5 * time.Minute); b.off[1] || b.state(1) != Well {
		t.Errorf("without power: %v, %s, %+v", b.off[1], b.state(1), b.memory.kept)
	}
}

// TestWhatAPersonHasEndedNoClockDarkensAgain: a phone that drains is released before the board has a clock, which then is one set back.
func TestWhatAPersonHasEndedNoClockDarkensAgain(t *testing.T) {
	b := rack(t, 1)
	b.phones[1] = hung(1)
	for !b.off[1] && b.now < time.Hour {
		b.pass(b.step)
	}
	b.trusted = false
	b.restart(time.Second)
	b.FoundOff(1)
	b.pass(time.Minute)
	if b.state(1) != Quarantined {
		t.Fatalf("it is %s: %v", b.state(1), b.acts)
	}
	if err := b.Release(1); err != nil {
		t.Fatal(err)
	}
	b.trusted, b.wall = true, b.wall.Add(-24*time.Hour)
	b.acts, b.phones[1] = nil, fine(1)
	if b.pass(2 * time.Minute); b.rungsOf(1) != "wake" {
		t.Errorf("released, within 2 minutes: %q, %s", b.rungsOf(1), b.state(1))
	}
}

// TestADamagedRecordOfAPortThatIsDark keeps a port dark for no longer than what it may be dark for.
func TestADamagedRecordOfAPortThatIsDark(t *testing.T) {
	for _, c := range []struct {
		r    RestRecord
		most time.Duration
	}{
		{RestRecord{Why: forBattery, Left: 1 << 62, Until: 1 << 62}, 4 * time.Hour},
		{RestRecord{Why: forBattery, Left: 1 << 62, Until: -1 << 62}, 0},
		{RestRecord{Why: forBattery, Left: -1 << 62, Until: 1 << 62}, 0},
		{RestRecord{Why: forHeat, Left: 1 << 62}, 15 * time.Minute},
		{RestRecord{Why: "of a later version", Left: 3600}, 0},
		{RestRecord{Left: 3600}, 0},
	} {
		b := rack(t, 1, windows)
		b.memory.kept = Remembered{map[int]SlotRecord{1: {Phone: "serial:S1", Rest: &c.r}}, map[string]PhoneRecord{}}
		b.off[1] = true
		b.restart(time.Second)
		b.FoundOff(1)
		if c.most > 0 {
			if b.pass(c.most - time.Minute); len(b.acts) > 0 {
				t.Errorf("%+v: %v", c.r, b.acts)
			}
		}
		if b.pass(2 * time.Minute); b.rungsOf(1) != "wake" {
			t.Errorf("%+v: after %v %v", c.r, b.now, b.acts)
		}
	}
}
