package firmware

import (
	"maps"
	"slices"
	"sync"
	"time"

	"phonerack/agent/phone"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/metrics"
)

// tally counts what metrics tell since the start, and keeps what phones told of themselves last.
type tally struct {
	mu       sync.Mutex // guards what follows
	attempts map[int]map[metrics.Attempt]int64
	cycles   map[int]int64
	ended    map[metrics.Ending]int64
	over     map[string]int64 // times that a hub took too much current
	overNow  []string         // hubs that do so now
	heard    map[int]time.Time
	read     map[int]reading
}

// reading is what a phone told of itself last. What was never read is nil.
type reading struct {
	serial  string
	battery *phone.Battery
	at      time.Duration // of the battery, since the board's start
	storage *phone.Storage
}

func newTally() *tally {
	return &tally{
		attempts: map[int]map[metrics.Attempt]int64{}, cycles: map[int]int64{}, ended: map[metrics.Ending]int64{},
		over: map[string]int64{}, heard: map[int]time.Time{}, read: map[int]reading{},
	}
}

// tried notes how an act of recovery or care ended.
func (t *tally) tried(slot int, rung health.Rung, how health.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attempts[slot] == nil {
		t.attempts[slot] = map[metrics.Attempt]int64{}
	}
	t.attempts[slot][metrics.Attempt{Rung: rung, Result: how}]++
}

// cycled notes that the power of slots was off and on.
func (t *tally) cycled(slots []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range slots {
		t.cycles[n]++
	}
}

// done notes the end of a task.
func (t *tally) done(state action.TaskState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[metrics.Ending(state)]++
}

// overcurrent notes which hubs take too much.
func (t *tally) overcurrent(hubs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range hubs {
		if !slices.Contains(t.overNow, h) {
			t.over[h]++
		}
	}
	t.overNow = slices.Clone(hubs)
}

// saw notes that a slot's phone answered.
func (t *tally) saw(slot int, l health.Look, now time.Time) {
	if l.Shell != health.ShellOK {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard[slot] = now
}

// measured notes what a phone told of itself.
func (t *tally) measured(slot int, serial string, m measures, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.read[slot]
	if r.serial != serial {
		r = reading{serial: serial}
	}
	if m.battery != nil {
		r.battery, r.at = m.battery, now
	}
	if m.storage != nil {
		r.storage = m.storage
	}
	t.read[slot] = r
}

// of is what the phone with that serial number in the slot told of itself.
func (t *tally) of(slot int, serial string) reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.read[slot]; r.serial == serial {
		return r
	}
	return reading{}
}

// hubsOver are the hubs that take too much current now.
func (t *tally) hubsOver() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.overNow)
}

// fill adds the counts to what metrics tell.
func (t *tally) fill(r *metrics.Rack) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Tasks = maps.Clone(t.ended)
	for i := range r.Hubs {
		r.Hubs[i].Overcurrent = t.over[r.Hubs[i].Name]
	}
	for i := range r.Slots {
		s := &r.Slots[i]
		s.Attempts, s.Cycles, s.LastSeen = maps.Clone(t.attempts[s.Number]), t.cycles[s.Number], t.heard[s.Number]
	}
}
