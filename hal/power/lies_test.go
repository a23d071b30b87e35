package power_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/hal/power"
	"phonerack/hal/power/powertest"
)

// battery is a phone at a port of a simulated hub, which knows how long it has run without VBUS.
type battery struct {
	mu     sync.Mutex
	listed bool
	since  time.Time // of when it runs on battery
	ran    time.Duration
	marked time.Duration
}

func (b *battery) VBUS(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !on {
		b.since = time.Now()
	} else if !b.since.IsZero() {
		b.ran, b.since = b.ran+time.Since(b.since), time.Time{}
	}
}

func (b *battery) Listed(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed = is
}

// group are the phones of a hub by slot. It implements power.Phones.
type group map[int]*battery

func (g group) Present(slots []int) (there []int) {
	for _, n := range slots {
		g[n].mu.Lock()
		if g[n].listed {
			there = append(there, n)
		}
		g[n].mu.Unlock()
	}
	return there
}

func (g group) Mark(_ context.Context, slots []int) []int {
	for _, n := range slots {
		g[n].mu.Lock()
		g[n].marked = g[n].ran
		g[n].mu.Unlock()
	}
	return slots
}

// Charged has only phones that are back say how long they have run on battery.
func (g group) Charged(_ context.Context, slots []int, from, to time.Time) (power.Answer, bool) {
	there := g.Present(slots)
	if len(there) == 0 {
		return power.Unknown, false
	}
	b := g[there[0]]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ran-b.marked >= to.Sub(from)/2 {
		return power.No, true
	}
	return power.Yes, true
}

// lyingHub is a hub of two phones over control transfers, switched port by port.
func lyingHub(t *testing.T, habits powertest.Habits, off time.Duration, story func(ctx context.Context, h *powertest.Hub, s *power.Supply, phones group)) {
	t.Helper()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h, err := powertest.NewHub(root, "1-1", 2, habits)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		usb, phones := h.USB(), group{}
		var outlets []power.Outlet
		for n := 1; n <= 2; n++ {
			phones[n] = &battery{listed: true}
			h.Plug(n, phones[n])
			outlets = append(outlets, power.Outlet{
				Name: fmt.Sprint("port ", n), Hub: "A", HubPath: "1-1", Path: fmt.Sprintf("1-1.%d", n), Slots: []int{n},
				Switch: usb.Port("1-1", "", n), Default: true, OffTime: off, Settle: time.Second,
			})
		}
		s, err := power.New(power.Config{Outlets: outlets, Store: &powertest.Store{}, Phones: phones, Hubs: usb, Concurrent: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		story(ctx, h, s, phones)
		cancel()
		<-done
	})
}

// TestHubsThatLie has the four of the requirement and one that does not.
func TestHubsThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		habits powertest.Habits
		want   power.Cut
		offs   int // times that power is taken in one cycle
	}{
		"cuts VBUS":                   {powertest.Habits{}, power.Cuts, 1},
		"cuts data only":              {powertest.Habits{DataOnly: true}, power.DataOnly, 1},
		"re-powers after 10 ms":       {powertest.Habits{Repower: 10 * time.Millisecond}, power.Repowers, 3},
		"comes back after 3 s":        {powertest.Habits{Repower: 3 * time.Second}, power.Repowers, 3},
		"resets and re-powers all":    {powertest.Habits{Resets: true}, power.ResetsHub, 1},
		"resets and is away for long": {powertest.Habits{Resets: true, Away: 2900 * time.Millisecond}, power.ResetsHub, 1},
	} {
		for _, off := range []time.Duration{5 * time.Second, 10 * time.Second} {
			t.Run(fmt.Sprintf("%s/%v", name, off), func(t *testing.T) {
				lyingHub(t, c.habits, off, func(ctx context.Context, h *powertest.Hub, s *power.Supply, _ group) {
					err := s.Cycle(ctx, "port 1", power.Automatic)
					if cut := s.States()[0].Cut; cut != c.want || c.want.Works() != (err == nil) {
						t.Errorf("%q, want %q: %v", cut, c.want, err)
					}
					if !h.VBUS(1) || !h.VBUS(2) {
						t.Error("a port was left without power")
					}
					offs := strings.Count(strings.Join(h.Switched(), ","), "1 off")
					if offs != c.offs {
						t.Errorf("power was taken %d times, want %d: %v", offs, c.offs, h.Switched())
					}
					neighbour := power.Unseen
					if c.want == power.ResetsHub {
						neighbour = c.want
					}
					if slices.ContainsFunc(h.Switched(), func(s string) bool { return strings.HasPrefix(s, "2") }) || s.States()[1].Cut != neighbour {
						t.Errorf("the neighbour's port: %v, %v", h.Switched(), s.States()[1].Cut)
					}
				})
			})
		}
	}
}

// TestALieIsToldByPhonesThatWereOffForLong switches off and on, hours apart: nobody waits for the phone's word.
func TestALieIsToldByPhonesThatWereOffForLong(t *testing.T) {
	for habit, want := range map[bool]power.Cut{true: power.DataOnly, false: power.Cuts} {
		lyingHub(t, powertest.Habits{DataOnly: habit}, 5*time.Second, func(ctx context.Context, _ *powertest.Hub, s *power.Supply, _ group) {
			if err := s.Set(ctx, "port 1", false, power.Automatic); err != nil || s.States()[0].Cut != power.LeavesBus {
				t.Errorf("off: %v, %v", s.States()[0].Cut, err)
			}
			time.Sleep(4 * time.Hour)
			if err := s.Set(ctx, "port 1", true, power.Automatic); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second)
			if got := s.States()[0].Cut; got != want {
				t.Errorf("data only %v: %q, want %q", habit, got, want)
			}
		})
	}
}

// TestAHubThatResetsIsNotFought: each try would take all its phones away.
func TestAHubThatResetsIsNotFought(t *testing.T) {
	lyingHub(t, powertest.Habits{Resets: true}, 5*time.Second, func(ctx context.Context, h *powertest.Hub, s *power.Supply, phones group) {
		if err := s.Set(ctx, "port 1", false, power.Person); err == nil {
			t.Error("a lie was not told to who has asked")
		}
		time.Sleep(time.Hour)
		if got := h.Switched(); !slices.Equal(got, []string{"1 off"}) {
			t.Errorf("switched %v", got)
		}
		if there := phones.Present([]int{1, 2}); len(there) != 2 {
			t.Errorf("on the bus: %v", there)
		}
		if st := s.States()[0]; st.Cut != power.ResetsHub || st.Resets != 1 || st.Wanted || st.Fault == nil {
			t.Errorf("%+v", st)
		}
	})
}

// TestAPortThatIsFoundOnAfterItsHubsResetIsNamed: what Run switches off is looked at by its next look only.
func TestAPortThatIsFoundOnAfterItsHubsResetIsNamed(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 2), hub("B", "1-2", 1)...), func(r *rack) {
		if err := r.store.Save("A1", power.Record{On: false}); err != nil {
			t.Fatal(err)
		}
		r.Supply = r.supply(1)
		r.run(func() {
			time.Sleep(time.Second) // it was switched off
			r.bench.Reset("1-1")
			time.Sleep(10 * time.Second)
			if s := r.state("A1"); s.Cut != power.ResetsHub || !r.bench.Powered("A1") {
				t.Errorf("%+v", s)
			}
			if s := r.state("B1"); s.Cut != power.Unseen {
				t.Errorf("another hub is blamed: %+v", s)
			}
			if err := r.Cycle(r.t.Context(), "A2", power.Person); err != nil || r.state("A1").Cut != power.Unseen {
				t.Errorf("a check that found another port of the hub to switch: %v, %v", r.state("A1"), err)
			}
		})
	})
}

// TestHubsThatResetTogetherBlameNoPort: something that feeds them all had a reason of its own.
func TestHubsThatResetTogetherBlameNoPort(t *testing.T) {
	bubble(t, append(hub("A", "1-1", 2), hub("B", "1-2", 1)...), func(r *rack) {
		if err := r.store.Save("A1", power.Record{On: false}); err != nil {
			t.Fatal(err)
		}
		r.Supply = r.supply(1)
		r.run(func() {
			time.Sleep(time.Second) // it was switched off
			r.bench.Reset("1-1")
			r.bench.Reset("1-2")
			time.Sleep(20 * time.Second)
			if s := r.state("A1"); s.Cut == power.ResetsHub || r.bench.Powered("A1") {
				t.Errorf("it has power: %v, %+v", r.bench.Powered("A1"), s)
			}
		})
	})
}

// TestALieIsCheckedAgainWhenAPersonAsks replaces the hub by one that switches.
func TestALieIsCheckedAgainWhenAPersonAsks(t *testing.T) {
	for lie, port := range map[power.Cut]func(p *powertest.Port){
		power.DataOnly:  func(p *powertest.Port) { p.DataOnly = true },
		power.NoEffect:  func(p *powertest.Port) { p.NoEffect = true },
		power.Repowers:  func(p *powertest.Port) { p.Repower = 10 * time.Millisecond },
		power.ResetsHub: func(*powertest.Port) {},
	} {
		bubble(t, one(port), func(r *rack) {
			if lie == power.ResetsHub {
				if err := r.store.Save("A1", power.Record{On: true, Cut: lie}); err != nil {
					t.Fatal(err)
				}
			} else if err := r.Cycle(r.t.Context(), "A1", power.Automatic); err == nil {
				t.Errorf("%s was not found", lie)
			}
			r.bench = powertest.New(one(func(*powertest.Port) {})...)
			r.Supply = r.supply(1)
			if got := r.state("A1").Cut; got != lie {
				t.Errorf("%s is remembered as %q", lie, got)
			}
			if err := r.Cycle(r.t.Context(), "A1", power.Person); err != nil || r.state("A1").Cut != power.Cuts {
				t.Errorf("after %s: %q, %v", lie, r.state("A1").Cut, err)
			}
		})
	}
}
