package power_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"phonerack/hal/board"
	"phonerack/hal/power"
	"phonerack/hal/power/powertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	offTime = 5 * time.Second
	settle  = time.Second
	stagger = 500 * time.Millisecond
)

// rack is a supply on a bench, in a bubble of false time.
type rack struct {
	*power.Supply
	t     *testing.T
	bench *powertest.Bench
	store *powertest.Store
}

func bubble(t *testing.T, ports []powertest.Port, story func(r *rack)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rack{t: t, bench: powertest.New(ports...), store: &powertest.Store{}}
		r.Supply = r.supply(1)
		story(r)
	})
}

// supply makes a supply of the bench, as a new process does.
func (r *rack) supply(concurrent int) *power.Supply {
	r.t.Helper()
	s, err := power.New(power.Config{
		Outlets: r.bench.Outlets(offTime, settle), Stagger: stagger, Concurrent: concurrent, Store: r.store, Phones: r.bench, Hubs: r.bench,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// run runs the supply while story happens.
func (r *rack) run(story func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	story()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		r.t.Error(err)
	}
}

func (r *rack) state(name string) power.State {
	r.t.Helper()
	for _, s := range r.States() {
		if s.Name == name {
			return s
		}
	}
	r.t.Fatalf("no outlet %s", name)
	return power.State{}
}

// hub makes n good ports of a hub, with a phone each.
func hub(name, path string, n int) (ports []powertest.Port) {
	for i := range n {
		ports = append(ports, powertest.Port{
			Name: fmt.Sprintf("%s%d", name, i+1), Hub: name, Path: fmt.Sprintf("%s.%d", path, i+1), Slots: []int{len(path)*100 + int(name[0])*10 + i},
		})
	}
	return ports
}

// one is a single port, changed.
func one(change func(p *powertest.Port)) []powertest.Port {
	ports := hub("A", "1-1", 1)
	change(&ports[0])
	return ports
}

func TestCycleTakesThePowerForItsTime(t *testing.T) {
	bubble(t, hub("A", "1-1", 2), func(r *rack) {
		begin := time.Now()
		if err := r.Cycle(r.t.Context(), "A1", power.Automatic); err != nil {
			t.Error(err)
		}
		events := r.bench.Events()
		if len(events) != 2 || events[0].On || !events[1].On || events[0].Outlet != "A1" || events[1].At.Sub(events[0].At) != offTime {
			t.Errorf("events %v", events)
		}
		if took := time.Since(begin); took < offTime+settle || took > offTime+settle+time.Second {
			t.Errorf("took %v", took)
		}
		if s := r.state("A1"); s.Cut != power.Cuts || !s.Wanted || s.Busy != "" || s.Fault != nil || s.Repowered != 0 {
			t.Errorf("%+v", s)
		}
		if s := r.state("A2"); s.Cut != power.Unseen {
			t.Errorf("a port that was not switched: %+v", s)
		}
	})
}

// TestLiesOfHubsAreRecognised has each behaviour of docs/power.md.
func TestLiesOfHubsAreRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		port  func(p *powertest.Port)
		blind bool
		cut   power.Cut
		check func(r *rack, s power.State) bool
	}{
		"good":                 {func(*powertest.Port) {}, false, power.Cuts, nil},
		"good, phones blind":   {func(*powertest.Port) {}, true, power.LeavesBus, nil},
		"good, nobody there":   {func(p *powertest.Port) { p.Empty = true }, false, power.Unseen, nil},
		"data only":            {func(p *powertest.Port) { p.DataOnly = true }, false, power.DataOnly, nil},
		"no effect":            {func(p *powertest.Port) { p.NoEffect = true }, false, power.NoEffect, nil},
		"back after 10 ms":     {func(p *powertest.Port) { p.Repower = 10 * time.Millisecond }, false, power.Repowers, func(_ *rack, s power.State) bool { return s.Repowered == 3 }},
		"back after 2 s":       {func(p *powertest.Port) { p.Repower = 2 * time.Second }, false, power.Repowers, func(_ *rack, s power.State) bool { return s.Repowered == 3 }},
		"back after 4 s":       {func(p *powertest.Port) { p.Repower = 4 * time.Second }, false, power.Repowers, func(_ *rack, s power.State) bool { return s.Repowered == 3 }},
		"back after 6 s":       {func(p *powertest.Port) { p.Repower = 6 * time.Second }, false, power.Cuts, func(_ *rack, s power.State) bool { return s.Repowered == 0 }},
		"back once":            {func(p *powertest.Port) { p.Repower, p.Repowers = 10*time.Millisecond, 1 }, false, power.Cuts, func(_ *rack, s power.State) bool { return s.Repowered == 1 }},
		"back, not admitted":   {func(p *powertest.Port) { p.Repower, p.Hidden = 400*time.Millisecond, true }, false, power.Repowers, nil},
		"silent for 3 s after": {func(p *powertest.Port) { p.Silent = 3 * time.Second }, false, power.Cuts, func(_ *rack, s power.State) bool { return s.Silent == 3*time.Second && s.Fault == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, one(c.port), func(r *rack) {
				r.bench.Blind = c.blind
				err := r.Cycle(r.t.Context(), "A1", power.Automatic)
				s := r.state("A1")
				if s.Cut != c.cut || c.check != nil && !c.check(r, s) {
					t.Errorf("%q, want %q; %+v", s.Cut, c.cut, s)
				}
				lie, lied := errors.AsType[*power.NotCutError](err)
				if lied == c.cut.Works() || lied && lie.Cut != c.cut || !lied && err != nil {
					t.Errorf("cycle: %v", err)
				}
				if !r.bench.Powered("A1") {
					t.Error("the phone was left without power")
				}
				if records, _ := r.store.Load(); records["A1"].Cut != c.cut && c.cut != power.Unseen {
					t.Errorf("remembered: %+v", records)
				}
			})
		})
	}
}

func TestHardwareThatDoesNothingIsTold(t *testing.T) {
	for name, port := range map[string]func(p *powertest.Port){
		"stuck":           func(p *powertest.Port) { p.Stuck = true },
		"silent too long": func(p *powertest.Port) { p.Silent = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, one(port), func(r *rack) {
				begin := time.Now()
				err := r.Cycle(r.t.Context(), "A1", power.Person)
				if !errors.Is(err, power.ErrNotSet) && !errors.Is(err, powertest.ErrSilent) {
					t.Error(err)
				}
				if s := r.state("A1"); s.Fault == nil || s.Busy != "" || time.Since(begin) > offTime+10*time.Second {
					t.Errorf("after %v: %+v", time.Since(begin), s)
				}
			})
		})
	}
}

func TestWhatIsProvedIsNotForgotten(t *testing.T) {
	bubble(t, one(func(p *powertest.Port) { p.DataOnly = true }), func(r *rack) {
		r.Cycle(r.t.Context(), "A1", power.Person)
		r.bench.Blind = true
		r.Supply = r.supply(1) // a new process
		if err := r.Cycle(r.t.Context(), "A1", power.Person); err == nil || r.state("A1").Cut != power.DataOnly {
			t.Errorf("%v, %v", r.state("A1").Cut, err)
		}
	})
}

func TestPowerIsOffForTwoSecondsAtLeast(t *testing.T) {
	bubble(t, hub("A", "1-1", 1), func(r *rack) {
		if err := r.Set(r.t.Context(), "A1", false, power.Person); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), 100*time.Millisecond)
		defer cancel()
		for range 3 { // ended early while it is off
			r.Set(ctx, "A1", false, power.Person)
		}
		if err := r.Set(r.t.Context(), "A1", true, power.Person); err != nil {
			t.Error(err)
		}
		// A cycle whose caller goes away gives the power back, not too early.
		ctx, cancel = context.WithTimeout(r.t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := r.Cycle(ctx, "A1", power.Person); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		events := r.bench.Events()
		for i := 0; i+1 < len(events); i += 2 {
			if off := events[i+1].At.Sub(events[i].At); off < board.MinOff {
				t.Errorf("off for %v", off)
			}
		}
		if len(events) != 4 || !r.bench.Powered("A1") {
			t.Errorf("events %v", events)
		}
	})
}

// TestPhonesHaveTheirTimeToLeave has cycles that are shorter than phones may take to leave the bus: they are judged by what
// was seen by then, and end as soon as it was seen.
func TestPhonesHaveTheirTimeToLeave(t *testing.T) {
	for leave, c := range map[time.Duration]struct {
		cut power.Cut
		off time.Duration
	}{
		time.Second:             {power.Cuts, board.MinOff},
		2500 * time.Millisecond: {power.Cuts, 2500 * time.Millisecond},
		4 * time.Second:         {power.NoEffect, 3 * time.Second},
	} {
		t.Run(leave.String(), func(t *testing.T) {
			bubble(t, one(func(p *powertest.Port) { p.Leave = leave }), func(r *rack) {
				s, err := power.New(power.Config{Outlets: r.bench.Outlets(board.MinOff, settle), Store: r.store, Phones: r.bench, Hubs: r.bench})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Cycle(r.t.Context(), "A1", power.Automatic); c.cut.Works() != (err == nil) {
					t.Error(err)
				}
				events := r.bench.Events()
				off := events[1].At.Sub(events[0].At)
				if cut := s.States()[0].Cut; cut != c.cut || off < c.off || off > c.off+100*time.Millisecond {
					t.Errorf("%q, want %q; off for %v, want about %v", cut, c.cut, off, c.off)
				}
			})
		})
	}
}

func TestWantedStateOutlivesTheProcess(t *testing.T) {
	bubble(t, hub("A", "1-1", 3), func(r *rack) {
		if err := r.Set(r.t.Context(), "A2", false, power.Person); err != nil {
			t.Error(err)
		}
		r.bench.Reset("1-1") // all ports are on again, and the process is a new one
		r.Supply = r.supply(1)
		r.run(func() {
			time.Sleep(10 * time.Second)
			if r.bench.Powered("A2") || !r.bench.Powered("A1") || !r.bench.Powered("A3") {
				t.Error("the wanted state was not applied")
			}
			if s := r.state("A2"); s.Repowered != 0 || s.Resets != 0 {
				t.Errorf("the hub is blamed for what was so before: %+v", s)
			}
		})
		r.bench.AllOff() // and the mains were off
		r.Supply = r.supply(1)
		r.run(func() {
			time.Sleep(10 * time.Second)
			if r.bench.Powered("A2") || !r.bench.Powered("A1") || !r.bench.Powered("A3") {
				t.Error("the wanted state was not applied")
			}
		})
	})
}

func TestStoreThatFailsSwitchesNothing(t *testing.T) {
	bubble(t, hub("A", "1-1", 1), func(r *rack) {
		r.store.Fault = errors.New("disk full")
		if err := r.Set(r.t.Context(), "A1", false, power.Person); !errors.Is(err, r.store.Fault) || len(r.bench.Events()) > 0 {
			t.Errorf("%v, events %v", err, r.bench.Events())
		}
	})
}

func TestSetLeavesAloneWhatIsOn(t *testing.T) {
	bubble(t, hub("A", "1-1", 1), func(r *rack) {
		begin := time.Now()
		if err := r.Set(r.t.Context(), "A1", true, power.Person); err != nil || len(r.bench.Events()) > 0 || time.Since(begin) > 0 {
			t.Errorf("%v, events %v", err, r.bench.Events())
		}
	})
}

func TestRunLeavesAloneWhatIsAsWanted(t *testing.T) {
	bubble(t, hub("A", "1-1", 4), func(r *rack) {
		r.run(func() { time.Sleep(time.Hour) })
		if e := r.bench.Events(); len(e) > 0 {
			t.Errorf("events %v", e)
		}
	})
}

func TestResetOfAHubIsPutRightAndNamed(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 3), hub("B", "1-2", 1)...), func(r *rack) {
		r.run(func() {
			for _, name := range []string{"A1", "A3"} {
				if err := r.Set(r.t.Context(), name, false, power.Person); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(10 * time.Second) // so that no port is blamed for it
			r.bench.Reset("1-1")
			time.Sleep(10 * time.Second)
			for name, on := range map[string]bool{"A1": false, "A2": true, "A3": false, "B1": true} {
				if r.bench.Powered(name) != on {
					t.Errorf("%s powered: %v", name, !on)
				}
				if s := r.state(name); s.Resets > 0 == on || s.Repowered != 0 || s.Cut == power.Repowers {
					t.Errorf("%+v", s)
				}
			}
		})
	})
}

func TestPowerThatKeepsComingBackIsLeftAlone(t *testing.T) {
	bubble(t, one(func(p *powertest.Port) { p.Repower = 8 * time.Second }), func(r *rack) {
		r.run(func() {
			if err := r.Set(r.t.Context(), "A1", false, power.Person); err != nil {
				t.Error(err) // it comes back after Set has looked
			}
			time.Sleep(5 * time.Minute)
			s := r.state("A1")
			if s.Cut != power.Repowers || s.Fault == nil || s.Repowered != 4 {
				t.Errorf("%+v", s)
			}
			n := len(r.bench.Events())
			time.Sleep(4 * time.Minute)
			if len(r.bench.Events()) != n {
				t.Error("it is not left alone")
			}
			time.Sleep(5 * time.Minute)
			if len(r.bench.Events()) == n {
				t.Error("it is never tried again")
			}
		})
	})
}

func TestMaintenanceStopsAutomaticSwitching(t *testing.T) {
	bubble(t, hub("A", "1-1", 2), func(r *rack) {
		r.run(func() {
			if err := r.Set(r.t.Context(), "A1", false, power.Automatic); err != nil {
				t.Error(err)
			}
			r.SetMaintenance(true)
			before := len(r.bench.Events())
			for _, err := range []error{r.Cycle(r.t.Context(), "A2", power.Automatic), r.Set(r.t.Context(), "A2", false, power.Automatic)} {
				if !errors.Is(err, power.ErrMaintenance) {
					t.Error(err)
				}
			}
			r.bench.Reset("1-1")
			time.Sleep(time.Minute)
			if len(r.bench.Events()) != before || !r.bench.Powered("A1") {
				t.Error("something was switched that nobody has asked for")
			}
			if err := r.Cycle(r.t.Context(), "A2", power.Person); err != nil {
				t.Error(err)
			}
			r.SetMaintenance(false)
			time.Sleep(time.Second)
			if r.bench.Powered("A1") {
				t.Error("what is wanted was not applied after maintenance")
			}
			if !r.state("A2").Wanted {
				t.Error("what was refused is wanted all the same")
			}
		})
	})
}

func TestAutomaticOrderThatWaitsForItsHubEndsWithMaintenance(t *testing.T) {
	bubble(t, hub("A", "1-1", 2), func(r *rack) {
		go r.Cycle(r.t.Context(), "A1", power.Person)
		time.Sleep(time.Second)
		late := make(chan error)
		go func() { late <- r.Cycle(r.t.Context(), "A2", power.Automatic) }()
		time.Sleep(time.Second)
		r.SetMaintenance(true)
		if err := <-late; !errors.Is(err, power.ErrMaintenance) {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// TestWhatWaitsForItsTurnEndsWithMaintenance: of two hubs that are without power the second waits until the first has settled.
func TestWhatWaitsForItsTurnEndsWithMaintenance(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 1), hub("B", "1-2", 1)...), func(r *rack) {
		r.bench.AllOff()
		r.run(func() {
			time.Sleep(board.MinOff + settle/2)
			r.SetMaintenance(true)
			time.Sleep(time.Minute)
			if events := r.bench.Events(); len(events) != 1 {
				t.Errorf("switched: %v", events)
			}
			for _, s := range r.States() {
				if s.Busy != "" || s.Fault != nil {
					t.Errorf("%+v", s)
				}
			}
			r.SetMaintenance(false)
			time.Sleep(10 * time.Second)
			if events := r.bench.Events(); len(events) != 2 {
				t.Errorf("after maintenance: %v", events)
			}
		})
	})
}

// TestWhatMaintenanceRefusesIsNotDoneAfterIt: an order that had waited for its hub when maintenance began.
func TestWhatMaintenanceRefusesIsNotDoneAfterIt(t *testing.T) {
	bubble(t, hub("A", "1-1", 2), func(r *rack) {
		r.run(func() {
			go r.Cycle(r.t.Context(), "A1", power.Person)
			time.Sleep(time.Second)
			late := make(chan error)
			go func() { late <- r.Set(r.t.Context(), "A2", false, power.Automatic) }()
			time.Sleep(time.Second)
			r.SetMaintenance(true)
			if err := <-late; !errors.Is(err, power.ErrMaintenance) {
				t.Error(err)
			}
			r.SetMaintenance(false)
			time.Sleep(time.Minute)
			if !r.state("A2").Wanted || !r.bench.Powered("A2") {
				t.Errorf("%+v", r.state("A2"))
			}
		})
	})
}

// TestTheLastOrderCounts: two that contradict each other wait for the same hub. To do both, in whatever order, would leave the
// outlet as nobody wants it, until Run switches it once more.
func TestTheLastOrderCounts(t *testing.T) {
	bubble(t, hub("A", "1-1", 2), func(r *rack) {
		r.run(func() {
			go r.Cycle(r.t.Context(), "A1", power.Person)
			time.Sleep(time.Second)
			ended := make(chan error, 3)
			for _, order := range []func() error{
				func() error { return r.Set(r.t.Context(), "A2", false, power.Person) },
				func() error { return r.Cycle(r.t.Context(), "A2", power.Person) },
				func() error { return r.Set(r.t.Context(), "A2", false, power.Person) },
			} {
				go func() { ended <- order() }()
				time.Sleep(time.Millisecond)
			}
			overtaken := 0
			for range 3 {
				if errors.Is(<-ended, power.ErrOvertaken) {
					overtaken++
				}
			}
			time.Sleep(time.Minute)
			on := 0
			for _, e := range r.bench.Events() {
				if e.Outlet == "A2" && e.On {
					on++
				}
			}
			if overtaken != 1 || on != 0 || r.bench.Powered("A2") {
				t.Errorf("%d overtaken, switched on %d times", overtaken, on)
			}
		})
	})
}

func TestUplinkIsNeverSwitched(t *testing.T) {
	bubble(t, hub("A", "1-1", 2), func(r *rack) {
		twins := r.bench.Outlets(offTime, settle)
		twins[0].Twin = "2-1.1"
		for uplink, bad := range map[string]bool{"2-1.1": true, "2-1.1.4": true, "2-1.2": false, "1-1.1": true, "1-1.2.3": true, "1-1.3": false, "1-1": false, "1-1.11": false, "": false} {
			_, err := power.New(power.Config{Outlets: twins, Uplink: uplink, Store: r.store, Phones: r.bench, Hubs: r.bench})
			if errors.Is(err, power.ErrUplink) != bad {
				t.Errorf("uplink %q: %v", uplink, err)
			}
		}
		if _, err := r.find("A9"); !errors.Is(err, power.ErrNoOutlet) {
			t.Error(err)
		}
	})
}

func (r *rack) find(name string) (power.State, error) {
	return power.State{}, r.Set(r.t.Context(), name, true, power.Person)
}

func TestOneOperationAtATimeOnAHub(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 2), hub("B", "1-2", 1)...), func(r *rack) {
		done := make(chan string, 3)
		for _, name := range []string{"A1", "A2", "B1"} {
			go func() {
				r.Cycle(r.t.Context(), name, power.Person)
				done <- name
			}()
			time.Sleep(10 * time.Millisecond)
		}
		if order := []string{<-done, <-done, <-done}; !slices.Equal(order, []string{"A1", "B1", "A2"}) {
			t.Errorf("done in the order %v", order)
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		defer cancel()
		go r.Cycle(r.t.Context(), "A1", power.Person)
		time.Sleep(time.Millisecond)
		if err := r.Cycle(ctx, "A2", power.Person); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for the hub: %v", err)
		}
		time.Sleep(time.Minute)
	})
}

// crowd says how many outlets were being powered at once: each takes part from its event until it has settled,
// and how close two came.
func crowd(events []powertest.Event) (most int, closest time.Duration) {
	closest = time.Hour
	var last time.Time
	for i, e := range events {
		if !e.On {
			continue
		}
		n := 1
		for _, other := range events[:i] {
			if other.On && e.At.Sub(other.At) < settle {
				n++
			}
		}
		most = max(most, n)
		if !last.IsZero() {
			closest = min(closest, e.At.Sub(last))
		}
		last = e.At
	}
	return most, closest
}

func TestPowerUpOfFortyPortsIsSpreadOverTime(t *testing.T) {
	var ports []powertest.Port
	for h := range 10 {
		ports = append(ports, hub(string(rune('A'+h)), fmt.Sprintf("1-%d", h+1), 4)...)
	}
	for _, concurrent := range []int{1, 2, 3} {
		bubble(t, ports, func(r *rack) {
			r.bench.AllOff()
			r.Supply = r.supply(concurrent)
			r.run(func() {
				time.Sleep(time.Minute)
				events := r.bench.Events()
				most, closest := crowd(events)
				if len(events) != 40 || most > concurrent || closest < stagger {
					t.Errorf("%d events, %d at once, %v apart", len(events), most, closest)
				}
			})
		})
	}
}

// tardy is a hub that the kernel keeps to itself for a while before it is switched.
type tardy struct {
	power.Switch
	by time.Duration
}

func (s tardy) Set(ctx context.Context, on bool) error {
	time.Sleep(s.by)
	return s.Switch.Set(ctx, on)
}

// TestOneThatIsSwitchedLateKeepsTheNextApart: the stagger counts from when power was given, not from when that was due.
func TestOneThatIsSwitchedLateKeepsTheNextApart(t *testing.T) {
	bubble(t, append(append(hub("A", "1-1", 2), hub("B", "1-2", 2)...), hub("C", "1-3", 2)...), func(r *rack) {
		r.bench.AllOff()
		outlets := r.bench.Outlets(offTime, settle)
		for i, o := range outlets {
			if o.Hub == "A" {
				outlets[i].Switch = tardy{o.Switch, stagger * 9 / 10}
			}
		}
		var err error
		if r.Supply, err = power.New(power.Config{
			Outlets: outlets, Stagger: stagger, Concurrent: 3, Store: r.store, Phones: r.bench, Hubs: r.bench,
		}); err != nil {
			t.Fatal(err)
		}
		r.run(func() {
			time.Sleep(time.Minute)
			events := r.bench.Events()
			if most, closest := crowd(events); len(events) != len(outlets) || most < 2 || closest < stagger {
				t.Errorf("%d at once, %v apart: %v", most, closest, events)
			}
		})
	})
}

// TestAnInrushGoesOnWhenItsCallerGoesAway: nothing else is switched on before the first has settled.
func TestAnInrushGoesOnWhenItsCallerGoesAway(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 1), hub("B", "1-2", 1)...), func(r *rack) {
		r.bench.AllOff()
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Millisecond)
		defer cancel()
		if err := r.Set(ctx, "A1", true, power.Person); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := r.Set(r.t.Context(), "B1", true, power.Person); err != nil {
			t.Error(err)
		}
		if most, _ := crowd(r.bench.Events()); most != 1 {
			t.Errorf("%d at once: %v", most, r.bench.Events())
		}
	})
}

// TestConcurrencyIsNeverExceeded gives orders at random: rapid finds the order that breaks the cap, the stagger or
// the least time off.
func TestConcurrencyIsNeverExceeded(t *testing.T) {
	type order struct {
		outlet string
		what   int // 0 off, 1 on, 2 cycle
		after  time.Duration
		limit  time.Duration
	}
	ports := append(append(hub("A", "1-1", 3), hub("B", "1-2", 3)...), hub("C", "1-3", 2)...)
	rapid.Check(t, func(rt *rapid.T) {
		concurrent := rapid.IntRange(1, 3).Draw(rt, "concurrent")
		orders := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) order {
			return order{
				outlet: rapid.SampledFrom(ports).Draw(rt, "outlet").Name, what: rapid.IntRange(0, 2).Draw(rt, "what"),
				after: time.Duration(rapid.IntRange(0, 3000).Draw(rt, "after ms")) * time.Millisecond,
				limit: time.Duration(rapid.IntRange(1, 20000).Draw(rt, "limit ms")) * time.Millisecond,
			}
		}), 1, 20).Draw(rt, "orders")
		resets := rapid.IntRange(0, 2).Draw(rt, "resets")
		bubble(t, ports, func(r *rack) {
			r.Supply = r.supply(concurrent)
			r.run(func() {
				for i, o := range orders {
					time.Sleep(o.after)
					if i < resets {
						r.bench.Reset("1-2")
					}
					go func() {
						ctx, cancel := context.WithTimeout(r.t.Context(), o.limit)
						defer cancel()
						if o.what == 2 {
							r.Cycle(ctx, o.outlet, power.Person)
						} else {
							r.Set(ctx, o.outlet, o.what == 1, power.Person)
						}
					}()
				}
				time.Sleep(3 * time.Minute)
			})
			events := r.bench.Events()
			most, closest := crowd(events)
			if most > concurrent || closest < stagger {
				rt.Errorf("%d at once, %v apart: %v", most, closest, events)
			}
			last := map[string]time.Time{}
			for _, e := range events {
				if off, ok := last[e.Outlet]; ok && e.On && e.At.Sub(off) < board.MinOff {
					rt.Errorf("%s was off for %v", e.Outlet, e.At.Sub(off))
				}
				if !e.On {
					last[e.Outlet] = e.At
				}
			}
			for _, s := range r.States() {
				if r.bench.Powered(s.Name) != s.Wanted && s.Cut != power.ResetsHub { // with which nobody fights
					rt.Errorf("%s is wanted on: %v", s.Name, s.Wanted)
				}
			}
		})
	})
}

// hanging are phones that are there and do not say how their batteries are before the question is given up.
type hanging struct {
	*powertest.Bench
	asked atomic.Int32
}

// Charged implements power.Phones.
func (h *hanging) Charged(ctx context.Context, _ []int, _, _ time.Time) (power.Answer, bool) {
	h.asked.Add(1)
	<-ctx.Done()
	return power.Unknown, false
}

// TestAPhoneThatHangsIsAskedAFewTimesAndHoldsUpNothing: what it would say of a cycle is not waited for, and another hub is put right
// meanwhile.
func TestAPhoneThatHangsIsAskedAFewTimesAndHoldsUpNothing(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 1), hub("B", "1-2", 1)...), func(r *rack) {
		phones := &hanging{Bench: r.bench}
		var err error
		r.Supply, err = power.New(power.Config{Outlets: r.bench.Outlets(offTime, settle), Concurrent: 2, Store: r.store, Phones: phones, Hubs: r.bench})
		if err != nil {
			t.Fatal(err)
		}
		r.run(func() {
			if err := r.Set(r.t.Context(), "B1", false, power.Person); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := r.Cycle(r.t.Context(), "A1", power.Person); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > offTime+settle+16*time.Second {
				t.Errorf("the cycle took %v", took)
			}
			r.bench.Reset("1-2")
			time.Sleep(6 * time.Second) // a look, three seconds of silence
			if r.bench.Powered("B1") {
				t.Error("the other hub is not put right while a phone is asked")
			}
			time.Sleep(20 * time.Minute)
			if n := phones.asked.Load(); n != 3 {
				t.Errorf("it was asked %d times", n)
			}
			if s := r.state("A1"); s.Cut != power.LeavesBus {
				t.Errorf("%+v", s)
			}
		})
	})
}

// late are phones that say nothing until they are ready, and then take three seconds to say that they had power.
type late struct {
	*powertest.Bench
	ready atomic.Bool
	asked atomic.Int32 // since then
}

// Charged implements power.Phones.
func (l *late) Charged(context.Context, []int, time.Time, time.Time) (power.Answer, bool) {
	if !l.ready.Load() {
		return power.Unknown, false
	}
	l.asked.Add(1)
	time.Sleep(3 * time.Second)
	return power.Yes, true
}

// TestWhatAPhoneSaysWhileItsPowerIsTakenAgainIsNotTaken: its marks are new by then, and it would seem to have had power all the time.
func TestWhatAPhoneSaysWhileItsPowerIsTakenAgainIsNotTaken(t *testing.T) {
	for _, again := range []bool{false, true} {
		bubble(t, hub("A", "1-1", 1), func(r *rack) {
			phones := &late{Bench: r.bench}
			var err error
			r.Supply, err = power.New(power.Config{Outlets: r.bench.Outlets(offTime, settle), Concurrent: 1, Store: r.store, Phones: phones, Hubs: r.bench})
			if err != nil {
				t.Fatal(err)
			}
			r.run(func() {
				if err := r.Cycle(r.t.Context(), "A1", power.Person); err != nil {
					t.Fatal(err)
				}
				phones.ready.Store(true)
				for phones.asked.Load() == 0 {
					time.Sleep(10 * time.Millisecond)
				}
				if again {
					if err := r.Set(r.t.Context(), "A1", false, power.Person); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(10 * time.Second)
			})
			if got, want := r.state("A1").Cut, map[bool]power.Cut{true: power.LeavesBus, false: power.DataOnly}[again]; got != want {
				t.Errorf("taken again %v: %v", again, got)
			}
		})
	}
}

// keeping is a switch whose hub the kernel keeps until it is given: what it is told is done then, if it was being written already.
type keeping struct {
	power.Switch
	given chan struct{}
	late  bool
}

// Set implements power.Switch.
func (k *keeping) Set(ctx context.Context, on bool) error {
	select {
	case <-k.given:
		return k.Switch.Set(ctx, on)
	case <-ctx.Done():
		return &power.BusyError{Hub: "1-1", Port: 1, Over: k.given, Late: k.late}
	}
}

// TestAHubThatTheKernelKeepsHoldsUpNoOtherHub, and what may yet be switched on there keeps its room among what is.
func TestAHubThatTheKernelKeepsHoldsUpNoOtherHub(t *testing.T) {
	for _, late := range []bool{false, true} {
		bubble(t, append(hub("A", "1-1", 1), hub("B", "1-2", 1)...), func(r *rack) {
			r.bench.AllOff()
			outlets := r.bench.Outlets(offTime, settle)
			kept := &keeping{outlets[0].Switch, make(chan struct{}), late}
			outlets[0].Switch = kept
			s, err := power.New(power.Config{Outlets: outlets, Concurrent: 1, Store: r.store, Phones: r.bench, Hubs: r.bench})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err = s.Set(r.t.Context(), "A1", true, power.Person)
			if took := time.Since(began); !errors.Is(err, power.ErrKept) || took > 10*time.Second {
				t.Errorf("late %v: %v after %v", late, err, took)
			}
			if st := s.States()[0]; st.Busy != "" || !errors.Is(st.Fault, power.ErrKept) {
				t.Errorf("late %v: %+v", late, st)
			}
			ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
			defer cancel()
			err = s.Set(ctx, "B1", true, power.Person)
			if on := r.bench.Powered("B1"); on == late {
				t.Errorf("late %v: the other hub has power %v, %v", late, on, err)
			}
			close(kept.given)
			if err := s.Set(r.t.Context(), "B1", true, power.Person); err != nil || !r.bench.Powered("B1") {
				t.Errorf("late %v, and the hub is given: %v", late, err)
			}
			time.Sleep(settle)
		})
	}
}
