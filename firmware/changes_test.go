package firmware

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware/health"
	"phonerack/firmware/status"
)

// TestNobodyLooksWhileNobodyWaits: what a change costs who waits, and that an idle rack costs nothing.
func TestNobodyLooksWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, events atomic.Uint64
		began := time.Now()
		var state atomic.Value
		state.Store(health.Well)
		c := newChanges(func() sight {
			looks.Add(1)
			return sight{status.Snapshot{Slots: []status.Slot{{State: state.Load().(health.State), Since: time.Since(began)}}}, events.Load()}
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(time.Hour)
		if n := looks.Load(); n != 0 {
			t.Errorf("%d looks, and nobody waits", n)
		}
		first := c.next()
		time.Sleep(time.Minute)
		select {
		case <-first:
			t.Error("a change, and only time has gone by")
		default:
		}
		if n := looks.Load(); n < 100 || n > 125 {
			t.Errorf("%d looks in a minute", n)
		}
		state.Store(health.NeedsHands)
		at := time.Now()
		if <-first; time.Since(at) > lookForChange {
			t.Errorf("told after %v", time.Since(at))
		}
		before := looks.Load()
		time.Sleep(time.Hour)
		if n := looks.Load() - before; n != 0 {
			t.Errorf("%d looks after everybody was told", n)
		}
		second, third := c.next(), c.next()
		events.Add(1)
		<-second
		<-third
		if fourth := c.next(); fourth == second {
			t.Error("who was told already is told again")
		}
		cancel()
		<-ended
	})
}

// TestWhoWaitsIsToldByALaterRun: what looks may fail, and is started again.
func TestWhoWaitsIsToldByALaterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events atomic.Uint64
		var fails atomic.Bool
		c := newChanges(func() sight {
			if fails.Load() {
				panic("a defect")
			}
			return sight{events: events.Load()}
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan any, 1)
		run := func() {
			defer func() { ended <- recover() }()
			c.Run(ctx)
		}
		waits := c.next()
		fails.Store(true)
		go run()
		if <-ended == nil {
			t.Error("it goes on without looking")
		}
		fails.Store(false)
		go run()
		events.Add(1)
		select {
		case <-waits:
		case <-time.After(time.Minute):
			t.Error("who has waited since before is not told")
		}
		cancel()
		<-ended
	})
}

// TestWhatHappenedIsRememberedInBounds: each slot's for itself, and the newest first.
func TestWhatHappenedIsRememberedInBounds(t *testing.T) {
	now := time.Duration(0)
	r := newRecent(func() time.Duration { return now })
	r.note("phone.ready", 2, map[string]any{"model": "Sim"})
	r.note("rack.started", 0, nil)
	for i := range 1000 { // a bad cable
		now += time.Second
		r.note(fmt.Sprint("phone.", i), 1, nil)
	}
	if all := r.newest(1, 1000); len(all) != maxSlotEvents || all[0].Kind != "phone.999" || all[0].Age != 0 || all[1].Age != time.Second || all[0].Slot != 1 {
		t.Errorf("%d events, the newest %+v", len(all), all[0])
	}
	if all := r.newest(2, 20); len(all) != 1 || all[0].Seq != 1 || all[0].Age != 1000*time.Second || string(all[0].Detail) != `{"model":"Sim"}` {
		t.Errorf("of the other slot: %+v", all)
	}
	if all := r.newest(0, 1000); len(all) != maxSlotEvents+2 || all[len(all)-1].Kind != "phone.ready" || all[len(all)-2].Kind != "rack.started" {
		t.Errorf("of the rack: %+v", all)
	}
	if all := r.newest(0, 3); len(all) != 3 || all[2].Kind != "phone.997" {
		t.Errorf("three: %+v", all)
	}
	if len(r.newest(3, 10)) != 0 || r.count() != 1002 {
		t.Errorf("%d", r.count())
	}
	for range 300 {
		r.note("rack.part_panicked", 0, nil)
	}
	if n := len(r.last[0]); n != maxRackEvents {
		t.Errorf("%d of the rack", n)
	}
}
