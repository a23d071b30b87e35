package firmware

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"phonerack/firmware/health"
	"phonerack/firmware/store"
	"phonerack/hal/power"
	"phonerack/hal/power/powertest"
)

// TestAHubsCycleAsksAllWhomItDisturbs: slot 3 is at a further hub, which has its own line and so its own place in the ladder.
func TestAHubsCycleAsksAllWhomItDisturbs(t *testing.T) {
	bench := powertest.New()
	outlets := []power.Outlet{{Name: "hub B", Hub: "B", HubPath: "1-1.3", Path: "1-1.3", Slots: []int{3, 4}}, {Name: "hub A", Hub: "A", HubPath: "1-1", Path: "1-1", Slots: []int{1, 2, 3, 4}}}
	supply, err := power.New(power.Config{Outlets: outlets, Store: &powertest.Store{}, Phones: bench, Hubs: bench})
	if err != nil {
		t.Fatal(err)
	}
	c := &care{rack: &Rack{power: supply}}
	for _, test := range []struct {
		order health.Order
		want  []int
	}{
		{health.Order{Slot: 2, Rung: health.HubCycle, Also: []int{1}}, []int{2, 1, 3, 4}},
		{health.Order{Slot: 4, Rung: health.HubCycle, Also: []int{3}}, []int{4, 3}},
		{health.Order{Slot: 2, Rung: health.PortCycle}, []int{2}},
	} {
		if got := c.reach(test.order); !slices.Equal(got, test.want) {
			t.Errorf("%s of slot %d touches %v, want %v", test.order.Rung, test.order.Slot, got, test.want)
		}
	}
}

func TestAnActThatPanicsHasFailed(t *testing.T) {
	c := &care{rack: &Rack{}, log: slog.New(slog.DiscardHandler)} // there is no slot, and nobody has looked
	if err := c.do(t.Context(), health.Order{Slot: 7, Rung: health.Reopen}, nil); !errors.Is(err, errPanicked) {
		t.Errorf("it ended with %v", err)
	}
}

// TestTwoAtOnceLeaveOneMaintenance: what the supply thinks of it is what was noted last.
func TestTwoAtOnceLeaveOneMaintenance(t *testing.T) {
	t.Parallel()
	bench := powertest.New()
	supply, err := power.New(power.Config{Store: &powertest.Store{}, Phones: bench, Hubs: bench})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Options{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	keeper, err := health.New(health.Options{Config: health.Defaults(), Now: func() time.Duration { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	c := &care{rack: &Rack{power: supply, store: s}}
	if c.hands, err = c.rack.openHands(keeper); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		var both sync.WaitGroup
		for _, on := range []bool{true, false} {
			both.Go(func() {
				if err := c.Maintain(0, on); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if noted := c.hands.has(0, inside); supply.Maintenance() != noted {
			t.Fatalf("noted %v, and the supply has %v", noted, supply.Maintenance())
		}
	}
}
