package power_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"phonerack/hal/board"
	"phonerack/hal/power"
	"phonerack/hal/power/powertest"
)

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
