package catalog_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
	"phonerack/cloud/catalog"
	"phonerack/cloud/enroll"
	rack "phonerack/sync/catalog"
	"phonerack/sync/wire"
)

// asRack is the platform as one rack is served by it. It implements catalog.Platform of sync.
type asRack struct {
	p    *platform
	from enroll.Caller
}

func (a asRack) Changes(ctx context.Context, ask wire.SkillChanges) (wire.SkillManifest, error) {
	return a.p.Changes(ctx, a.from, ask)
}

func (a asRack) Blob(ctx context.Context, ask wire.BlobGet) (wire.BlobData, []byte, error) {
	return a.p.Blob(ctx, a.from, ask)
}

type bucket struct{ db *bolt.DB }

func (b bucket) View(fn func(*bolt.Bucket) error) error {
	return b.db.View(func(tx *bolt.Tx) error { return fn(tx.Bucket([]byte("b"))) })
}

func (b bucket) Update(fn func(*bolt.Bucket) error) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		in, err := tx.CreateBucketIfNotExists([]byte("b"))
		if err != nil {
			return err
		}
		return fn(in)
	})
}

// follow opens the copy of a rack.
func (p *platform) follow(from enroll.Caller) *rack.Catalog {
	p.Helper()
	db, err := bolt.Open(filepath.Join(p.TempDir(), "rack.db"), 0o600, &bolt.Options{NoSync: true})
	p.must(err)
	p.Cleanup(func() { db.Close() })
	c, err := rack.Open(rack.Options{
		Platform: asRack{p, from}, Bucket: bucket{db}, Tenant: from.Tenant, Rack: from.Rack, Keys: p.keys(),
		Now: func() (time.Time, bool) { return p.clock(), true },
	})
	p.must(err)
	return c
}

// has are the skills that an agent on the rack sees.
func has(c *rack.Catalog, agents ...string) string {
	now := c.Copy()
	var ids []string
	for _, r := range now.Rows {
		if now.Entitled(r, agents...) {
			ids = append(ids, r.ID+"="+r.Version)
		}
	}
	return strings.Join(ids, " ")
}

// TestSpec000_ARackFollowsThePlatform joins the platform with the rack's own client, without a broker between them.
func TestSpec000_ARackFollowsThePlatform(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	p.subscribe("social", catalog.Grant{})
	p.subscribe("games", catalog.Grant{Rack: "r1", Agent: "task"})
	p.publish("social", "tips", "1")
	p.publish("games", "chess", "1")
	c := p.follow(r1)
	step := func(what, task, other string) {
		t.Helper()
		p.now.Add(time.Minute.Milliseconds())
		p.must(c.Sync(ctx))
		if got := has(c, "task"); got != task {
			t.Errorf("%s: a task has %q, want %q", what, got, task)
		}
		if got := has(c, "mcp"); got != other {
			t.Errorf("%s: an MCP client has %q, want %q", what, got, other)
		}
		if s := c.Status(); s.Hidden != 0 || s.Problem != "" {
			t.Errorf("%s: %+v", what, s)
		}
	}
	step("the first list", "chess=1 tips=1", "tips=1")
	p.publish("social", "tips", "2")
	step("a new version", "chess=1 tips=2", "tips=2")
	p.must(p.Remove(ctx, anna, "tips"))
	step("a removal", "chess=1", "")
	p.must(p.Revoke(ctx, anna, "games", catalog.Grant{Rack: "r1", Agent: "task"}))
	step("a revocation", "", "")
	p.must(p.Grant(ctx, anna, "games", catalog.Grant{Rack: "r1"}))
	step("a grant", "chess=1", "chess=1")
	c.Hint(wire.SkillChanged{Epoch: c.Copy().Epoch, Version: c.Copy().Version + 1, Subscription: "games", State: model.Revoked})
	if got := has(c, "task"); got != "" {
		t.Errorf("after the hint a task has %q", got)
	}
	p.must(p.SetSubscription(ctx, anna, "games", false))
	step("a closed subscription", "", "")
	p.must(p.SetSubscription(ctx, anna, "games", true))
	next, err := p.AddKey(ctx, anna)
	p.must(err)
	step("the next key", "chess=1", "chess=1")
	old := p.keys()
	delete(old, next.ID)
	p.must(p.ActivateKey(ctx, anna, next.ID))
	for id := range old {
		p.must(p.DropKey(ctx, anna, id))
	}
	p.publish("games", "go", "1")
	step("a key that was replaced", "chess=1 go=1", "chess=1 go=1")
	if got := c.Status().Platform; got != next.ID {
		t.Errorf("the rack trusts %q", got)
	}
	_, err = p.store.System().Restored(ctx)
	p.must(err)
	step("a restored database", "chess=1 go=1", "chess=1 go=1")
	p.must(p.store.RevokeHost(ctx, anna.Scope(), "r1"))
	if err := c.Sync(ctx); !wire.Is(err, wire.Unauthenticated) {
		t.Errorf("a revoked rack: %v", err)
	}
}

// TestAGrantIsToSomebodyWhoAsks: a name that is spelt wrong would be a grant to nobody, and nothing would say so.
func TestAGrantIsToSomebodyWhoAsks(t *testing.T) {
	p := newPlatform(t)
	p.subscribe("social")
	for agent, fits := range map[string]bool{
		"": true, "task": true, "person": true, "mcp": true, "mcp-desk": true,
		"tasks": false, "Task": false, "mcp-": false, "mcp-Desk": false, "desk": false, "all": false,
	} {
		if err := p.Grant(t.Context(), anna, "social", catalog.Grant{Agent: agent}); (err == nil) != fits || err != nil && !wire.Is(err, wire.BadRequest) {
			t.Errorf("%q: %v", agent, err)
		}
	}
	for says, g := range map[string]struct {
		id string
		catalog.Grant
	}{
		"rack r9": {"social", catalog.Grant{Rack: "r9"}}, "subscription nobody": {"nobody", catalog.Grant{Rack: "r1"}},
	} {
		err := p.Grant(t.Context(), anna, g.id, g.Grant)
		if r, ok := errors.AsType[*wire.Refusal](err); !ok || !strings.Contains(r.Sentence("en"), "there is no "+says+" here") {
			t.Errorf("%s: %v", says, err)
		}
	}
}
