package store

import (
	"context"
	"encoding/json"
	"time"

	"phonerack/sync/wire"
)

// The presences of a rack are the wire's.
const (
	Online   = wire.Online
	Draining = wire.Draining
	Offline  = wire.Offline
)

// Host is a rack as the cloud knows it.
type Host struct {
	ID      string // unique over the installation, see NewID
	Tenant  string
	Name    string
	Tags    []string
	Created time.Time
	Revoked time.Time // zero while it may connect

	Generation int64           // of the last hello; 0 before the first
	Session    int64           // of the last hello
	Boot       string          // "<counter>-<random>" of the last hello
	Versions   json.RawMessage // as said in the last hello
	CommandSeq int64           // number of the newest command

	Presence      wire.Presence
	LastSeen      time.Time // hello, state or heartbeat
	SkillsVersion string
	Slots         json.RawMessage // as last reported
}

// NewHost is what a rack starts with.
type NewHost struct {
	ID   string // [a-z0-9-]{1,63}, minted by the caller with NewID: its secrets are sealed for this id before
	Name string
	Tags []string
}

// Hello is session.hello.
type Hello struct {
	Host       string
	Generation int64 // above 0
	Session    int64
	Boot       string
	Versions   json.RawMessage
}

// Welcome is what the cloud's records say to a hello.
type Welcome struct {
	NewGeneration bool
	CommandSeq    int64 // commands up to this number are an older generation's: the rack goes on from there
	// Ended by a new generation, each told once.
	EndedAttempts []Ref
	EndedCommands []string
}

// StateReport is up/state or the will.
type StateReport struct {
	Host       string
	Generation int64
	Session    int64
	State      wire.Presence
	Desired    int64 // version of the configuration that the rack has applied; the will does not know it
}

const hostColumns = `id, tenant, name, tags, created, revoked, generation, session, boot, versions, command_seq, presence, last_seen, skills_version, slots`

func scanHost(r scanner) (Host, error) {
	var h Host
	err := r.Scan(&h.ID, &h.Tenant, &h.Name, listIn{&h.Tags}, timeIn{&h.Created}, timeIn{&h.Revoked}, &h.Generation, &h.Session,
		&h.Boot, jsonIn{&h.Versions}, &h.CommandSeq, &h.Presence, timeIn{&h.LastSeen}, &h.SkillsVersion, jsonIn{&h.Slots})
	return h, err
}

// host reads a rack of the tenant.
func (t *tx) host(id string) (Host, error) {
	return scanHost(t.row(`SELECT `+hostColumns+` FROM hosts WHERE id = ? AND tenant = ?`, id, t.sc.Tenant))
}

// lockHost is host for a rack whose rows are about to change. Locks are taken in the order host, task, attempt.
func (t *tx) lockHost(id string) (Host, error) {
	return scanHost(t.row(`SELECT `+hostColumns+` FROM hosts WHERE id = ? AND tenant = ? FOR UPDATE`, id, t.sc.Tenant))
}

func labelOK(name string, tags []string) error {
	return check(textOK("name", name, 0, maxName), listOK("tags", tags, maxTags))
}

// CreateHost records a rack together with its first identity set. ErrConflict: the id or the bearer is taken.
func (s *Store) CreateHost(ctx context.Context, sc Scope, h NewHost, id NewIdentity) (host Host, err error) {
	if err = check(sc.check(), idOK("rack", h.ID), labelOK(h.Name, h.Tags), id.check()); err != nil {
		return Host{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		_, err := t.exec(`INSERT INTO hosts (id, tenant, name, tags, created, revoked, generation, session, boot, versions, command_seq,
			base_seq, presence, state_gen, state_sess, last_seen, skills_version, slots)
			VALUES (?, ?, ?, ?, ?, 0, 0, 0, '', '', 0, 0, ?, 0, 0, 0, '', '')`, h.ID, sc.Tenant, h.Name, tagsOf(h.Tags), t.now, Offline)
		if err != nil {
			return err
		}
		if _, err = t.addIdentity(h.ID, id); err != nil {
			return err
		}
		if err = t.audit("host.create", h.ID, map[string]any{"name": h.Name}); err != nil {
			return err
		}
		host, err = t.host(h.ID)
		return err
	})
	return host, err
}

// Host gives a rack.
func (s *Store) Host(ctx context.Context, sc Scope, id string) (h Host, err error) {
	if err = sc.check(); err != nil {
		return Host{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		h, err = t.host(id)
		return err
	})
	return h, err
}

// Hosts lists racks by id.
func (s *Store) Hosts(ctx context.Context, sc Scope, p Page) (all []Host, next string, err error) {
	size, err := p.size()
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scanHost, `SELECT `+hostColumns+` FROM hosts WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`,
			sc.Tenant, p.After, size+1)
		return err
	})
	all, next = cut(all, size, func(h Host) string { return h.ID })
	return all, next, err
}

// LabelHost sets a rack's name and tags.
func (s *Store) LabelHost(ctx context.Context, sc Scope, id, name string, tags []string) error {
	if err := check(sc.check(), labelOK(name, tags)); err != nil {
		return err
	}
	return s.write(ctx, sc, func(t *tx) error {
		err := t.one(ErrNotFound, `UPDATE hosts SET name = ?, tags = ? WHERE id = ? AND tenant = ?`, name, tagsOf(tags), id, sc.Tenant)
		if err != nil {
			return err
		}
		return t.audit("host.label", id, map[string]any{"name": name, "tags": tags})
	})
}

// RevokeHost ends all identity sets of a rack and its open commands (unknown), for good, and forgets its configuration. Its attempts end with their
// leases. Revoking again changes nothing.
func (s *Store) RevokeHost(ctx context.Context, sc Scope, id string) error {
	if err := sc.check(); err != nil {
		return err
	}
	return s.write(ctx, sc, func(t *tx) error {
		h, err := t.lockHost(id)
		if err != nil || !h.Revoked.IsZero() {
			return err
		}
		if _, err = t.exec(`UPDATE hosts SET revoked = ? WHERE id = ?`, t.now, id); err != nil {
			return err
		}
		if _, err = t.exec(`UPDATE identities SET revoked = ? WHERE host = ? AND revoked = 0`, t.now, id); err != nil {
			return err
		}
		if _, err = t.endCommands(id); err != nil {
			return err
		}
		if _, err = t.exec(`DELETE FROM desired WHERE host = ?`, id); err != nil {
			return err
		}
		return t.audit("host.revoke", id, nil)
	})
}
