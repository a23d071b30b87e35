package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"phonerack/firmware/remembered"
	"phonerack/usb/adb"
)

const (
	keyFile  = "adbkey"
	nextFile = "adbkey.next"

	askFor   = 5 * time.Minute // that a phone is asked about the new key alone
	maxNamed = 100             // phones that a Status names
)

// Errors that a caller decides on.
var (
	ErrChanging    = errors.New("the ADB key is being changed already: see who has not taken the new one with rackctl adb-key status, and finish that first")
	ErrNotChanging = errors.New("the ADB key is not being changed: begin with rackctl adb-key rotate or import")
	ErrSameKey     = errors.New("the rack has this ADB key already")
	ErrMissing     = errors.New("phones have not taken the new ADB key yet: they would ask their person")
)

// Status is how the keys stand. Fingerprints are those that phones show.
type Status struct {
	Key   string `json:"key"`
	Known int    `json:"known"` // phones that have taken it
	Next  *Next  `json:"next,omitempty"`
}

// Next is a key that takes the other's place.
type Next struct {
	Key     string   `json:"key"`
	Known   int      `json:"known"`   // phones that have taken it
	Missing []string `json:"missing"` // phones that have taken a key, but not this; the first 100
	Left    int      `json:"left"`    // number of those
}

// Ring is safe for concurrent use.
type Ring struct {
	dir    string
	phones func() ([]remembered.Phone, error)
	now    func() time.Time

	mu     sync.Mutex
	key    *adb.Key          // guarded by mu, as is what follows
	next   *adb.Key          // nil unless keys change
	asking map[int]time.Time // until when the slot's phone is asked about next alone
}

// Open reads the keys in the folder, or makes one. It removes what a crash has left half written; the folder must be
// this process's alone. phones lists what is remembered of phones.
func Open(dir string, phones func() ([]remembered.Phone, error), now func() time.Time) (*Ring, error) {
	left, err := filepath.Glob(filepath.Join(dir, ".adbkey*-*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	r := &Ring{dir: dir, phones: phones, now: now, asking: map[int]time.Time{}}
	if r.key, err = adb.LoadOrCreateKey(r.path(keyFile)); err != nil {
		return nil, err
	}
	r.next, err = adb.LoadKey(r.path(nextFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r, nil
}

func (r *Ring) path(name string) string { return filepath.Join(r.dir, name) }

// Keys are what the phone in a slot is shown, in this order.
func (r *Ring) Keys(slot int) []*adb.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.next == nil:
		return []*adb.Key{r.key}
	case r.now().Before(r.asking[slot]):
		return []*adb.Key{r.next}
	}
	return []*adb.Key{r.next, r.key}
}

// Rotate begins to replace the key by a new one.
func (r *Ring) Rotate() (Status, error) {
	key, err := adb.NewKey()
	if err != nil {
		return Status{}, err
	}
	return r.change(key)
}

// change begins to replace the key.
func (r *Ring) change(key *adb.Key) (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.next != nil:
		return Status{}, ErrChanging
	case key.Fingerprint() == r.key.Fingerprint():
		return Status{}, ErrSameKey
	}
	if err := adb.SaveKey(r.path(nextFile), key); err != nil {
		return Status{}, err
	}
	r.next = key
	if _, err := r.settle(false); err != nil && !errors.Is(err, ErrMissing) {
		return Status{}, err
	}
	return r.status()
}

// Ask has the slot's phone asked about the new key alone, for five minutes: a phone that does not know it shows its
// question. The caller connects the phone anew. Afterwards the old key works again.
func (r *Ring) Ask(slot int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		return ErrNotChanging
	}
	r.asking[slot] = r.now().Add(askFor)
	return nil
}

// Asked tells whether the slot's phone is being asked, and ends that. A person's consent alone proves nothing: who asks
// connects the phone anew and sees.
func (r *Ring) Asked(slot int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.next != nil && r.now().Before(r.asking[slot])
	delete(r.asking, slot)
	return asked
}

// Noted is called when a phone in a slot has proved a key and its record says so. If that was the last phone that was
// waited for, the new key takes the old one's place, and done is true.
func (r *Ring) Noted(slot int, key *adb.Key) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil || key.Fingerprint() != r.next.Fingerprint() {
		return false, nil
	}
	delete(r.asking, slot)
	if done, err = r.settle(false); errors.Is(err, ErrMissing) {
		err = nil
	}
	return done, err
}

// Finish puts the new key in the old one's place. Without force it fails with ErrMissing while a phone has not taken it.
func (r *Ring) Finish(force bool) (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		return Status{}, ErrNotChanging
	}
	if _, err := r.settle(force); err != nil {
		return Status{}, err
	}
	return r.status()
}

// settle finishes the change if nobody has to be waited for; mu is held.
func (r *Ring) settle(force bool) (bool, error) {
	if !force {
		s, err := r.status()
		if err != nil {
			return false, err
		}
		if s.Next.Left > 0 {
			return false, fmt.Errorf("%w (%d)", ErrMissing, s.Next.Left)
		}
	}
	if err := os.Rename(r.path(nextFile), r.path(keyFile)); err != nil {
		return false, fmt.Errorf("put the new ADB key in its place: %w", err)
	}
	r.key, r.next = r.next, nil
	clear(r.asking)
	d, err := os.Open(r.dir)
	if err != nil {
		return true, err
	}
	return true, errors.Join(d.Sync(), d.Close())
}

// Status tells how the keys stand.
func (r *Ring) Status() (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status()
}

func (r *Ring) status() (Status, error) {
	phones, err := r.phones()
	if err != nil {
		return Status{}, fmt.Errorf("read who knows the ADB key: %w", err)
	}
	s := Status{Key: r.key.Fingerprint(), Known: knowing(phones, r.key.Fingerprint())}
	if r.next == nil {
		return s, nil
	}
	s.Next = &Next{Key: r.next.Fingerprint(), Known: knowing(phones, r.next.Fingerprint()), Missing: []string{}}
	for _, p := range phones {
		if len(p.Keys) == 0 || slices.Contains(p.Keys, s.Next.Key) {
			continue // a phone that takes no key, or has taken this
		}
		if s.Next.Left++; s.Next.Left <= maxNamed {
			s.Next.Missing = append(s.Next.Missing, name(p))
		}
	}
	return s, nil
}

func knowing(phones []remembered.Phone, fingerprint string) int {
	n := 0
	for _, p := range phones {
		if slices.Contains(p.Keys, fingerprint) {
			n++
		}
	}
	return n
}

// name is how people find a phone.
func name(p remembered.Phone) string {
	if p.Serial == "" {
		return fmt.Sprintf("slot %d", p.Slot)
	}
	return fmt.Sprintf("slot %d, %s", p.Slot, p.Serial)
}
