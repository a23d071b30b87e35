package link

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

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
