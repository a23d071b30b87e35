package phonebook

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/remembered"
)

// List returns all records, the attached phones' as they are now, by the time of their last sight, the newest first.
func (b *Book) List() ([]remembered.Phone, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := map[string]remembered.Phone{}
	for _, e := range b.entries {
		live[e.key] = e.record.Clone()
	}
	var all []remembered.Phone
	err := b.bucket.View(func(bucket *bolt.Bucket) error {
		return eachRecord(bucket, func(key string, record remembered.Phone) {
			if now, ok := live[key]; ok {
				record = now
			}
			all = append(all, record)
		})
	})
	slices.SortStableFunc(all, func(a, b remembered.Phone) int { return b.LastSeen.Compare(a.LastSeen) })
	return all, err
}

// eachRecord calls fn for each record that can be read.
func eachRecord(bucket *bolt.Bucket, fn func(key string, record remembered.Phone)) error {
	return bucket.ForEach(func(k, v []byte) error {
		var record remembered.Phone
		if bytes.HasPrefix(k, []byte(shared)) || json.Unmarshal(v, &record) != nil {
			return nil
		}
		fn(string(k), record)
		return nil
	})
}

// prune forgets phones beyond the bound, never an attached one.
func (b *Book) prune(bucket *bolt.Bucket) error {
	attached := map[string]bool{}
	for _, e := range b.entries {
		attached[e.key] = true
	}
	type aged struct {
		key    string
		record remembered.Phone
	}
	var all []aged
	if err := eachRecord(bucket, func(key string, record remembered.Phone) { all = append(all, aged{key, record}) }); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b aged) int {
		if c := b.record.LastSeen.Compare(a.record.LastSeen); c != 0 {
			return c
		}
		return strings.Compare(a.key, b.key)
	})
	for _, a := range all[min(maxRecords, len(all)):] {
		if attached[a.key] {
			continue
		}
		if err := bucket.Delete([]byte(a.key)); err != nil {
			return err
		}
	}
	return nil
}
