package link

import (
	"sync"

	bolt "go.etcd.io/bbolt"
)

// makeRoom drops events, the oldest first, until an entry fits.
func (o *Outbox) makeRoom(b *bolt.Bucket, t *totals, c Class, size int64) (fits bool, err error) {
	limit := o.limit
	if c != Results { // a result takes what was reserved
		o.mu.Lock()
		limit -= int64(o.reserved) * ResultRoom
		o.mu.Unlock()
	}
	in, ids := b.Bucket(entriesOf(Events)), b.Bucket(bucketIDs)
	for t.all()+size > limit {
		k, v := in.Cursor().First()
		if k == nil {
			if c == Events {
				return false, nil
			}
			return false, ErrFull
		}
		if s, err := decodeEntry(v); err == nil {
			t.Pending += s.dropped()
			if err := ids.Delete([]byte(s.ID)); err != nil {
				return false, err
			}
		}
		t.Pending++
		t.Dropped++
		t.Count[Events]--
		t.Bytes[Events] -= int64(len(v))
		if err := in.Delete(k); err != nil {
			return false, err
		}
	}
	return true, nil
}

// A Reservation keeps room for one result.
type Reservation struct {
	once    sync.Once
	release func()
}

// Release gives the room back: after the result was put, or when there will be none.
func (r *Reservation) Release() { r.once.Do(r.release) }

// Reserve keeps room for one result; a task is claimed after it only. It fails
// with [ErrFull] when results, statuses and reservations fill 80 % of the outbox.
// Reservations are not stored: a rack that starts has no attempts.
func (o *Outbox) Reserve() (*Reservation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.canClaim() {
		return nil, ErrFull
	}
	o.reserved++
	return &Reservation{release: func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.reserved--
	}}, nil
}

// CanClaim tells whether [Outbox.Reserve] would find room.
func (o *Outbox) CanClaim() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.canClaim()
}

func (o *Outbox) canClaim() bool {
	return o.totals.kept()+int64(o.reserved+1)*ResultRoom <= o.limit/10*8
}

// Holds tells whether an entry still waits for its acknowledgement.
func (o *Outbox) Holds(id string) (held bool, err error) {
	err = o.bucket.View(func(b *bolt.Bucket) error {
		held = b.Bucket(bucketIDs).Get([]byte(id)) != nil
		return nil
	})
	return held, err
}

// Status tells how full the outbox is.
func (o *Outbox) Status() OutboxStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := OutboxStatus{
		Entries: map[Class]int{}, Bytes: o.totals.all(), Limit: o.limit,
		Refused: o.totals.Refused, Dropped: o.totals.Dropped,
	}
	for _, c := range classes {
		s.Entries[c] = o.totals.Count[c]
	}
	return s
}
