package api

import (
	"strings"
	"testing"

	"phonerack/agent/skill/model"
	"phonerack/cloud/catalog"
	"phonerack/sync/wire"
)

// skill says something on up/skill and gives the one answer.
func (r *rack) skill(t wire.Type, body any) *wire.Message {
	r.t.Helper()
	all := r.deliver(wire.KindSkill, r.seal(wire.KindSkill, r.message(t, body)))
	if len(all) != 1 {
		r.t.Fatalf("%s is answered by %d messages", t, len(all))
	}
	return all[0]
}

// TestARackGetsItsSkills: with the keys of its bundle, by its own topics, and nothing of another tenant.
func TestARackGetsItsSkills(t *testing.T) {
	s := newSite(t)
	r, foreign := s.rack("acme"), s.rack("other")
	r.hello()
	foreign.hello()
	ctx := t.Context()
	if _, err := s.skills.CreateSubscription(ctx, acme, "social", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.skills.Grant(ctx, acme, "social", catalog.Grant{}); err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat(`say "hello" `, 20_000) // of two parts, as its quotes are escaped
	_, err := s.skills.Publish(ctx, acme, catalog.NewSkill{
		Subscription: "social", File: "SKILL.md", Content: "---\nid: tips\nname: Tips\ndescription: d\nversion: 1\n---\n" + content,
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := must(r.bundle.ManifestKeys())(t)
	if len(keys) != 1 {
		t.Fatalf("the bundle has %d keys", len(keys))
	}
	r.heard() // the hints
	var page wire.SkillManifest
	if a := r.skill(wire.TypeSkillChanges, wire.SkillChanges{}); a.Type != wire.TypeSkillManifest || a.Decode(&page) != nil {
		t.Fatalf("%s %s", a.Type, a.Body)
	}
	m, err := model.OpenManifest(page.Manifest, page.Sig, page.KeyID, keys)
	if err != nil || m.Rack != r.bundle.Rack || len(m.Skills) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := model.OpenManifest(page.Manifest, page.Sig, page.KeyID, must(foreign.bundle.ManifestKeys())(t)); err == nil {
		t.Error("another tenant's keys prove it too")
	}
	var raw []byte
	for parts := 0; int64(len(raw)) < m.Skills[0].Size; parts++ {
		a := r.skill(wire.TypeBlobGet, wire.BlobGet{SHA256: m.Skills[0].SHA256, Offset: int64(len(raw))})
		part := a.Attachment(wire.BlobAttachment)
		if a.Type != wire.TypeBlobData || len(part) == 0 || parts > 3 {
			t.Fatalf("%s %s with %d bytes", a.Type, a.Body, len(part))
		}
		raw = append(raw, part...)
	}
	if len(raw) <= wire.MaxBlobPart {
		t.Errorf("%d bytes are one part", len(raw))
	}
	if skill, err := model.OpenSkill(m.Skills[0], raw); err != nil || skill.ID != "tips" {
		t.Errorf("%v", err)
	}

	var refusal wire.Refusal
	if a := foreign.skill(wire.TypeBlobGet, wire.BlobGet{SHA256: m.Skills[0].SHA256}); a.Decode(&refusal) != nil || refusal.Code != wire.NotFound {
		t.Errorf("a rack of another tenant: %s %s", a.Type, a.Body)
	}
	if a := r.skill(wire.TypeSkillChanges, wire.SkillChanges{Epoch: m.Epoch - 1, Since: m.Version}); a.Decode(&refusal) != nil || refusal.Code != wire.ResyncRequired {
		t.Errorf("a version of another epoch: %s %s", a.Type, a.Body)
	}
}

// TestAnAnswerWithAPartOfASkillIsNotKept: a repeated request reads it again.
func TestAnAnswerWithAPartOfASkillIsNotKept(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	frame := r.seal(wire.KindSkill, r.message(wire.TypeSkillChanges, wire.SkillChanges{}))
	for range 2 {
		if all := r.deliver(wire.KindSkill, frame); len(all) != 1 || all[0].Type != wire.TypeSkillManifest {
			t.Fatalf("got %+v", all)
		}
	}
	if n := s.link.repeats.bytes; n > 4096 {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestAChangeOfSkillsIsHinted: on dn/skill, to the rack that has the subscription.
func TestAChangeOfSkillsIsHinted(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	r.deliver(wire.KindState, r.seal(wire.KindState, r.message(wire.TypeState, wire.State{State: wire.Online, Generation: 1, Session: r.session})))
	ctx := t.Context()
	if _, err := s.skills.CreateSubscription(ctx, acme, "social", ""); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func() error{
		func() error { return s.skills.Grant(ctx, acme, "social", catalog.Grant{}) },
		func() error { return s.skills.Revoke(ctx, acme, "social", catalog.Grant{}) },
	} {
		r.heard()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		all := r.heard()
		var hint wire.SkillChanged
		if len(all) != 1 || all[0].Type != wire.TypeSkillChanged || all[0].Decode(&hint) != nil || hint.Version == 0 || all[0].Sess != r.nonce {
			t.Fatalf("got %+v", all)
		}
	}
}
