package health

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func models(names ...string) func(*bench) {
	return func(b *bench) { b.conf.Ladder.ResetModels = names }
}

func noPower(b *bench) {
	for i := range b.places {
		b.places[i].PortPower, b.places[i].HubPower = false, false
	}
}

func TestLadder(t *testing.T) {
	stall := with(1, func(l *Look) { l.Greet, l.Stall = GreetSilent, true })
	for _, c := range []struct {
		name   string
		look   func() Look
		change []func(*bench)
		want   string // until the quarantine, or for 20 minutes
		state  State
	}{
		{"GADS#295: offline", offline(1), nil, "reopen reopen resync resync port_cycle port_cycle", Quarantined},
		{"offline, of a model that survives a USB reset", offline(1), []func(*bench){models("Pixel")}, "reopen reopen resync resync usb_reset port_cycle port_cycle", Quarantined},
		{"crbug 642194: a USB reset is off by default", hung(1), []func(*bench){models("Nexus")}, "reopen reopen resync resync reboot port_cycle port_cycle rest", Quarantined},
		{"a halt is cleared after a stall only", stall, nil, "reopen reopen resync resync clear_halt port_cycle port_cycle", Quarantined},
		{"flutter#144057: a hung phone that nothing helps loses its power", hung(1), nil, "reopen reopen resync resync reboot port_cycle port_cycle rest", Quarantined},
		{"without port power", hung(1), []func(*bench){noPower}, "reopen reopen resync resync reboot", Quarantined},
		{"dead", gone(1), nil, "port_cycle port_cycle", Quarantined},
		{"dead, without port power", gone(1), []func(*bench){noPower}, "", Quarantined},
		{"cannot be enumerated", func() Look { return Look{Bus: BusFailed} }, nil, "port_cycle port_cycle", Quarantined},
		{"recovery", with(1, func(l *Look) { l.Kind = "recovery" }), nil, "reboot", Quarantined},
		{"flutter#134555: unknown is looked at again, never cycled", with(1, func(l *Look) { l.Shell = ShellRefused }), nil, "reopen reopen resync resync", UnknownHow},
		{"UH#276, openstf#966: a full controller is not power-cycled", func() Look { return Look{Bus: BusFull} }, nil, "", NeedsHands},
		{"unauthorised", with(1, func(l *Look) { l.Greet = GreetAsked }), nil, "", NeedsHands},
		{"charging only", func() Look { return Look{Bus: BusOther} }, nil, "", NeedsHands},
		{"fastboot", func() Look { return Look{Bus: BusFastboot} }, nil, "", NeedsHands},
		{"held by another process", func() Look { return Look{Bus: BusADB, Open: OpenHeld, Holder: "adb"} }, nil, "", NeedsHands},
		{"switched off in the configuration", hung(1), []func(*bench){func(b *bench) { b.conf.Ladder.Enabled = false }}, "", NeedsHands},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 4, c.change...)
			b.pass(time.Minute)
			b.phones[1] = c.look
			b.pass(20 * time.Minute)
			if got := b.rungsOf(1); got != c.want || b.state(1) != c.state {
				t.Errorf("%s, acts\n%s\nwant %s\n%s\n%s", b.state(1), got, c.state, c.want, strings.Join(b.acts, "\n"))
			}
			for n := 2; n <= 4; n++ {
				if got := b.rungsOf(n); got != "" || b.state(n) != Well {
					t.Errorf("its neighbour %d: %s %s", n, b.state(n), got)
				}
			}
		})
	}
}

func TestTimesOfTheLadder(t *testing.T) {
	b := rack(t, 1, models("Pixel"))
	b.pass(30 * time.Second)
	b.phones[1] = hung(1)
	b.pass(15 * time.Minute)
	want := []string{
		"1m0s slot 1 reopen (hung)",      // two looks agree
		"1m30s slot 1 reopen (hung)",     // the next look after 10 s
		"2m0s slot 1 resync (hung)",      // twice 10 s, and a look
		"2m30s slot 1 resync (hung)",     //
		"3m0s slot 1 usb_reset (hung)",   //
		"3m30s slot 1 reboot (hung)",     // settles for 30 s
		"7m30s slot 1 port_cycle (hung)", // settles for 4 min
		"9m30s slot 1 port_cycle (hung)", // settles for 2 min
		"13m35s slot 1 rest (hung)",      // twice 2 min; quarantine, then its power
	}
	if !slices.Equal(b.acts, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(b.acts, "\n"), strings.Join(want, "\n"))
	}
	st, _ := b.Status(1)
	if st.Ends != 43*time.Minute+30*time.Second {
		t.Errorf("the quarantine ends at %v", st.Ends)
	}
}

func TestAPhoneThatIsHelpedIsWellAndLeftAlone(t *testing.T) {
	b := rack(t, 4)
	b.pass(time.Minute)
	b.phones[2] = hung(2)
	b.helps = func(o Order) Outcome {
		if o.Rung == PortCycle {
			b.phones[2] = fine(2)
		}
		return Done
	}
	b.pass(time.Hour)
	if got := b.rungsOf(2); got != "reopen reopen resync resync reboot port_cycle" || b.state(2) != Well {
		t.Errorf("%s, %s", b.state(2), got)
	}
	if l := b.Ledger(2); len(l) != 6 || l[0].Rung != "port_cycle" || l[0].Outcome != Done {
		t.Errorf("ledger %+v", l)
	}
}

func TestAnEpisodeGoesOnUnlessThePhoneWasWellForLong(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = offline(1)
	b.helps = func(o Order) Outcome {
		if o.Rung == Resync {
			b.phones[1] = fine(1)
		}
		return Done
	}
	b.pass(8 * time.Minute)
	b.phones[1] = offline(1)
	b.pass(8 * time.Minute)
	if got := b.rungsOf(1); got != "reopen reopen resync resync" {
		t.Errorf("soon again: %s", got)
	}
	b.pass(b.conf.Ladder.ProvenAfter.of())
	b.acts, b.phones[1] = nil, offline(1)
	b.pass(5 * time.Minute)
	if got := b.rungsOf(1); got != "reopen reopen resync" {
		t.Errorf("after it was proven: %s", got)
	}
}

// openstf#842, and all phones of a USB 3 hub dying at once: only the hub's power helps.
func TestOpenstf842_AHubIsCycledForTwoLostSlots(t *testing.T) {
	b := rack(t, 8)
	b.pass(time.Minute)
	b.phones[1], b.phones[3] = gone(1), gone(3)
	b.helps = func(o Order) Outcome {
		if o.Rung == HubCycle {
			if !slices.Equal(o.Also, []int{2, 3, 4}) && !slices.Equal(o.Also, []int{1, 2, 4}) || o.OffTime != 10*time.Second {
				t.Errorf("order %+v", o)
			}
			b.phones[1], b.phones[3] = fine(1), fine(3)
		}
		return Done
	}
	b.pass(time.Hour)
	cycles := strings.Count(strings.Join(b.acts, "\n"), "hub_cycle")
	if cycles != 1 || b.state(1) != Well || b.state(3) != Well {
		t.Errorf("%d cycles, %s, %s\n%s", cycles, b.state(1), b.state(3), strings.Join(b.acts, "\n"))
	}
	for _, n := range []int{2, 4, 5, 6, 7, 8} {
		if b.rungsOf(n) != "" || b.state(n) != Well {
			t.Errorf("slot %d: %s, %s", n, b.state(n), b.rungsOf(n))
		}
	}
}

// STF README: a whole group that dies at once shares a hub.
// TestTwoPhonesThatDieTogetherWaitForEachOther: the looks at them come one after the other, and a hub that can be switched alone has no
// other rung. Neither is in quarantine before it was tried.
func TestTwoPhonesThatDieTogetherWaitForEachOther(t *testing.T) {
	for after := time.Duration(0); after < 30*time.Second; after += 5 * time.Second {
		t.Run(after.String(), func(t *testing.T) {
			b := rack(t, 4, func(b *bench) {
				for i := range b.places {
					b.places[i].PortPower = false
				}
			})
			b.pass(time.Minute + after)
			b.phones[1], b.phones[3] = gone(1), gone(3)
			for range 120 {
				b.pass(time.Second)
				if cycled := slices.ContainsFunc(b.acts, func(act string) bool { return strings.Contains(act, "hub_cycle") }); cycled {
					return
				}
				for _, n := range []int{1, 3} {
					if b.state(n) == Quarantined {
						t.Fatalf("slot %d is in quarantine at %v: %v", n, b.now, b.acts)
					}
				}
			}
			t.Errorf("the hub is not cycled: %v", b.acts)
		})
	}
}

// TestADoubtAboutANeighbourIsWaitedForWithABound: each look at it is another one, and none is confirmed.
func TestADoubtAboutANeighbourIsWaitedForWithABound(t *testing.T) {
	b := rack(t, 2, func(b *bench) {
		for i := range b.places {
			b.places[i].PortPower = false
		}
	})
	b.pass(time.Minute)
	looks := 0
	b.phones[1], b.phones[2] = gone(1), func() Look {
		if looks++; looks%2 == 1 {
			return gone(2)()
		}
		return Look{Bus: BusFailed}
	}
	patience := b.conf.Ladder.Patience.of()
	if b.pass(patience); b.state(1) != Recovering {
		t.Errorf("after %v slot 1 is %s", patience, b.state(1))
	}
	if b.pass(5 * time.Minute); b.state(1) != Quarantined || len(b.acts) != 0 {
		t.Errorf("then it is %s, %v", b.state(1), b.acts)
	}
}

func TestAHubThatLosesAllItsPhonesIsNamed(t *testing.T) {
	b := rack(t, 8)
	b.pass(time.Minute)
	for n := 1; n <= 4; n++ {
		b.phones[n] = gone(n)
		if all := b.Hubs(); len(all) != 0 {
			t.Errorf("%d of 4 gone: %+v", n-1, all)
		}
		b.pass(time.Minute)
	}
	if all := b.Hubs(); codes(all) != "hub_lost" || all[0].Args["hub"] != "1-1" || all[0].Args["count"] != 4 || all[0].Alarm() != PowerAlarm {
		t.Errorf("%+v", all)
	}
	b.phones[2] = fine(2)
	b.pass(20 * time.Minute)
	if all := b.Hubs(); len(all) != 0 {
		t.Errorf("one is back: %+v", all)
	}
}

// disturbed are what a hub's cycle would disturb in a slot.
func disturbed(b *bench) map[string]func(is bool) {
	return map[string]func(is bool){
		"leased":                   func(is bool) { b.Leased(4, is) },
		"in maintenance":           func(is bool) { b.Maintain(4, is) },
		"switched off by a person": func(is bool) { b.Dark(4, is) },
	}
}

func TestAHubIsNotCycledWhereThatWouldDisturbASlot(t *testing.T) {
	for what := range disturbed(nil) {
		t.Run(what, func(t *testing.T) {
			b := rack(t, 4)
			b.pass(time.Minute)
			disturbed(b)[what](true)
			b.phones[1], b.phones[3] = gone(1), gone(3)
			b.pass(20 * time.Minute)
			if strings.Contains(strings.Join(b.acts, "\n"), "hub_cycle") || b.state(1) != Recovering {
				t.Errorf("%s\n%s", b.state(1), strings.Join(b.acts, "\n"))
			}
			disturbed(b)[what](false)
			b.pass(3 * time.Minute)
			if strings.Count(strings.Join(b.acts, "\n"), "hub_cycle") != 1 {
				t.Errorf("that is over:\n%s", strings.Join(b.acts, "\n"))
			}
		})
	}
}

func TestAHubWaitsForLeasesWithABound(t *testing.T) {
	b := rack(t, 4)
	b.pass(time.Minute)
	b.Leased(4, true)
	b.phones[1], b.phones[3] = gone(1), gone(3)
	b.pass(time.Hour)
	if strings.Contains(strings.Join(b.acts, "\n"), "hub_cycle") || b.state(1) != Quarantined || b.state(3) != Quarantined {
		t.Errorf("%s, %s\n%s", b.state(1), b.state(3), strings.Join(b.acts, "\n"))
	}
}

func TestNothingIsDoneInMaintenanceOrUnderALease(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*bench)
		state  State
	}{
		{"maintenance of the rack", func(b *bench) { b.Maintain(0, true) }, Maintenance},
		{"maintenance of the slot", func(b *bench) { b.Maintain(1, true) }, Maintenance},
		{"a lease", func(b *bench) { b.Leased(1, true) }, Recovering},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 2, func(b *bench) { b.conf.Battery.Windows = true })
			c.change(b)
			b.pass(time.Minute)
			b.Battery(1, charge(90, 400))
			b.TCP(1, true)
			b.phones[1] = hung(1)
			b.pass(time.Hour)
			if len(b.acts) != 0 || b.state(1) != c.state {
				t.Errorf("%s, %v", b.state(1), b.acts)
			}
		})
	}
}

func TestOneOrderAtATimeForAHubAndABoundForTheRack(t *testing.T) {
	b := rack(t, 40)
	b.pass(time.Minute)
	for n := range b.phones {
		b.phones[n] = offline(n)
	}
	b.helps = func(Order) Outcome { return "" } // not done yet
	b.pass(2 * time.Minute)
	if len(b.acts) != b.conf.Ladder.Actions {
		t.Errorf("%d orders at a time: %v", len(b.acts), b.acts)
	}
	hubs := map[string]bool{}
	for _, st := range b.All() {
		if st.Ordered != nil {
			if hubs[st.Ordered.Hub] {
				t.Errorf("two orders on hub %s", st.Ordered.Hub)
			}
			hubs[st.Ordered.Hub] = true
		}
	}
}

func TestAnOrderThatNobodyReportsOnFreesItsHub(t *testing.T) {
	b := rack(t, 2)
	b.pass(time.Minute)
	b.phones[1], b.phones[2] = offline(1), offline(2)
	b.helps = func(o Order) Outcome {
		if o.Slot == 1 {
			return ""
		}
		return Done
	}
	b.pass(15 * time.Minute)
	if !strings.HasPrefix(b.rungsOf(2), "reopen") || b.Ledger(1)[len(b.Ledger(1))-1].Outcome != Lost {
		t.Errorf("%v\n%+v", b.acts, b.Ledger(1))
	}
}

func TestARefusedOrderDoesNotCount(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = gone(1)
	b.helps = func(Order) Outcome { return Refused }
	b.pass(30 * time.Minute)
	if n := len(b.acts); n < 20 || len(b.Ledger(1)) != 0 || b.state(1) != Recovering {
		t.Errorf("%d orders, %s, ledger %+v", n, b.state(1), b.Ledger(1))
	}
}

func TestNothingIsDoneThatCannotBeWrittenDown(t *testing.T) {
	b := rack(t, 1)
	b.pass(time.Minute)
	b.phones[1] = gone(1)
	b.memory.fault = errors.New("disk full")
	b.pass(10 * time.Minute)
	if len(b.acts) != 0 || len(b.Ledger(1)) != 0 {
		t.Errorf("%v", b.acts)
	}
	b.memory.fault = nil
	b.pass(2 * time.Minute)
	if len(b.acts) == 0 {
		t.Error("the disk has room again, and nothing is done")
	}
}

// flutter#120452, #165129: "maybe the cable is bad".
func TestFlutter120452_APhoneThatComesAndGoesHasABadCable(t *testing.T) {
	for _, c := range []struct {
		window time.Duration
		want   bool // three losses, of which the first was 39 minutes ago
	}{{time.Hour, true}, {40 * time.Minute, true}, {20 * time.Minute, false}} {
		t.Run(c.window.String(), func(t *testing.T) {
			b := rack(t, 1, func(b *bench) { b.conf.Ladder.FlapWindow = Duration(c.window) })
			for range 3 {
				b.phones[1] = fine(1)
				b.pass(12 * time.Minute)
				b.phones[1] = offline(1)
				b.pass(65 * time.Second)
			}
			b.phones[1] = fine(1)
			b.pass(time.Minute)
			st, _ := b.Status(1)
			if b.has(1, "cable_suspect") != c.want || (b.state(1) == Attention) != c.want {
				t.Errorf("%+v", st)
			}
			if len(st.Others) > 0 && c.want {
				if _, why, _ := st.Others[0].Say("en"); !strings.Contains(why, "lost 3 times within "+strings.TrimSuffix(strings.TrimSuffix(c.window.String(), "0s"), "0m")) {
					t.Errorf("it says: %s", why)
				}
			}
			if b.pass(c.window); b.state(1) != Well {
				t.Errorf("%v later %s", c.window, b.state(1))
			}
		})
	}
}

// openstf#329 and #1273, STF#173: unreadable and shared serial numbers.
func TestOpenstf1273_PhonesWithoutASerialOfTheirOwnAreKnownByTheirSlot(t *testing.T) {
	b := rack(t, 2)
	for n := 1; n <= 2; n++ {
		b.phones[n] = with(n, func(l *Look) { l.Phone = "" })
	}
	b.pass(time.Minute)
	if err := b.Quarantine(1, time.Hour, "lee", "test"); err != nil {
		t.Fatal(err)
	}
	if b.state(1) != Quarantined || b.state(2) != Well {
		t.Errorf("%s, %s", b.state(1), b.state(2))
	}
}

// openstf#966, raspberrypi/linux#4008: phones beyond about 30 never appear.
func TestOpenstf966_AFullControllerIsSaid(t *testing.T) {
	b := rack(t, 4)
	b.phones[4] = func() Look { return Look{Bus: BusFull} }
	b.pass(time.Hour)
	st, _ := b.Status(4)
	if _, _, do := st.Main.Say("en"); st.State != NeedsHands || !strings.Contains(do, "switching power does not help") || len(b.acts) != 0 {
		t.Errorf("%+v %q %v", st, do, b.acts)
	}
}

func TestTwoSlotsChangePhones(t *testing.T) {
	b := rack(t, 2)
	b.pass(time.Minute)
	if err := b.Quarantine(1, time.Hour, "lee", "swollen"); err != nil {
		t.Fatal(err)
	}
	b.phones[1], b.phones[2] = fine(2), fine(1)
	b.pass(time.Minute)
	if b.state(1) != Well || b.state(2) != Quarantined {
		t.Errorf("the quarantine stays with its phone: %s, %s", b.state(1), b.state(2))
	}
	b.phones[1] = gone(1)
	b.pass(time.Minute)
	if b.state(1) != Recovering {
		t.Errorf("the phone that was moved here is gone: %s", b.state(1))
	}
	if err := b.Forget(1); err != nil {
		t.Fatal(err)
	}
	b.pass(3 * time.Minute) // the port was cycled just now, and settles
	if b.state(1) != Empty {
		t.Errorf("it is not missed: %s", b.state(1))
	}
}

// GADS#296: the retries of one phone took 24 others down.
func TestGADS296_SoakOneBadPhoneOf60ChangesNothingForTheOthers(t *testing.T) {
	length := time.Hour
	if os.Getenv("PHONERACK_SOAK") != "" {
		length = 24 * time.Hour
	}
	spend := func(bad func(int) func() Look) (b *bench, writes []Remembered) {
		b = rack(t, 60)
		b.pass(time.Minute)
		b.step = 30 * time.Second
		before := len(b.memory.saves)
		if bad != nil {
			b.phones[17] = bad(17)
		}
		b.pass(length)
		return b, b.memory.saves[before:]
	}
	well, writes := spend(nil)
	if len(well.acts) != 0 || len(writes) != 0 {
		t.Errorf("a rack that is well: %d acts, %d writes", len(well.acts), len(writes))
	}
	for name, bad := range map[string]func(int) func() Look{"hung": hung, "gone": gone} {
		b, writes := spend(bad)
		for n := 1; n <= 60; n++ {
			if n != 17 && !slices.Equal(b.looks[n], well.looks[n]) {
				t.Errorf("%s: slot %d is looked at at other times", name, n)
			}
			if n != 17 && (b.rungsOf(n) != "" || b.state(n) != Well) {
				t.Errorf("%s: slot %d %s: %s", name, n, b.state(n), b.rungsOf(n))
			}
		}
		written := bytesWritten(t, writes)
		t.Logf("soak health: 60 phones, one %s for %v: %d acts, %d commits of %d KiB", name, length, len(b.acts), len(writes), written>>10)
		if len(b.acts) == 0 || len(b.acts) > 100 || written == 0 || written > 1<<20 {
			t.Errorf("%s: %d acts, %d bytes written", name, len(b.acts), written)
		}
	}
}

func TestDailyBoundsHoldOverRestarts(t *testing.T) {
	for _, c := range []struct {
		name    string
		trusted bool
	}{{"with a clock", true}, {"without a clock", false}} {
		t.Run(c.name, func(t *testing.T) {
			b := rack(t, 1, func(b *bench) { b.conf.Quarantine.First, b.conf.Quarantine.Longest = 10*minute, 10*minute })
			b.trusted = c.trusted
			b.pass(time.Minute)
			b.step = 15 * time.Second
			b.phones[1] = gone(1)
			for range 20 {
				b.pass(time.Hour)
				b.restart(time.Minute)
			}
			if got := strings.Count(b.rungsOf(1), "port_cycle"); got != b.conf.Ladder.PortCycle.PerDay {
				t.Errorf("%d port cycles in 20 hours", got)
			}
			b.pass(8 * time.Hour)
			got := strings.Count(b.rungsOf(1), "port_cycle")
			if c.trusted && got <= b.conf.Ladder.PortCycle.PerDay || !c.trusted && got != b.conf.Ladder.PortCycle.PerDay {
				t.Errorf("%d port cycles in 28 hours", got)
			}
		})
	}
}
