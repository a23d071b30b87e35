package power_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"phonerack/hal/board"
	"phonerack/hal/power"
	"phonerack/hal/power/powertest"
)

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
