package phonebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/remembered"
	"phonerack/firmware/store"
)

// BucketName is the bucket that belongs to this package.
const BucketName = "phones"

// Bounds of the book.
const (
	maxPackages = 5000    // of a baseline
	maxRecord   = 1 << 20 // bytes of a record, as JSON
	maxRecords  = 1000    // phones that are not attached are forgotten beyond these, the longest unseen first
	bySerial    = "serial:"
	bySlot      = "slot:"
	shared      = "shared:" // serial numbers that more than one phone has
)

var (
	// ErrTooLarge means that a record is larger than its bound.
	ErrTooLarge = errors.New("the phone's record is too large")

	// ErrDetached means that the phone of an entry is gone.
	ErrDetached = errors.New("the phone is not in its slot any longer")
)

// Book holds the records of a rack. It is safe for concurrent use.
type Book struct {
	bucket *store.Bucket
	now    func() time.Time

	mu      sync.Mutex
	entries map[int]*Entry // guarded by mu; the attached ones, by slot
}

// Entry is the record of an attached phone. It is safe for concurrent use.
type Entry struct {
	book *Book
	slot int

	// Guarded by book.mu.
	serial string // as the phone says it
	key    string
	record remembered.Phone
	noted  bool // record has changes that are not on disk
}

// Open returns the book over its bucket.
func Open(bucket *store.Bucket, now func() time.Time) *Book {
	return &Book{bucket: bucket, now: now, entries: map[int]*Entry{}}
}

// Lookup returns what is known of a phone before it is attached, such as the ways to begin with; the zero record if nothing
// is.
func (b *Book) Lookup(slot int, serial string) remembered.Phone {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &Entry{book: b, slot: slot, serial: serial}
	if err := b.load(e); err != nil {
		return remembered.Phone{}
	}
	return e.record
}

// Attach returns the entry of the phone that is in the slot now. If a phone with the same serial number sits in another
// slot already, both are known by their slots from here on. An entry that the slot had before is detached. What is known by
// a slot alone begins anew when another model sits there.
func (b *Book) Attach(slot int, serial, model string) (*Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.entries[slot]; old != nil {
		if err := b.write(old); err != nil {
			return nil, err
		}
		delete(b.entries, slot)
	}
	var twin *Entry
	for _, e := range b.entries {
		if serial != "" && e.serial == serial {
			twin = e
		}
	}
	if twin != nil {
		if err := b.share(serial, twin); err != nil {
			return nil, err
		}
	}
	e := &Entry{book: b, slot: slot, serial: serial}
	if err := b.load(e); err != nil {
		return nil, fmt.Errorf("read the record of the phone in slot %d: %w", slot, err)
	}
	if e.key == slotKey(slot) && e.record.Model != model {
		e.record = remembered.Phone{}
	}
	now := b.now().UTC()
	if e.record.FirstSeen.IsZero() {
		e.record.FirstSeen = now
	}
	e.record.LastSeen, e.record.Slot, e.record.Model = now, slot, model
	if err := b.write(e); err != nil {
		return nil, err
	}
	b.entries[slot] = e
	return e, nil
}

// share notes that the serial number tells nothing, and gives the phone that had it alone until now a record by its slot.
// What was remembered under the number may be about either phone and is left behind.
// All of it is one transaction, so that no crash leaves the twin without its mark of being out of order.
func (b *Book) share(serial string, twin *Entry) error {
	alone := twin.key == bySerial+serial
	moved := *twin
	var raw []byte
	if alone {
		now := b.now().UTC()
		moved.key = slotKey(twin.slot)
		moved.record = remembered.Phone{Slot: twin.slot, Model: twin.record.Model, Android: twin.record.Android, FirstSeen: now, LastSeen: now, Dirty: twin.record.Dirty}
		var err error
		if raw, err = moved.encode(); err != nil {
			return err
		}
	}
	err := b.bucket.Update(func(bucket *bolt.Bucket) error {
		if err := bucket.Delete([]byte(bySerial + serial)); err != nil {
			return err
		}
		if alone {
			if err := bucket.Put([]byte(moved.key), raw); err != nil {
				return err
			}
		}
		return bucket.Put([]byte(shared+serial), []byte("1"))
	})
	if err != nil {
		return fmt.Errorf("note that two phones share a serial number: %w", err)
	}
	if alone {
		twin.key, twin.record, twin.noted = moved.key, moved.record, false
	}
	return nil
}

func slotKey(slot int) string { return bySlot + strconv.Itoa(slot) }

// load finds the key of an entry and reads its record. A record that cannot be read begins anew.
func (b *Book) load(e *Entry) error {
	return b.bucket.View(func(bucket *bolt.Bucket) error {
		e.key = slotKey(e.slot)
		if e.serial != "" && bucket.Get([]byte(shared+e.serial)) == nil {
			e.key = bySerial + e.serial
		}
		var record remembered.Phone
		if raw := bucket.Get([]byte(e.key)); raw != nil && json.Unmarshal(raw, &record) == nil {
			e.record = record
		}
		if e.key == bySerial+e.serial {
			e.record.Serial = e.serial
		}
		return nil
	})
}

// write commits an entry's record. b.mu is held.
func (b *Book) write(e *Entry) error {
	raw, err := e.encode()
	if err != nil {
		return err
	}
	err = b.bucket.Update(func(bucket *bolt.Bucket) error { return bucket.Put([]byte(e.key), raw) })
	if err != nil {
		return fmt.Errorf("write the record of the phone in slot %d: %w", e.slot, err)
	}
	e.noted = false
	return nil
}

func (e *Entry) encode() ([]byte, error) {
	if e.record.Baseline != nil && len(e.record.Baseline.Packages) > maxPackages {
		return nil, fmt.Errorf("%w: %d apps, at most %d", ErrTooLarge, len(e.record.Baseline.Packages), maxPackages)
	}
	raw, err := json.Marshal(e.record)
	if err != nil {
		return nil, fmt.Errorf("encode the record of the phone in slot %d: %w", e.slot, err)
	}
	if len(raw) > maxRecord {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(raw), maxRecord)
	}
	return raw, nil
}

// Record returns a copy of what is remembered.
func (e *Entry) Record() remembered.Phone {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	return e.record.Clone()
}

// Update lets fn change the record. The change is on disk when Update returns nil, and has not happened otherwise.
func (e *Entry) Update(fn func(*remembered.Phone)) error {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	if !e.attached() {
		return ErrDetached
	}
	before := e.record.Clone()
	fn(&e.record)
	if err := e.book.write(e); err != nil {
		e.record = before
		return err
	}
	return nil
}

// Note lets fn change the record in memory. It is on disk after the next Update, Flush or Detach.
func (e *Entry) Note(fn func(*remembered.Phone)) {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	fn(&e.record)
	e.noted = true
}

// attached tells whether the entry is its slot's present one. book.mu is held.
func (e *Entry) attached() bool { return e.book.entries[e.slot] == e }

// Detach ends the entry: the phone is gone. What was noted is written.
func (e *Entry) Detach() error {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	if !e.attached() {
		return nil // another phone sits there already
	}
	delete(e.book.entries, e.slot)
	e.record.LastSeen = e.book.now().UTC()
	return e.book.write(e)
}

// Flush writes everything that was noted in one transaction, and forgets the phones that were unseen longest if there are
// too many.
func (b *Book) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	raws := map[*Entry][]byte{}
	for _, e := range b.entries {
		if !e.noted {
			continue
		}
		raw, err := e.encode()
		if err != nil {
			return err
		}
		raws[e] = raw
	}
	if len(raws) == 0 {
		return nil
	}
	err := b.bucket.Update(func(bucket *bolt.Bucket) error {
		for e, raw := range raws {
			if err := bucket.Put([]byte(e.key), raw); err != nil {
				return err
			}
		}
		return b.prune(bucket)
	})
	if err != nil {
		return fmt.Errorf("write the records of phones: %w", err)
	}
	for e := range raws {
		e.noted = false
	}
	return nil
}
