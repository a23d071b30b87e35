package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/cloud/catalog"
	rack "phonerack/sync/catalog"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

func draft(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// follow opens the copy of a rack, in a database of its own.
func follow(t testing.TB, b wire.Bundle, l *link.Link) *rack.Catalog {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "catalog.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(bucketName); return err }); err != nil {
		t.Fatal(err)
	}
	keys, err := b.ManifestKeys()
	if err != nil || len(keys) == 0 {
		t.Fatalf("%v, %v", keys, err)
	}
	c, err := rack.Open(rack.Options{Platform: rack.Over(l), Bucket: bucket{db}, Tenant: b.Tenant, Rack: b.Rack, Keys: keys, Now: l.Now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// BenchmarkFirstSyncThroughTheBroker fetches 2,500 skills of about 4 KiB, over TLS and MQTT, into a database that is synced.
func BenchmarkFirstSyncThroughTheBroker(b *testing.B) {
	s := serve(b, b.TempDir())
	bundle := s.enrol("bench")
	dir := b.TempDir()
	for i := range 2500 {
		text := fmt.Sprintf("---\nid: skill-%04d\nname: Skill %d\ndescription: %s\nversion: 1\n---\n%s\n", i, i, strings.Repeat("what it is for ", 8), strings.Repeat("text of a skill ", 250))
		draft(b, dir, fmt.Sprintf("%04d.md", i), text)
	}
	s.do("subscription", "create", "social")
	s.do("subscription", "grant", "social")
	s.do("skill", "publish", dir, "--subscription", "social")
	l := join(b, bundle, true, nil)
	for b.Loop() {
		c := follow(b, bundle, l)
		if err := c.Sync(b.Context()); err != nil || len(c.Copy().Rows) != 2500 {
			b.Fatalf("%v, %d rows", err, len(c.Copy().Rows))
		}
	}
}

// TestSpec000_FromTheOperatorsFolderToTheRack: what an operator publishes and grants, a rack has through the broker, and
// what is revoked it has no more.
func TestSpec000_FromTheOperatorsFolderToTheRack(t *testing.T) {
	s := serve(t, t.TempDir())
	b := s.enrol("bench")
	dir := t.TempDir()
	draft(t, dir, "tips/SKILL.md", "---\nid: tips\nname: Tips\ndescription: Tips.\nversion: 1\n---\nLook twice.\n")
	draft(t, dir, "flow.yaml", "id: flow\nname: Flow\ndescription: A flow.\nkind: flow_template\nversion: 1\nsteps: [{tool: observe, args_template: {}}]\n")
	draft(t, dir, ".git/x.yaml", "none")
	draft(t, dir, "README.md", "none")
	draft(t, dir, "notes.txt", "none")

	s.do("subscription", "create", "social", "--name", "Social")
	got := decode[[]published](t, s.do("skill", "publish", dir, "--subscription", "social"))
	if len(got) != 2 || got[0].Skill.ID != "flow" || got[1].Skill.ID != "tips" {
		t.Fatalf("%+v", got)
	}
	if again := decode[[]published](t, s.do("skill", "publish", dir, "--subscription", "social")); !again[0].Skill.Unchanged || !again[1].Skill.Unchanged {
		t.Errorf("%+v", again)
	}
	broken := draft(t, dir, "broken.yaml", "id: broken\n")
	if text, code := s.try("", "skill", "publish", dir, "--subscription", "social"); code != exitRefused || !strings.Contains(text, "broken.yaml line") || !strings.Contains(text, `"unchanged": true`) {
		t.Errorf("%d: %s", code, text)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	u := decode[catalog.Subscription](t, s.do("subscription", "grant", "social", "--rack", b.Rack))
	if len(u.Grants) != 1 || u.Grants[0].Rack != b.Rack {
		t.Errorf("%+v", u)
	}
	if v := decode[catalog.View](t, s.do("catalog", "show", b.Rack)); len(v.Skills) != 2 || len(v.Subscriptions) != 1 {
		t.Errorf("%+v", v)
	}
	if all := decode[[]catalog.Skill](t, s.do("skill", "list", "--subscription", "social")); len(all) != 2 {
		t.Errorf("%+v", all)
	}

	hints := make(chan wire.SkillChanged, 8)
	l := join(t, b, true, func(l *link.Link) {
		l.Handle(wire.TypeSkillChanged, func(_ context.Context, m *wire.Message) {
			var h wire.SkillChanged
			if m.Decode(&h) == nil {
				hints <- h
			}
		})
	})
	c := follow(t, b, l)
	sees := func() string {
		var ids []string
		for _, r := range c.Copy().Rows {
			if c.Copy().Entitled(r, "task") {
				ids = append(ids, r.ID)
			}
		}
		return fmt.Sprint(ids)
	}
	if err := c.Sync(t.Context()); err != nil || sees() != "[flow tips]" {
		t.Fatalf("%v: %s", err, sees())
	}
	s.do("subscription", "revoke", "social", "--rack", b.Rack)
	select {
	case h := <-hints:
		if c.Hint(h); sees() != "[]" {
			t.Errorf("after the hint %+v: %s", h, sees())
		}
	case <-time.After(20 * time.Second):
		t.Error("no hint comes")
	}
	if err := c.Sync(t.Context()); err != nil || len(c.Copy().Rows) != 0 {
		t.Errorf("%v: %+v", err, c.Copy())
	}
	var shown bytes.Buffer
	run(t.Context(), []string{"--admin", s.admin, "catalog", "show", b.Rack}, strings.NewReader(""), &shown, &shown)
	if text := shown.String(); !strings.Contains(text, "revoked") || strings.Contains(text, " all") {
		t.Errorf("who has what was revoked:\n%s", text)
	}
}
