package firmware

import (
	"fmt"
	"strconv"
	"sync"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/health"
	"phonerack/firmware/store"
)

const maintenanceBucket = "maintenance"

// Why people want a slot left alone.
const (
	inside   = "maintenance" // hands may be inside
	darkened = "power"       // somebody has switched it off, until somebody switches it on
)

// occupied notes which slots people want left alone, 0 for the whole rack. It outlives a restart: hands may still be inside.
type occupied struct {
	bucket *store.Bucket
	keeper *health.Keeper

	mu  sync.Mutex
	why map[int]string // guarded by mu
}

// openHands reads what an earlier process has noted, and holds to it.
func (r *Rack) openHands(keeper *health.Keeper) (*occupied, error) {
	bucket, err := r.store.Bucket(maintenanceBucket)
	if err != nil {
		return nil, err
	}
	o := &occupied{bucket: bucket, keeper: keeper, why: map[int]string{}}
	err = bucket.View(func(b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			if n, err := strconv.Atoi(string(k)); err == nil {
				o.why[n] = string(v)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read which slots are in maintenance: %w", err)
	}
	for n := range o.why {
		keeper.Maintain(n, true)
	}
	if r.power != nil && o.why[0] != "" {
		r.power.SetMaintenance(true)
	}
	return o, nil
}

// set notes why a slot, or for 0 the rack, is left alone; "" ends it. It is on disk when it returns nil.
func (o *occupied) set(slot int, why string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.why[slot] == why {
		return nil
	}
	key := []byte(strconv.Itoa(slot))
	err := o.bucket.Update(func(b *bolt.Bucket) error {
		if why == "" {
			return b.Delete(key)
		}
		return b.Put(key, []byte(why))
	})
	if err != nil {
		return fmt.Errorf("write down that slot %d is left alone: %w", slot, err)
	}
	if o.why[slot] = why; why == "" {
		delete(o.why, slot)
	}
	o.keeper.Maintain(slot, why != "")
	return nil
}

// of tells why a slot, or for 0 the rack, is left alone; "" if it is not.
func (o *occupied) of(slot int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.why[slot]
}
