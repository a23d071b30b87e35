package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/wire"
)

// Class is what an entry of the outbox is worth. Order holds within a class.
type Class string

// The classes. Results and command statuses are never dropped; events are, the
// oldest first, and counted.
const (
	Results  Class = "result"
	Statuses Class = "status"
	Events   Class = "event"
)

var classes = []Class{Results, Statuses, Events}

// lane says where the entries of a class travel and what acknowledges them.
type lane struct {
	class Class
	kind  wire.Kind
	ack   wire.Type
}

var lanes = map[wire.Type]lane{
	wire.TypeResult:        {Results, wire.KindTask, wire.TypeTaskAck},
	wire.TypeCommandStatus: {Statuses, wire.KindCommand, wire.TypeCommandAck},
	wire.TypeEvent:         {Events, wire.KindEvent, wire.TypeEventAck},
}

// ResultRoom is what is kept free for one result, and the most that one may take, in bytes.
const ResultRoom = 320 << 10

// Entry is something that must reach the cloud: a task.result, a cmd.status or an event.
type Entry struct {
	ID          string // ULID; empty for a fresh one. An id that is there already changes nothing
	Type        wire.Type
	Body        any
	Attachments []wire.Attachment // Name, Type and Data
}

// Errors of the outbox.
var (
	// ErrFull means that the entry has no room, and that nothing may be dropped for it.
	ErrFull = errors.New("the outbox is full")
	// ErrTooLarge means that no frame of the entry would pass the broker.
	ErrTooLarge = errors.New("the entry is too large for a frame")
)

// Outbox keeps entries until the cloud has acknowledged them. What Put has
// returned for is on disk; an entry leaves when the cloud's own acknowledgement
// names it, never for what the broker says. It is safe for concurrent use.
type Outbox struct {
	bucket   Bucket
	limit    int64 // bytes of all entries
	maxFrame int
	clock    *cloudTime
	log      *slog.Logger
	wake     chan struct{} // something was put

	mu       sync.Mutex // guards what follows
	totals   totals     // as of the last commit
	asOf     int        // the transaction of totals
	reserved int
	suspects map[string]*suspect
}

// totals are kept in the bucket beside the entries.
type totals struct {
	Count   map[Class]int   `json:"count"`
	Bytes   map[Class]int64 `json:"bytes"`
	Pending int             `json:"pending"` // events dropped and not yet told
	Dropped uint64          `json:"dropped"`
	Refused int             `json:"refused"`
}

func (t totals) kept() int64 { return t.Bytes[Results] + t.Bytes[Statuses] }
func (t totals) all() int64  { return t.kept() + t.Bytes[Events] }

// Names inside the bucket.
var (
	bucketIDs     = []byte("outbox.ids") // id -> class and position
	bucketRefused = []byte("outbox.refused")
	keyTotals     = []byte("outbox.totals")
)

func entriesOf(c Class) []byte { return []byte("outbox." + string(c)) }

// openOutbox makes the buckets and counts what is there.
func openOutbox(o *Options, clock *cloudTime) (*Outbox, error) {
	box := &Outbox{
		bucket: o.Bucket, limit: o.OutboxBytes, maxFrame: o.MaxFrame, clock: clock,
		log: o.Logger, wake: make(chan struct{}, 1), suspects: map[string]*suspect{},
	}
	err := o.Bucket.Update(func(b *bolt.Bucket) error {
		for _, c := range classes {
			if _, err := b.CreateBucketIfNotExists(entriesOf(c)); err != nil {
				return err
			}
		}
		for _, name := range [][]byte{bucketIDs, bucketRefused} {
			if _, err := b.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return box.recount(b)
	})
	if err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	return box, nil
}

// recount reads every entry, sets aside what cannot be read, and counts the rest.
func (o *Outbox) recount(b *bolt.Bucket) error {
	t := o.load(b)
	t.Count, t.Bytes = map[Class]int{}, map[Class]int64{}
	for _, c := range classes {
		in := b.Bucket(entriesOf(c))
		var broken [][]byte
		err := in.ForEach(func(k, v []byte) error {
			if _, err := decodeEntry(v); err != nil || len(k) != 8 {
				o.log.Error("an entry of the outbox cannot be read and is gone", "class", c, "entry", fmt.Sprintf("%x", k), "bytes", len(v), "err", err)
				broken = append(broken, append([]byte(nil), k...))
				return nil
			}
			t.Count[c]++
			t.Bytes[c] += int64(len(v))
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range broken {
			if err := in.Delete(k); err != nil {
				return err
			}
		}
	}
	if err := dropLostIDs(b); err != nil {
		return err
	}
	t.Refused = b.Bucket(bucketRefused).Stats().KeyN
	return o.save(b, t)
}

// dropLostIDs forgets ids whose entry is gone.
func dropLostIDs(b *bolt.Bucket) error {
	ids := b.Bucket(bucketIDs)
	var lost [][]byte
	err := ids.ForEach(func(id, place []byte) error {
		if in, key := locate(b, place); in == nil || in.Get(key) == nil {
			lost = append(lost, append([]byte(nil), id...))
		}
		return nil
	})
	for _, id := range lost {
		err = errors.Join(err, ids.Delete(id))
	}
	return err
}

// locate finds the bucket and the key of a place: class, zero byte, position.
func locate(b *bolt.Bucket, place []byte) (in *bolt.Bucket, key []byte) {
	if len(place) < 9 {
		return nil, nil
	}
	class, key := place[:len(place)-9], place[len(place)-8:]
	return b.Bucket(entriesOf(Class(class))), key
}

func placeOf(c Class, key []byte) []byte { return append(append([]byte(c), 0), key...) }

func (o *Outbox) load(b *bolt.Bucket) totals {
	var t totals
	if raw := b.Get(keyTotals); raw != nil && json.Unmarshal(raw, &t) != nil {
		t = totals{}
	}
	if t.Count == nil || t.Bytes == nil {
		t.Count, t.Bytes = map[Class]int{}, map[Class]int64{}
	}
	return t
}

// save stores the totals and shows them to others when the transaction is on disk.
func (o *Outbox) save(b *bolt.Bucket, t totals) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := b.Put(keyTotals, raw); err != nil {
		return err
	}
	tx := b.Tx()
	id := tx.ID()
	tx.OnCommit(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if id >= o.asOf { // commits may be told in another order than they happened
			o.asOf, o.totals = id, t
		}
	})
	return nil
}

// Put commits an entry and returns its id; sending it is the link's business.
// Errors are [ErrFull], [ErrTooLarge] and those of the database. An event for
// which there is no room even without the older events is dropped and counted,
// which is no error.
func (o *Outbox) Put(e Entry) (id string, err error) {
	err = o.bucket.Update(func(b *bolt.Bucket) error {
		id, err = o.put(b, e)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// PutTx is Put as a part of a transaction of the same database: the entry is
// there if and only if the transaction is committed.
func (o *Outbox) PutTx(tx *bolt.Tx, e Entry) (id string, err error) {
	return o.put(o.bucket.In(tx), e)
}

func (o *Outbox) put(b *bolt.Bucket, e Entry) (string, error) {
	lane, ok := lanes[e.Type]
	if !ok {
		return "", fmt.Errorf("%s does not travel by the outbox", e.Type)
	}
	if e.ID == "" {
		now, _ := o.clock.Now()
		e.ID = wire.NewID(now)
	}
	if b.Bucket(bucketIDs).Get([]byte(e.ID)) != nil {
		return e.ID, nil
	}
	t := o.load(b)
	s, err := o.prepare(e, lane, t.Pending)
	if err != nil {
		return "", err
	}
	value, err := s.encode()
	if err != nil {
		return "", err
	}
	if lane.class == Results && len(value) > ResultRoom {
		return "", fmt.Errorf("%s: %w: %d bytes where a result has %d", e.Type, ErrTooLarge, len(value), ResultRoom)
	}
	fits, err := o.makeRoom(b, &t, lane.class, int64(len(value)))
	if err != nil {
		return "", err
	}
	if !fits {
		t.Pending++
		t.Dropped++
		return e.ID, o.save(b, t)
	}
	if lane.class == Events {
		// Making room may have dropped more, and what they had to tell.
		if s, err = o.prepare(e, lane, t.Pending); err != nil {
			return "", err
		}
		if value, err = s.encode(); err != nil {
			return "", err
		}
		t.Pending = 0
	}
	if err := o.store(b, lane.class, e.ID, value); err != nil {
		return "", err
	}
	t.Count[lane.class]++
	t.Bytes[lane.class] += int64(len(value))
	b.Tx().OnCommit(o.rouse)
	return e.ID, o.save(b, t)
}

func (o *Outbox) store(b *bolt.Bucket, c Class, id string, value []byte) error {
	in := b.Bucket(entriesOf(c))
	n, err := in.NextSequence()
	if err != nil {
		return err
	}
	key := binary.BigEndian.AppendUint64(nil, n)
	if err := in.Put(key, value); err != nil {
		return err
	}
	return b.Bucket(bucketIDs).Put([]byte(id), placeOf(c, key))
}

// rouse tells the session that there is something to send.
func (o *Outbox) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

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
