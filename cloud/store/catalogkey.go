package store

import (
	"context"
	"time"
)

// States of a key that signs manifests. A tenant has one that is active. The next is told to racks and signs nothing yet;
// an old one signs for racks that have not heard of a newer one, until it is dropped.
const (
	KeyNext   = "next"
	KeyActive = "active"
	KeyOld    = "old"
)

// CatalogKey is a key that manifests are signed with.
type CatalogKey struct {
	ID      string // unique over the installation
	Number  int    // from 1, in the tenant
	Public  []byte
	Private []byte // sealed by cloud/vault
	KEK     string // id of the key that Private is sealed under
	State   string
	Created time.Time
}

const maxCatalogKeys = 8

func scanCatalogKey(r scanner) (k CatalogKey, err error) {
	return k, r.Scan(&k.ID, &k.Number, &k.Public, &k.Private, &k.KEK, &k.State, timeIn{&k.Created})
}

func (t *tx) catalogKeys() ([]CatalogKey, error) {
	return list(t, scanCatalogKey, `SELECT id, number, public, private, kek, state, created FROM catalog_keys WHERE tenant = ? ORDER BY number`, t.sc.Tenant)
}

// CatalogKeys gives the tenant's keys by number.
func (s *Store) CatalogKeys(ctx context.Context, sc Scope) (all []CatalogKey, err error) {
	if err = sc.check(); err != nil {
		return nil, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = t.catalogKeys()
		return err
	})
	return all, err
}

// AddCatalogKey records a key: active if it is the tenant's first, else as the next. Its number must be the one after the
// newest, else ErrConflict; so is a second next key, or one too many.
func (s *Store) AddCatalogKey(ctx context.Context, sc Scope, k CatalogKey) (added CatalogKey, err error) {
	err = check(sc.check(), idOK("key", k.ID), inRange("size of the public key", int64(len(k.Public)), 32, 32), credentialOK(k.Private, k.KEK),
		inRange("size of the sealed key", int64(len(k.Private)), 1, maxSealed))
	if err != nil {
		return CatalogKey{}, err
	}
	err = s.change(ctx, sc, func(t *tx, _ int64) (bool, error) {
		all, err := t.catalogKeys()
		if err != nil {
			return false, err
		}
		number, state := 1, KeyActive
		for _, have := range all {
			number, state = have.Number+1, KeyNext
			if have.State == KeyNext {
				return false, conflict("the key %s is the next one already; activate it first", have.ID)
			}
		}
		if k.Number != number {
			return false, conflict("the next key has number %d", number)
		}
		if len(all) >= maxCatalogKeys {
			return false, conflict("there are %d keys, which is the most; drop the oldest first", len(all))
		}
		added = k
		added.State, added.Created = state, fromMS(t.now)
		_, err = t.exec(`INSERT INTO catalog_keys (id, tenant, number, public, private, kek, state, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			k.ID, sc.Tenant, k.Number, k.Public, k.Private, k.KEK, state, t.now)
		if err != nil {
			return false, err
		}
		return false, t.audit("catalog_key.add", k.ID, map[string]any{"number": k.Number, "state": state})
	})
	return added, err
}

// ActivateCatalogKey makes the next key the active one, and the active one old. ErrConflict: it is not the next.
func (s *Store) ActivateCatalogKey(ctx context.Context, sc Scope, id string) error {
	if err := sc.check(); err != nil {
		return err
	}
	return s.change(ctx, sc, func(t *tx, _ int64) (bool, error) {
		if err := t.keyIs(id, KeyNext); err != nil {
			return false, err
		}
		if _, err := t.exec(`UPDATE catalog_keys SET state = ? WHERE tenant = ? AND state = ?`, KeyOld, sc.Tenant, KeyActive); err != nil {
			return false, err
		}
		if _, err := t.exec(`UPDATE catalog_keys SET state = ? WHERE tenant = ? AND id = ?`, KeyActive, sc.Tenant, id); err != nil {
			return false, err
		}
		return false, t.audit("catalog_key.activate", id, nil)
	})
}

// DropCatalogKey forgets an old key: racks that know no newer one have to be enrolled anew. ErrConflict: it is not old.
func (s *Store) DropCatalogKey(ctx context.Context, sc Scope, id string) error {
	if err := sc.check(); err != nil {
		return err
	}
	return s.change(ctx, sc, func(t *tx, _ int64) (bool, error) {
		if err := t.keyIs(id, KeyOld); err != nil {
			return false, err
		}
		if _, err := t.exec(`DELETE FROM catalog_keys WHERE tenant = ? AND id = ?`, sc.Tenant, id); err != nil {
			return false, err
		}
		return false, t.audit("catalog_key.drop", id, nil)
	})
}

func (t *tx) keyIs(id, want string) error {
	var state string
	err := t.row(`SELECT state FROM catalog_keys WHERE tenant = ? AND id = ?`, t.sc.Tenant, id).Scan(&state)
	if err == nil && state != want {
		err = conflict("the key %s is %s, and not %s", id, state, want)
	}
	return err
}
