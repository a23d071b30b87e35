package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// Subscription is a set of skills that is granted as a whole.
type Subscription struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Active  bool      `json:"active"`
	Created time.Time `json:"created"`
	Grants  []Grant   `json:"grants,omitempty"` // not in lists
}

// Grant says who has a subscription. Without a rack it is all racks of the tenant, without an agent all agents on them.
type Grant struct {
	Rack  string `json:"rack,omitempty"`
	Agent string `json:"agent,omitempty"`
}

func viewSubscription(u store.Subscription) Subscription {
	return Subscription{ID: u.ID, Name: u.Name, Active: u.Active, Created: u.Created}
}

// CreateSubscription makes a subscription that nobody has yet.
func (c *Catalog) CreateSubscription(ctx context.Context, op fleet.Operator, id, name string) (Subscription, error) {
	u, err := c.store.CreateSubscription(ctx, op.Scope(), id, name)
	if errors.Is(err, store.ErrConflict) {
		err = wire.Refuse(wire.Conflict, map[string]any{"reason": fmt.Sprintf("there is a subscription %s already", id)}).Because(err)
	}
	return viewSubscription(u), fleet.Refusal(err)
}

// Subscription gives a subscription with its grants.
func (c *Catalog) Subscription(ctx context.Context, op fleet.Operator, id string) (Subscription, error) {
	u, err := c.store.Subscription(ctx, op.Scope(), id)
	if err != nil {
		return Subscription{}, fleet.Named(err, "subscription", id)
	}
	grants, err := c.store.Grants(ctx, op.Scope(), id)
	view := viewSubscription(u)
	for _, g := range grants {
		view.Grants = append(view.Grants, Grant{g.Rack, g.Agent})
	}
	return view, fleet.Named(err, "subscription", id)
}

// Subscriptions lists subscriptions by id.
func (c *Catalog) Subscriptions(ctx context.Context, op fleet.Operator, p store.Page) ([]Subscription, string, error) {
	all, next, err := c.store.Subscriptions(ctx, op.Scope(), p)
	views := make([]Subscription, 0, len(all))
	for _, u := range all {
		views = append(views, viewSubscription(u))
	}
	return views, next, fleet.Refusal(err)
}

// SetSubscription opens or closes a subscription for all who have it.
func (c *Catalog) SetSubscription(ctx context.Context, op fleet.Operator, id string, active bool) error {
	changed, err := c.store.SetSubscription(ctx, op.Scope(), id, active)
	if err != nil {
		return fleet.Named(err, "subscription", id)
	}
	if changed {
		c.tell(ctx, op, id, revoked(id))
	}
	return nil
}

// checkAgent refuses a grant to a name under which nobody asks: it would be stored, and nobody would get anything. The names
// are those of agent/skill, which the cloud does not import.
func (g Grant) checkAgent() error {
	switch g.Agent {
	case "", "task", "person", "mcp":
		return nil
	}
	if name, ok := strings.CutPrefix(g.Agent, "mcp-"); ok && name != "" && wire.ValidID(name) {
		return nil
	}
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(
		"nobody asks as the agent %.80q: it is one of task, person, mcp, and mcp-NAME for the token of that name (a-z, 0-9 and dash)", g.Agent)})
}

// Grant gives a subscription to somebody.
func (c *Catalog) Grant(ctx context.Context, op fleet.Operator, id string, g Grant) error {
	if err := g.checkAgent(); err != nil {
		return err
	}
	changed, err := c.store.Grant(ctx, op.Scope(), store.Grant{Subscription: id, Rack: g.Rack, Agent: g.Agent})
	if errors.Is(err, store.ErrNotFound) {
		if _, gone := c.store.Subscription(ctx, op.Scope(), id); gone == nil {
			return fleet.Named(err, "rack", g.Rack)
		}
	}
	if err != nil {
		return fleet.Named(err, "subscription", id)
	}
	if changed {
		c.tellOf(ctx, op, g.Rack, id, func(*wire.SkillChanged, bool) {})
	}
	return nil
}

// Revoke takes back exactly one grant. A rack may have the subscription by another one still.
func (c *Catalog) Revoke(ctx context.Context, op fleet.Operator, id string, g Grant) error {
	if err := c.store.EndGrant(ctx, op.Scope(), store.Grant{Subscription: id, Rack: g.Rack, Agent: g.Agent}); err != nil {
		return fleet.Named(err, "grant of subscription", id)
	}
	c.tellOf(ctx, op, g.Rack, id, revoked(id))
	return nil
}

// revoked tells a rack that does not have the subscription any more.
func revoked(id string) func(*wire.SkillChanged, bool) {
	return func(h *wire.SkillChanged, has bool) {
		if !has {
			h.Subscription, h.State = id, model.Revoked
		}
	}
}

// View is what a rack is entitled to, as its manifest says.
type View struct {
	Epoch         int64                     `json:"epoch"`
	Version       int64                     `json:"version"`
	Skills        []Skill                   `json:"skills"`
	Subscriptions []model.SubscriptionState `json:"subscriptions"`
}

// Show gives what a rack is entitled to.
func (c *Catalog) Show(ctx context.Context, op fleet.Operator, rack string) (View, error) {
	r, err := c.store.RackSkills(ctx, op.Scope(), rack, 0, 0)
	if err != nil {
		return View{}, fleet.Named(err, "rack", rack)
	}
	v := View{Epoch: r.Epoch, Version: r.Version, Skills: []Skill{}, Subscriptions: states(r.Subscriptions)}
	for _, k := range r.Skills {
		v.Skills = append(v.Skills, viewSkill(k))
	}
	return v, nil
}

// tellTime bounds all hints of one change: whoever made it waits no longer.
const tellTime = 5 * time.Second

// tell sends a hint to the racks that have or had a subscription and are there.
func (c *Catalog) tell(ctx context.Context, op fleet.Operator, subscription string, say func(hint *wire.SkillChanged, has bool)) {
	c.tellOf(ctx, op, "", subscription, say)
}

// tellOf is tell for one rack, or for all if rack is "". has tells say whether the rack has the subscription. A rack that
// never had it hears nothing of it.
func (c *Catalog) tellOf(ctx context.Context, op fleet.Operator, rack, subscription string, say func(hint *wire.SkillChanged, has bool)) {
	if c.push == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	if rack != "" {
		c.hint(ctx, enroll.Caller{Tenant: op.Tenant, Rack: rack}, subscription, say)
		return
	}
	for page := (store.Page{Limit: 1000}); ; {
		hosts, next, err := c.store.Hosts(ctx, op.Scope(), page)
		if err != nil {
			c.log.Warn("hints about skills were not sent, the racks' next poll brings them", "error", err)
			return
		}
		for _, h := range hosts {
			if h.Revoked.IsZero() && h.Presence != store.Offline {
				c.hint(ctx, enroll.Caller{Tenant: op.Tenant, Rack: h.ID}, subscription, say)
			}
		}
		if page.After = next; next == "" || ctx.Err() != nil {
			return
		}
	}
}

func (c *Catalog) hint(ctx context.Context, to enroll.Caller, subscription string, say func(hint *wire.SkillChanged, has bool)) {
	r, err := c.store.RackSubscriptions(ctx, to.Scope(), to.Rack)
	if err != nil {
		c.log.Debug("a hint about skills was not sent, the rack's next poll brings it", "rack", to.Rack, "error", err)
		return
	}
	for _, u := range r.Subscriptions {
		if u.ID != subscription {
			continue
		}
		h := wire.SkillChanged{Epoch: r.Epoch, Version: r.Version}
		say(&h, u.Active)
		if err := c.push.Push(ctx, to, wire.TypeSkillChanged, h); err != nil {
			c.log.Debug("a hint about skills was not sent, the rack's next poll brings it", "rack", to.Rack, "error", err)
		}
	}
}
