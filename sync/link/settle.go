package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/wire"
)

// Bounds of the list of what the cloud has refused for good.
const (
	maxRefused      = 100
	maxRefusedBytes = 4 << 20
)

// Refused is an entry that the cloud has refused for good, as it is kept for a person.
type Refused struct {
	ID      string          `json:"id"`
	Type    wire.Type       `json:"type"`
	Body    json.RawMessage `json:"body"`
	At      time.Time       `json:"at"`
	Refusal *wire.Refusal   `json:"refusal"`
}

// placed is an entry and where it lies.
type placed struct {
	stored
	key []byte
}

// next reads at most n entries of a class behind a key. What cannot be read is
// taken out.
func (o *Outbox) next(c Class, after []byte, n int) ([]placed, error) {
	var list []placed
	var broken [][]byte
	err := o.bucket.View(func(b *bolt.Bucket) error {
		cursor := b.Bucket(entriesOf(c)).Cursor()
		k, v := cursor.First()
		if after != nil {
			if k, v = cursor.Seek(after); string(k) == string(after) {
				k, v = cursor.Next()
			}
		}
		for ; k != nil && len(list) < n; k, v = cursor.Next() {
			key := append([]byte(nil), k...)
			e, err := decodeEntry(v)
			if err != nil {
				o.log.Error("an entry of the outbox cannot be read and is gone", "class", c, "entry", fmt.Sprintf("%x", k), "bytes", len(v), "err", err)
				broken = append(broken, key)
				continue
			}
			list = append(list, placed{e, key})
		}
		return nil
	})
	if err == nil && len(broken) > 0 {
		err = o.bucket.Update(func(b *bolt.Bucket) error {
			for _, key := range broken {
				if err := b.Bucket(entriesOf(c)).Delete(key); err != nil {
					return err
				}
			}
			return o.recount(b)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return list, nil
}

// remove takes acknowledged entries out, in one transaction, and tells which were
// there. An acknowledgement of another type than the entry's own does not count.
func (o *Outbox) remove(list []settled) ([]bool, error) {
	gone := make([]bool, len(list))
	err := o.bucket.Update(func(b *bolt.Bucket) error {
		t := o.load(b)
		for i, c := range list {
			e, err := o.take(b, &t, c.id, func(e stored) bool { return lanes[e.Type].ack == c.ack })
			if err != nil {
				return err
			}
			gone[i] = e.ID != ""
		}
		return o.save(b, t)
	})
	if err != nil {
		return nil, fmt.Errorf("take acknowledged entries out of the outbox: %w", err)
	}
	return gone, nil
}

// take removes an entry if ok agrees; the result is empty if it is not there.
func (o *Outbox) take(b *bolt.Bucket, t *totals, id string, ok func(stored) bool) (stored, error) {
	ids := b.Bucket(bucketIDs)
	place := ids.Get([]byte(id))
	in, key := locate(b, place)
	if in == nil {
		return stored{}, nil
	}
	class := Class(place[:len(place)-9])
	v := in.Get(key)
	size := int64(len(v))
	e, err := decodeEntry(v)
	if err != nil || !ok(e) {
		return stored{}, nil
	}
	t.Count[class]--
	t.Bytes[class] -= size
	return e, errors.Join(in.Delete(append([]byte(nil), key...)), ids.Delete([]byte(id)))
}

// refuse moves an entry to the list of the refused ones, of which the oldest go.
func (o *Outbox) refuse(id string, r *wire.Refusal) error {
	now, _ := o.clock.Now()
	err := o.bucket.Update(func(b *bolt.Bucket) error {
		t := o.load(b)
		e, err := o.take(b, &t, id, func(stored) bool { return true })
		if err != nil || e.ID == "" {
			return err
		}
		list := b.Bucket(bucketRefused)
		raw, err := json.Marshal(Refused{ID: e.ID, Type: e.Type, Body: e.Body, At: now, Refusal: r})
		if err != nil {
			return err
		}
		n, err := list.NextSequence()
		if err != nil {
			return err
		}
		if err := list.Put(binary.BigEndian.AppendUint64(nil, n), raw); err != nil {
			return err
		}
		if t.Refused, err = trim(list); err != nil {
			return err
		}
		return o.save(b, t)
	})
	if err != nil {
		return fmt.Errorf("set a refused entry aside: %w", err)
	}
	return nil
}

// trim keeps the list within its bounds and counts it.
func trim(list *bolt.Bucket) (n int, err error) {
	bytes := 0
	err = list.ForEach(func(_, v []byte) error {
		n++
		bytes += len(v)
		return nil
	})
	for err == nil && (n > maxRefused || n > 1 && bytes > maxRefusedBytes) {
		k, v := list.Cursor().First()
		n--
		bytes -= len(v)
		err = list.Delete(k)
	}
	return n, err
}

// Refused lists what the cloud has refused for good, the oldest first.
func (o *Outbox) Refused() (list []Refused, err error) {
	err = o.bucket.View(func(b *bolt.Bucket) error {
		return b.Bucket(bucketRefused).ForEach(func(k, v []byte) error {
			var r Refused
			if err := json.Unmarshal(v, &r); err != nil {
				o.log.Error("a refused entry cannot be read", "entry", fmt.Sprintf("%x", k), "err", err)
				return nil
			}
			list = append(list, r)
			return nil
		})
	})
	return list, err
}

// suspect is an entry behind which connections ended, or that the cloud put off
// again and again. It is sent last, alone and seldom. Suspicion is not stored.
type suspect struct {
	class   Class
	strikes int
	tried   time.Duration // on the boot clock
}

func (o *Outbox) strike(id string, c Class, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.suspects[id]
	if s == nil {
		s = &suspect{class: c}
		o.suspects[id] = s
	}
	s.tried = now
	if s.strikes++; s.strikes == maxStrikes {
		o.log.Error("an entry of the outbox steps aside: it was sent three times in vain, and the others wait", "id", id, "class", c)
	}
}

func (o *Outbox) suspected(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.suspects[id] != nil && o.suspects[id].strikes >= maxStrikes
}

// clear forgets a suspicion.
func (o *Outbox) clear(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.suspects, id)
}

// dueSuspect gives the suspected entry of a class whose turn it is.
func (o *Outbox) dueSuspect(c Class, now time.Duration) (stored, bool) {
	o.mu.Lock()
	id, first := "", now
	for k, s := range o.suspects {
		if s.class != c || s.strikes < maxStrikes {
			continue
		}
		if due := s.tried + suspectTry<<min(s.strikes-maxStrikes, maxSuspect); due <= first {
			id, first = k, due
		}
	}
	if id != "" {
		o.suspects[id].tried = now
	}
	o.mu.Unlock()
	if id == "" {
		return stored{}, false
	}
	var e stored
	err := o.bucket.View(func(b *bolt.Bucket) (err error) {
		in, key := locate(b, b.Bucket(bucketIDs).Get([]byte(id)))
		if in != nil {
			e, err = decodeEntry(in.Get(key))
		}
		return err
	})
	if err != nil || e.ID == "" {
		o.clear(id) // it is gone
		return stored{}, false
	}
	return e, true
}
