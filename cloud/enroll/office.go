package enroll

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// Defaults of [Options].
const (
	DefaultGrace = 7 * 24 * time.Hour
	DefaultCache = 3 * time.Second
)

// bearerPrefix makes a bearer that strayed into a log or a repository easy to find.
const bearerPrefix = "prb_"

// Options of [New]. Store, Vault and Authority are needed.
type Options struct {
	Store     *store.Store
	Vault     *vault.Vault
	Authority *Authority
	Broker    func() string // address of the broker for racks, goes into bundles; asked at each enrolment
	API       string        // address of the HTTP API, goes into bundles
	Grace     time.Duration // how long an older set lives beside a rotated one that is not used; 0 is DefaultGrace
	Cache     time.Duration // how long another replica's revocation may go unseen by Keys and Authenticate; 0 is DefaultCache
	Clock     func() time.Time
	Log       *slog.Logger
	// SkillKeys gives the keys that sign manifests of skills, for bundles. It may be nil.
	SkillKeys func(ctx context.Context, tenant string) (map[string]ed25519.PublicKey, error)
	// Ended is called after sets of a rack have ended, so that its connections end too. It may be nil.
	Ended func(ctx context.Context, rack string)
}

// Office issues identities and proves callers. Its methods may be called from any goroutine.
type Office struct {
	o Options

	mu      sync.Mutex // guards what follows
	changes uint64     // counts forget, so that nothing read before it is cached after it
	rings   map[Caller]*Ring
	tenants map[string]string // of a rack; it never changes
}

// New makes an office.
func New(o Options) *Office {
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Cache <= 0 {
		o.Cache = DefaultCache
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Broker == nil {
		o.Broker = func() string { return "" }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Office{o: o, rings: map[Caller]*Ring{}, tenants: map[string]string{}}
}

// minted is a set before it is stored.
type minted struct {
	bundle wire.Bundle
	secret vault.Secret
	id     store.NewIdentity
}

// mint makes a set. number is what the store will call it, as far as can be told.
func (o *Office) mint(ctx context.Context, tenant, rack string, number int) (minted, error) {
	random := make([]byte, 32+wire.SecretBytes+8)
	if _, err := rand.Read(random); err != nil {
		return minted{}, err
	}
	bearer := bearerPrefix + base64.RawURLEncoding.EncodeToString(random[:32])
	secret := random[32 : 32+wire.SecretBytes]
	kid := hex.EncodeToString(random[32+wire.SecretBytes:])
	password, err := wire.BrokerPassword(secret)
	if err != nil {
		return minted{}, err
	}
	cert, certPEM, keyPEM, err := o.o.Authority.client(tenant, rack)
	if err != nil {
		return minted{}, err
	}
	m := minted{secret: vault.NewSecret(secret)}
	m.bundle = wire.Bundle{
		V: 1, Rack: rack, Tenant: tenant, Bearer: bearer, KID: kid, MACSecret: base64.StdEncoding.EncodeToString(secret),
		Certificate: string(certPEM), Key: string(keyPEM), CA: string(o.o.Authority.PEM()),
		Broker: o.o.Broker(), BrokerPassword: password, API: o.o.API,
	}
	if o.o.SkillKeys != nil {
		keys, err := o.o.SkillKeys(ctx, tenant)
		if err != nil {
			return minted{}, fmt.Errorf("the keys for manifests of skills: %w", err)
		}
		m.bundle.SkillKeys = wire.FormatSkillKeys(keys)
	}
	sealed, err := o.o.Vault.Seal(binding(tenant, rack, number), m.secret)
	if err != nil {
		return minted{}, fmt.Errorf("sealing the MAC secret: %w", err)
	}
	m.id = store.NewIdentity{
		BearerHash: sha256.Sum256([]byte(bearer)), MACSecret: sealed, KEK: o.o.Vault.Writing(), Kid: kid,
		Fingerprint: fingerprint(cert), CertPEM: string(certPEM), Expires: cert.NotAfter,
	}
	return m, nil
}

// binding is what a sealed MAC secret belongs to. The sealing anew of the store's values makes the same one.
func binding(tenant, rack string, number int) vault.Binding {
	return vault.Binding{Purpose: "identity", Owner: []string{tenant, rack}, Version: number}
}

// Enrol makes a rack known and gives its first set. The bundle exists nowhere else.
func (o *Office) Enrol(ctx context.Context, sc store.Scope, name string, tags []string) (wire.Bundle, error) {
	id := store.NewID()
	m, err := o.mint(ctx, sc.Tenant, id, 1)
	if err != nil {
		return wire.Bundle{}, err
	}
	if _, err := o.o.Store.CreateHost(ctx, sc, store.NewHost{ID: id, Name: name, Tags: tags}, m.id); err != nil {
		return wire.Bundle{}, err
	}
	o.forget(Caller{sc.Tenant, id})
	return m.bundle, nil
}

// Issue gives a rack a new set and ends all others at once, as for a rack that was stolen or lost its files.
func (o *Office) Issue(ctx context.Context, sc store.Scope, rack string) (wire.Bundle, error) {
	b, err := o.replace(ctx, sc, rack, o.o.Store.IssueIdentity)
	if err == nil {
		o.ended(ctx, rack)
	}
	return b, err
}

// Rotate gives a rack a new set. The others end when it is used first, or after the grace.
func (o *Office) Rotate(ctx context.Context, sc store.Scope, rack string) (wire.Bundle, error) {
	return o.replace(ctx, sc, rack, func(ctx context.Context, sc store.Scope, host string, id store.NewIdentity) (store.Identity, error) {
		return o.o.Store.RotateIdentity(ctx, sc, host, id, o.o.Grace)
	})
}

func (o *Office) replace(ctx context.Context, sc store.Scope, rack string,
	put func(context.Context, store.Scope, string, store.NewIdentity) (store.Identity, error),
) (wire.Bundle, error) {
	live, err := o.o.Store.Identities(ctx, sc, rack)
	if err != nil {
		return wire.Bundle{}, err
	}
	next := 1
	if len(live) > 0 {
		next = live[0].Number + 1
	}
	m, err := o.mint(ctx, sc.Tenant, rack, next)
	if err != nil {
		return wire.Bundle{}, err
	}
	id, err := put(ctx, sc, rack, m.id)
	if err != nil {
		return wire.Bundle{}, err
	}
	defer o.forget(Caller{sc.Tenant, rack})
	if id.Number != next { // others were there that have ended since
		if err := o.rebind(ctx, m, id); err != nil {
			return wire.Bundle{}, err
		}
	}
	return m.bundle, nil
}

// rebind seals a secret for the number that its set was given. Between the two transactions nobody has the bundle.
func (o *Office) rebind(ctx context.Context, m minted, id store.Identity) error {
	sealed, err := o.o.Vault.Seal(binding(id.Tenant, id.Host, id.Number), m.secret)
	if err != nil {
		return err
	}
	old := store.Sealed{Purpose: "identity", Tenant: id.Tenant, Owner: []string{id.Host}, Version: id.Number, KEK: m.id.KEK, Value: m.id.MACSecret}
	done, err := o.o.Store.System().Reseal(ctx, old, o.o.Vault.Writing(), sealed)
	if err == nil && !done {
		err = errors.New("the set has changed meanwhile, issue another one")
	}
	return err
}

// Revoke ends all sets of a rack, for good.
func (o *Office) Revoke(ctx context.Context, sc store.Scope, rack string) error {
	err := o.o.Store.RevokeHost(ctx, sc, rack)
	o.forget(Caller{sc.Tenant, rack})
	if err == nil {
		o.ended(ctx, rack)
	}
	return err
}

func (o *Office) ended(ctx context.Context, rack string) {
	if o.o.Ended != nil {
		o.o.Ended(ctx, rack)
	}
}
