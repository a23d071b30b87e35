package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"
)

// Skill is what the records say of a published skill.
type Skill struct {
	ID           string // [a-z0-9-]{1,63}; unique in the tenant
	Subscription string // never another one
	Name         string
	Kind         string
	Version      string
	SHA256       string // of the canonical JSON, lower-case hex
	Size         int64
	Updated      time.Time
	Removed      time.Time // zero while it is there
}

// NewSkill is a version of a skill to be published.
type NewSkill struct {
	Skill  // without Size and Removed
	Body   []byte
	Before string // the hash of the version that this one was compared with; "" for none
}

const maxBody = 512 << 10

func (n *NewSkill) check() error {
	hash, err := hex.DecodeString(n.SHA256)
	if err != nil || len(hash) != 32 {
		err = invalid("%.80q is no hash", n.SHA256)
	}
	return check(idOK("skill", n.ID), idOK("subscription", n.Subscription), textOK("name", n.Name, 1, 4*maxName), textOK("kind", n.Kind, 1, maxName),
		textOK("version", n.Version, 1, maxName), err, inRange("size of the skill", int64(len(n.Body)), 1, maxBody))
}

const skillColumns = `id, subscription, name, kind, version, sha256, size, updated, removed`

func scanSkill(r scanner) (k Skill, err error) {
	return k, r.Scan(&k.ID, &k.Subscription, &k.Name, &k.Kind, &k.Version, &k.SHA256, &k.Size, timeIn{&k.Updated}, timeIn{&k.Removed})
}

func conflict(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConflict, fmt.Sprintf(format, args...))
}

func (t *tx) skill(id string) (Skill, error) {
	return scanSkill(t.row(`SELECT `+skillColumns+` FROM skills WHERE tenant = ? AND id = ?`, t.sc.Tenant, id))
}

// PublishSkill makes n the skill's version. It tells whether that changed anything. ErrNotFound: there is no such
// subscription. ErrConflict: the id belongs to another subscription, for good; the version is in force with other
// contents; Before is not in force any more; or the tenant has MaxSkills.
func (s *Store) PublishSkill(ctx context.Context, sc Scope, n NewSkill) (k Skill, changed bool, err error) {
	if err = check(sc.check(), n.check()); err != nil {
		return Skill{}, false, err
	}
	err = s.change(ctx, sc, func(t *tx, next int64) (bool, error) {
		changed = false
		if _, err := t.subscription(n.Subscription); err != nil {
			return false, err
		}
		old, err := t.skill(n.ID)
		there := err == nil && old.Removed.IsZero()
		switch {
		case err != nil && !missing(err):
			return false, err
		case err == nil && old.Subscription != n.Subscription:
			return false, conflict("the skill %s belongs to the subscription %s, and stays there", n.ID, old.Subscription)
		case there && old.SHA256 == n.SHA256:
			k = old
			return false, nil
		case there && old.SHA256 != n.Before || !there && n.Before != "":
			return false, conflict("the skill %s was published by somebody else meanwhile", n.ID)
		case there && old.Version == n.Version:
			return false, conflict("version %s of the skill %s has other contents; give the new contents a version of their own", n.Version, n.ID)
		}
		if !there {
			if err := t.room(); err != nil {
				return false, err
			}
		}
		if err := t.putSkill(n, next); err != nil {
			return false, err
		}
		if k, err = t.skill(n.ID); err != nil {
			return false, err
		}
		changed = true
		return true, t.audit("skill.publish", n.ID, map[string]any{"subscription": n.Subscription, "version": n.Version, "sha256": n.SHA256})
	})
	return k, changed, err
}

// room refuses a skill more than a tenant may have.
func (t *tx) room() error {
	var count int
	err := t.row(`SELECT COUNT(*) FROM skills WHERE tenant = ? AND removed = 0`, t.sc.Tenant).Scan(&count)
	if err == nil && count >= MaxSkills {
		err = conflict("the tenant has %d skills, which is the most", count)
	}
	return err
}

// putSkill writes a version. The body of the one before stays for racks that are fetching it.
func (t *tx) putSkill(n NewSkill, next int64) error {
	for _, j := range []struct {
		q    string
		args []any
	}{
		{`UPDATE blobs SET at = ? WHERE tenant = ? AND skill = ?`, []any{t.now, t.sc.Tenant, n.ID}},
		{
			`INSERT INTO blobs (tenant, sha256, skill, body, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, sha256) DO UPDATE SET at = excluded.at`,
			[]any{t.sc.Tenant, n.SHA256, n.ID, n.Body, t.now},
		},
		{
			`INSERT INTO skills (tenant, ` + skillColumns + `, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (tenant, id) DO UPDATE
				SET name = excluded.name, kind = excluded.kind, version = excluded.version, sha256 = excluded.sha256, size = excluded.size,
				updated = excluded.updated, removed = 0, changed = excluded.changed`,
			[]any{t.sc.Tenant, n.ID, n.Subscription, n.Name, n.Kind, n.Version, n.SHA256, len(n.Body), ms(n.Updated), next},
		},
	} {
		if _, err := t.exec(j.q, j.args...); err != nil {
			return err
		}
	}
	return nil
}

// RemoveSkill takes a skill away. Its id stays its subscription's. ErrNotFound: it is not there.
func (s *Store) RemoveSkill(ctx context.Context, sc Scope, id string) (k Skill, err error) {
	if err = sc.check(); err != nil {
		return Skill{}, err
	}
	err = s.change(ctx, sc, func(t *tx, next int64) (bool, error) {
		err := t.one(ErrNotFound, `UPDATE skills SET removed = ?, changed = ? WHERE tenant = ? AND id = ? AND removed = 0`, t.now, next, sc.Tenant, id)
		if err != nil {
			return false, err
		}
		if k, err = t.skill(id); err != nil {
			return false, err
		}
		return true, t.audit("skill.remove", id, map[string]any{"subscription": k.Subscription, "version": k.Version})
	})
	return k, err
}

// Skill gives a skill that is there, with its canonical JSON.
func (s *Store) Skill(ctx context.Context, sc Scope, id string) (k Skill, body []byte, err error) {
	if err = sc.check(); err != nil {
		return Skill{}, nil, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		if k, err = t.skill(id); err != nil {
			return err
		}
		if !k.Removed.IsZero() {
			return ErrNotFound
		}
		return t.row(`SELECT body FROM blobs WHERE tenant = ? AND sha256 = ?`, sc.Tenant, k.SHA256).Scan(&body)
	})
	return k, body, err
}

// Skills lists the skills that are there by id; of all subscriptions if subscription is "".
func (s *Store) Skills(ctx context.Context, sc Scope, subscription string, p Page) (all []Skill, next string, err error) {
	size, err := p.size()
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scanSkill, `SELECT `+skillColumns+` FROM skills WHERE tenant = ? AND removed = 0 AND (subscription = ? OR ? = '') AND id > ? ORDER BY id LIMIT ?`,
			sc.Tenant, subscription, subscription, p.After, size+1)
		return err
	})
	all, next = cut(all, size, func(k Skill) string { return k.ID })
	return all, next, err
}
