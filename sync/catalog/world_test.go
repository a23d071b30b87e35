package catalog_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"phonerack/agent/skill/model"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform is a platform that a test rules. It implements catalog.Platform for the rack r1.
type platform struct {
	mu      sync.Mutex // guards what follows
	now     func() time.Time
	page    int   // bytes of a page
	part    int64 // likewise of a body
	epoch   int64
	version int64
	skills  map[string]*model.Skill
	subs    map[string]model.SubscriptionState
	changed map[string]int64 // by id: the version that changed or removed it
	entitle int64            // version that changed subscriptions last
	keys    map[string]ed25519.PrivateKey
	named   []string // keys that manifests name; none for nil
	signs   string

	asked []wire.SkillChanges
	blobs int // that were asked for
	// alter is called with each page, and may change it; cut ends a request with an error.
	alter func(n int, p *wire.SkillManifest)
	cut   func(what string) error
	edit  func(*model.Manifest)   // before it is signed
	text  func(raw []byte) []byte // of what our own writer does not write, before it is signed
	body  func(raw []byte) []byte
	coded map[*model.Skill][]byte
	sums  map[*model.Skill]string
	held  map[string]signed // by page token
}

type signed struct {
	raw, sig []byte
	key      string
}

func key(seed string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", seed)))
}

func newPlatform(now func() time.Time) *platform {
	return &platform{
		now: now, page: 200, part: 200, epoch: 3, version: 1, skills: map[string]*model.Skill{}, changed: map[string]int64{},
		subs: map[string]model.SubscriptionState{"social": {ID: "social", State: model.Active}},
		keys: map[string]ed25519.PrivateKey{"k1": key("k1")}, signs: "k1", held: map[string]signed{},
		coded: map[*model.Skill][]byte{}, sums: map[*model.Skill]string{},
	}
}

func (p *platform) public(ids ...string) model.Keys {
	keys := model.Keys{}
	for _, id := range ids {
		keys[id] = p.keys[id].Public().(ed25519.PublicKey)
	}
	return keys
}

func tips(id, version, subscription string) *model.Skill {
	return &model.Skill{
		ID: id, Name: "Tips " + id, Description: "About " + id, Kind: model.Knowledge, Version: version, Subscription: subscription,
		UpdatedAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Content: strings.Repeat("text of "+id+" "+version+". ", 10),
	}
}

// publish puts skills in place, as one version each.
func (p *platform) publish(all ...*model.Skill) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range all {
		p.version++
		p.skills[s.ID], p.changed[s.ID] = s, p.version
	}
}

func (p *platform) remove(id string) wire.SkillChanged {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	delete(p.skills, id)
	p.changed[id] = p.version
	return wire.SkillChanged{Epoch: p.epoch, Version: p.version, Removed: []string{id}}
}

// subscribe sets a subscription's state, and gives the hint about it.
func (p *platform) subscribe(id, state string, agents ...string) wire.SkillChanged {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version++
	p.entitle = p.version
	p.subs[id] = model.SubscriptionState{ID: id, State: state, Agents: agents}
	return wire.SkillChanged{Epoch: p.epoch, Version: p.version, Subscription: id, State: state}
}

// entitled are the skills that the rack has.
func (p *platform) entitled() map[string]*model.Skill {
	all := map[string]*model.Skill{}
	for id, s := range p.skills {
		if p.subs[s.Subscription].State == model.Active {
			all[id] = s
		}
	}
	return all
}

func (p *platform) manifest(since int64) *model.Manifest {
	m := &model.Manifest{
		Rack: "r1", Epoch: p.epoch, Version: p.version, Complete: since == 0, Since: since,
		Issued: p.now().UnixMilli(), Expires: p.now().Add(24 * time.Hour).UnixMilli(),
	}
	mine := p.entitled()
	for _, id := range slices.Sorted(maps.Keys(mine)) {
		if since > 0 && p.changed[id] <= since {
			continue
		}
		m.Skills = append(m.Skills, model.EntryOf(mine[id], p.encoded(mine[id])))
	}
	for id, at := range p.changed {
		if since > 0 && at > since && mine[id] == nil {
			m.Removed = append(m.Removed, id)
		}
	}
	slices.Sort(m.Removed)
	for _, id := range slices.Sorted(maps.Keys(p.subs)) {
		m.Subscriptions = append(m.Subscriptions, p.subs[id])
	}
	for _, id := range p.named {
		m.Keys = append(m.Keys, model.ManifestKey{ID: id, Public: p.keys[id].Public().(ed25519.PublicKey)})
	}
	if p.edit != nil {
		p.edit(m)
	}
	return m
}

// sum is the hash of a skill's canonical JSON.
func (p *platform) sum(s *model.Skill) string {
	if p.sums[s] == "" {
		p.sums[s] = model.Sum(p.encoded(s))
	}
	return p.sums[s]
}

// encoded is a skill's canonical JSON.
func (p *platform) encoded(s *model.Skill) []byte {
	if p.coded[s] == nil {
		raw, err := s.Encode()
		if err != nil {
			panic(err)
		}
		p.coded[s] = raw
	}
	return p.coded[s]
}

// sign makes a manifest's bytes and signature.
func (p *platform) sign(m *model.Manifest) signed {
	raw, err := m.Encode()
	if err != nil {
		panic(err)
	}
	if p.text != nil {
		raw = p.text(raw)
	}
	return signed{raw, model.SignManifest(p.keys[p.signs], raw), p.signs}
}

func (p *platform) Changes(_ context.Context, ask wire.SkillChanges) (wire.SkillManifest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, ask)
	if p.cut != nil {
		if err := p.cut("changes"); err != nil {
			return wire.SkillManifest{}, err
		}
	}
	var s signed
	offset := 0
	if ask.Page == "" {
		if ask.Since > 0 && (ask.Epoch != p.epoch || ask.Since > p.version || ask.Since < p.entitle) {
			return wire.SkillManifest{}, wire.Refuse(wire.ResyncRequired, map[string]any{"reason": "test"})
		}
		s = p.sign(p.manifest(ask.Since))
	} else {
		var token string
		if _, err := fmt.Sscanf(ask.Page, "%s %d", &token, &offset); err != nil {
			panic(err)
		}
		s = p.held[token]
	}
	end := min(len(s.raw), offset+p.page)
	page := wire.SkillManifest{Manifest: s.raw[offset:end], Offset: int64(offset), Size: int64(len(s.raw)), Sig: s.sig, KeyID: s.key}
	if end < len(s.raw) {
		token := model.Sum(s.raw)
		p.held[token] = s
		page.NextPage = fmt.Sprintf("%s %d", token, end)
	}
	if p.alter != nil {
		p.alter(offset/p.page, &page)
	}
	return page, nil
}

func (p *platform) Blob(_ context.Context, ask wire.BlobGet) (wire.BlobData, []byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blobs++
	if p.cut != nil {
		if err := p.cut("blob"); err != nil {
			return wire.BlobData{}, nil, err
		}
	}
	for _, s := range p.entitled() {
		if raw := p.encoded(s); p.sum(s) == ask.SHA256 {
			size := int64(len(raw))
			if p.body != nil {
				raw = p.body(raw)
			}
			return wire.BlobData{SHA256: ask.SHA256, Offset: ask.Offset, Size: size}, raw[ask.Offset:min(int64(len(raw)), ask.Offset+p.part)], nil
		}
	}
	return wire.BlobData{}, nil, wire.Refuse(wire.NotFound, map[string]any{"what": "blob", "id": ask.SHA256})
}

// bucket is the root of a database of its own.
type bucket struct {
	db     *bolt.DB
	before func() error // called before each Update; may be nil
}

func (b bucket) View(fn func(*bolt.Bucket) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return fn(tx.Bucket([]byte("catalog"))) })
}

func (b bucket) Update(fn func(*bolt.Bucket) error) error {
	if b.before != nil {
		if err := b.before(); err != nil {
			return err
		}
	}
	return b.db.Update(func(tx *bolt.Tx) error {
		in, err := tx.CreateBucketIfNotExists([]byte("catalog"))
		if err != nil {
			return err
		}
		return fn(in)
	})
}

// world is a rack with its platform.
type world struct {
	*testing.T
	*platform
	c       *catalog.Catalog
	bucket  bucket
	options catalog.Options
	at      time.Time
	changes int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, at: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	w.platform = newPlatform(func() time.Time { return w.at })
	db, err := bolt.Open(filepath.Join(t.TempDir(), "rack.db"), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w.bucket = bucket{db: db}
	w.options = catalog.Options{
		Platform: w.platform, Bucket: w.bucket, Tenant: "acme", Rack: "r1", Keys: w.public("k1"),
		Now: func() (time.Time, bool) { return w.at, true }, OnChange: func() { w.changes++ },
	}
	w.restart()
	return w
}

func (w *world) restart() {
	w.Helper()
	var err error
	if w.c, err = catalog.Open(w.options); err != nil {
		w.Fatal(err)
	}
}

func (w *world) sync() {
	w.Helper()
	if err := w.c.Sync(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// refused syncs, which must fail for a reason, be told, and change nothing.
func (w *world) refused(reason error) {
	w.Helper()
	before, rows := w.c.Copy(), w.shown()
	if err := w.c.Sync(w.Context()); !errors.Is(err, reason) {
		w.Errorf("got %v, want %v", err, reason)
	}
	after := w.c.Copy()
	if after.Epoch != before.Epoch || after.Version != before.Version || w.shown() != rows {
		w.Errorf("the catalog has changed: %d.%d %q, before %d.%d %q", after.Epoch, after.Version, w.shown(), before.Epoch, before.Version, rows)
	}
	if p := w.c.Status().Problem; p == "" || !strings.Contains(p, reason.Error()) {
		w.Errorf("the reason is told as %q", p)
	}
}

// shown are the skills that any agent sees, with their versions; each is read.
func (w *world) shown() string {
	w.Helper()
	var all []string
	c := w.c.Copy()
	for _, r := range c.Rows {
		s, err := w.c.Skill(r.Entry)
		if err != nil || s.Name != r.Name || s.Version != r.Version {
			w.Errorf("%s: %+v, %v", r.ID, s, err)
		}
		if c.Entitled(r, "task") {
			all = append(all, r.ID+"="+r.Version)
		}
	}
	return strings.Join(all, " ")
}

func (w *world) want(shown string) {
	w.Helper()
	if got := w.shown(); got != shown {
		w.Errorf("shown is %q, want %q", got, shown)
	}
}
