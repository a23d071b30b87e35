package fleet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"phonerack/sync/wire"
)

// Names inside the bucket.
var (
	keyNumbers        = []byte("numbers")
	bucketClaims      = []byte("claims")        // slot -> claimRecord
	bucketAttempts    = []byte("attempts")      // task/attempt -> attemptRecord
	bucketOver        = []byte("attempts.over") // order of the ends -> overRecord
	bucketCommands    = []byte("commands")      // sequence number -> commandRecord
	bucketCommandsEnd = []byte("commands.over") // sequence number -> milliseconds since the epoch
)

var buckets = [][]byte{bucketClaims, bucketAttempts, bucketOver, bucketCommands, bucketCommandsEnd}

// numbers are what must not be forgotten within a generation.
type numbers struct {
	Generation uint64  `json:"generation"`
	Watermark  *uint64 `json:"watermark,omitempty"` // of commands; absent before the first welcome
}

// claimRecord is a claim that was, or is about to be, sent.
type claimRecord struct {
	ID    string `json:"claim_id"`
	Phone string `json:"phone"`
}

// attemptRecord is a granted attempt whose result is not in the outbox.
type attemptRecord struct {
	TaskID  string        `json:"task_id"`
	Attempt int           `json:"attempt"`
	Slot    int           `json:"slot"`
	Phone   string        `json:"phone"`
	Skills  string        `json:"skills_version,omitempty"` // that the claim named
	Wrote   bool          `json:"wrote"`
	Release *wire.Refusal `json:"release,omitempty"` // it never started: the lease goes back with this
}

func (r attemptRecord) ref() wire.AttemptRef {
	return wire.AttemptRef{TaskID: r.TaskID, Attempt: r.Attempt}
}

// overRecord is an attempt that has ended. It must not start again, whatever the
// cloud sends twice.
type overRecord struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
	Slot    int    `json:"slot"`
	Wrote   bool   `json:"wrote"`
	Steps   int    `json:"steps"`
	Entry   string `json:"entry,omitempty"` // of the outbox; empty for a released one

	acked bool // the outbox does not hold it any more
}

// keepOver is how many ended attempts are remembered. The cloud can repeat the
// lease of a slot's last one only, so this is plenty.
const keepOver = 500

func keyOf(ref wire.AttemptRef) []byte { return fmt.Appendf(nil, "%s/%d", ref.TaskID, ref.Attempt) }

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func put(b *bolt.Bucket, key []byte, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, raw)
}

// get reads a record; ok is false if there is none, or none that can be read.
func get[T any](b *bolt.Bucket, key []byte) (v T, ok bool) {
	raw := b.Get(key)
	return v, raw != nil && json.Unmarshal(raw, &v) == nil
}

// load reads what an earlier process has left, after dropping what belongs to
// another generation.
func (f *Fleet) load() error {
	return f.o.Bucket.Update(func(b *bolt.Bucket) error {
		var n numbers
		if raw := b.Get(keyNumbers); raw != nil {
			if err := json.Unmarshal(raw, &n); err != nil {
				// Without the watermark commands would run twice: only a new generation helps.
				return fmt.Errorf("the numbers cannot be read: %w", err)
			}
		}
		if n.Generation != f.o.Generation {
			if err := renew(b); err != nil {
				return err
			}
			n = numbers{Generation: f.o.Generation}
			if err := put(b, keyNumbers, n); err != nil {
				return err
			}
		}
		for _, name := range buckets {
			if _, err := b.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		f.commands.watermark = n.Watermark
		return f.loadRecords(b)
	})
}

// renew drops all records.
func renew(b *bolt.Bucket) error {
	for _, name := range buckets {
		if err := b.DeleteBucket(name); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return err
		}
	}
	return nil
}

func (f *Fleet) loadRecords(b *bolt.Bucket) error {
	err := each(f, b.Bucket(bucketClaims), func(key []byte, r claimRecord) {
		if len(key) == 8 {
			// Nobody knows what became of it.
			f.claims[int(binary.BigEndian.Uint64(key))] = &claim{claimRecord: r, open: true}
		}
	})
	err = errors.Join(err, each(f, b.Bucket(bucketAttempts), func(_ []byte, r attemptRecord) {
		a := newAttempt(r)
		a.leftOver = r.Release == nil
		f.attempts[r.ref()] = a
	}))
	return errors.Join(err, each(f, b.Bucket(bucketOver), func(_ []byte, r overRecord) {
		f.over[wire.AttemptRef{TaskID: r.TaskID, Attempt: r.Attempt}] = r
	}))
}

// each reads every record of a bucket. One that cannot be read is logged and left.
func each[T any](f *Fleet, b *bolt.Bucket, fn func(key []byte, v T)) error {
	return b.ForEach(func(k, raw []byte) error {
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			f.log.Error("a record cannot be read", "key", fmt.Sprintf("%q", k), "err", err)
			return nil
		}
		fn(append([]byte(nil), k...), v)
		return nil
	})
}

// putOver writes an ended attempt down and forgets the oldest.
func putOver(b *bolt.Bucket, r overRecord) error {
	in := b.Bucket(bucketOver)
	n, err := in.NextSequence()
	if err != nil {
		return err
	}
	if n > keepOver {
		if err := in.Delete(number(n - keepOver)); err != nil {
			return err
		}
	}
	return put(in, number(n), r)
}
