package firmware

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/health"
)

const maintenanceBucket = "maintenance"

// Why people want a slot left alone.
const (
	inside   = "maintenance" // hands may be inside
	darkened = "power"       // somebody has switched it off, until somebody switches it on

	separator = "+" // between both on disk
)

// occupied notes which slots people want left alone, 0 for the whole rack. It outlives a restart: hands may still be inside.
type occupied struct {
	bucket notes
	keeper *health.Keeper

	saving sync.Mutex // held from reading reasons until their change is on disk; before mu

	mu  sync.Mutex
	why map[int][]string // reasons of a slot, in order; replaced, never changed. Guarded by mu
}

// notes is where the reasons are kept; *store.Bucket is one.
type notes interface {
	View(fn func(*bolt.Bucket) error) error
	Update(fn func(*bolt.Bucket) error) error
}

// openHands reads what an earlier process has noted, and holds to it.
func (r *Rack) openHands(keeper *health.Keeper) (*occupied, error) {
	bucket, err := r.store.Bucket(maintenanceBucket)
	if err != nil {
		return nil, err
	}
	o := &occupied{bucket: bucket, keeper: keeper, why: map[int][]string{}}
	err = bucket.View(func(b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			if n, err := strconv.Atoi(string(k)); err == nil {
				o.why[n] = strings.Split(string(v), separator)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read which slots are in maintenance: %w", err)
	}
	for n := range o.why {
		o.tell(n)
	}
	if r.power != nil && len(o.why[0]) > 0 {
		r.power.SetMaintenance(true)
	}
	return o, nil
}

// set notes that there is such a reason to leave a slot, or for 0 the rack, alone, or that it is over. Either has its own end: that
// hands are out gives no power back. It is on disk when it returns nil.
func (o *occupied) set(slot int, reason string, is bool) error {
	o.saving.Lock()
	defer o.saving.Unlock()
	return o.note(slot, reason, is)
}

// note is set for who holds saving.
func (o *occupied) note(slot int, reason string, is bool) error {
	before := o.noted(slot)
	why := without(before, reason)
	if is {
		why = append(why, reason)
		slices.Sort(why)
	}
	if slices.Equal(why, before) {
		return nil
	}
	key := []byte(strconv.Itoa(slot))
	err := o.bucket.Update(func(b *bolt.Bucket) error {
		if len(why) == 0 {
			return b.Delete(key)
		}
		return b.Put(key, []byte(strings.Join(why, separator)))
	})
	if err != nil {
		return fmt.Errorf("write down that slot %d is left alone: %w", slot, err)
	}
	o.apply(slot, why)
	return nil
}

// apply has reasons count for this process. Saving is held.
func (o *occupied) apply(slot int, why []string) {
	o.mu.Lock()
	o.why[slot] = why
	o.mu.Unlock()
	o.tell(slot)
}

// forget ends a reason that does not hold, whatever the disk says: a slot that is noted there as dark, and has its power, is not dark
// for the next start either. One that somebody gives meanwhile comes after that.
func (o *occupied) forget(slot int, reason string) {
	o.saving.Lock()
	defer o.saving.Unlock()
	if o.note(slot, reason, false) != nil {
		o.apply(slot, without(o.noted(slot), reason))
	}
}

// overlook ends a reason for this process, and leaves it on disk.
func (o *occupied) overlook(slot int, reason string) {
	o.saving.Lock()
	defer o.saving.Unlock()
	o.apply(slot, without(o.noted(slot), reason))
}

// without are reasons but for one, in a slice of their own.
func without(reasons []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(reasons), func(r string) bool { return r == one })
}

// tell has the keeper of the slots' health know.
func (o *occupied) tell(slot int) {
	o.keeper.Maintain(slot, o.has(slot, inside))
	o.keeper.Dark(slot, o.has(slot, darkened))
}

func (o *occupied) noted(slot int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.why[slot]
}

// has tells whether there is such a reason to leave a slot, or for 0 the rack, alone.
func (o *occupied) has(slot int, reason string) bool {
	return slices.Contains(o.noted(slot), reason)
}

// of tells why a slot, or for 0 the rack, is left alone, for people: the hands when there are more reasons; "" if it is not.
func (o *occupied) of(slot int) string {
	if why := o.noted(slot); len(why) > 0 {
		return why[0]
	}
	return ""
}
