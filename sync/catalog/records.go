package catalog

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/sync/wire"
)

// Names inside the bucket.
var (
	keyState     = []byte("state")
	bucketSkills = []byte("skills") // id -> model.Row
	bucketBodies = []byte("bodies") // hash -> canonical JSON; some are only fetched, and nothing refers to them yet
	bucketHides  = []byte("hides")  // kind and name -> mark
)

// mark is a place in the history of a catalog.
type mark struct {
	Epoch   int64 `json:"epoch"`
	Version int64 `json:"version"`
}

// before reports whether m is earlier than n.
func (m mark) before(n mark) bool {
	return m.Epoch < n.Epoch || m.Epoch == n.Epoch && m.Version < n.Version
}

// state is what is applied, apart from the skills.
type state struct {
	Owner string `json:"owner"` // tenant and rack
	mark
	Issued        int64                     `json:"issued"` // milliseconds since 1970
	Expires       int64                     `json:"expires"`
	Subscriptions []model.SubscriptionState `json:"subscriptions"`
	Keys          []model.ManifestKey       `json:"keys,omitempty"` // those that are trusted; none: the enrolment's
	Enrolment     string                    `json:"enrolment"`      // the keys of the enrolment, as a bundle has them
	// Anew is set while no manifest was applied since the enrolment's keys changed. The next complete one counts
	// whatever its version: one that a stolen key has put into the far future would be in its way for ever.
	Anew bool `json:"anew,omitempty"`
}

// load reads what there is. It makes the buckets, and drops another rack's copy.
func (c *Catalog) load(b *bolt.Bucket) error {
	if raw := b.Get(keyState); raw != nil {
		if err := json.Unmarshal(raw, &c.state); err != nil {
			c.log.Error("the state of the catalog cannot be read: the catalog is fetched anew", "err", err)
			c.state = state{}
		}
	}
	if min(c.state.Issued, c.state.Expires) < 0 || max(c.state.Issued, c.state.Expires) > model.MaxTime {
		c.log.Error("the applied manifest is of a date before 1970 or past the year 9999: its skills serve as stale, and the catalog is fetched anew", "issued_ms", c.state.Issued, "expires_ms", c.state.Expires)
		c.state.Issued, c.state.Expires, c.whole = 0, 0, true
	}
	owner := c.o.Tenant + "/" + c.o.Rack
	if c.state.Owner != owner {
		for _, name := range [][]byte{bucketSkills, bucketBodies, bucketHides} {
			if b.Bucket(name) == nil {
				continue
			}
			if err := b.DeleteBucket(name); err != nil {
				return err
			}
		}
		c.state = state{Owner: owner}
	}
	for _, name := range [][]byte{bucketSkills, bucketBodies, bucketHides} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if keys := wire.FormatSkillKeys(c.o.Keys); c.state.Enrolment != keys {
		c.state.Enrolment, c.state.Keys, c.state.Anew = keys, nil, c.state.Version > 0
	}
	if err := put(b, keyState, c.state); err != nil {
		return err
	}
	return c.loadRecords(b)
}

func (c *Catalog) loadRecords(b *bolt.Bucket) error {
	c.stored, c.hides = map[string]int64{}, hides{}
	err := b.Bucket(bucketBodies).ForEach(func(hash, raw []byte) error {
		c.stored[string(hash)] = int64(len(raw))
		return nil
	})
	if err != nil {
		return err
	}
	err = b.Bucket(bucketSkills).ForEach(func(id, raw []byte) error {
		var r model.Row
		if err := json.Unmarshal(raw, &r); err != nil || r.ID != string(id) || c.stored[r.SHA256] != r.Size {
			c.log.Error("a skill of the catalog cannot be read: the catalog is fetched anew", "skill", fmt.Sprintf("%.64q", id))
			c.whole = true
			return nil
		}
		c.rows = append(c.rows, r)
		return nil
	})
	if err != nil {
		return err
	}
	return b.Bucket(bucketHides).ForEach(func(key, raw []byte) error {
		var m mark
		if err := json.Unmarshal(raw, &m); err != nil {
			// Nobody knows what must not come to light.
			c.log.Error("a record of what is hidden cannot be read: every skill is hidden until there is a complete list", "key", fmt.Sprintf("%.80q", key))
			c.hides[hiddenAll] = c.state.mark
		}
		c.hides[string(key)] = m
		return nil
	})
}

func put(b *bolt.Bucket, key []byte, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, raw)
}

// trusted are the keys that may sign. The caller holds mu.
func (c *Catalog) trusted() model.Keys {
	if len(c.state.Keys) == 0 {
		return c.o.Keys
	}
	keys := model.Keys{}
	for _, k := range c.state.Keys {
		keys[k.ID] = ed25519.PublicKey(k.Public)
	}
	return keys
}

func names(keys model.Keys) string { return strings.Join(slices.Sorted(maps.Keys(keys)), " ") }
