package health

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/store"
)

// BucketName is the bucket that belongs to this package.
const BucketName = "health"

// Bounds of the bucket.
const (
	maxPhones = 1000    // records of phones; beyond these, those without a quarantine go
	maxRecord = 1 << 16 // bytes of a record, as JSON
)

const (
	bySlot  = "slot:"
	byPhone = "phone:"
)

// Remembered is what outlives a restart.
type Remembered struct {
	Slots  map[int]SlotRecord
	Phones map[string]PhoneRecord
}

// SlotRecord belongs to a place: which phone was there last, and what was done.
type SlotRecord struct {
	Phone string      `json:"phone,omitempty"`
	Model string      `json:"model,omitempty"`
	Acts  []ActRecord `json:"acts,omitempty"` // oldest first

	Rest     *RestRecord `json:"rest,omitempty"`
	Hot      bool        `json:"hot,omitempty"`      // from stop_hot until resume_hot
	Charging bool        `json:"charging,omitempty"` // from low until high, with windows
}

// zero tells whether there is nothing to be remembered.
func (s SlotRecord) zero() bool {
	return s.Phone == "" && len(s.Acts) == 0 && s.Rest == nil && !s.Hot && !s.Charging
}

// ActRecord is one act.
type ActRecord struct {
	Act  string  `json:"a"`
	Unix int64   `json:"t,omitempty"` // 0 when there was no clock
	How  Outcome `json:"o,omitempty"`
}

// PhoneRecord belongs to a phone.
type PhoneRecord struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Until  int64  `json:"until,omitempty"` // Unix time; 0 when there was no clock
	Left   int64  `json:"left,omitempty"`  // seconds, when it was written; 0 without a quarantine
	Level  int    `json:"level,omitempty"`
}

// Records keep what is remembered in a bucket of the store. They implement Memory.
type Records struct{ bucket *store.Bucket }

// OpenRecords returns the records over their bucket.
func OpenRecords(bucket *store.Bucket) *Records { return &Records{bucket} }

// Load implements Memory. A record that cannot be read is left out: it counts as none.
func (r *Records) Load() (Remembered, error) {
	all := Remembered{Slots: map[int]SlotRecord{}, Phones: map[string]PhoneRecord{}}
	err := r.bucket.View(func(b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			key := string(k)
			if n, ok := strings.CutPrefix(key, bySlot); ok {
				var s SlotRecord
				if slot, err := strconv.Atoi(n); err == nil && json.Unmarshal(v, &s) == nil {
					all.Slots[slot] = s
				}
			}
			if phone, ok := strings.CutPrefix(key, byPhone); ok {
				var p PhoneRecord
				if json.Unmarshal(v, &p) == nil {
					all.Phones[phone] = p
				}
			}
			return nil
		})
	})
	return all, err
}

// Save implements Memory, in one transaction. A zero record is deleted.
func (r *Records) Save(changed Remembered) error {
	return r.bucket.Update(func(b *bolt.Bucket) error {
		for slot, s := range changed.Slots {
			if err := put(b, bySlot+strconv.Itoa(slot), s, s.zero()); err != nil {
				return err
			}
		}
		for phone, p := range changed.Phones {
			if err := put(b, byPhone+phone, p, p == PhoneRecord{}); err != nil {
				return err
			}
		}
		return prune(b)
	})
}

func put(b *bolt.Bucket, key string, record any, gone bool) error {
	if gone {
		return b.Delete([]byte(key))
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode the record %s: %w", key, err)
	}
	if len(raw) > maxRecord {
		return fmt.Errorf("the record %s has %d bytes, more than %d", key, len(raw), maxRecord)
	}
	return b.Put([]byte(key), raw)
}

// prune deletes phones beyond the bound: first those that nothing is decided about.
func prune(b *bolt.Bucket) error {
	var idle, all [][]byte
	c := b.Cursor()
	for k, v := c.Seek([]byte(byPhone)); k != nil && strings.HasPrefix(string(k), byPhone); k, v = c.Next() {
		var p PhoneRecord
		if json.Unmarshal(v, &p) != nil || p.Left == 0 {
			idle = append(idle, append([]byte{}, k...))
		}
		all = append(all, append([]byte{}, k...))
	}
	for i := 0; i < len(all)-maxPhones; i++ {
		key := all[i]
		if i < len(idle) {
			key = idle[i]
		}
		if err := b.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// record is what is remembered of a slot. Acts whose time cannot be told have none.
func (k *Keeper) record(s *place) SlotRecord {
	s.dirty = false
	now := k.o.Now()
	wall, trusted := k.o.Wall()
	r := SlotRecord{Phone: s.phone, Model: s.model, Rest: k.restRecord(s, now), Hot: s.care.hot, Charging: s.care.charging && k.o.Config.Battery.Windows}
	for _, e := range s.ledger {
		a := ActRecord{Act: e.rung.String(), Unix: e.unix, How: e.how}
		if a.Unix == 0 && trusted && e.number != 0 {
			a.Unix = wall.Add(e.at - now).Unix()
		}
		r.Acts = append(r.Acts, a)
	}
	return r
}

// phoneRecord is what is remembered of a phone.
func (k *Keeper) phoneRecord(phone string) PhoneRecord {
	q := k.phones[phone]
	if q == nil {
		return PhoneRecord{}
	}
	q.dirty = false
	r := PhoneRecord{Level: q.level}
	now := k.o.Now()
	if q.ends == 0 || now >= q.ends {
		return r
	}
	wall, trusted := k.o.Wall()
	r.By, r.Reason = q.By, q.Reason
	r.Left, r.Until = q.record(now, wall, trusted)
	r.Left = max(1, r.Left) // 0 is none
	return r
}

// recall goes on from what was remembered. What cannot be dated counts as now: it is never forgotten too early.
func (k *Keeper) recall(r Remembered, now time.Duration) {
	for n, record := range r.Slots {
		s := k.at(n)
		if s == nil {
			continue
		}
		s.phone, s.model = record.Phone, record.Model
		s.care.hot, s.care.charging = record.Hot, record.Charging
		s.care.note("heat", pick(record.Hot, "battery_hot"), map[string]any{"slot": n})
		if record.Rest != nil {
			k.recallRest(s, record.Rest, now)
		}
		for _, a := range record.Acts[max(0, len(record.Acts)-ledgerMax):] {
			rung, ok := rungOf(a.Act)
			if !ok {
				continue
			}
			e := entry{rung: rung, at: now, unix: a.Unix, how: a.How}
			s.ledger = append(s.ledger, e)
			if rung == HubCycle {
				s.hub.cycles = append(s.hub.cycles, e)
			}
		}
	}
	for phone, p := range r.Phones {
		q := &quarantine{By: p.By, Reason: p.Reason, level: max(0, p.Level)}
		if p.Left > 0 {
			q.term = recalled(now, p.Left, p.Until, LongestQuarantine)
		}
		k.phones[phone] = q
		for _, s := range k.slots {
			if s.phone == phone && q.By == ByLadder && q.Reason == string(Hung) && s.PortPower {
				s.care.drain(q.ends)
			}
		}
	}
	k.undated = true
	k.date(now)
}

func rungOf(word string) (Rung, bool) {
	for r := range rungs {
		if rungNames[r] == word {
			return r, true
		}
	}
	return 0, false
}

// date gives the acts and quarantines of before this boot their time as soon as there is a clock.
func (k *Keeper) date(now time.Duration) {
	wall, trusted := k.o.Wall()
	if !k.undated || !trusted {
		return
	}
	k.undated = false
	past := func(ledger []entry) {
		for i, e := range ledger {
			if age := wall.Sub(time.Unix(e.unix, 0)); e.unix != 0 && age > 0 {
				ledger[i].at = now - age
			}
		}
	}
	for _, s := range k.slots {
		past(s.ledger)
		if s.care.rest != nil {
			s.care.rest.date(now, wall)
		}
	}
	for _, h := range k.hubs {
		past(h.cycles)
	}
	for phone, q := range k.phones {
		if q.until == 0 || q.ends == 0 {
			continue
		}
		if q.date(now, wall); now >= q.ends {
			k.end(phone, q) // and the power that it took comes back
		}
	}
}
