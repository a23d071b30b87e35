package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"phonerack/agent/phone"
)

func windows(b *bench) { b.conf.Battery.Windows = true }

func TestBatteryRules(t *testing.T) {
	type at struct {
		percent, tenths int
	}
	for _, c := range []struct {
		name    string
		windows bool
		read    []at   // a quarter of an hour apart
		want    string // acts of care, one each reading: -, rest, or what stays
		hot     string // n or y for each
	}{
		{"36.9 °C charges on", false, []at{{50, 369}}, "-", "n"},
		{"37.0 °C stops, 35.1 does not resume, 35.0 does", false, []at{{50, 370}, {50, 351}, {50, 350}}, "rest rest -", "yyn"},
		{"between both nothing changes", false, []at{{50, 360}, {50, 369}}, "- -", "nn"},
		{"full batteries stay on without windows", false, []at{{100, 300}}, "-", "n"},
		{"with windows power goes off at 60", true, []at{{60, 300}}, "rest", "n"},
		{"at 30 it charges until 60", true, []at{{30, 300}, {31, 300}, {59, 300}, {60, 300}}, "- - - rest", "nnnn"},
		{"between 30 and 60 it goes on resting", true, []at{{60, 300}, {45, 300}, {31, 300}}, "rest rest rest", "nnn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 1)
			b.conf.Battery.Windows = c.windows
			b.restart(0)
			b.pass(time.Minute)
			var got []string
			var hot strings.Builder
			for _, r := range c.read {
				b.acts = nil
				b.Battery(1, charge(r.percent, r.tenths))
				st, _ := b.Status(1)
				hot.WriteString(map[bool]string{true: "y", false: "n"}[st.Paused])
				b.pass(10 * time.Second)
				act := b.rungsOf(1)
				if act == "" {
					act = "-"
				}
				got = append(got, act)
				if act == "rest" {
					if b.state(1) != Resting {
						t.Errorf("resting, and %s", b.state(1))
					}
					b.pass(5 * time.Hour) // until its power is back, and longer
				}
			}
			if s := strings.Join(got, " "); s != c.want || hot.String() != c.hot {
				t.Errorf("acts %s, hot %s; want %s, %s", s, hot.String(), c.want, c.hot)
			}
		})
	}
}

func TestPowerComesBackAfterARest(t *testing.T) {
	for _, c := range []struct {
		name   string
		tenths int
		wanted bool
		after  time.Duration
	}{
		{"a full battery rests for rest_for", 300, false, 4 * time.Hour},
		{"a hot one for cool_for", 380, false, 15 * time.Minute},
		{"somebody wants the phone", 300, true, 30 * time.Second},
		{"somebody wants a hot one: it cools first", 380, true, 15 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 1, windows)
			b.pass(time.Minute)
			b.Battery(1, charge(80, c.tenths))
			b.pass(5 * time.Second)
			off := b.now
			b.pass(25 * time.Second)
			b.Wanted(1, c.wanted)
			b.pass(6 * time.Hour)
			var when time.Duration
			for _, a := range b.acts {
				if strings.Contains(a, "wake") {
					when, _ = time.ParseDuration(strings.Fields(a)[0])
					break
				}
			}
			if got := when - off; got < c.after-10*time.Second || got > c.after+10*time.Second {
				t.Errorf("power after %v\n%s", got, strings.Join(b.acts, "\n"))
			}
			if strings.Contains(strings.Join(b.acts, "\n"), "cycle") {
				t.Errorf("a phone without power was taken for a dead one: %v", b.acts)
			}
		})
	}
}

func TestAPhoneThatSomebodyWaitsForIsNotPutToRestUnlessItIsHot(t *testing.T) {
	b := rack(t, 1, windows)
	b.pass(time.Minute)
	b.Wanted(1, true)
	b.Battery(1, charge(90, 300))
	b.pass(time.Minute)
	if len(b.acts) != 0 {
		t.Errorf("%v", b.acts)
	}
	b.Battery(1, charge(90, 380))
	b.pass(time.Minute)
	if b.rungsOf(1) != "rest" {
		t.Errorf("hot: %v", b.acts)
	}
}

// UH#319, #617: a port that is off and whose phone stays.
func TestUH319_APortThatDoesNotCutPowerIsNotReliedOn(t *testing.T) {
	b := rack(t, 1, windows)
	b.uncut = true
	b.pass(time.Minute)
	b.Battery(1, charge(90, 300))
	b.pass(time.Minute)
	b.Battery(1, charge(90, 300))
	b.pass(time.Hour)
	// The power that it has is wanted again: the supply would take it, once more every ten minutes, from a phone that is in use.
	if b.rungsOf(1) != "rest wake" || b.state(1) != Attention || !b.has(1, "port_not_cut") {
		t.Errorf("the phone answers, and the slot is %s: %v", b.state(1), b.acts)
	}
	b.Switchable(1, NoEffect)
	b.Battery(1, charge(90, 300))
	b.phones[1] = gone(1)
	b.pass(time.Hour)
	if b.rungsOf(1) != "rest wake" || b.state(1) != Quarantined {
		t.Errorf("it is %s: %v", b.state(1), b.acts)
	}
}

// What was seen of a phone at the moment its port went off is no sign that it stayed, however few looks have to agree.
func TestALookOfTheMomentItsPortWentOffIsNoSignThatAPhoneStayed(t *testing.T) {
	b := rack(t, 1, func(b *bench) { b.conf.Probe.Confirm = 1 })
	there := Look{Bus: BusADB, Open: OpenOK, Greet: GreetOK, Shell: ShellOK, Booted: true, Phone: "SIM0001"}
	broke := there
	broke.Shell = ShellLost
	b.Look(1, there)
	b.Darkened(1)
	b.Look(1, there)
	for range 3 {
		b.Look(1, broke)
	}
	b.Look(1, Look{Bus: BusEmpty})
	if b.has(1, "port_not_cut") || b.state(1) == Recovering {
		t.Errorf("it has left the bus, and the slot is %s", b.state(1))
	}
	b.Look(1, there)
	b.Look(1, there)
	if !b.has(1, "port_not_cut") {
		t.Error("two looks in a row see the phone, and nobody says so")
	}
}

func TestReadingsThatCannotBeBelieved(t *testing.T) {
	set := func(change func(*phone.Battery)) phone.Battery { r := charge(80, 300); change(&r); return r }
	for _, c := range []struct {
		name    string
		reading phone.Battery
		code    string
	}{
		{"a good one", charge(80, 300), ""},
		{"level 0 on a phone that answers", charge(0, 300), "battery_unreadable"},
		{"level unknown", charge(phone.Unknown, 300), "battery_unreadable"},
		{"UPDATES STOPPED", set(func(r *phone.Battery) { r.Faked = true; r.Temperature = 900 }), "battery_faked"},
		{"a phone without a battery", set(func(r *phone.Battery) { r.Present = false }), "battery_missing"},
		{"over-voltage", set(func(r *phone.Battery) { r.Health = "over-voltage" }), "battery_swelling"},
		{"a failing one", set(func(r *phone.Battery) { r.Health = "failure" }), "battery_swelling"},
		{"a dead one", set(func(r *phone.Battery) { r.Health = "dead" }), "battery_swelling"},
		{"no temperature", charge(80, phone.Unknown), ""},
		{"it says overheat and no temperature", set(func(r *phone.Battery) { r.Temperature = phone.Unknown; r.Health = "overheat" }), "battery_hot"},
		{"flutter#165129: the port is on and no power arrives", set(func(r *phone.Battery) { r.Plugged = "" }), "cable_no_power"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 1, windows)
			b.pass(time.Minute)
			b.Leased(1, true) // no act: findings only
			b.Battery(1, c.reading)
			st, _ := b.Status(1)
			switch {
			case c.code == "" && len(st.Others) > 0, c.code != "" && (len(st.Others) != 1 || st.Others[0].Code != c.code):
				t.Errorf("findings %+v", st.Others)
			case (c.code == "") != (st.State == Well):
				t.Errorf("%s", st.State)
			case st.Paused != (c.code == "battery_hot"):
				t.Errorf("paused: %v", st.Paused)
			}
			b.Leased(1, false)
			b.pass(5 * time.Minute)
			rest := strings.Contains(b.rungsOf(1), "rest")
			believed := c.code == "" || c.code == "battery_swelling" || c.code == "battery_hot" || c.code == "cable_no_power"
			if rest != believed {
				t.Errorf("acts %v", b.acts)
			}
			if (c.code == "battery_faked") != strings.Contains(b.rungsOf(1), "battery_reset") {
				t.Errorf("acts %v", b.acts)
			}
		})
	}
}

func TestABatteryThatEmptiesOnACableIsSaid(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []int // a quarter of an hour apart
		want   bool
	}{
		{"it charges", []int{50, 55, 60}, false},
		{"it falls by 4 %", []int{50, 48, 46}, false},
		{"it falls by 5 %", []int{50, 48, 45}, true},
		{"slowly, over hours", []int{50, 49, 49, 48, 48, 47, 47, 46, 46, 45}, false},
		{"it charges again", []int{50, 45, 51}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 1)
			for _, l := range c.levels {
				b.pass(15 * time.Minute)
				b.Battery(1, charge(l, 300))
			}
			if b.has(1, "cable_weak") != c.want {
				st, _ := b.Status(1)
				t.Errorf("%+v", st)
			}
		})
	}
}

// openstf#426, #1151, flutter#140399: batteries swell.
func TestFlutter140399_ABatteryThatIsHotAgainAndAgainMaySwell(t *testing.T) {
	for _, c := range []struct {
		window time.Duration
		want   bool // after three times in four hours
	}{{day, true}, {5 * time.Hour, true}, {3 * time.Hour, false}} {
		t.Run(c.window.String(), func(t *testing.T) {
			b := rack(t, 1, noPower, func(b *bench) { b.conf.Battery.HotWindow = Duration(c.window) })
			b.step = 30 * time.Second
			for i := range 3 {
				b.pass(time.Hour)
				b.Battery(1, charge(50, 375))
				if b.has(1, "battery_swelling") != (c.want && i == 2) {
					t.Errorf("after %d times", i+1)
				}
				b.pass(time.Hour)
				b.Battery(1, charge(50, 340))
			}
			b.pass(c.window)
			b.Battery(1, charge(50, 340))
			if b.has(1, "battery_swelling") {
				t.Errorf("cool for %v", c.window)
			}
		})
	}
}

func TestOpenPortIsReportedAndClosed(t *testing.T) {
	for _, closes := range []bool{true, false} {
		t.Run(fmt.Sprint("close_tcp ", closes), func(t *testing.T) {
			b := rack(t, 1)
			b.conf.Phone.CloseTCP, b.conf.Phone.MendsPerDay = closes, 3
			b.restart(0)
			b.pass(time.Minute)
			b.step = 30 * time.Second
			b.TCP(1, true)
			if !b.has(1, "tcp_open") || b.state(1) != Attention {
				t.Errorf("it is %s", b.state(1))
			}
			b.pass(day)
			if got, want := strings.Count(b.rungsOf(1), "close_tcp"), map[bool]int{true: 3}[closes]; got != want {
				t.Errorf("%d times in a day, want %d", got, want)
			}
			b.TCP(1, false)
			if b.state(1) != Well {
				t.Errorf("it is %s", b.state(1))
			}
		})
	}
}

func TestStorage(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	for _, c := range []struct {
		free, size int64
		low        bool
	}{{64 << 30, 128 << 30, false}, {12 << 30, 128 << 30, true}, {400 << 20, 2 << 30, true}, {0, 0, false}} {
		b.Storage(1, c.free, c.size)
		if b.has(1, "storage_low") != c.low {
			t.Errorf("%d of %d", c.free, c.size)
		}
	}
	changed := Defaults().Phone
	changed.StorageFree = 51
	b.SetPhone(changed)
	if b.Storage(1, 64<<30, 128<<30); !b.has(1, "storage_low") {
		t.Error("a threshold that was changed does not count")
	}
}

func TestNoPhoneIsLeftForTheDaysAfterWhichItForgetsTheKey(t *testing.T) {
	b := rack(t, 4, windows)
	b.step = 30 * time.Second
	last, longest := map[int]time.Duration{}, time.Duration(0)
	for b.now < 2*day {
		b.pass(30 * time.Minute)
		for n := 1; n <= 3; n++ { // the fourth is never charged
			if b.state(n) == Well {
				b.Battery(n, charge(70, 300))
				longest, last[n] = max(longest, b.now-last[n]), b.now
			}
		}
	}
	if longest > b.conf.Phone.KeyTouch.of() || longest < time.Hour {
		t.Errorf("a phone was not spoken to for %v", longest)
	}
	b.Maintain(0, true)
	b.phones[4] = gone(4)
	b.pass(b.conf.Phone.KeyTouch.of() + time.Minute)
	if !b.has(4, "key_lapsing") {
		t.Error("it is not said before the key is forgotten")
	}
	b.pass(day)
	if !b.has(4, "key_lapsed") {
		t.Error("it is not said that the key is forgotten")
	}
}

func TestAPhoneUnseenBeforeTheStartIsKnown(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = gone(1)
	b.restart(time.Minute)
	b.Heard(1, 6*day)
	if !b.has(1, "key_lapsing") {
		t.Error("what the phone's record says is not taken")
	}
}

// TestAPhoneThatSettlesWasSpokenTo: what it shows so soon after an order says nothing of its health, but it took the key.
func TestAPhoneThatSettlesWasSpokenTo(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = offline(1)
	b.restart(time.Minute)
	b.Heard(1, 6*day)
	for len(b.acts) == 0 && b.now < time.Hour {
		b.pass(b.step)
	}
	if !b.has(1, "key_lapsing") {
		t.Fatal("it is not said before")
	}
	b.Look(1, fine(1)())
	if b.state(1) != Recovering || b.has(1, "key_lapsing") {
		t.Errorf("after an answer it is %s, and key_lapsing is said: %t", b.state(1), b.has(1, "key_lapsing"))
	}
}

func TestAPortThatIsFoundOffIsSwitchedOnUnlessItsPhoneDrains(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = hung(1)
	b.pass(15 * time.Minute) // quarantine, power off
	b.acts = nil
	b.restart(time.Minute)
	b.FoundOff(1)
	b.pass(20 * time.Minute)
	if len(b.acts) != 0 || b.state(1) != Quarantined {
		t.Errorf("the phone drains: %s, %v", b.state(1), b.acts)
	}
	b.pass(15 * time.Minute)
	if !strings.HasPrefix(b.rungsOf(1), "wake") {
		t.Errorf("its quarantine is over: %v", b.acts)
	}
	b = rack(t, 1)
	b.FoundOff(1)
	b.pass(time.Minute)
	if b.rungsOf(1) != "wake" {
		t.Errorf("a port that was left off: %v", b.acts)
	}
}

// TestAPersonGivesAPhoneThatRestsItsPower: that it answers is no sign of a port that cuts nothing, in maintenance neither, and its
// battery is cared for as before.
func TestAPersonGivesAPhoneThatRestsItsPower(t *testing.T) {
	for _, maintained := range []bool{false, true} {
		b := rack(t, 1, windows)
		b.pass(time.Minute)
		b.Battery(1, charge(80, 300))
		b.pass(time.Minute)
		if b.state(1) != Resting {
			t.Fatalf("it is %s", b.state(1))
		}
		b.Maintain(0, maintained)
		b.off[1] = false
		b.Lit(1)
		b.pass(5 * time.Minute)
		b.Maintain(0, false)
		if b.has(1, "port_not_cut") || b.state(1) != Well {
			t.Errorf("maintenance %v: it is %s", maintained, b.state(1))
		}
		b.Battery(1, charge(80, 380))
		b.pass(time.Minute)
		if b.rungsOf(1) != "rest rest" {
			t.Errorf("maintenance %v, hot: %v", maintained, b.acts)
		}
	}
}
