package firmware

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"phonerack/firmware/status"
)

const (
	maxSlotEvents = 30  // that are remembered of a slot: its phone may come and go all day
	maxRackEvents = 100 // of the rack itself
)

// recent remembers the last events on the rack, with or without a cloud, each slot's for itself: one that flaps takes no
// other's place. It is in memory alone.
type recent struct {
	boot func() time.Duration

	mu   sync.Mutex
	seq  uint64              // of the newest; guarded by mu, as is what follows
	last map[int][]happening // by slot, 0 for the rack; the oldest first
}

// happening is an event with its time since the board's start.
type happening struct {
	at    time.Duration
	event status.Event
}

func newRecent(boot func() time.Duration) *recent {
	return &recent{boot: boot, last: map[int][]happening{}}
}

// note remembers an event. A detail that cannot be encoded is left out.
func (r *recent) note(kind string, slot int, detail map[string]any) {
	var raw json.RawMessage
	if len(detail) > 0 {
		raw, _ = json.Marshal(detail)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	most := maxSlotEvents
	if slot == 0 {
		most = maxRackEvents
	}
	all := append(r.last[slot], happening{r.boot(), status.Event{Seq: r.seq, Slot: slot, Kind: kind, Detail: raw}})
	if len(all) > most {
		all = slices.Delete(all, 0, len(all)-most)
	}
	r.last[slot] = all
}

// count is the number of the newest event.
func (r *recent) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// newest gives the last events of a slot, of everything for 0, the newest first.
func (r *recent) newest(slot, most int) []status.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []happening
	if slot != 0 {
		all = slices.Clone(r.last[slot])
	} else {
		for _, some := range r.last {
			all = append(all, some...)
		}
	}
	slices.SortFunc(all, func(a, b happening) int { return int(b.event.Seq) - int(a.event.Seq) })
	now := r.boot()
	events := make([]status.Event, min(most, len(all)))
	for i := range events {
		events[i] = all[i].event
		events[i].Age = now - all[i].at
	}
	return events
}
