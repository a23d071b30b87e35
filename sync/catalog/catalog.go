package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
)

// Bucket is a part of the rack's database.
type Bucket interface {
	View(fn func(*bolt.Bucket) error) error
	Update(fn func(*bolt.Bucket) error) error
}

// Defaults of Options.
const (
	DefaultEvery    = 15 * time.Minute
	DefaultMaxBytes = 64 << 20
)

// Options of a catalog. Platform, Bucket, Tenant, Rack and Now are needed.
type Options struct {
	Platform Platform
	Bucket   Bucket // of its own
	Tenant   string
	Rack     string
	Keys     model.Keys // of the enrolment: trusted until a manifest names others

	Every    time.Duration // between two polls; 0 is DefaultEvery
	MaxBytes int64         // of all bodies together; 0 is DefaultMaxBytes
	// Now is the time, and whether the rack knows it. If not, it is at least that at
	// which the applied manifest was issued.
	Now func() (now time.Time, trusted bool)
	// Ready returns when it makes sense to ask, nil for at once; Run calls it before each poll.
	Ready    func(ctx context.Context) error
	OnChange func() // after each change of the copy; it may ask the catalog, and not call Sync
	Logger   *slog.Logger

	Jitter func(limit time.Duration) time.Duration // a random time up to limit; for tests
}

// Catalog is a rack's copy of its catalog. It is safe for concurrent use.
type Catalog struct {
	o    Options
	log  *slog.Logger
	now  atomic.Pointer[model.Copy]
	kick chan struct{} // changes may be there

	syncing sync.Mutex // held by Sync; guards what follows
	whole   bool       // the next list has to be complete
	stored  map[string]int64

	mu      sync.Mutex // guards what follows, and is held while they are written down; never over an exchange
	state   state
	rows    []model.Row // by id
	hides   hides
	damaged map[string]bool // hashes of bodies that could not be read
	problem string
	tried   time.Time
	synced  time.Time
}

// Open reads the copy that an earlier process has left. The copy of another rack or
// tenant is dropped.
func Open(o Options) (*Catalog, error) {
	if o.Platform == nil || o.Bucket == nil || o.Tenant == "" || o.Rack == "" || o.Now == nil {
		return nil, errors.New("catalog: platform, bucket, tenant, rack and clock are needed")
	}
	o.Every = cmp.Or(o.Every, DefaultEvery)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnChange == nil {
		o.OnChange = func() {}
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.Jitter == nil {
		o.Jitter = func(limit time.Duration) time.Duration { return rand.N(max(1, limit)) }
	}
	c := &Catalog{o: o, log: o.Logger, kick: make(chan struct{}, 1), damaged: map[string]bool{}}
	if err := o.Bucket.Update(c.load); err != nil {
		return nil, fmt.Errorf("open the catalog of skills: %w", err)
	}
	c.publish()
	return c, nil
}

// Copy is the catalog as it is now.
func (c *Catalog) Copy() *model.Copy { return c.now.Load() }

// publish makes the copy that readers get. The caller holds mu, or is Open.
func (c *Catalog) publish() {
	c.now.Store(&model.Copy{
		Epoch: c.state.Epoch, Version: c.state.Version, Rows: c.rows, Subscriptions: c.state.Subscriptions,
		Hidden: c.hides.of(hiddenSkill), Closed: c.hides.of(hiddenSubscription), All: len(c.hides.of(hiddenAll)) > 0,
	})
}

// ErrGone tells that the copy has no skill of that entry.
var ErrGone = errors.New("the skill is not in the catalog any more")

// Skill reads a skill of the copy. Whether it may be shown is the caller's to ask.
// The error is ErrGone, or says what is wrong with the record, which the next poll
// fetches anew.
func (c *Catalog) Skill(e model.Entry) (*model.Skill, error) {
	var raw []byte
	err := c.o.Bucket.View(func(b *bolt.Bucket) error {
		raw = append(raw, b.Bucket(bucketBodies).Get([]byte(e.SHA256))...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s, err := model.OpenSkill(e, raw)
	if err == nil {
		return s, nil
	}
	c.mu.Lock()
	r, had := row(c.rows, e.ID)
	had = had && r.Entry == e
	if had {
		c.damaged[e.SHA256] = true
	}
	c.mu.Unlock()
	switch {
	case had:
		c.Poll() // which fetches it anew
		return nil, err
	case raw == nil:
		return nil, ErrGone
	}
	return nil, err
}

// Status is how the catalog does.
type Status struct {
	Synced        bool                      `json:"synced"` // a manifest was applied, by this process or an earlier one
	Epoch         int64                     `json:"epoch,omitempty"`
	Version       int64                     `json:"version,omitempty"`
	Skills        int                       `json:"skills"`
	Subscriptions []model.SubscriptionState `json:"subscriptions,omitempty"`
	Hidden        int                       `json:"hidden"`                  // hides that no complete list has lifted
	Issued        time.Time                 `json:"issued,omitzero"`         // of the applied manifest
	StaleSince    time.Time                 `json:"stale_since,omitzero"`    // when it expired; zero while it is fresh
	LastTried     time.Time                 `json:"last_tried,omitzero"`     // by this process
	LastSynced    time.Time                 `json:"last_synced,omitzero"`    // by this process, without a problem
	Problem       string                    `json:"problem,omitempty"`       // of the last try
	Platform      string                    `json:"platform_keys,omitempty"` // ids of the keys that are trusted
}

// Status tells how the catalog does.
func (c *Catalog) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{
		Synced: c.state.Version > 0, Epoch: c.state.Epoch, Version: c.state.Version, Skills: len(c.rows), Subscriptions: c.state.Subscriptions,
		Hidden: len(c.hides), LastTried: c.tried, LastSynced: c.synced, Problem: c.problem, Platform: names(c.trusted()),
	}
	if s.Synced {
		s.Issued = time.UnixMilli(c.state.Issued).UTC()
		if expires := time.UnixMilli(c.state.Expires).UTC(); !c.time().Before(expires) {
			s.StaleSince = expires
		}
	}
	return s
}

// time is the time as well as it is known. The caller holds mu.
func (c *Catalog) time() time.Time {
	now, trusted := c.o.Now()
	if issued := time.UnixMilli(c.state.Issued); !trusted && !c.state.Anew && now.Before(issued) {
		now = issued
	}
	return now.UTC()
}
