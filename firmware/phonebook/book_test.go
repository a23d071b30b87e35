package phonebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/remembered"
	"phonerack/firmware/store"
)

// shelf is a database that can be opened again.
type shelf struct {
	t     *testing.T
	path  string
	store *store.Store
	clock time.Time
}

func newShelf(t *testing.T) *shelf {
	return &shelf{t: t, path: filepath.Join(t.TempDir(), "rackd.db"), clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (s *shelf) now() time.Time {
	s.clock = s.clock.Add(time.Minute)
	return s.clock
}

func (s *shelf) open() (*Book, *store.Bucket) {
	s.t.Helper()
	var err error
	if s.store, err = store.Open(store.Options{Path: s.path}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.store.Close() })
	bucket, err := s.store.Bucket(BucketName)
	if err != nil {
		s.t.Fatal(err)
	}
	return Open(bucket, s.now), bucket
}

func attach(t *testing.T, b *Book, slot int, serial, model string) *Entry {
	t.Helper()
	e, err := b.Attach(slot, serial, model)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWhatWasLearntFollowsThePhoneFromSlotToSlotAndOverRestarts(t *testing.T) {
	s := newShelf(t)
	book, _ := s.open()
	e := attach(t, book, 1, "R58N", "Pixel")
	err := e.Update(func(r *remembered.Phone) {
		r.Strategies = json.RawMessage(`{"tree":"stock"}`)
		r.Baseline = &remembered.Baseline{Packages: []string{"a.b"}, At: s.clock}
		r.KeyUsed = s.clock
		r.Dirty = &remembered.Dirty{Task: "t1", Since: s.clock}
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Note(func(r *remembered.Phone) { r.AddReading(remembered.Reading{At: s.clock, Level: 50, Tenths: 301}) })
	if err := e.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}

	book, _ = s.open()
	got := attach(t, book, 7, "R58N", "Pixel").Record()
	if string(got.Strategies) != `{"tree":"stock"}` || got.Baseline == nil || len(got.Baseline.Packages) != 1 || got.Dirty == nil ||
		got.Dirty.Task != "t1" || got.KeyUsed.IsZero() || len(got.Battery) != 1 || got.Slot != 7 || got.Serial != "R58N" {
		t.Errorf("got %+v", got)
	}
	if !got.FirstSeen.Before(got.LastSeen) {
		t.Errorf("first seen %s, last seen %s", got.FirstSeen, got.LastSeen)
	}
	if other := attach(t, book, 1, "OTHER", "Pixel").Record(); other.Baseline != nil || other.Dirty != nil {
		t.Errorf("another phone in the slot has %+v", other)
	}
}

func TestASerialNumberThatTwoPhonesHaveTellsNothingEverAfter(t *testing.T) {
	s := newShelf(t)
	book, _ := s.open()
	first := attach(t, book, 1, "0123456789ABCDEF", "Box")
	if err := first.Update(func(r *remembered.Phone) { r.Baseline = &remembered.Baseline{Packages: []string{"first"}} }); err != nil {
		t.Fatal(err)
	}
	second := attach(t, book, 2, "0123456789ABCDEF", "Box")
	for _, e := range []*Entry{first, second} {
		if r := e.Record(); r.Serial != "" || r.Baseline != nil {
			t.Errorf("slot %d: %+v", e.slot, r)
		}
	}
	if err := second.Update(func(r *remembered.Phone) { r.Baseline = &remembered.Baseline{Packages: []string{"second"}} }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Detach(), second.Detach(), s.store.Close()); err != nil {
		t.Fatal(err)
	}

	book, _ = s.open()
	if r := attach(t, book, 2, "0123456789ABCDEF", "Box").Record(); r.Serial != "" || r.Baseline == nil || r.Baseline.Packages[0] != "second" {
		t.Errorf("alone after a restart: %+v", r)
	}
	if r := attach(t, book, 3, "0123456789ABCDEF", "Box").Record(); r.Baseline != nil {
		t.Errorf("in a slot where it never was: %+v", r)
	}
	if r := attach(t, book, 2, "", "Phone"); r.Record().Baseline != nil {
		t.Errorf("another model without a number in the slot: %+v", r.Record())
	}
}

func TestAPhoneWhoseSerialNumberTurnsOutToBeSharedKeepsItsMarkWhateverHappens(t *testing.T) {
	s := newShelf(t)
	book, bucket := s.open()
	commits := func() (n int) {
		t.Helper()
		if err := bucket.View(func(b *bolt.Bucket) error { n = b.Tx().ID(); return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	twin := attach(t, book, 1, "0123456789ABCDEF", "Clone")
	if err := twin.Update(func(r *remembered.Phone) { r.Dirty = &remembered.Dirty{Task: "a"} }); err != nil {
		t.Fatal(err)
	}
	before := commits()
	if err := book.share(twin.serial, twin); err != nil {
		t.Fatal(err)
	}
	if n := commits() - before; n != 1 {
		t.Errorf("%d transactions: after a crash between them the mark is lost", n)
	}
	if dirty := book.Lookup(1, twin.serial).Dirty; dirty == nil || dirty.Task != "a" {
		t.Errorf("on disk: %+v", dirty)
	}

	alone := attach(t, book, 2, "77", "Clone")
	if err := alone.Update(func(r *remembered.Phone) { r.Dirty = &remembered.Dirty{Task: "b"} }); err != nil {
		t.Fatal(err)
	}
	s.store.Close()
	if _, err := book.Attach(3, "77", "Clone"); err == nil {
		t.Fatal("written to a closed database")
	}
	if alone.key != bySerial+"77" || alone.Record().Serial != "77" {
		t.Errorf("what was not written happened in memory: %s %+v", alone.key, alone.Record())
	}
}

func TestAPhoneThatIsGoneIsNotWrittenAnyMore(t *testing.T) {
	s := newShelf(t)
	book, _ := s.open()
	old := attach(t, book, 1, "A", "m")
	now := attach(t, book, 1, "A", "m") // a reconnect before the old session has ended
	if err := now.Update(func(r *remembered.Phone) { r.Android = "14" }); err != nil {
		t.Fatal(err)
	}
	if err := old.Update(func(r *remembered.Phone) { r.Android = "4" }); !errors.Is(err, ErrDetached) {
		t.Errorf("got %v", err)
	}
	if err := old.Detach(); err != nil {
		t.Fatal(err)
	}
	if got := attach(t, book, 1, "A", "m").Record(); got.Android != "14" {
		t.Errorf("got %+v", got)
	}
}

func TestARecordThatIsTooLargeOrFailsIsNotChanged(t *testing.T) {
	s := newShelf(t)
	book, _ := s.open()
	e := attach(t, book, 1, "A", "m")
	if err := e.Update(func(r *remembered.Phone) { r.Baseline = &remembered.Baseline{Packages: make([]string, maxPackages+1)} }); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if err := e.Update(func(r *remembered.Phone) { r.Model = string(make([]byte, maxRecord)) }); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if got := e.Record(); got.Baseline != nil || got.Model != "m" {
		t.Errorf("got %+v", got)
	}
}

func TestADamagedRecordBeginsAnew(t *testing.T) {
	s := newShelf(t)
	book, bucket := s.open()
	if err := bucket.Update(func(b *bolt.Bucket) error { return b.Put([]byte("serial:A"), []byte(`{"slot":`)) }); err != nil {
		t.Fatal(err)
	}
	if got := attach(t, book, 1, "A", "m").Record(); got.Serial != "A" || got.Slot != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestNotesAreWrittenTogetherAndBounded(t *testing.T) {
	s := newShelf(t)
	book, bucket := s.open()
	var entries []*Entry
	for slot := 1; slot <= 40; slot++ {
		entries = append(entries, attach(t, book, slot, fmt.Sprint("S", slot), "m"))
	}
	for range 288 + 5 {
		for _, e := range entries {
			e.Note(func(r *remembered.Phone) { r.AddReading(remembered.Reading{Level: e.slot}) })
		}
	}
	if err := book.Flush(); err != nil {
		t.Fatal(err)
	}
	var onDisk remembered.Phone
	err := bucket.View(func(b *bolt.Bucket) error { return json.Unmarshal(b.Get([]byte("serial:S40")), &onDisk) })
	if err != nil || len(onDisk.Battery) != 288 || onDisk.Battery[0].Level != 40 {
		t.Errorf("%d readings, %v", len(onDisk.Battery), err)
	}
}

func TestTheLongestUnseenPhonesAreForgotten(t *testing.T) {
	s := newShelf(t)
	book, bucket := s.open()
	err := bucket.Update(func(b *bolt.Bucket) error {
		for n := range maxRecords + 10 {
			raw, err := json.Marshal(remembered.Phone{Serial: fmt.Sprint("OLD", n), LastSeen: time.Unix(int64(n), 0)})
			if err == nil {
				err = b.Put([]byte(fmt.Sprint("serial:OLD", n)), raw)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e := attach(t, book, 1, "OLD0", "m") // the oldest of all, and plugged in
	e.Note(func(r *remembered.Phone) { r.Android = "9" })
	if err := book.Flush(); err != nil {
		t.Fatal(err)
	}
	all, err := book.List()
	if err != nil || len(all) != maxRecords || all[0].Serial != "OLD0" || all[len(all)-1].Serial != "OLD11" {
		t.Errorf("%d records, %q to %q, %v", len(all), all[0].Serial, all[len(all)-1].Serial, err)
	}
}

func TestAnAttachedPhoneIsNotForgottenHoweverManyComeAfterIt(t *testing.T) {
	s := newShelf(t)
	book, bucket := s.open()
	e := attach(t, book, 1, "STAYS", "m")
	err := bucket.Update(func(b *bolt.Bucket) error {
		for n := range maxRecords {
			raw, err := json.Marshal(remembered.Phone{Serial: fmt.Sprint("LATER", n), LastSeen: s.clock.Add(time.Hour)})
			if err == nil {
				err = b.Put([]byte(fmt.Sprint("serial:LATER", n)), raw)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Note(func(r *remembered.Phone) { r.Android = "9" })
	if err := book.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := book.Lookup(2, "STAYS"); got.Android != "9" {
		t.Errorf("%+v", got)
	}
}

func TestWhatWasNotedIsKeptWhenAnotherPhoneTakesTheSlot(t *testing.T) {
	book, _ := newShelf(t).open()
	old := attach(t, book, 1, "OLD", "Pixel")
	old.Note(func(r *remembered.Phone) { r.Android = "9" })
	attach(t, book, 1, "NEW", "Pixel")
	if got := book.Lookup(2, "OLD"); got.Android != "9" {
		t.Errorf("%+v", got)
	}
}

func TestASharedSerialNumberHasNoRecordLeft(t *testing.T) {
	book, _ := newShelf(t).open()
	attach(t, book, 1, "TWIN", "Pixel")
	attach(t, book, 2, "TWIN", "Pixel")
	all, err := book.List()
	if err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, r := range all {
		if r.Serial != "" {
			t.Errorf("a record by the number that tells nothing: %+v", r)
		}
	}
}

func TestARecordHasABound(t *testing.T) {
	book, _ := newShelf(t).open()
	e := attach(t, book, 1, "BIG", "Pixel")
	raw := fmt.Appendf(nil, "%q", make([]byte, maxRecord/4)) // each is four characters
	if err := e.Update(func(r *remembered.Phone) { r.Model = string(raw) }); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if got := e.Record(); got.Model != "Pixel" {
		t.Errorf("a change that was refused has happened: a model of %d bytes", len(got.Model))
	}
}

func TestWhatIsReadOfARecordIsACopy(t *testing.T) {
	book, _ := newShelf(t).open()
	e := attach(t, book, 1, "R58N", "Pixel")
	e.Note(func(r *remembered.Phone) { r.AddReading(remembered.Reading{Level: 50}) })
	e.Record().Battery[0].Level = 1
	if got := e.Record().Battery[0].Level; got != 50 {
		t.Errorf("whoever reads a record changes it: %d", got)
	}
}
