package catalog

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// Key is a signing key as operators see it.
type Key struct {
	ID      string    `json:"id"`
	Public  []byte    `json:"public"` // 32 bytes
	State   string    `json:"state"`  // next, active or old
	Created time.Time `json:"created"`
}

func viewKey(k store.CatalogKey) Key { return Key{k.ID, k.Public, k.State, k.Created} }

// keys gives the tenant's keys, and makes the first one.
func (c *Catalog) keys(ctx context.Context, sc store.Scope) ([]store.CatalogKey, error) {
	all, err := c.store.CatalogKeys(ctx, sc)
	if err != nil || len(all) > 0 {
		return all, err
	}
	if _, err := c.addKey(ctx, sc, 1); err != nil && !errors.Is(err, store.ErrConflict) { // another replica was faster
		return nil, err
	}
	return c.store.CatalogKeys(ctx, sc)
}

func (c *Catalog) addKey(ctx context.Context, sc store.Scope, number int) (store.CatalogKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return store.CatalogKey{}, err
	}
	k := store.CatalogKey{ID: store.NewID(), Number: number, Public: public, KEK: c.vault.Writing()}
	k.Private, err = c.vault.Seal(binding(sc.Tenant, k), vault.NewSecret(private.Seed()))
	if err != nil {
		return store.CatalogKey{}, fmt.Errorf("sealing a signing key: %w", err)
	}
	return c.store.AddCatalogKey(ctx, sc, k)
}

// binding is what a sealed key belongs to. The sealing anew of the store's values makes the same one.
func binding(tenant string, k store.CatalogKey) vault.Binding {
	return vault.Binding{Purpose: "catalog-key", Owner: []string{tenant, k.ID}, Version: k.Number}
}

// signer picks the key that signs for a rack that knows some: the active one, or the newest old one among them. A rack
// that names none gets the active one's signature.
func (c *Catalog) signer(tenant string, keys []store.CatalogKey, known []string) (store.CatalogKey, ed25519.PrivateKey, error) {
	for _, k := range slices.Backward(keys) { // by number, the active one is before the old ones
		if k.State == store.KeyNext || len(known) > 0 && !slices.Contains(known, k.ID) {
			continue
		}
		seed, err := c.vault.Open(binding(tenant, k), k.Private)
		if err != nil {
			return k, nil, err
		}
		if len(seed.Reveal()) != ed25519.SeedSize {
			return k, nil, errors.New("a signing key has another size")
		}
		return k, ed25519.NewKeyFromSeed(seed.Reveal()), nil
	}
	return store.CatalogKey{}, nil, wire.Refuse(wire.Conflict, map[string]any{"reason": "the rack knows none of the keys that sign manifests; issue it a new identity"})
}

// PublicKeys gives what a rack of the tenant should trust from its enrolment on.
func (c *Catalog) PublicKeys(ctx context.Context, tenant string) (map[string]ed25519.PublicKey, error) {
	all, err := c.keys(ctx, store.Scope{Tenant: tenant, Actor: "system"})
	if err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, k := range all {
		keys[k.ID] = k.Public
	}
	return keys, nil
}

// Keys lists the signing keys, the oldest first.
func (c *Catalog) Keys(ctx context.Context, op fleet.Operator) ([]Key, error) {
	all, err := c.keys(ctx, op.Scope())
	if err != nil {
		return nil, fleet.Refusal(err)
	}
	views := make([]Key, 0, len(all))
	for _, k := range all {
		views = append(views, viewKey(k))
	}
	return views, nil
}

// AddKey makes the next key. Racks learn of it from their manifests; it signs once it is activated.
func (c *Catalog) AddKey(ctx context.Context, op fleet.Operator) (Key, error) {
	all, err := c.keys(ctx, op.Scope())
	if err != nil {
		return Key{}, fleet.Refusal(err)
	}
	k, err := c.addKey(ctx, op.Scope(), all[len(all)-1].Number+1)
	return viewKey(k), fleet.Refusal(err)
}

// ActivateKey lets the next key sign in place of the active one.
func (c *Catalog) ActivateKey(ctx context.Context, op fleet.Operator, id string) error {
	return fleet.Named(c.store.ActivateCatalogKey(ctx, op.Scope(), id), "signing key", id)
}

// DropKey ends an old key: racks that know no newer one need a new identity.
func (c *Catalog) DropKey(ctx context.Context, op fleet.Operator, id string) error {
	return fleet.Named(c.store.DropCatalogKey(ctx, op.Scope(), id), "signing key", id)
}
