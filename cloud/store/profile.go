package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Providers of a profile.
const (
	Anthropic       = "anthropic"
	OpenAI          = "openai"
	OpenAIResponses = "openai-responses"
	Scripted        = "scripted"
)

// Profile says how the planner reaches a model. At most one per tenant is active.
type Profile struct {
	ID       string // [a-z0-9-]{1,63}; unique over the installation
	Name     string // unique in the tenant
	Provider string
	Model    string
	BaseURL  string        // "" for the provider's own
	Timeout  time.Duration // of the whole provider call, retries included; whole milliseconds, above 0
	Options  json.RawMessage
	Limits   Limits
	Prices   Prices

	Credential []byte // sealed by cloud/vault; empty for a provider without one
	KEK        string // id of the key that Credential is sealed under
	KeyVersion int    // from 1; raised by each RotateCredential

	Active  bool
	Created time.Time
}

// Limits of a profile; 0 means none.
type Limits struct {
	RequestsPerMinute int64
	TokensPerDay      int64 // of a UTC day, in and out together
}

// Prices in millionths of the tenant's currency per million tokens.
type Prices struct {
	In  int64
	Out int64
}

// Reservation is room taken in a profile's limits before a call. Its tokens stay counted until Settle; if that never
// comes, until the end of the day.
type Reservation struct {
	Profile string
	Day     string // "2026-11-30", UTC
	Tokens  int64
}

// Spent is what a call did cost.
type Spent struct {
	Host      string
	Task      string // "" for a call outside a task
	TokensIn  int64
	TokensOut int64
}

// Usage is one row of the accounts.
type Usage struct {
	Day       string // "2026-11-30", UTC
	Host      string
	Task      string
	Profile   string
	Requests  int64
	TokensIn  int64
	TokensOut int64
	Cost      int64 // millionths of the currency, rounded up per call
}

// UsageQuery selects rows of the accounts; empty fields select all.
type UsageQuery struct {
	From, To   string // days, both included
	Host, Task string
	Profile    string
}

const (
	maxTokens  = 1 << 31
	maxPrice   = 1 << 31
	maxTimeout = 30 * time.Minute
)

func (p *Profile) check() error {
	err := check(idOK("profile", p.ID), textOK("name", p.Name, 1, maxName), textOK("model", p.Model, 0, maxName),
		textOK("base URL", p.BaseURL, 0, 2000), jsonOK("options", p.Options),
		inRange("timeout in ms", p.Timeout.Milliseconds(), 1, maxTimeout.Milliseconds()),
		inRange("requests per minute", p.Limits.RequestsPerMinute, 0, maxTokens), inRange("tokens per day", p.Limits.TokensPerDay, 0, 1<<50),
		inRange("price", p.Prices.In, 0, maxPrice), inRange("price", p.Prices.Out, 0, maxPrice),
		inRange("key version", int64(p.KeyVersion), 1, 1), credentialOK(p.Credential, p.KEK))
	switch p.Provider {
	case Anthropic, OpenAI, OpenAIResponses, Scripted:
	default:
		err = check(err, invalid("provider %.40q is none of %s, %s, %s, %s", p.Provider, Anthropic, OpenAI, OpenAIResponses, Scripted))
	}
	return err
}

func credentialOK(sealed []byte, kek string) error {
	if (len(sealed) == 0) != (kek == "") {
		return invalid("credential and key id are there or absent together")
	}
	return check(inRange("size of the sealed credential", int64(len(sealed)), 0, maxSealed), textOK("key id", kek, 0, maxName))
}

const profileColumns = `p.id, p.name, p.provider, p.model, p.base_url, p.timeout, p.options, p.max_requests, p.max_tokens, p.price_in, p.price_out,
	p.credential, p.kek, p.key_version, p.created`

// profiles is where profileRow reads from.
const profiles = ` FROM profiles p LEFT JOIN active_profiles a ON a.tenant = p.tenant AND a.profile = p.id `

const profileRow = `SELECT ` + profileColumns + `, CASE WHEN a.profile IS NULL THEN 0 ELSE 1 END` + profiles

func scanProfile(r scanner) (Profile, error) {
	var p Profile
	var timeout int64
	err := r.Scan(&p.ID, &p.Name, &p.Provider, &p.Model, &p.BaseURL, &timeout, jsonIn{&p.Options}, &p.Limits.RequestsPerMinute,
		&p.Limits.TokensPerDay, &p.Prices.In, &p.Prices.Out, &p.Credential, &p.KEK, &p.KeyVersion, timeIn{&p.Created}, &p.Active)
	p.Timeout = time.Duration(timeout) * time.Millisecond
	return p, err
}

func (t *tx) profile(id string) (Profile, error) {
	return scanProfile(t.row(profileRow+`WHERE p.id = ? AND p.tenant = ?`, id, t.sc.Tenant))
}

// AddProfile records a profile, not active. Its id is the caller's, minted with NewID (the credential is sealed for
// it); KeyVersion must be 1. ErrConflict: the id or name is taken.
func (s *Store) AddProfile(ctx context.Context, sc Scope, p Profile) (added Profile, err error) {
	if err = check(sc.check(), p.check()); err != nil {
		return Profile{}, err
	}
	if p.Credential == nil {
		p.Credential = []byte{}
	}
	err = s.write(ctx, sc, func(t *tx) error {
		_, err := t.exec(`INSERT INTO profiles (id, tenant, name, provider, model, base_url, timeout, options, max_requests, max_tokens, price_in,
			price_out, credential, kek, key_version, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			p.ID, sc.Tenant, p.Name, p.Provider, p.Model, p.BaseURL, p.Timeout.Milliseconds(), string(p.Options), p.Limits.RequestsPerMinute,
			p.Limits.TokensPerDay, p.Prices.In, p.Prices.Out, p.Credential, p.KEK, p.KeyVersion, t.now)
		if err != nil {
			return err
		}
		if err = t.audit("profile.add", p.ID, map[string]any{"name": p.Name, "provider": p.Provider, "model": p.Model}); err != nil {
			return err
		}
		added, err = t.profile(p.ID)
		return err
	})
	return added, err
}

// Profiles lists profiles by id.
func (s *Store) Profiles(ctx context.Context, sc Scope, p Page) (all []Profile, next string, err error) {
	size, err := p.size()
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scanProfile, profileRow+`WHERE p.tenant = ? AND p.id > ? ORDER BY p.id LIMIT ?`, sc.Tenant, p.After, size+1)
		return err
	})
	all, next = cut(all, size, func(p Profile) string { return p.ID })
	return all, next, err
}

// Profile gives a profile.
func (s *Store) Profile(ctx context.Context, sc Scope, id string) (p Profile, err error) {
	if err = sc.check(); err != nil {
		return Profile{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		p, err = t.profile(id)
		return err
	})
	return p, err
}

// ActiveProfile gives the tenant's active profile; ErrNotFound without one.
func (s *Store) ActiveProfile(ctx context.Context, sc Scope) (p Profile, err error) {
	if err = sc.check(); err != nil {
		return Profile{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		p, err = t.activeProfile()
		return err
	})
	return p, err
}

func (t *tx) activeProfile() (Profile, error) {
	return scanProfile(t.row(`SELECT `+profileColumns+`, 1 FROM active_profiles a JOIN profiles p ON p.tenant = a.tenant AND p.id = a.profile WHERE a.tenant = ?`,
		t.sc.Tenant))
}

// ActivateProfile makes a profile the active one in place of any other.
func (s *Store) ActivateProfile(ctx context.Context, sc Scope, id string) error {
	return s.setProfile(ctx, sc, id, "profile.activate", `INSERT INTO active_profiles (tenant, profile) VALUES (?, ?)
		ON CONFLICT (tenant) DO UPDATE SET profile = excluded.profile`)
}

// DeactivateProfile leaves the tenant without an active profile, if it was this one.
func (s *Store) DeactivateProfile(ctx context.Context, sc Scope, id string) error {
	return s.setProfile(ctx, sc, id, "profile.deactivate", `DELETE FROM active_profiles WHERE tenant = ? AND profile = ?`)
}

func (s *Store) setProfile(ctx context.Context, sc Scope, id, verb, q string) error {
	if err := sc.check(); err != nil {
		return err
	}
	return s.write(ctx, sc, func(t *tx) error {
		if _, err := t.profile(id); err != nil {
			return err
		}
		if _, err := t.exec(q, sc.Tenant, id); err != nil {
			return err
		}
		return t.audit(verb, id, nil)
	})
}

// RotateCredential replaces a profile's sealed credential. version must be the stored KeyVersion plus one, else
// ErrConflict.
func (s *Store) RotateCredential(ctx context.Context, sc Scope, id string, sealed []byte, kek string, version int) error {
	err := check(sc.check(), credentialOK(sealed, kek), inRange("size of the sealed credential", int64(len(sealed)), 1, maxSealed))
	if err != nil {
		return err
	}
	return s.write(ctx, sc, func(t *tx) error {
		p, err := t.profile(id)
		if err != nil {
			return err
		}
		err = t.one(fmt.Errorf("%w: the credential has version %d, the next is not %d", ErrConflict, p.KeyVersion, version),
			`UPDATE profiles SET credential = ?, kek = ?, key_version = ? WHERE id = ? AND key_version = ?`, sealed, kek, version, id, version-1)
		if err != nil {
			return err
		}
		return t.audit("profile.rotate", id, map[string]any{"version": version})
	})
}
