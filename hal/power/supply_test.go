package power_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

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
