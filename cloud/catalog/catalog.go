package catalog

import (
	"log/slog"
	"time"

	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
)

// ManifestLife is how long a manifest may be applied after it was issued. A rack on a thin line needs hours to fetch what
// it names.
const ManifestLife = 24 * time.Hour

// Options of [New]. Store and Vault are needed.
type Options struct {
	Store *store.Store
	Vault *vault.Vault
	Push  fleet.Pusher // nil: no hints are sent
	Clock func() time.Time
	Log   *slog.Logger
}

// Catalog serves racks and operators. Its methods may be called from any goroutine.
type Catalog struct {
	store *store.Store
	vault *vault.Vault
	push  fleet.Pusher
	clock func() time.Time
	log   *slog.Logger
	built built
}

// New makes a catalog.
func New(o Options) *Catalog {
	c := &Catalog{store: o.Store, vault: o.Vault, push: o.Push, clock: o.Clock, log: o.Log}
	if c.clock == nil {
		c.clock = time.Now
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.built.clock = c.clock
	return c
}
