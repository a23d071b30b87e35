package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"phonerack/agent/skill/model"
	"phonerack/cloud/catalog"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	anna = fleet.Operator{Tenant: "acme", Name: "anna"}
	otto = fleet.Operator{Tenant: "other", Name: "otto"}
	r1   = enroll.Caller{Tenant: "acme", Rack: "r1"}
	r2   = enroll.Caller{Tenant: "acme", Rack: "r2"}
)

// platform is a catalog with two racks of acme that are there.
type platform struct {
	*catalog.Catalog
	*testing.T
	store *store.Store
	vault *vault.Vault
	now   atomic.Int64

	mu    sync.Mutex
	hints []string
}

func (p *platform) clock() time.Time { return time.UnixMilli(p.now.Load()).UTC() }

// Push implements fleet.Pusher.
func (p *platform) Push(_ context.Context, to enroll.Caller, t wire.Type, body any) error {
	h, ok := body.(wire.SkillChanged)
	if !ok || t != wire.TypeSkillChanged || h.Epoch == 0 || h.Version == 0 {
		p.Errorf("%s: %+v", t, body)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hints = append(p.hints, strings.TrimRight(fmt.Sprintf("%s %s%s %s", to.Rack, strings.Join(h.Removed, ","), h.Subscription, h.State), " "))
	return nil
}

// heard gives the hints since it was asked last.
func (p *platform) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.hints)
	all := p.hints
	p.hints = nil
	return all
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{T: t}
	p.now.Store(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).UnixMilli())
	dir := t.TempDir()
	_, err := vault.Generate(filepath.Join(dir, "kek"))
	p.must(err)
	p.vault, err = vault.Open(filepath.Join(dir, "kek"))
	p.must(err)
	p.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "cloud.db"), store.Options{Clock: p.clock})
	p.must(err)
	t.Cleanup(func() { p.must(p.store.Close()) })
	for i, rack := range []string{"r1", "r2"} {
		id := store.NewIdentity{BearerHash: [32]byte{byte(i + 1)}, MACSecret: []byte("s"), KEK: "k", Kid: rack, Fingerprint: "ab", CertPEM: "c"}
		_, err := p.store.CreateHost(t.Context(), anna.Scope(), store.NewHost{ID: rack}, id)
		p.must(err)
		_, err = p.store.Hello(t.Context(), anna.Scope(), store.Hello{Host: rack, Generation: 1, Session: 1, Boot: "1-a"})
		p.must(err)
		_, err = p.store.SetPresence(t.Context(), anna.Scope(), store.StateReport{Host: rack, Generation: 1, Session: 1, State: store.Online})
		p.must(err)
	}
	p.Catalog = p.replica()
	return p
}

// replica is another process on the same database.
func (p *platform) replica() *catalog.Catalog {
	return catalog.New(catalog.Options{Store: p.store, Vault: p.vault, Push: p, Clock: p.clock})
}

func (p *platform) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *platform) subscribe(id string, grants ...catalog.Grant) {
	p.Helper()
	_, err := p.CreateSubscription(p.Context(), anna, id, "")
	p.must(err)
	for _, g := range grants {
		p.must(p.Grant(p.Context(), anna, id, g))
	}
}

func tips(id, version, content string) string {
	return fmt.Sprintf("---\nid: %s\nname: Tips\ndescription: Tips.\nversion: %q\n---\n%s\n", id, version, content)
}

func (p *platform) publish(subscription, id, version string) catalog.Skill {
	p.Helper()
	s, err := p.Publish(p.Context(), anna, catalog.NewSkill{Subscription: subscription, File: "SKILL.md", Content: tips(id, version, "Text of "+version)})
	p.must(err)
	return s
}

func (p *platform) keys() model.Keys {
	p.Helper()
	keys, err := p.PublicKeys(p.Context(), "acme")
	p.must(err)
	return keys
}

// fetched is what a rack gets that asks page by page.
func (p *platform) fetch(from enroll.Caller, ask wire.SkillChanges, keys model.Keys) (*model.Manifest, error) {
	p.Helper()
	for id := range keys {
		ask.Keys = append(ask.Keys, id)
	}
	var raw []byte
	for range 100 {
		part, err := p.Changes(p.Context(), from, ask)
		if err != nil {
			return nil, err
		}
		if part.Offset != int64(len(raw)) || len(part.Manifest) > wire.MaxPage {
			p.Fatalf("a part from %d of %d bytes, after %d", part.Offset, len(part.Manifest), len(raw))
		}
		raw = append(raw, part.Manifest...)
		if ask.Page = part.NextPage; ask.Page == "" {
			if part.Size != int64(len(raw)) {
				p.Fatalf("%d bytes of %d", len(raw), part.Size)
			}
			return model.OpenManifest(raw, part.Sig, part.KeyID, keys)
		}
	}
	return nil, errors.New("no end")
}

func (p *platform) whole(from enroll.Caller) *model.Manifest {
	p.Helper()
	m, err := p.fetch(from, wire.SkillChanges{}, p.keys())
	p.must(err)
	return m
}

func names(m *model.Manifest) (ids []string) {
	for _, e := range m.Skills {
		ids = append(ids, e.ID+" "+e.Version)
	}
	return ids
}

func TestSpec000_Platform(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	p.subscribe("social", catalog.Grant{})
	p.subscribe("games", catalog.Grant{Rack: "r1"}, catalog.Grant{Rack: "r2", Agent: "mcp"})
	p.subscribe("lab")
	for _, s := range []string{"social", "games", "lab"} {
		p.publish(s, s+"-tips", "1")
	}
	p.heard()

	t.Run("a way to fetch the skills that a rack is entitled to", func(t *testing.T) {
		m := p.whole(r1)
		if diff := cmp.Diff([]string{"games-tips 1", "social-tips 1"}, names(m)); diff != "" || !m.Complete || m.Rack != "r1" {
			t.Errorf("%s %+v", diff, m)
		}
		if diff := cmp.Diff([]model.SubscriptionState{{ID: "games", State: model.Active}, {ID: "social", State: model.Active}}, m.Subscriptions); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]model.SubscriptionState{{ID: "games", State: model.Active, Agents: []string{"mcp"}}, {ID: "social", State: model.Active}}, p.whole(r2).Subscriptions); diff != "" {
			t.Error(diff)
		}
		for _, e := range m.Skills {
			if s := p.body(r1, e); s.ID != e.ID || s.Content == "" || !s.UpdatedAt.Equal(p.clock()) {
				t.Errorf("%+v", s)
			}
		}
		if m.ExpiresAt().Sub(m.IssuedAt()) != catalog.ManifestLife || !m.IssuedAt().Equal(p.clock()) {
			t.Errorf("from %v to %v", m.IssuedAt(), m.ExpiresAt())
		}
	})
	t.Run("a way to learn about changes", func(t *testing.T) {
		before := p.whole(r1)
		p.publish("games", "games-tips", "2")
		p.must(p.Remove(ctx, anna, "social-tips"))
		if diff := cmp.Diff([]string{"r1", "r1 social-tips", "r2", "r2 social-tips"}, p.heard()); diff != "" {
			t.Error(diff)
		}
		m, err := p.fetch(r1, wire.SkillChanges{Epoch: before.Epoch, Since: before.Version}, p.keys())
		p.must(err)
		if m.Complete || m.Since != before.Version || m.Version != before.Version+2 || !slices.Equal(names(m), []string{"games-tips 2"}) || !slices.Equal(m.Removed, []string{"social-tips"}) {
			t.Errorf("%+v", m)
		}
		for name, ask := range map[string]wire.SkillChanges{"another epoch": {Epoch: before.Epoch - 1, Since: before.Version}, "the future": {Epoch: before.Epoch, Since: before.Version + 9}} {
			if _, err := p.fetch(r1, ask, p.keys()); !wire.Is(err, wire.ResyncRequired) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("a subscription that is revoked", func(t *testing.T) {
		p.subscribe("extra", catalog.Grant{Rack: "r1"}, catalog.Grant{})
		p.publish("extra", "extra-tips", "1")
		before := p.whole(r1)
		p.heard()
		p.must(p.Revoke(ctx, anna, "extra", catalog.Grant{}))
		if diff := cmp.Diff([]string{"r1", "r2 extra revoked"}, p.heard()); diff != "" {
			t.Error(diff)
		}
		p.must(p.Revoke(ctx, anna, "extra", catalog.Grant{Rack: "r1"}))
		if diff := cmp.Diff([]string{"r1 extra revoked"}, p.heard()); diff != "" {
			t.Error(diff)
		}
		if _, err := p.fetch(r1, wire.SkillChanges{Epoch: before.Epoch, Since: before.Version}, p.keys()); !wire.Is(err, wire.ResyncRequired) {
			t.Errorf("%v", err)
		}
		if after := p.whole(r1); slices.Contains(names(after), "extra-tips 1") || after.Subscriptions[0].State != model.Revoked {
			t.Errorf("%+v", after)
		}
		if err := p.Revoke(ctx, anna, "extra", catalog.Grant{Rack: "r1"}); !wire.Is(err, wire.NotFound) {
			t.Errorf("twice: %v", err)
		}
		p.must(p.SetSubscription(ctx, anna, "games", false))
		if diff := cmp.Diff([]string{"r1 games revoked", "r2 games revoked"}, p.heard()); diff != "" {
			t.Error(diff)
		}
		p.must(p.SetSubscription(ctx, anna, "games", true))
	})
	t.Run("a skill that is not entitled answers like an unknown one", func(t *testing.T) {
		lab, _, err := p.Skill(ctx, anna, "lab-tips")
		p.must(err)
		ask := func(from enroll.Caller, hash string) string {
			_, _, err := p.Blob(ctx, from, wire.BlobGet{SHA256: hash})
			if !wire.Is(err, wire.NotFound) {
				t.Errorf("%v", err)
			}
			return strings.ReplaceAll(fmt.Sprint(err), hash, "")
		}
		if foreign, unknown := ask(r1, lab.SHA256), ask(r1, model.Sum(nil)); foreign != unknown {
			t.Errorf("%s\n%s", foreign, unknown)
		}
		if _, _, err := p.Skill(ctx, otto, "lab-tips"); !wire.Is(err, wire.NotFound) {
			t.Errorf("another tenant: %v", err)
		}
	})
	t.Run("a rack that is revoked has nothing any more", func(t *testing.T) {
		p.must(p.store.RevokeHost(ctx, anna.Scope(), "r2"))
		if _, err := p.Changes(ctx, r2, wire.SkillChanges{}); !wire.Is(err, wire.Unauthenticated) {
			t.Errorf("%v", err)
		}
		games, _, err := p.Skill(ctx, anna, "games-tips")
		p.must(err)
		if _, _, err := p.Blob(ctx, r2, wire.BlobGet{SHA256: games.SHA256}); err == nil {
			t.Error("it gets a body")
		}
	})
}

func (p *platform) body(from enroll.Caller, e model.Entry) *model.Skill {
	p.Helper()
	var raw []byte
	for int64(len(raw)) < e.Size {
		d, part, err := p.Blob(p.Context(), from, wire.BlobGet{SHA256: e.SHA256, Offset: int64(len(raw))})
		p.must(err)
		if len(part) == 0 || len(part) > wire.MaxBlobPart || d.Size != e.Size {
			p.Fatalf("%d bytes, %+v", len(part), d)
		}
		raw = append(raw, part...)
	}
	s, err := model.OpenSkill(e, raw)
	p.must(err)
	return s
}

func TestPublishing(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	p.subscribe("social", catalog.Grant{Rack: "r1"})
	publish := func(content string, change func(*catalog.NewSkill)) (catalog.Skill, error) {
		n := catalog.NewSkill{Subscription: "social", File: "SKILL.md", Content: content}
		if change != nil {
			change(&n)
		}
		return p.Publish(ctx, anna, n)
	}
	first, err := publish(tips("tips", "1", "text"), nil)
	p.must(err)
	p.now.Add(time.Hour.Milliseconds())
	again, err := publish(tips("tips", "1", "text"), nil)
	p.must(err)
	if !again.Unchanged || again.SHA256 != first.SHA256 || !again.UpdatedAt.Equal(first.UpdatedAt) {
		t.Errorf("the same again: %+v, first %+v", again, first)
	}
	for name, c := range map[string]struct {
		content string
		change  func(*catalog.NewSkill)
		want    string
		code    wire.Code
	}{
		"no front matter":              {"# Tips", nil, "SKILL.md line 1: it must begin with a line of three dashes", wire.BadRequest},
		"YAML with an error":           {"id: 1\nnam: x\n", func(n *catalog.NewSkill) { n.File = "x.yaml" }, `x.yaml line 2: the key "nam" is not known here`, wire.BadRequest},
		"a subscription of its own":    {strings.Replace(tips("a", "1", "x"), "name:", "subscription_id: games\nname:", 1), nil, "belongs to the subscription games", wire.BadRequest},
		"unknown subscription":         {tips("a", "1", "x"), func(n *catalog.NewSkill) { n.Subscription = "none" }, "none", wire.NotFound},
		"version with other contents":  {tips("tips", "1", "other"), nil, "version 1 of the skill tips has other contents", wire.Conflict},
		"invisible characters":         {tips("a", "1", "x\u200b\U000e0041"), nil, "content: U+200B zero width space at byte 1", wire.BadRequest},
		"no subscription named at all": {tips("a", "1", "x"), func(n *catalog.NewSkill) { n.Subscription = "" }, "subscription_id", wire.BadRequest},
	} {
		if _, err := publish(c.content, c.change); !wire.Is(err, c.code) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	let, err := publish(tips("a", "1", "x\u200b"), func(n *catalog.NewSkill) { n.AllowHidden = true })
	p.must(err)
	if diff := cmp.Diff([]string{"content: U+200B zero width space at byte 1"}, let.Hidden); diff != "" {
		t.Error(diff)
	}
	flow := `{"id":"flow","name":"Flow","description":"d","kind":"flow_template","version":"1","parameters":[{"name":"q","type":"string","required":true}],"steps":[{"tool":"input_text","args_template":{"text":"{q}"}}]}`
	_, err = publish(flow, func(n *catalog.NewSkill) { n.File = "flow.json" })
	p.must(err)
	if s := p.body(r1, p.whole(r1).Skills[1]); s.Kind != model.FlowTemplate || s.Tools()[0] != "input_text" {
		t.Errorf("%+v", s)
	}
	all, next, err := p.Skills(ctx, anna, "social", store.Page{Limit: 2})
	p.must(err)
	if len(all) != 2 || next != "flow" {
		t.Errorf("%+v, next %s", all, next)
	}
	view, err := p.Show(ctx, anna, "r1")
	p.must(err)
	if len(view.Skills) != 3 || len(view.Subscriptions) != 1 || view.Version != p.whole(r1).Version {
		t.Errorf("%+v", view)
	}
	if err := p.Remove(ctx, anna, "unknown"); !wire.Is(err, wire.NotFound) {
		t.Error(err)
	}
}

// TestPages: a manifest of several pages, while the platform changes.
func TestPages(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	p.subscribe("social", catalog.Grant{})
	const skills = 700
	long := strings.Repeat("語", 49)
	for i := range skills {
		p.publish("social", fmt.Sprintf("%s-%04d", strings.Repeat("s", 58), i), long)
	}
	if m := p.whole(r1); len(m.Skills) != skills {
		t.Fatalf("%d skills", len(m.Skills))
	}
	first, err := p.Changes(ctx, r1, wire.SkillChanges{})
	p.must(err)
	if first.Size < 2*wire.MaxPage || len(first.Manifest) != wire.MaxPage {
		t.Fatalf("a page of %d bytes of %d", len(first.Manifest), first.Size)
	}
	p.now.Add(time.Minute.Milliseconds())
	next := wire.SkillChanges{Page: first.NextPage}
	same := func(c *catalog.Catalog) wire.SkillManifest {
		t.Helper()
		second, err := c.Changes(ctx, r1, next)
		p.must(err)
		if second.Offset != wire.MaxPage || second.Size != first.Size || !slices.Equal(second.Sig, first.Sig) || second.KeyID != first.KeyID {
			t.Errorf("offset %d, size %d of %d", second.Offset, second.Size, first.Size)
		}
		return second
	}
	second := same(p.Catalog)
	if other := same(p.replica()); string(other.Manifest) != string(second.Manifest) {
		t.Error("a replica gives other bytes")
	}
	p.publish("social", "new", "1")
	same(p.Catalog) // one manifest goes on to its end
	if _, err := p.replica().Changes(ctx, r1, next); !wire.Is(err, wire.ResyncRequired) {
		t.Errorf("a replica that cannot make it any more: %v", err)
	}
	if _, err := p.Changes(ctx, r2, next); !wire.Is(err, wire.ResyncRequired) {
		t.Errorf("another rack with the page: %v", err)
	}
	p.now.Add(10 * time.Minute.Milliseconds())
	if _, err := p.Changes(ctx, r1, next); !wire.Is(err, wire.ResyncRequired) {
		t.Errorf("ten minutes later: %v", err)
	}
	for _, page := range []string{"x", "1.2.3", first.NextPage + "0", strings.Replace(first.NextPage, ".", ".-", 1), strings.Repeat("1", 300), "1.1.1.1.k.1.1", "1.1.1.1.K.1"} {
		if _, err := p.Changes(ctx, r1, wire.SkillChanges{Page: page}); err == nil {
			t.Errorf("page %.40q is answered", page)
		}
	}
	for _, ask := range []wire.SkillChanges{{Since: -1}, {Epoch: -1}, {Keys: make([]string, 17)}} {
		if _, err := p.Changes(ctx, r1, ask); !wire.Is(err, wire.BadRequest) {
			t.Errorf("%+v: %v", ask, err)
		}
	}
	for _, get := range []wire.BlobGet{{}, {SHA256: "ab"}, {SHA256: model.Sum(nil), Offset: -1}} {
		if _, _, err := p.Blob(ctx, r1, get); !wire.Is(err, wire.BadRequest) {
			t.Errorf("%+v: %v", get, err)
		}
	}
}

func TestKeysAreReplaced(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	p.subscribe("social", catalog.Grant{})
	enrolled := p.keys()
	signedBy := func(keys model.Keys) string {
		t.Helper()
		ask := wire.SkillChanges{}
		for id := range keys {
			ask.Keys = append(ask.Keys, id)
		}
		part, err := p.Changes(ctx, r1, ask)
		p.must(err)
		m, err := model.OpenManifest(part.Manifest, part.Sig, part.KeyID, keys)
		p.must(err)
		clear(keys) // a rack takes over what the manifest says
		for _, k := range m.Keys {
			keys[k.ID] = k.Public
		}
		return part.KeyID
	}
	away := model.Keys{}
	for id, k := range enrolled {
		away[id] = k
	}
	rack := model.Keys{}
	for id, k := range enrolled {
		rack[id] = k
	}
	first := signedBy(rack)
	next, err := p.AddKey(ctx, anna)
	p.must(err)
	if _, err := p.AddKey(ctx, anna); !wire.Is(err, wire.Conflict) {
		t.Errorf("a second next key: %v", err)
	}
	if by := signedBy(rack); by != first || rack[next.ID] == nil {
		t.Errorf("signed by %s; known are %v", by, rack)
	}
	p.must(p.ActivateKey(ctx, anna, next.ID))
	if by := signedBy(rack); by != next.ID {
		t.Errorf("signed by %s", by)
	}
	if by := signedBy(away); by != first || away[next.ID] == nil {
		t.Errorf("a rack that was away gets a signature by %s and knows %v then", by, away)
	}
	p.must(p.DropKey(ctx, anna, first))
	if by := signedBy(rack); by != next.ID || rack[first] != nil {
		t.Errorf("signed by %s; known are %v", by, rack)
	}
	if _, err := p.Changes(ctx, r1, wire.SkillChanges{Keys: []string{first}}); !wire.Is(err, wire.Conflict) {
		t.Errorf("a rack that knows the dropped key only: %v", err)
	}
	if err := p.DropKey(ctx, anna, next.ID); !wire.Is(err, wire.Conflict) {
		t.Errorf("dropping the active key: %v", err)
	}
	keys, err := p.Keys(ctx, anna)
	p.must(err)
	if len(keys) != 1 || keys[0].State != "active" {
		t.Errorf("%+v", keys)
	}
	others, err := p.PublicKeys(ctx, "other")
	p.must(err)
	if len(others) != 1 || others[next.ID] != nil {
		t.Errorf("another tenant has %v", others)
	}
}

// TestReplicasMakeOneKey: racks that ask at once get signatures by one key.
func TestReplicasMakeOneKey(t *testing.T) {
	p := newPlatform(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 6 {
		wg.Go(func() {
			m, err := p.replica().Changes(t.Context(), r1, wire.SkillChanges{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			seen[m.KeyID] = true
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("signed by %v", seen)
	}
}
