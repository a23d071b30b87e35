package model

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"math"
	"strings"

	"phonerack/sync/wire"
)

// maxKeys bounds the keys that a manifest names: one in use, one to come, and a few old ones.
const maxKeys = 8

// maxAgents bounds the agents that a subscription is for.
const maxAgents = 64

// ParseManifest reads a manifest. It does not prove it: see [OpenManifest].
func ParseManifest(raw []byte) (*Manifest, error) {
	if len(raw) > MaxManifestBytes {
		return nil, tooLarge("manifest", len(raw), MaxManifestBytes)
	}
	n, err := parseJSON(raw)
	m := &Manifest{}
	if err := read("", n, err, func(r *reader, n *node) { r.manifest(n, m) }); err != nil {
		return nil, err
	}
	return m, nil
}

// Encode returns the bytes of a valid manifest, to be signed and sent.
func (m *Manifest) Encode() ([]byte, error) {
	c := *m
	c.V = 1
	if c.Skills == nil {
		c.Skills = []Entry{}
	}
	if c.Subscriptions == nil {
		c.Subscriptions = []SubscriptionState{}
	}
	raw, err := compact(&c)
	if err != nil {
		return nil, err
	}
	_, err = ParseManifest(raw)
	return raw, err
}

func (r *reader) manifest(n *node, m *Manifest) {
	o := r.object(n, "", "v", "rack", "epoch", "version", "complete", "since", "skills", "removed", "subscriptions", "issued", "expires", "keys")
	m.V = int(o.whole("v", 1, 1))
	m.Rack = o.text("rack", words{chosen: wire.ValidID, form: "must be the id of a rack"})
	m.Epoch = o.whole("epoch", 1, math.MaxInt64)
	m.Version = o.whole("version", 1, math.MaxInt64)
	m.Complete = o.flag("complete")
	m.Issued = o.whole("issued", 1, MaxTime)
	m.Expires = o.whole("expires", 1, MaxTime)
	if m.Complete {
		o.refuse("is not for a complete manifest", "since", "removed")
	} else {
		m.Since = o.whole("since", 1, math.MaxInt64)
	}
	if r.err == nil && m.Expires <= m.Issued {
		r.fail(n, "expires", "is not later than issued")
	}
	if r.err == nil && !m.Complete && m.Since > m.Version {
		r.fail(n, "since", "is later than version")
	}
	order := ""
	ascending := func(n *node, path, id string) {
		if id <= order {
			r.fail(n, path, "must come after %s: ids ascend, and none is there twice", quoted(order))
		}
		order = id
	}
	o.need("skills")
	named := map[string]bool{}
	o.list("skills", 0, MaxCatalog, func(n *node, path string) {
		e := r.entry(n, path)
		ascending(n, path, e.ID)
		named[e.ID] = true
		m.Skills = append(m.Skills, e)
	})
	order = ""
	o.list("removed", 0, MaxRemoved, func(n *node, path string) {
		id := r.text(n, path, idWords)
		ascending(n, path, id)
		if named[id] {
			r.fail(n, path, "%s is among the skills too", quoted(id))
		}
		m.Removed = append(m.Removed, id)
	})
	order = ""
	o.need("subscriptions")
	o.list("subscriptions", 0, MaxSubscriptions, func(n *node, path string) {
		s := r.subscription(n, path)
		ascending(n, path, s.ID)
		m.Subscriptions = append(m.Subscriptions, s)
	})
	order = ""
	o.list("keys", 0, maxKeys, func(n *node, path string) {
		k := r.manifestKey(n, path)
		ascending(n, path, k.ID)
		m.Keys = append(m.Keys, k)
	})
}

func (r *reader) subscription(n *node, path string) SubscriptionState {
	o := r.object(n, path, "id", "state", "agents")
	s := SubscriptionState{ID: o.text("id", idWords), State: o.oneOf("state", Active, Revoked)}
	last := ""
	o.list("agents", 0, maxAgents, func(n *node, path string) {
		name := r.text(n, path, idWords)
		if name <= last {
			r.fail(n, path, "must come after %s: names ascend, and none is there twice", quoted(last))
		}
		last = name
		s.Agents = append(s.Agents, name)
	})
	return s
}

func (r *reader) entry(n *node, path string) Entry {
	o := r.object(n, path, "id", "version", "kind", "sha256", "size")
	return Entry{
		ID:      o.text("id", idWords),
		Version: o.text("version", versionWords),
		Kind:    Kind(o.oneOf("kind", string(Knowledge), string(FlowTemplate))),
		SHA256:  o.text("sha256", words{chosen: ValidSum, form: "must be 64 lower-case hex digits"}),
		Size:    o.whole("size", 1, MaxSkillBytes),
	}
}

func (r *reader) manifestKey(n *node, path string) ManifestKey {
	o := r.object(n, path, "id", "public")
	k := ManifestKey{ID: o.text("id", words{chosen: wire.ValidID, form: "must be the id of a key"})}
	text := o.text("public", words{})
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		r.fail(n, o.at("public"), "must be %d bytes in base64", ed25519.PublicKeySize)
	}
	k.Public = raw
	return k
}

// ValidSum reports whether s is a SHA-256 as a manifest writes it.
func ValidSum(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// OpenSkill reads the bytes that an entry of a proved manifest stands for:
// their size and hash are the entry's, and so are id, version and kind.
func OpenSkill(e Entry, raw []byte) (*Skill, error) {
	if int64(len(raw)) != e.Size || Sum(raw) != e.SHA256 {
		return nil, fmt.Errorf("skill %q: the bytes are not those that the manifest names", e.ID)
	}
	s, err := ParseSkill(raw)
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w", e.ID, err)
	}
	if s.ID != e.ID || s.Version != e.Version || s.Kind != e.Kind {
		return nil, fmt.Errorf("skill %q: id, version or kind are not those that the manifest names", e.ID)
	}
	return s, nil
}

// EntryOf is the entry of a skill's canonical JSON.
func EntryOf(s *Skill, raw []byte) Entry {
	return Entry{ID: s.ID, Version: s.Version, Kind: s.Kind, SHA256: Sum(raw), Size: int64(len(raw))}
}
