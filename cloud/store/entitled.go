package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
)

// ErrResync: what changed since a version cannot be told; the whole list can.
var ErrResync = errors.New("the changes since that version are not known")

// RackSubscription is a subscription that a rack has, or had.
type RackSubscription struct {
	ID     string
	Active bool
	Agents []string // that it is for, ascending; none means all
}

// RackSkills is what a rack is entitled to.
type RackSkills struct {
	Epoch         int64 // rises when the database was made anew or restored
	Version       int64 // of the tenant's skills
	Skills        []Skill
	Removed       []string           // ids, ascending; only of what changed
	Subscriptions []RackSubscription // by id
}

func missing(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, sql.ErrNoRows)
}

// looks bounds how often a rack's skills are read while others change them.
const looks = 8

// RackSkills gives the skills of a rack, by id: all of them if since is 0, else what changed after that version of the
// epoch. ErrResync: the version is too old or not of this database, or the rack's subscriptions changed after it.
func (s *Store) RackSkills(ctx context.Context, sc Scope, rack string, epoch, since int64) (r RackSkills, err error) {
	if err = check(sc.check(), inRange("version", since, 0, 1<<62)); err != nil {
		return RackSkills{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		// PostgreSQL reads each statement for itself: what is read between two looks at one version is of that version.
		for range looks {
			before, oldest, err := t.catalogVersion()
			if err != nil {
				return err
			}
			if r, err = t.rackSkills(rack, epoch, since, before, oldest); err != nil && !errors.Is(err, ErrResync) {
				return err
			}
			after, _, e := t.catalogVersion()
			if e != nil || before == after {
				return errors.Join(err, e)
			}
		}
		return conflict("the skills change faster than they are read")
	})
	if err != nil {
		return RackSkills{}, err
	}
	return r, nil
}

// RackSubscriptions gives the subscriptions that a rack has or had; Skills and Removed stay empty.
func (s *Store) RackSubscriptions(ctx context.Context, sc Scope, rack string) (r RackSkills, err error) {
	if err = sc.check(); err != nil {
		return RackSkills{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		version, _, err := t.catalogVersion() // first: what is read after it is of this version or newer
		if err != nil {
			return err
		}
		subscriptions, _, err := t.entitled(rack)
		if err != nil {
			return err
		}
		r.Epoch, err = t.epoch()
		r.Version, r.Subscriptions = version, subscriptions
		return err
	})
	return r, err
}

// epoch rises with each new and each restored database.
func (t *tx) epoch() (int64, error) {
	i, err := t.installation()
	return i.Created.UnixMilli() + i.Generation, err
}

// catalogVersion is at least 1: a tenant without skills has a list too.
func (t *tx) catalogVersion() (version, oldest int64, err error) {
	err = t.row(`SELECT version, oldest FROM catalogs WHERE tenant = ?`, t.sc.Tenant).Scan(&version, &oldest)
	if missing(err) {
		err = nil
	}
	return max(version, 1), oldest, err
}

func (t *tx) rackSkills(rack string, epoch, since, version, oldest int64) (r RackSkills, err error) {
	subscriptions, changed, err := t.entitled(rack)
	if err != nil {
		return r, err
	}
	now, err := t.epoch()
	if err != nil {
		return r, err
	}
	r = RackSkills{Epoch: now, Version: version, Subscriptions: subscriptions}
	if since > 0 && (epoch != r.Epoch || since > version || since < oldest || since < changed) {
		return r, ErrResync
	}
	ids := []any{t.sc.Tenant, since}
	for _, u := range subscriptions {
		if u.Active {
			ids = append(ids, u.ID)
		}
	}
	if len(ids) == 2 {
		return r, nil
	}
	all, err := list(t, scanSkill, `SELECT `+skillColumns+` FROM skills WHERE tenant = ? AND changed > ? AND subscription IN (`+marks(len(ids)-2)+`)`, ids...)
	if err != nil {
		return r, err
	}
	for _, k := range all {
		switch {
		case k.Removed.IsZero():
			r.Skills = append(r.Skills, k)
		case since > 0:
			r.Removed = append(r.Removed, k.ID)
		}
	}
	// Not by the database, whose order of texts may be that of a language.
	slices.SortFunc(r.Skills, func(a, b Skill) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(r.Removed)
	return r, nil
}

// entitled gives the subscriptions that a rack has or had, and the version with which one of them changed last for it.
func (t *tx) entitled(rack string) (all []RackSubscription, changed int64, err error) {
	h, err := t.host(rack)
	if err != nil {
		return nil, 0, err
	}
	if !h.Revoked.IsZero() {
		return nil, 0, ErrNotFound
	}
	type row struct {
		id, agent      string
		active         bool
		ended          int64
		changed, grant int64
	}
	rows, err := list(t, func(r scanner) (w row, err error) {
		return w, r.Scan(&w.id, &w.agent, &w.active, &w.ended, &w.changed, &w.grant)
	}, `SELECT u.id, g.agent, u.active, g.ended, u.changed, g.changed FROM grants g JOIN subscriptions u ON u.tenant = g.tenant AND u.id = g.subscription
		WHERE g.tenant = ? AND (g.rack = '' OR g.rack = ?)`, t.sc.Tenant, rack)
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.id, b.id) })
	for _, w := range rows {
		changed = max(changed, w.changed, w.grant)
		if len(all) == 0 || all[len(all)-1].ID != w.id {
			all = append(all, RackSubscription{ID: w.id})
		}
		u := &all[len(all)-1]
		if !w.active || w.ended > 0 {
			continue
		}
		switch {
		case w.agent == "" || u.Active && u.Agents == nil: // for all
			u.Agents = nil
		case !slices.Contains(u.Agents, w.agent):
			u.Agents = append(u.Agents, w.agent)
		}
		u.Active = true
	}
	for _, u := range all {
		slices.Sort(u.Agents)
	}
	return all, changed, nil
}

// RackBlob gives the canonical JSON of a skill by its hash, if the rack is entitled to that skill: its version in force,
// or one before it that is still kept. ErrNotFound otherwise.
func (s *Store) RackBlob(ctx context.Context, sc Scope, rack, hash string) (body []byte, err error) {
	if err = check(sc.check(), textOK("hash", hash, 1, 64)); err != nil {
		return nil, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		subscriptions, _, err := t.entitled(rack)
		if err != nil {
			return err
		}
		var of string
		err = t.row(`SELECT b.body, k.subscription FROM blobs b JOIN skills k ON k.tenant = b.tenant AND k.id = b.skill
			WHERE b.tenant = ? AND b.sha256 = ? AND k.removed = 0`, sc.Tenant, hash).Scan(&body, &of)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(subscriptions, func(u RackSubscription) bool { return u.ID == of && u.Active }) {
			return ErrNotFound
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return body, nil
}
