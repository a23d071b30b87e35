package store

import (
	"context"
	"time"
)

// Subscription is a set of skills that is granted as a whole.
type Subscription struct {
	ID      string // [a-z0-9-]{1,63}; unique in the tenant
	Name    string
	Active  bool // false: nobody has it, whatever is granted
	Created time.Time
}

// Grant says who has a subscription. Rack "" is all racks of the tenant, Agent "" all agents on them.
type Grant struct {
	Subscription string
	Rack         string
	Agent        string // [a-z0-9-]{1,63}
	Created      time.Time
}

// Bounds of a tenant's skills.
const (
	MaxSubscriptions = 256
	MaxSkills        = 5000
	maxGrants        = 100_000
	maxAgents        = 64 // that one subscription names
)

// catalog locks the tenant's skills and gives the version that a change makes.
func (t *tx) catalog() (next int64, err error) {
	if _, err = t.exec(`INSERT INTO catalogs (tenant, version, oldest) VALUES (?, 0, 0) ON CONFLICT (tenant) DO NOTHING`, t.sc.Tenant); err != nil {
		return 0, err
	}
	err = t.row(`SELECT version FROM catalogs WHERE tenant = ? FOR UPDATE`, t.sc.Tenant).Scan(&next)
	return next + 1, err
}

// advance makes next the version.
func (t *tx) advance(next int64) error {
	_, err := t.exec(`UPDATE catalogs SET version = ? WHERE tenant = ?`, next, t.sc.Tenant)
	return err
}

// change runs f under the lock of the tenant's skills. If f changed something, that is the next version.
func (s *Store) change(ctx context.Context, sc Scope, f func(t *tx, next int64) (changed bool, err error)) error {
	return s.write(ctx, sc, func(t *tx) error {
		next, err := t.catalog()
		if err != nil {
			return err
		}
		changed, err := f(t, next)
		if err != nil || !changed {
			return err
		}
		return t.advance(next)
	})
}

func scanSubscription(r scanner) (u Subscription, err error) {
	return u, r.Scan(&u.ID, &u.Name, &u.Active, timeIn{&u.Created})
}

func (t *tx) subscription(id string) (Subscription, error) {
	return scanSubscription(t.row(`SELECT id, name, active, created FROM subscriptions WHERE tenant = ? AND id = ?`, t.sc.Tenant, id))
}

// CreateSubscription records a subscription, active and granted to nobody. ErrConflict: the id is taken, or there are
// MaxSubscriptions already.
func (s *Store) CreateSubscription(ctx context.Context, sc Scope, id, name string) (made Subscription, err error) {
	if err = check(sc.check(), idOK("subscription", id), textOK("name", name, 0, maxName)); err != nil {
		return Subscription{}, err
	}
	err = s.change(ctx, sc, func(t *tx, next int64) (bool, error) {
		var n int
		if err := t.row(`SELECT COUNT(*) FROM subscriptions WHERE tenant = ?`, sc.Tenant).Scan(&n); err != nil {
			return false, err
		}
		if n >= MaxSubscriptions {
			return false, conflict("the tenant has %d subscriptions, which is the most", n)
		}
		_, err := t.exec(`INSERT INTO subscriptions (tenant, id, name, active, created, changed) VALUES (?, ?, ?, 1, ?, ?)`, sc.Tenant, id, name, t.now, next)
		if err != nil {
			return false, err
		}
		if made, err = t.subscription(id); err != nil {
			return false, err
		}
		return true, t.audit("subscription.create", id, map[string]any{"name": name})
	})
	return made, err
}

// Subscription gives a subscription.
func (s *Store) Subscription(ctx context.Context, sc Scope, id string) (u Subscription, err error) {
	if err = sc.check(); err != nil {
		return Subscription{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		u, err = t.subscription(id)
		return err
	})
	return u, err
}

// Subscriptions lists subscriptions by id.
func (s *Store) Subscriptions(ctx context.Context, sc Scope, p Page) (all []Subscription, next string, err error) {
	size, err := p.size()
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scanSubscription, `SELECT id, name, active, created FROM subscriptions WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`,
			sc.Tenant, p.After, size+1)
		return err
	})
	all, next = cut(all, size, func(u Subscription) string { return u.ID })
	return all, next, err
}

// SetSubscription makes a subscription active or not. It tells whether that changed anything.
func (s *Store) SetSubscription(ctx context.Context, sc Scope, id string, active bool) (changed bool, err error) {
	if err = sc.check(); err != nil {
		return false, err
	}
	err = s.change(ctx, sc, func(t *tx, next int64) (bool, error) {
		u, err := t.subscription(id)
		if changed = err == nil && u.Active != active; err != nil || !changed {
			return false, err
		}
		if _, err := t.exec(`UPDATE subscriptions SET active = ?, changed = ? WHERE tenant = ? AND id = ?`, bit(active), next, sc.Tenant, id); err != nil {
			return false, err
		}
		return true, t.audit("subscription.set", id, map[string]any{"active": active})
	})
	return changed, err
}

func (g Grant) check() error {
	err := idOK("subscription", g.Subscription)
	if g.Agent != "" {
		err = check(err, idOK("agent", g.Agent))
	}
	return err
}

func (g Grant) detail() map[string]any { return map[string]any{"rack": g.Rack, "agent": g.Agent} }

// Grant gives a subscription to a rack or to all, again if it was ended. It tells whether that changed anything.
// ErrNotFound: there is no such subscription or rack.
func (s *Store) Grant(ctx context.Context, sc Scope, g Grant) (changed bool, err error) {
	if err = check(sc.check(), g.check()); err != nil {
		return false, err
	}
	err = s.change(ctx, sc, func(t *tx, next int64) (bool, error) {
		if _, err := t.subscription(g.Subscription); err != nil {
			return false, err
		}
		if g.Rack != "" {
			if _, err := t.host(g.Rack); err != nil {
				return false, err
			}
		}
		var n int
		if err := t.row(`SELECT COUNT(*) FROM grants WHERE tenant = ?`, sc.Tenant).Scan(&n); err != nil {
			return false, err
		}
		if n >= maxGrants {
			return false, conflict("the tenant has %d grants, which is the most", n)
		}
		err := t.row(`SELECT COUNT(DISTINCT agent) FROM grants WHERE tenant = ? AND subscription = ? AND ended = 0 AND agent <> '' AND agent <> ?`,
			sc.Tenant, g.Subscription, g.Agent).Scan(&n)
		if err != nil {
			return false, err
		}
		if g.Agent != "" && n >= maxAgents {
			return false, conflict("the subscription is granted to %d agents, which is the most", n)
		}
		hit, err := t.exec(`INSERT INTO grants (tenant, subscription, rack, agent, created, ended, changed) VALUES (?, ?, ?, ?, ?, 0, ?)
			ON CONFLICT (tenant, subscription, rack, agent) DO UPDATE SET ended = 0, created = excluded.created, changed = excluded.changed
			WHERE grants.ended > 0`, sc.Tenant, g.Subscription, g.Rack, g.Agent, t.now, next)
		if changed = err == nil && hit > 0; !changed {
			return false, err
		}
		return true, t.audit("subscription.grant", g.Subscription, g.detail())
	})
	return changed, err
}

// EndGrant takes back exactly this grant. ErrNotFound: it was never given, or has ended.
func (s *Store) EndGrant(ctx context.Context, sc Scope, g Grant) error {
	if err := check(sc.check(), g.check()); err != nil {
		return err
	}
	return s.change(ctx, sc, func(t *tx, next int64) (bool, error) {
		err := t.one(ErrNotFound, `UPDATE grants SET ended = ?, changed = ? WHERE tenant = ? AND subscription = ? AND rack = ? AND agent = ? AND ended = 0`,
			t.now, next, sc.Tenant, g.Subscription, g.Rack, g.Agent)
		if err != nil {
			return false, err
		}
		return true, t.audit("subscription.end", g.Subscription, g.detail())
	})
}

// Grants lists the grants in force of a subscription, those to all first.
func (s *Store) Grants(ctx context.Context, sc Scope, subscription string) (all []Grant, err error) {
	if err = sc.check(); err != nil {
		return nil, err
	}
	scan := func(r scanner) (g Grant, err error) {
		return g, r.Scan(&g.Subscription, &g.Rack, &g.Agent, timeIn{&g.Created})
	}
	err = s.read(ctx, sc, func(t *tx) error {
		if _, err := t.subscription(subscription); err != nil {
			return err
		}
		all, err = list(t, scan, `SELECT subscription, rack, agent, created FROM grants WHERE tenant = ? AND subscription = ? AND ended = 0 ORDER BY rack, agent`,
			sc.Tenant, subscription)
		return err
	})
	return all, err
}
