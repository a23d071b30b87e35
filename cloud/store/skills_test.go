package store_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/cloud/store"
)

// newSkill has contents that depend on what it is called.
func newSkill(id, subscription, version string) store.NewSkill {
	body := []byte(id + " of " + subscription + " in version " + version)
	sum := sha256.Sum256(body)
	return store.NewSkill{Skill: store.Skill{
		ID: id, Subscription: subscription, Name: "Name of " + id, Kind: "knowledge", Version: version, SHA256: hex.EncodeToString(sum[:]), Updated: start,
	}, Body: body}
}

func publish(t testing.TB, s *store.Store, n store.NewSkill) store.Skill {
	t.Helper()
	if old, _, err := s.Skill(t.Context(), acme, n.ID); err == nil {
		n.Before = old.SHA256
	}
	k, _, err := s.PublishSkill(t.Context(), acme, n)
	ok(t, err)
	return k
}

func catalogKey(id string, number int) store.CatalogKey {
	return store.CatalogKey{ID: id, Number: number, Public: []byte(strings.Repeat("p", 32)), Private: []byte("sealed " + id), KEK: "kek"}
}

func testSubscriptions(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	u := must(s.CreateSubscription(ctx, acme, "social", "Social apps"))(t)
	equal(t, "subscription", u, store.Subscription{ID: "social", Name: "Social apps", Active: true, Created: start})
	wants(t, second(s.CreateSubscription(ctx, acme, "social", "")), store.ErrConflict)
	wants(t, second(s.CreateSubscription(ctx, acme, "So cial", "")), store.ErrInvalid)
	equal(t, "granted", must(s.Grant(ctx, acme, store.Grant{Subscription: "social", Rack: "r1"}))(t), true)
	equal(t, "granted again", must(s.Grant(ctx, acme, store.Grant{Subscription: "social", Rack: "r1"}))(t), false)
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Agent: "mcp"})))
	wants(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Rack: "r9"})), store.ErrNotFound)
	wants(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "games", Rack: "r1"})), store.ErrNotFound)
	wants(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Agent: "an agent"})), store.ErrInvalid)
	want := []store.Grant{{Subscription: "social", Agent: "mcp", Created: start}, {Subscription: "social", Rack: "r1", Created: start}}
	if diff := cmp.Diff(want, must(s.Grants(ctx, acme, "social"))(t)); diff != "" {
		t.Error(diff)
	}
	ok(t, s.EndGrant(ctx, acme, want[1]))
	wants(t, s.EndGrant(ctx, acme, want[1]), store.ErrNotFound)
	equal(t, "grants", len(must(s.Grants(ctx, acme, "social"))(t)), 1)
	equal(t, "granted once more", must(s.Grant(ctx, acme, want[1]))(t), true)
	equal(t, "changed", must(s.SetSubscription(ctx, acme, "social", false))(t), true)
	equal(t, "changed again", must(s.SetSubscription(ctx, acme, "social", false))(t), false)
	equal(t, "active", must(s.Subscription(ctx, acme, "social"))(t).Active, false)
	for i := range 63 {
		ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Agent: fmt.Sprint("a", i)})))
	}
	wants(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Agent: "one-more"})), store.ErrConflict)
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Rack: "r1", Agent: "mcp"}))) // which is among them
	for i := range store.MaxSubscriptions - 1 {
		ok(t, second(s.CreateSubscription(ctx, acme, fmt.Sprint("s", i), "")))
	}
	wants(t, second(s.CreateSubscription(ctx, acme, "one-more", "")), store.ErrConflict)
	all, next, err := s.Subscriptions(ctx, acme, store.Page{Limit: 2})
	ok(t, err)
	equal(t, "first page", len(all), 2)
	equal(t, "next", next, all[1].ID)
}

func testPublished(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	for _, id := range []string{"social", "games"} {
		ok(t, second(s.CreateSubscription(ctx, acme, id, "")))
	}
	n := newSkill("tips", "social", "1")
	k, changed, err := s.PublishSkill(ctx, acme, n)
	ok(t, err)
	want := n.Skill
	want.Size = int64(len(n.Body))
	equal(t, "skill", k, want)
	equal(t, "changed", changed, true)
	_, changed, err = s.PublishSkill(ctx, acme, n)
	ok(t, err)
	equal(t, "the same again changes", changed, false)
	got, body, err := s.Skill(ctx, acme, "tips")
	ok(t, err)
	equal(t, "read", got, want)
	equal(t, "body", string(body), string(n.Body))

	for name, change := range map[string]func(n *store.NewSkill){
		"another subscription":                 func(n *store.NewSkill) { *n = newSkill("tips", "games", "2") },
		"same version with other contents":     func(n *store.NewSkill) { n.Version = "1" },
		"published by somebody else meanwhile": func(n *store.NewSkill) { n.Before = "" },
	} {
		n2 := newSkill("tips", "social", "2")
		n2.Before = n.SHA256
		change(&n2)
		if _, _, err := s.PublishSkill(ctx, acme, n2); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknown := newSkill("a", "unknown", "1")
	if _, _, err := s.PublishSkill(ctx, acme, unknown); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	for name, change := range map[string]func(n *store.NewSkill){
		"id": func(n *store.NewSkill) { n.ID = "A b" }, "hash": func(n *store.NewSkill) { n.SHA256 = "ab" }, "no body": func(n *store.NewSkill) { n.Body = nil },
		"large": func(n *store.NewSkill) { n.Body = make([]byte, 600<<10) }, "no version": func(n *store.NewSkill) { n.Version = "" },
	} {
		bad := newSkill("a", "social", "1")
		change(&bad)
		if _, _, err := s.PublishSkill(ctx, acme, bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := must(s.RemoveSkill(ctx, acme, "tips"))(t)
	equal(t, "removed", gone.Removed, start)
	wants(t, second(s.RemoveSkill(ctx, acme, "tips")), store.ErrNotFound)
	if _, _, err := s.Skill(ctx, acme, "tips"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a removed skill: %v", err)
	}
	if _, _, err := s.PublishSkill(ctx, acme, newSkill("tips", "games", "1")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the id of a removed skill in another subscription: %v", err)
	}
	publish(t, s, n) // the same once more
	publish(t, s, newSkill("game", "games", "1"))
	all, next, err := s.Skills(ctx, acme, "", store.Page{Limit: 1})
	ok(t, err)
	equal(t, "first", all[0].ID, "game")
	equal(t, "next", next, "game")
	all, _, err = s.Skills(ctx, acme, "social", store.Page{})
	ok(t, err)
	equal(t, "of one subscription", len(all), 1)
}

func ids(all []store.Skill) (list []string) {
	for _, k := range all {
		list = append(list, k.ID)
	}
	return list
}

func testRackSkills(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	look := func(rack string, since int64) store.RackSkills {
		t.Helper()
		first := must(s.RackSkills(ctx, acme, rack, 0, 0))(t)
		if since == 0 {
			return first
		}
		return must(s.RackSkills(ctx, acme, rack, first.Epoch, since))(t)
	}
	empty := look("r1", 0)
	equal(t, "version without anything", empty.Version, 1)
	for _, id := range []string{"social", "games", "lab"} {
		ok(t, second(s.CreateSubscription(ctx, acme, id, "")))
		publish(t, s, newSkill(id+"-b", id, "1"))
		publish(t, s, newSkill(id+"-a", id, "1"))
	}
	if got := look("r1", 0); len(got.Skills)+len(got.Subscriptions) != 0 {
		t.Errorf("a rack without grants has %+v", got)
	}
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social"})))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "games", Rack: "r1"})))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "lab", Rack: "r1", Agent: "mcp"})))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "lab", Agent: "bench"})))
	one, two := look("r1", 0), look("r2", 0)
	if diff := cmp.Diff([]string{"games-a", "games-b", "lab-a", "lab-b", "social-a", "social-b"}, ids(one.Skills)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]store.RackSubscription{{ID: "games", Active: true}, {ID: "lab", Active: true, Agents: []string{"bench", "mcp"}}, {ID: "social", Active: true}}, one.Subscriptions); diff != "" {
		t.Error(diff)
	}
	if short := must(s.RackSubscriptions(ctx, acme, "r1"))(t); short.Epoch != one.Epoch || short.Version != one.Version || cmp.Diff(one.Subscriptions, short.Subscriptions) != "" {
		t.Errorf("%+v", short)
	}
	if diff := cmp.Diff([]store.RackSubscription{{ID: "lab", Active: true, Agents: []string{"bench"}}, {ID: "social", Active: true}}, two.Subscriptions); diff != "" {
		t.Error(diff)
	}

	// Changes of skills are told by themselves, those of entitlements are not.
	publish(t, s, newSkill("games-b", "games", "2"))
	ok(t, second(s.RemoveSkill(ctx, acme, "social-a")))
	delta := look("r1", one.Version)
	if diff := cmp.Diff([]string{"games-b"}, ids(delta.Skills)); diff != "" || !slices.Equal(delta.Removed, []string{"social-a"}) || delta.Version != one.Version+2 {
		t.Errorf("%+v", delta)
	}
	if delta := look("r2", two.Version); len(delta.Skills) != 0 || !slices.Equal(delta.Removed, []string{"social-a"}) {
		t.Errorf("the other rack hears %+v", delta)
	}
	if again := look("r1", delta.Version); len(again.Skills)+len(again.Removed) != 0 || again.Version != delta.Version {
		t.Errorf("without changes %+v", again)
	}
	for name, change := range map[string]func() error{
		"a grant ends": func() error { return s.EndGrant(ctx, acme, store.Grant{Subscription: "games", Rack: "r1"}) },
		"a grant comes": func() error {
			return second(s.Grant(ctx, acme, store.Grant{Subscription: "games", Rack: "r1", Agent: "x"}))
		},
		"a subscription is closed": func() error { return second(s.SetSubscription(ctx, acme, "social", false)) },
		"for all agents":           func() error { return second(s.Grant(ctx, acme, store.Grant{Subscription: "lab", Rack: "r1"})) },
	} {
		before := look("r1", 0)
		ok(t, change())
		if _, err := s.RackSkills(ctx, acme, "r1", before.Epoch, before.Version); !errors.Is(err, store.ErrResync) {
			t.Errorf("%s: %v", name, err)
		}
	}
	last := look("r1", 0)
	if diff := cmp.Diff([]store.RackSubscription{{ID: "games", Active: true, Agents: []string{"x"}}, {ID: "lab", Active: true}, {ID: "social"}}, last.Subscriptions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"games-a", "games-b", "lab-a", "lab-b"}, ids(last.Skills)); diff != "" {
		t.Error(diff)
	}
	for name, at := range map[string][2]int64{"a version to come": {last.Epoch, last.Version + 1}, "another epoch": {last.Epoch - 1, last.Version}} {
		if _, err := s.RackSkills(ctx, acme, "r1", at[0], at[1]); !errors.Is(err, store.ErrResync) {
			t.Errorf("%s: %v", name, err)
		}
	}
	restored := must(s.System().Restored(ctx))(t)
	if got := look("r1", 0); got.Epoch != start.UnixMilli()+restored.Generation || got.Epoch <= last.Epoch {
		t.Errorf("epoch %d after %d", got.Epoch, last.Epoch)
	}
	ok(t, s.RevokeHost(ctx, acme, "r1"))
	wants(t, second(s.RackSkills(ctx, acme, "r1", 0, 0)), store.ErrNotFound)
}

// testRackSkillsByChanges does anything in any order, while a rack that is told changes only must have what one has that
// asks for the whole list.
func testRackSkillsByChanges(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	subscriptions := []string{"s0", "s1", "s2"}
	for _, id := range subscriptions {
		ok(t, second(s.CreateSubscription(ctx, acme, id, "")))
	}
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		have, epoch, version, n := map[string]string{}, int64(0), int64(0), 0
		subscription := func(r *rapid.T) string { return rapid.SampledFrom(subscriptions).Draw(r, "subscription") }
		skill := func(r *rapid.T) (id, of string) {
			i := rapid.IntRange(0, 5).Draw(r, "skill")
			return fmt.Sprint("k", i), subscriptions[i%3]
		}
		grant := func(r *rapid.T) store.Grant {
			return store.Grant{Subscription: subscription(r), Rack: rapid.SampledFrom([]string{"", "r1"}).Draw(r, "rack"), Agent: rapid.SampledFrom([]string{"", "mcp"}).Draw(r, "agent")}
		}
		r.Repeat(map[string]func(*rapid.T){
			"publish": func(r *rapid.T) {
				n++
				id, of := skill(r)
				publish(t, s, newSkill(id, of, fmt.Sprint(round, "-", n)))
			},
			"remove": func(r *rapid.T) {
				id, _ := skill(r)
				if _, err := s.RemoveSkill(ctx, acme, id); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Fatal(err)
				}
			},
			"grant": func(r *rapid.T) { ok(t, second(s.Grant(ctx, acme, grant(r)))) },
			"end": func(r *rapid.T) {
				if err := s.EndGrant(ctx, acme, grant(r)); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Fatal(err)
				}
			},
			"set": func(r *rapid.T) {
				ok(t, second(s.SetSubscription(ctx, acme, subscription(r), rapid.Bool().Draw(r, "active"))))
			},
			"wait":  func(*rapid.T) { p.wait(20 * 24 * time.Hour) },
			"prune": func(*rapid.T) { ok(t, second(s.System().Prune(ctx, store.PruneOptions{}))) },
			"prune a part": func(*rapid.T) {
				ok(t, second(s.System().Prune(ctx, store.PruneOptions{Batch: 1, Budget: 2 * time.Millisecond})))
			},
			"": func(*rapid.T) {
				got, err := s.RackSkills(ctx, acme, "r1", epoch, version)
				if errors.Is(err, store.ErrResync) {
					clear(have)
					got, err = s.RackSkills(ctx, acme, "r1", 0, 0)
				}
				ok(t, err)
				for _, k := range got.Skills {
					have[k.ID] = k.SHA256
				}
				for _, id := range got.Removed {
					delete(have, id)
				}
				epoch, version = got.Epoch, got.Version
				want := map[string]string{}
				for _, k := range must(s.RackSkills(ctx, acme, "r1", 0, 0))(t).Skills {
					want[k.ID] = k.SHA256
				}
				if diff := cmp.Diff(want, have); diff != "" {
					t.Fatalf("round %d: %s", round, diff)
				}
			},
		})
	})
}

func testRackBlobs(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	ok(t, second(s.CreateSubscription(ctx, acme, "social", "")))
	old, newer := newSkill("tips", "social", "1"), newSkill("tips", "social", "2")
	publish(t, s, old)
	blob := func(n store.NewSkill) error {
		body, err := s.RackBlob(ctx, acme, "r1", n.SHA256)
		if err == nil && string(body) != string(n.Body) || err != nil && body != nil {
			t.Errorf("%s: %q, %v", n.Version, body, err)
		}
		return err
	}
	wants(t, blob(old), store.ErrNotFound)
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social", Rack: "r1", Agent: "mcp"})))
	ok(t, blob(old))
	publish(t, s, newer)
	ok(t, blob(newer))
	ok(t, blob(old)) // a rack may be fetching it
	wants(t, blob(newSkill("tips", "social", "3")), store.ErrNotFound)
	ok(t, second(s.SetSubscription(ctx, acme, "social", false)))
	wants(t, blob(newer), store.ErrNotFound)
	ok(t, second(s.SetSubscription(ctx, acme, "social", true)))
	ok(t, second(s.RemoveSkill(ctx, acme, "tips")))
	wants(t, blob(newer), store.ErrNotFound)
	wants(t, blob(old), store.ErrNotFound)
}

func testCatalogKeys(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	states := func() (all []string) {
		for _, k := range must(s.CatalogKeys(ctx, acme))(t) {
			all = append(all, k.ID+" "+k.State)
		}
		return all
	}
	first := catalogKey("k1", 1)
	added := must(s.AddCatalogKey(ctx, acme, first))(t)
	first.State, first.Created = store.KeyActive, start
	if diff := cmp.Diff(first, added); diff != "" {
		t.Error(diff)
	}
	wants(t, second(s.AddCatalogKey(ctx, acme, catalogKey("k2", 1))), store.ErrConflict)
	ok(t, second(s.AddCatalogKey(ctx, acme, catalogKey("k2", 2))))
	wants(t, second(s.AddCatalogKey(ctx, acme, catalogKey("k3", 3))), store.ErrConflict)
	wants(t, s.ActivateCatalogKey(ctx, acme, "k1"), store.ErrConflict)
	wants(t, s.ActivateCatalogKey(ctx, acme, "k9"), store.ErrNotFound)
	wants(t, s.DropCatalogKey(ctx, acme, "k1"), store.ErrConflict)
	ok(t, s.ActivateCatalogKey(ctx, acme, "k2"))
	if diff := cmp.Diff([]string{"k1 old", "k2 active"}, states()); diff != "" {
		t.Error(diff)
	}
	ok(t, second(s.AddCatalogKey(ctx, acme, catalogKey("k3", 3))))
	ok(t, s.DropCatalogKey(ctx, acme, "k1"))
	if diff := cmp.Diff([]string{"k2 active", "k3 next"}, states()); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(k *store.CatalogKey){
		"public": func(k *store.CatalogKey) { k.Public = k.Public[:31] }, "private": func(k *store.CatalogKey) { k.Private = nil },
		"kek": func(k *store.CatalogKey) { k.KEK = "" }, "id": func(k *store.CatalogKey) { k.ID = "K" },
	} {
		bad := catalogKey("k4", 4)
		change(&bad)
		if _, err := s.AddCatalogKey(ctx, acme, bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Sealed anew with the rest.
	all := must(s.System().SealedUnder(ctx, "newer", 10))(t)
	if len(all) != 2 || all[0].Purpose != "catalog-key" || all[0].Owner[0] != "k2" || all[0].Version != 2 || all[0].Tenant != "acme" {
		t.Fatalf("%+v", all)
	}
	equal(t, "sealed anew", must(s.System().Reseal(ctx, all[0], "newer", []byte("anew")))(t), true)
	equal(t, "key", string(must(s.CatalogKeys(ctx, acme))(t)[0].Private), "anew")
}

func testPrunedSkills(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	ok(t, second(s.CreateSubscription(ctx, acme, "social", "")))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social"})))
	publish(t, s, newSkill("tips", "social", "1"))
	publish(t, s, newSkill("gone", "social", "1"))
	first := must(s.RackSkills(ctx, acme, "r1", 0, 0))(t)
	p.wait(40 * 24 * time.Hour) // long in force
	publish(t, s, newSkill("tips", "social", "2"))
	ok(t, second(s.RemoveSkill(ctx, acme, "gone")))
	later := must(s.RackSkills(ctx, acme, "r1", 0, 0))(t)
	prune := func(want int64) {
		t.Helper()
		equal(t, "pruned", must(s.System().Prune(ctx, store.PruneOptions{}))(t).Skills, want)
	}
	prune(1) // the body of the skill that is gone
	if _, err := s.RackBlob(ctx, acme, "r1", newSkill("tips", "social", "1").SHA256); err != nil {
		t.Errorf("a body that was replaced just now: %v", err)
	}
	p.wait(25 * time.Hour)
	prune(1) // the body that was replaced
	_, err := s.RackBlob(ctx, acme, "r1", newSkill("tips", "social", "1").SHA256)
	wants(t, err, store.ErrNotFound)
	if delta := must(s.RackSkills(ctx, acme, "r1", first.Epoch, first.Version))(t); !slices.Equal(delta.Removed, []string{"gone"}) {
		t.Errorf("%+v", delta)
	}
	p.wait(31 * 24 * time.Hour)
	prune(1) // that it is gone
	prune(0)
	_, err = s.RackSkills(ctx, acme, "r1", first.Epoch, first.Version)
	wants(t, err, store.ErrResync)
	if delta := must(s.RackSkills(ctx, acme, "r1", later.Epoch, later.Version))(t); len(delta.Removed)+len(delta.Skills) != 0 {
		t.Errorf("%+v", delta)
	}
}

// testManyPrunedSkills: what is gone is forgotten in batches, and one that finds no time for it forgets nothing.
func testManyPrunedSkills(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	ok(t, second(s.CreateSubscription(ctx, acme, "social", "")))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social"})))
	for i := range 3 {
		publish(t, s, newSkill(fmt.Sprint("gone", i), "social", "1"))
		g := store.Grant{Subscription: "social", Rack: "r1", Agent: fmt.Sprint("a", i)}
		ok(t, second(s.Grant(ctx, acme, g)))
		ok(t, s.EndGrant(ctx, acme, g))
	}
	first := must(s.RackSkills(ctx, acme, "r1", 0, 0))(t)
	for i := range 3 {
		ok(t, second(s.RemoveSkill(ctx, acme, fmt.Sprint("gone", i))))
	}
	later := must(s.RackSkills(ctx, acme, "r1", 0, 0))(t)
	p.wait(2 * 24 * time.Hour)
	equal(t, "bodies", must(s.System().Prune(ctx, store.PruneOptions{}))(t).Skills, 3)
	p.wait(31 * 24 * time.Hour)
	if got := must(s.System().Prune(ctx, store.PruneOptions{Batch: 2, Budget: time.Nanosecond}))(t); got.Done || got.Skills != 0 {
		t.Errorf("without time for it: %+v", got)
	}
	if delta := must(s.RackSkills(ctx, acme, "r1", first.Epoch, first.Version))(t); len(delta.Removed) != 3 {
		t.Errorf("%+v", delta)
	}
	if got := must(s.System().Prune(ctx, store.PruneOptions{Batch: 2}))(t); !got.Done || got.Skills != 6 {
		t.Errorf("in batches: %+v", got)
	}
	wants(t, second(s.RackSkills(ctx, acme, "r1", first.Epoch, first.Version)), store.ErrResync)
	ok(t, second(s.RackSkills(ctx, acme, "r1", later.Epoch, later.Version)))
}

// testPublishAtOnce: each change has a version of its own, and readers see whole ones.
func testPublishAtOnce(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	ok(t, second(s.CreateSubscription(ctx, acme, "social", "")))
	ok(t, second(s.Grant(ctx, acme, store.Grant{Subscription: "social"})))
	before := must(s.RackSkills(ctx, acme, "r1", 0, 0))(t)
	const writers, each = 4, 6
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, _, err := s.PublishSkill(ctx, acme, newSkill(fmt.Sprintf("k%d-%d", w, i), "social", "1")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 10 {
				got, err := s.RackSkills(ctx, acme, "r1", before.Epoch, before.Version)
				if err != nil && !errors.Is(err, store.ErrConflict) || err == nil && int64(len(got.Skills)) != got.Version-before.Version {
					t.Errorf("%d skills in %d versions, %v", len(got.Skills), got.Version-before.Version, err)
				}
			}
		})
	}
	wg.Wait()
	after := must(s.RackSkills(ctx, acme, "r1", before.Epoch, before.Version))(t)
	equal(t, "skills", len(after.Skills), writers*each)
	equal(t, "versions", after.Version-before.Version, writers*each)
}

// testFirstSchema opens a database of the version before skills.
func testFirstSchema(t *testing.T, p place) {
	s, err := store.Open(t.Context(), p.dsn, store.Options{Clock: p.clock})
	ok(t, err)
	addHost(t, s, "r1")
	ok(t, s.Close())
	raw(t, p, func(db *sql.DB) {
		for _, table := range []string{"catalogs", "subscriptions", "grants", "skills", "blobs", "catalog_keys", "desired", "task_files", "files"} {
			ok(t, second(db.Exec(`DROP TABLE `+table)))
		}
		ok(t, second(db.Exec(`DELETE FROM schema_versions WHERE version > 2`)))
	})
	s = p.open(t)
	equal(t, "host", must(s.Host(t.Context(), acme, "r1"))(t).Name, "rack r1")
	ok(t, second(s.CreateSubscription(t.Context(), acme, "social", "")))
}
