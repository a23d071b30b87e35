package power_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/hal/board"
	"phonerack/hal/power"
)

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
