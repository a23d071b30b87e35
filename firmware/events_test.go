package firmware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/store"
)

// eventBench is a teller of events whose outbox is a list.
type eventBench struct {
	*events

	guard sync.Mutex // guards what follows
	said  []string
	wall  time.Duration // that the board's clock was set by
	fail  error
}

// took gives what was told since the last time.
func (b *eventBench) took() []string {
	synctest.Wait()
	b.guard.Lock()
	defer b.guard.Unlock()
	said := b.said
	b.said = nil
	return said
}

func (b *eventBench) set(by time.Duration) {
	b.guard.Lock()
	defer b.guard.Unlock()
	b.wall += by
}

func newEventBench(t *testing.T) *eventBench {
	b := new(eventBench)
	begin := time.Now()
	put := func(kind string, slot int, phone string, detail any) error {
		b.guard.Lock()
		defer b.guard.Unlock()
		b.said = append(b.said, fmt.Sprint(kind, " ", slot, " ", phone, " ", detail))
		return b.fail
	}
	wall := func() time.Time {
		b.guard.Lock()
		defer b.guard.Unlock()
		return time.Now().Add(b.wall)
	}
	b.events = newEvents(put, wall, func() time.Duration { return time.Since(begin) }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return b
}

// hear waits and wants exactly that to have been told since the last time.
func (b *eventBench) hear(t *testing.T, wait time.Duration, want ...string) {
	t.Helper()
	time.Sleep(wait)
	if said := b.took(); fmt.Sprintf("%q", said) != fmt.Sprintf("%q", want) {
		t.Errorf("told %q, want %q", said, want)
	}
}

func (b *eventBench) enter(state action.State, phone, reason string) {
	b.slot(action.PhoneState{Slot: 3, State: state, Reason: reason}, phone)
}

func TestASlotTellsWhatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEventBench(t)
		b.enter(action.Empty, "", "")
		b.hear(t, 0) // nothing was there
		b.enter(action.Connecting, "", "shaking hands")
		b.slot(action.PhoneState{Slot: 3, State: action.Ready, Model: "M", Android: "14"}, "A")
		b.hear(t, 0, "phone.ready 3 A map[android:14 model:M]")
		b.enter(action.Lost, "A", "it is silent")
		b.hear(t, 0, "phone.lost 3 A map[reason:it is silent]")
		b.enter(action.Connecting, "A", "")
		b.enter(action.Lost, "A", "it is silent still")
		b.hear(t, time.Hour) // the same again
		b.enter(action.Empty, "A", "")
		b.enter(action.Empty, "A", "")
		b.hear(t, 0, "phone.left 3 A map[]")
		b.slot(action.PhoneState{Slot: 3, State: action.Limited, Reason: string(make([]byte, 1000))}, "B")
		if said := b.took(); len(said) != 1 || len(said[0]) > 300 {
			t.Errorf("told %q", said)
		}
	})
}

func TestTheHealthOfASlotIsToldInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEventBench(t)
		b.health(health.Status{Slot: 3, State: health.NeedsHands, Main: health.Finding{Code: "unauthorized", Args: map[string]any{"slot": 3}}, Others: []health.Finding{{Code: "battery_hot"}}}, "A")
		said := b.took()
		if len(said) != 1 {
			t.Fatalf("told %q", said)
		}
		for _, want := range []string{"health.needs_hands 3 A", "diagnosis:unauthorized", "findings:[battery_hot]", "do:", "why:"} {
			if !strings.Contains(said[0], want) {
				t.Errorf("%q lacks %q", said[0], want)
			}
		}
	})
}

// TestASlotThatFlapsTellsTheNewestNowAndThen, and another slot is heard meanwhile.
func TestASlotThatFlapsTellsTheNewestNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEventBench(t)
		for range 100 {
			b.enter(action.Ready, "A", "")
			time.Sleep(time.Second)
			b.enter(action.Empty, "A", "")
			time.Sleep(time.Second)
		}
		if said := b.took(); len(said) < eventBurst || len(said) > eventBurst+4 { // of 200 in 200 s
			t.Errorf("told %d: %q", len(said), said)
		}
		b.slot(action.PhoneState{Slot: 4, State: action.Failed}, "C")
		b.hear(t, 0, "phone.failed 4 C map[]")
		time.Sleep(time.Minute)
		if said := b.took(); len(said) != 1 || !strings.HasPrefix(said[0], leftEvent) { // how it is now, though it was not told at once
			t.Errorf("told at last %q", said)
		}
		b.hear(t, time.Hour)
	})
}

func TestWhatWasLeftOutIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEventBench(t)
		for i := range eventBurst {
			b.tell(told{kind: "k", detail: map[string]any{"n": i}})
			synctest.Wait()
		}
		b.took()
		for i := range 3 {
			b.tell(told{kind: "k", detail: map[string]any{"n": 10 + i}})
		}
		b.hear(t, time.Minute, "k 0  map[left_out:2 n:12]")
	})
}

func TestAnOutboxThatTakesNothingStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEventBench(t)
		b.guard.Lock()
		b.fail = errors.New("full")
		b.guard.Unlock()
		b.enter(action.Ready, "A", "")
		b.hear(t, time.Minute, "phone.ready 3 A map[]")
		var none *events // a rack without a cloud
		none.tell(told{kind: "k"})
		none.slot(action.PhoneState{State: action.Ready}, "A")
	})
}

func TestAClockThatWasSetIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEventBench(t)
		b.hear(t, time.Hour)
		b.set(3 * time.Hour)
		b.hear(t, lookAtClock, "clock.jumped 0  map[ms:10800000]")
		b.set(time.Second) // it is slewed
		b.hear(t, time.Minute)
		b.set(-time.Hour)
		b.hear(t, lookAtClock, "clock.jumped 0  map[ms:-3600000]")
	})
}

func TestAStartKnowsHowTheOneBeforeEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rackd.db")
	for i, c := range []struct {
		want string
		stop bool
	}{{firstStart, false}, {afterCut, true}, {afterStop, true}, {afterStop, false}, {afterCut, false}} {
		s, err := store.Open(store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bucket(startsBucket)
		if err != nil {
			t.Fatal(err)
		}
		if cause, board, err := noteStart(b); err != nil || cause != c.want || board {
			t.Errorf("start %d: %s, board restarted %t, %v; want %s", i, cause, board, err, c.want)
		}
		if c.stop {
			if err := noteStop(b); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
