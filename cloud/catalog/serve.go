package catalog

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"phonerack/agent/skill/model"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// maxKnown bounds the keys that a rack names.
const maxKnown = 16

// Changes gives a rack a page of its manifest.
func (c *Catalog) Changes(ctx context.Context, from enroll.Caller, b wire.SkillChanges) (wire.SkillManifest, error) {
	if b.Since < 0 || b.Epoch < 0 || len(b.Keys) > maxKnown || len(b.Page) > maxMark {
		return wire.SkillManifest{}, bad("epoch and since are not negative, and at most %d keys are named", maxKnown)
	}
	var at mark
	if b.Page != "" {
		var err error
		if at, err = parseMark(b.Page); err != nil {
			return wire.SkillManifest{}, bad("%.40q is no page", b.Page)
		}
	} else {
		at = mark{epoch: b.Epoch, since: b.Since}
	}
	m, err := c.manifest(ctx, from, at, b.Keys)
	if err != nil {
		return wire.SkillManifest{}, err
	}
	if at.offset >= len(m.raw) {
		return wire.SkillManifest{}, bad("the manifest ends before that page")
	}
	part := m.raw[at.offset:min(len(m.raw), at.offset+wire.MaxPage)]
	out := wire.SkillManifest{Manifest: part, Offset: int64(at.offset), Size: int64(len(m.raw)), Sig: m.sig, KeyID: m.mark.key}
	if end := at.offset + len(part); end < len(m.raw) {
		next := m.mark
		next.offset = end
		out.NextPage = next.String()
	}
	return out, nil
}

// signed is a manifest's bytes. Its mark is that of its first page.
type signed struct {
	raw, sig []byte
	mark     mark
}

// manifest gives the manifest that at is a page of. Without a version in at it is made anew.
func (c *Catalog) manifest(ctx context.Context, from enroll.Caller, at mark, known []string) (*signed, error) {
	first := at
	first.offset = 0
	if at.version > 0 {
		if m := c.built.get(from, first); m != nil {
			return m, nil
		}
	}
	r, err := c.store.RackSkills(ctx, from.Scope(), from.Rack, at.epoch, at.since)
	switch {
	case errors.Is(err, store.ErrResync):
		return nil, resync("the version is too old, or the subscriptions of the rack have changed")
	case errors.Is(err, store.ErrConflict):
		return nil, wire.Refuse(wire.LimitExceeded, map[string]any{"what": "changes of skills", "limit": "what can be read between two of them"}).Because(err)
	case errors.Is(err, store.ErrNotFound):
		return nil, wire.Refuse(wire.Unauthenticated, nil).Because(err)
	case err != nil:
		return nil, fleet.Refusal(err)
	case len(r.Removed) > model.MaxRemoved:
		return nil, resync("more was removed than one manifest tells")
	case at.version > 0 && at.version != r.Version:
		return nil, resync("there is a newer manifest than the one that the page belongs to")
	}
	keys, err := c.keys(ctx, from.Scope())
	if err != nil {
		return nil, fleet.Refusal(err)
	}
	if at.key != "" {
		known = []string{at.key}
	}
	key, private, err := c.signer(from.Tenant, keys, known)
	if err != nil {
		return nil, fleet.Refusal(err)
	}
	first.version, first.key = r.Version, key.ID
	switch now := c.clock().UnixMilli(); {
	case first.issued == 0:
		first.issued = now
	case first.issued > now || first.issued < now-builtTime.Milliseconds():
		// The rack named the time itself. It gets no manifest of a time that is not now.
		return nil, resync("the page belongs to a manifest of another time")
	}
	m, err := sign(from.Rack, r, keys, private, first)
	if err == nil && len(m.raw) > wire.MaxPage {
		c.built.put(from, m)
	}
	return m, err
}

func resync(reason string) error {
	return wire.Refuse(wire.ResyncRequired, map[string]any{"reason": reason})
}

// sign writes the manifest that a mark describes: the same records make the same bytes.
func sign(rack string, r store.RackSkills, keys []store.CatalogKey, private ed25519.PrivateKey, first mark) (*signed, error) {
	m := model.Manifest{
		Rack: rack, Epoch: r.Epoch, Version: r.Version, Complete: first.since == 0, Since: first.since, Removed: r.Removed,
		Issued: first.issued, Expires: first.issued + ManifestLife.Milliseconds(),
	}
	for _, k := range r.Skills {
		m.Skills = append(m.Skills, model.Entry{ID: k.ID, Version: k.Version, Kind: model.Kind(k.Kind), SHA256: k.SHA256, Size: k.Size})
	}
	m.Subscriptions = states(r.Subscriptions)
	for _, k := range keys {
		m.Keys = append(m.Keys, model.ManifestKey{ID: k.ID, Public: k.Public})
	}
	slices.SortFunc(m.Keys, func(a, b model.ManifestKey) int { return strings.Compare(a.ID, b.ID) })
	raw, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("the manifest of rack %s: %w", rack, err)
	}
	return &signed{raw, model.SignManifest(private, raw), first}, nil
}

func states(all []store.RackSubscription) []model.SubscriptionState {
	states := make([]model.SubscriptionState, 0, len(all))
	for _, u := range all {
		state := model.Active
		if !u.Active {
			state = model.Revoked
		}
		states = append(states, model.SubscriptionState{ID: u.ID, State: state, Agents: u.Agents})
	}
	return states
}

// mark says where a page begins, and of which manifest.
type mark struct {
	epoch, since, version, issued int64
	key                           string
	offset                        int
}

const maxMark = 256

func (m mark) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%s.%d", m.epoch, m.since, m.version, m.issued, m.key, m.offset)
}

var errMark = errors.New("no page")

func parseMark(s string) (mark, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 6 || !wire.ValidID(parts[4]) {
		return mark{}, errMark
	}
	var n [6]int64
	for i, part := range parts {
		if i == 4 {
			continue
		}
		v, err := strconv.ParseInt(part, 10, 64)
		if err != nil || v < 0 || strconv.FormatInt(v, 10) != part {
			return mark{}, errMark
		}
		n[i] = v
	}
	m := mark{epoch: n[0], since: n[1], version: n[2], issued: n[3], key: parts[4], offset: int(n[5])}
	if m.version == 0 || m.issued == 0 || n[5] > model.MaxManifestBytes {
		return mark{}, errMark
	}
	return m, nil
}

// Blob gives a rack a part of a skill's canonical JSON.
func (c *Catalog) Blob(ctx context.Context, from enroll.Caller, b wire.BlobGet) (wire.BlobData, []byte, error) {
	if !model.ValidSum(b.SHA256) || b.Offset < 0 {
		return wire.BlobData{}, nil, bad("a hash has 64 lower-case hexadecimal digits, and an offset is not negative")
	}
	body, err := c.store.RackBlob(ctx, from.Scope(), from.Rack, b.SHA256)
	if err != nil {
		return wire.BlobData{}, nil, fleet.Named(err, "blob", b.SHA256)
	}
	if b.Offset > int64(len(body)) {
		return wire.BlobData{}, nil, bad("the bytes end before offset %d", b.Offset)
	}
	part := body[b.Offset:min(int64(len(body)), b.Offset+wire.MaxBlobPart)]
	return wire.BlobData{SHA256: b.SHA256, Offset: b.Offset, Size: int64(len(body))}, part, nil
}

func bad(format string, args ...any) error {
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(format, args...)})
}
