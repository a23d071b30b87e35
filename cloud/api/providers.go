package api

import (
	"context"
	"fmt"
	"time"

	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// defaultTimeout of a profile for which none is given.
const defaultTimeout = 60 * time.Second

// longestTimeoutMS bounds what is made a time.Duration, in which more would be any other number. How long a profile's timeout
// may be, its provider and the store say.
const longestTimeoutMS = int64(24 * time.Hour / time.Millisecond)

// Profiles keeps provider profiles: their keys are sealed here and never shown.
type Profiles struct {
	Store *store.Store
	Vault *vault.Vault
}

// Add records a profile, not active.
func (p Profiles) Add(ctx context.Context, sc store.Scope, n NewProvider) (Provider, error) {
	if n.TimeoutMS < 0 || n.TimeoutMS > longestTimeoutMS {
		return Provider{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("timeout_ms %d is not in 0 to %d", n.TimeoutMS, longestTimeoutMS)})
	}
	profile := store.Profile{
		ID: store.NewID(), Name: n.Name, Provider: n.Provider, Model: n.Model, BaseURL: n.BaseURL, Timeout: time.Duration(n.TimeoutMS) * time.Millisecond,
		Options: n.Options, Limits: store.Limits{RequestsPerMinute: n.PerMinute, TokensPerDay: n.PerDay}, Prices: store.Prices{In: n.PriceIn, Out: n.PriceOut},
		KeyVersion: 1,
	}
	if profile.Timeout == 0 {
		profile.Timeout = defaultTimeout
	}
	key := vault.NewSecret([]byte(n.Key))
	if err := planner.CheckProfile(profile, key); err != nil {
		return Provider{}, err
	}
	var err error
	if profile.Credential, profile.KEK, err = p.seal(sc.Tenant, profile.ID, 1, key); err != nil {
		return Provider{}, err
	}
	profile, err = p.Store.AddProfile(ctx, sc, profile)
	return p.view(sc.Tenant, profile), err
}

// seal seals a key; an empty one stays empty.
func (p Profiles) seal(tenant, id string, version int, key vault.Secret) ([]byte, string, error) {
	if key.Empty() {
		return nil, "", nil
	}
	sealed, err := p.Vault.Seal(planner.CredentialBinding(tenant, id, version), key)
	return sealed, p.Vault.Writing(), err
}

// List gives the tenant's profiles.
func (p Profiles) List(ctx context.Context, sc store.Scope) ([]Provider, error) {
	all, err := p.all(ctx, sc)
	list := make([]Provider, len(all))
	for i, profile := range all {
		list[i] = p.view(sc.Tenant, profile)
	}
	return list, err
}

func (p Profiles) all(ctx context.Context, sc store.Scope) (all []store.Profile, err error) {
	page := store.Page{Limit: 1000}
	for {
		part, next, err := p.Store.Profiles(ctx, sc, page)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if next == "" {
			return all, nil
		}
		page.After = next
	}
}

// find gives a profile by its name or id.
func (p Profiles) find(ctx context.Context, sc store.Scope, name string) (store.Profile, error) {
	all, err := p.all(ctx, sc)
	if err != nil {
		return store.Profile{}, err
	}
	for _, profile := range all {
		if profile.Name == name || profile.ID == name {
			return profile, nil
		}
	}
	return store.Profile{}, wire.Refuse(wire.NotFound, map[string]any{"what": "provider profile", "id": name})
}

// Activate makes a profile the tenant's active one.
func (p Profiles) Activate(ctx context.Context, sc store.Scope, name string) (Provider, error) {
	profile, err := p.find(ctx, sc, name)
	if err != nil {
		return Provider{}, err
	}
	if err := p.Store.ActivateProfile(ctx, sc, profile.ID); err != nil {
		return Provider{}, err
	}
	profile.Active = true
	return p.view(sc.Tenant, profile), nil
}

// Rotate replaces a profile's key.
func (p Profiles) Rotate(ctx context.Context, sc store.Scope, name, key string) (Provider, error) {
	profile, err := p.find(ctx, sc, name)
	if err != nil {
		return Provider{}, err
	}
	if key == "" {
		return Provider{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("there is no new key for the profile %q, which is of the provider %s", profile.Name, profile.Provider)})
	}
	secret := vault.NewSecret([]byte(key))
	if err := planner.CheckProfile(profile, secret); err != nil {
		return Provider{}, err
	}
	profile.KeyVersion++
	if profile.Credential, profile.KEK, err = p.seal(sc.Tenant, profile.ID, profile.KeyVersion, secret); err != nil {
		return Provider{}, err
	}
	if err := p.Store.RotateCredential(ctx, sc, profile.ID, profile.Credential, profile.KEK, profile.KeyVersion); err != nil {
		return Provider{}, err
	}
	return p.view(sc.Tenant, profile), nil
}

func (p Profiles) view(tenant string, s store.Profile) Provider {
	v := Provider{
		ID: s.ID, Name: s.Name, Provider: s.Provider, Model: s.Model, BaseURL: s.BaseURL, TimeoutMS: s.Timeout.Milliseconds(),
		PerMinute: s.Limits.RequestsPerMinute, PerDay: s.Limits.TokensPerDay, PriceIn: s.Prices.In, PriceOut: s.Prices.Out,
		Active: s.Active, KeyVersion: s.KeyVersion, State: "none",
	}
	if len(s.Options) > 0 {
		v.Options = s.Options
	}
	if !s.Created.IsZero() {
		v.Created = s.Created.UnixMilli()
	}
	if len(s.Credential) > 0 {
		v.State = "ok"
		if _, err := p.Vault.Open(planner.CredentialBinding(tenant, s.ID, s.KeyVersion), s.Credential); err != nil {
			v.State = "undecryptable"
		}
	}
	return v
}
