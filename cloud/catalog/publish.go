package catalog

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// Skill is a published skill as operators see it.
type Skill struct {
	ID           string    `json:"id"`
	Subscription string    `json:"subscription_id"`
	Name         string    `json:"name"`
	Kind         string    `json:"kind"`
	Version      string    `json:"version"`
	SHA256       string    `json:"sha256"`
	Size         int64     `json:"size"`
	UpdatedAt    time.Time `json:"updated_at"`
	Unchanged    bool      `json:"unchanged,omitempty"` // of an answer to Publish: it was there already
	Hidden       []string  `json:"hidden,omitempty"`    // likewise: invisible characters that were let through
}

func viewSkill(k store.Skill) Skill {
	return Skill{ID: k.ID, Subscription: k.Subscription, Name: k.Name, Kind: k.Kind, Version: k.Version, SHA256: k.SHA256, Size: k.Size, UpdatedAt: k.Updated}
}

// NewSkill is a skill as somebody wrote it.
type NewSkill struct {
	Subscription string `json:"subscription_id"`
	File         string `json:"file"`    // its name: .yaml, .yml, .md or .json says how Content is read
	Content      string `json:"content"` // see model.ParseDraft
	// AllowHidden publishes also what has invisible characters, which can carry instructions that nobody sees.
	AllowHidden bool `json:"allow_hidden,omitempty"`
}

// Publish makes a draft the version of its skill. The same contents again change nothing.
func (c *Catalog) Publish(ctx context.Context, op fleet.Operator, n NewSkill) (Skill, error) {
	s, err := model.ParseDraft(n.File, []byte(n.Content))
	if err != nil {
		return Skill{}, bad("%s", err.Error())
	}
	if s.Subscription != "" && s.Subscription != n.Subscription {
		return Skill{}, bad("the skill says that it belongs to the subscription %s, and not to %.63q", s.Subscription, n.Subscription)
	}
	var hidden []string
	for _, found := range s.Smuggled() {
		hidden = append(hidden, found.String())
	}
	if len(hidden) > 0 && !n.AllowHidden {
		return Skill{}, bad("it has invisible characters, which can carry instructions that nobody sees (%s); remove them, or allow them if they belong there",
			strings.Join(hidden[:min(3, len(hidden))], "; "))
	}
	s.Subscription = n.Subscription
	next, err := c.version(ctx, op.Scope(), s)
	if err != nil {
		return Skill{}, err
	}
	k, changed, err := c.store.PublishSkill(ctx, op.Scope(), next)
	if err != nil {
		return Skill{}, fleet.Named(err, "subscription", n.Subscription)
	}
	if changed {
		c.tell(ctx, op, k.Subscription, func(h *wire.SkillChanged, _ bool) {})
	}
	view := viewSkill(k)
	view.Unchanged, view.Hidden = !changed, hidden
	return view, nil
}

// version encodes a skill for the store. If nothing but the time differs from the version in force, it gets that one's.
func (c *Catalog) version(ctx context.Context, sc store.Scope, s *model.Skill) (store.NewSkill, error) {
	before := ""
	old, body, err := c.store.Skill(ctx, sc, s.ID)
	switch {
	case err == nil:
		before = old.SHA256
		s.UpdatedAt = old.Updated
		if raw, err := s.Encode(); err != nil {
			return store.NewSkill{}, bad("%s", err.Error())
		} else if bytes.Equal(raw, body) {
			return newVersion(s, raw, before), nil
		}
	case !errors.Is(err, store.ErrNotFound):
		return store.NewSkill{}, fleet.Refusal(err)
	}
	s.UpdatedAt = c.clock().UTC().Truncate(time.Millisecond)
	raw, err := s.Encode()
	if err != nil {
		return store.NewSkill{}, bad("%s", err.Error())
	}
	return newVersion(s, raw, before), nil
}

func newVersion(s *model.Skill, raw []byte, before string) store.NewSkill {
	return store.NewSkill{Skill: store.Skill{
		ID: s.ID, Subscription: s.Subscription, Name: s.Name, Kind: string(s.Kind), Version: s.Version, SHA256: model.Sum(raw), Updated: s.UpdatedAt,
	}, Body: raw, Before: before}
}

// Remove takes a skill away from all who have it.
func (c *Catalog) Remove(ctx context.Context, op fleet.Operator, id string) error {
	k, err := c.store.RemoveSkill(ctx, op.Scope(), id)
	if err != nil {
		return fleet.Named(err, "skill", id)
	}
	c.tell(ctx, op, k.Subscription, func(h *wire.SkillChanged, has bool) {
		if has {
			h.Removed = []string{k.ID}
		}
	})
	return nil
}

// Skill gives a published skill with its canonical JSON.
func (c *Catalog) Skill(ctx context.Context, op fleet.Operator, id string) (Skill, []byte, error) {
	k, body, err := c.store.Skill(ctx, op.Scope(), id)
	return viewSkill(k), body, fleet.Named(err, "skill", id)
}

// Skills lists published skills by id; of all subscriptions if subscription is empty.
func (c *Catalog) Skills(ctx context.Context, op fleet.Operator, subscription string, p store.Page) ([]Skill, string, error) {
	if subscription != "" && !model.ValidID(subscription) {
		return nil, "", bad("%.80q is no id of a subscription", subscription)
	}
	all, next, err := c.store.Skills(ctx, op.Scope(), subscription, p)
	views := make([]Skill, 0, len(all))
	for _, k := range all {
		views = append(views, viewSkill(k))
	}
	return views, next, fleet.Refusal(err)
}
