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
