package link

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/wire"
)

// floorStep is how far the time has to go on before it is stored again; each
// storing wears the card.
const floorStep = 10 * time.Minute

var keyNumbers = []byte("numbers")

// errStale means that a desired configuration is older than one that was here.
var errStale = errors.New("older than a version that was here")

// numbers are what a rack must not forget about its sessions.
type numbers struct {
	bucket Bucket
	mu     sync.Mutex // guards n, which is what is on disk
	n      storedNumbers
}

type storedNumbers struct {
	Generation uint64 `json:"generation"` // whose numbers these are
	Session    uint64 `json:"session"`    // the newest one
	Desired    uint64 `json:"desired"`    // version
	DesiredSum []byte `json:"desired_sum,omitempty"`
	Floor      int64  `json:"floor"` // last trusted time, milliseconds since the epoch
}

func openNumbers(o *Options) (*numbers, error) {
	n := &numbers{bucket: o.Bucket}
	err := o.Bucket.View(func(b *bolt.Bucket) error {
		raw := b.Get(keyNumbers)
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &n.n); err != nil {
			// A lower number would be taken for an old session: only a new generation helps.
			return fmt.Errorf("the numbers of the link cannot be read: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n.n.Generation != o.Generation {
		n.n = storedNumbers{Generation: o.Generation, Floor: n.n.Floor}
	}
	return n, nil
}

// change commits what fn makes of the numbers.
func (n *numbers) change(fn func(*storedNumbers) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := n.n
	if err := fn(&next); err != nil {
		return err
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := n.bucket.Update(func(b *bolt.Bucket) error { return b.Put(keyNumbers, raw) }); err != nil {
		return fmt.Errorf("store the numbers of the link: %w", err)
	}
	n.n = next
	return nil
}

// nextSession counts a session before anybody hears of it.
func (n *numbers) nextSession() (session uint64, err error) {
	err = n.change(func(s *storedNumbers) error {
		s.Session++
		session = s.Session
		return nil
	})
	return session, err
}

// goOn takes over the cloud's numbers where they are ahead.
func (n *numbers) goOn(session uint64) error {
	return n.change(func(s *storedNumbers) error {
		s.Session = max(s.Session, session)
		return nil
	})
}

// desire takes a desired configuration if none newer was here. The same version
// with the same content is taken again: nobody knows whether it was applied.
func (n *numbers) desire(d wire.Desired) error {
	sum := sha256.Sum256(d.Config)
	return n.change(func(s *storedNumbers) error {
		if d.Version < s.Desired || d.Version == s.Desired && s.DesiredSum != nil && string(s.DesiredSum) != string(sum[:]) {
			return errStale
		}
		s.Desired, s.DesiredSum = d.Version, sum[:]
		return nil
	})
}

func (n *numbers) floor() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.n.Floor == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n.n.Floor)
}

// raiseFloor stores a trusted time if it is much later than the last one.
func (n *numbers) raiseFloor(now time.Time) error {
	if now.Sub(n.floor()) < floorStep {
		return nil
	}
	return n.change(func(s *storedNumbers) error {
		s.Floor = max(s.Floor, now.UnixMilli())
		return nil
	})
}
