package enroll

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strings"
	"time"

	"phonerack/cloud/bus"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// maxRings bounds the cache of keys.
const maxRings = 10_000

// Caller is a rack that has proved who it is.
type Caller struct{ Tenant, Rack string }

// Scope is in whose name the caller's requests run.
func (c Caller) Scope() store.Scope { return store.Scope{Tenant: c.Tenant, Actor: "rack:" + c.Rack} }

// Bearer tells whose a bearer is. The error is unauthenticated for one that is not valid now.
func (o *Office) Bearer(ctx context.Context, bearer string) (Caller, error) {
	if !strings.HasPrefix(bearer, bearerPrefix) || len(bearer) > 200 {
		return Caller{}, wire.Refuse(wire.Unauthenticated, nil)
	}
	hash := sha256.Sum256([]byte(bearer))
	id, err := o.o.Store.System().IdentityByBearer(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return Caller{}, wire.Refuse(wire.Unauthenticated, nil)
	}
	if err != nil {
		return Caller{}, err
	}
	if subtle.ConstantTimeCompare(hash[:], id.BearerHash[:]) != 1 {
		return Caller{}, wire.Refuse(wire.Unauthenticated, nil)
	}
	c := Caller{id.Tenant, id.Host}
	return c, o.use(ctx, c, id)
}

// use notes the first proof of a set.
func (o *Office) use(ctx context.Context, c Caller, id store.Identity) error {
	if !id.Used.IsZero() {
		return nil
	}
	err := o.o.Store.UseIdentity(ctx, c.Scope(), c.Rack, id.Number)
	o.forget(c)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) { // revoked since it was read
		return wire.Refuse(wire.Unauthenticated, nil)
	}
	return err
}

// Ring holds the keys of a rack's live sets.
type Ring struct {
	read time.Time
	sets []liveSet
}

type liveSet struct {
	id       store.Identity
	keys     wire.Keys
	password [32]byte // SHA-256 of the broker-only password
}

// Find gives the keys with a kid, for [wire.Open].
func (r *Ring) Find(kid string) (wire.Keys, bool) {
	for i := range r.sets {
		if r.sets[i].keys.KID == kid {
			return r.sets[i].keys, true
		}
	}
	return wire.Keys{}, false
}

// KIDs names the keys, the newest set first.
func (r *Ring) KIDs() []string {
	list := make([]string, len(r.sets))
	for i := range r.sets {
		list[i] = r.sets[i].keys.KID
	}
	return list
}

// Newest gives the keys with which a frame to the rack is signed, unless it answers one: the newest set that the rack is
// known to have.
func (r *Ring) Newest() (wire.Keys, bool) {
	for i := range r.sets {
		if !r.sets[i].id.Used.IsZero() || i == len(r.sets)-1 {
			return r.sets[i].keys, true
		}
	}
	return wire.Keys{}, false
}

// Keys gives the keys of a rack's live sets; an empty ring for a rack that is unknown or revoked. What this process
// changed is seen at once, what another one did after Options.Cache.
func (o *Office) Keys(ctx context.Context, c Caller) (*Ring, error) {
	now := o.o.Clock()
	o.mu.Lock()
	r, changes := o.rings[c], o.changes
	o.mu.Unlock()
	if r != nil && now.Sub(r.read) < o.o.Cache && !now.Before(r.read) {
		return r, nil
	}
	ids, err := o.o.Store.Identities(ctx, c.Scope(), c.Rack)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
		return nil, err
	}
	r = &Ring{read: now}
	for _, id := range ids {
		if s, ok := o.live(c, id); ok {
			r.sets = append(r.sets, s)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rings) >= maxRings {
		for k, old := range o.rings {
			if now.Sub(old.read) >= o.o.Cache {
				delete(o.rings, k)
			}
		}
	}
	if len(o.rings) < maxRings && changes == o.changes {
		o.rings[c] = r
	}
	return r, nil
}

// live opens a set. One that cannot be decrypted is none, and the log says so.
func (o *Office) live(c Caller, id store.Identity) (liveSet, bool) {
	secret, err := o.o.Vault.Open(binding(c.Tenant, c.Rack, id.Number), id.MACSecret)
	if err != nil {
		o.o.Log.Error("a MAC secret cannot be decrypted, issue a new set", "rack", c.Rack, "set", id.Number, "key", id.KEK, "error", err)
		return liveSet{}, false
	}
	keys, err := wire.DeriveKeys(id.Kid, secret.Reveal())
	if err != nil {
		o.o.Log.Error("a MAC secret is of no use, issue a new set", "rack", c.Rack, "set", id.Number, "error", err)
		return liveSet{}, false
	}
	password, err := wire.BrokerPassword(secret.Reveal())
	if err != nil {
		return liveSet{}, false
	}
	return liveSet{id, keys, sha256.Sum256([]byte(password))}, true
}

// Proved notes that a frame with the kid was proved, for the first proof of a set.
func (o *Office) Proved(ctx context.Context, c Caller, r *Ring, kid string) error {
	for i := range r.sets {
		if r.sets[i].keys.KID == kid {
			return o.use(ctx, c, r.sets[i].id)
		}
	}
	return wire.Refuse(wire.Unauthenticated, nil)
}

// forget drops what is cached of a rack.
func (o *Office) forget(c Caller) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	delete(o.rings, c)
}

// Authenticate implements bus.Authenticator: the client id is the rack; a certificate has it as its common name and is
// that of a live set; without one the password is the broker-only one of a live set.
func (o *Office) Authenticate(ctx context.Context, l bus.Login) (bus.Identity, error) {
	if !wire.ValidID(l.ClientID) {
		return bus.Identity{}, errors.New("the client id is no rack id")
	}
	if l.Username != "" && l.Username != l.ClientID {
		return bus.Identity{}, errors.New("the user name is not the client id")
	}
	tenant, err := o.tenantOf(ctx, l.ClientID)
	if err != nil {
		return bus.Identity{}, err
	}
	c := Caller{tenant, l.ClientID}
	ring, err := o.Keys(ctx, c)
	if err != nil {
		return bus.Identity{}, err
	}
	shown := sha256.Sum256([]byte(l.Password))
	for i := range ring.sets {
		s := &ring.sets[i]
		if l.Certificate != nil {
			print := fingerprint(l.Certificate)
			if l.Certificate.Subject.CommonName == c.Rack && subtle.ConstantTimeCompare([]byte(print), []byte(s.id.Fingerprint)) == 1 {
				return bus.Identity{Tenant: tenant, Rack: c.Rack}, nil
			}
		} else if subtle.ConstantTimeCompare(shown[:], s.password[:]) == 1 {
			return bus.Identity{Tenant: tenant, Rack: c.Rack}, nil
		}
	}
	if l.Certificate != nil {
		return bus.Identity{}, errors.New("the certificate is of no live set of this rack")
	}
	return bus.Identity{}, errors.New("the password is of no live set of this rack")
}

// tenantOf finds the tenant of a rack, whose id is unique over the installation.
func (o *Office) tenantOf(ctx context.Context, rack string) (string, error) {
	o.mu.Lock()
	tenant, ok := o.tenants[rack]
	o.mu.Unlock()
	if ok {
		return tenant, nil
	}
	// By its key: who asks has proved nothing yet, and must not make the database read more than a row.
	tenant, err := o.o.Store.System().TenantOf(ctx, rack)
	if errors.Is(err, store.ErrNotFound) {
		return "", errors.New("there is no such rack")
	}
	if err != nil {
		return "", err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tenants[rack] = tenant
	return tenant, nil
}
