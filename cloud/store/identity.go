package store

import (
	"context"
	"fmt"
	"time"
)

// NewIdentity is one set of credentials, made by the caller. It comes, goes and is replaced as a whole.
type NewIdentity struct {
	// BearerHash is the SHA-256 of the bearer. That is enough, and no slow password hash is needed, because the bearer
	// is 256 random bits: there is nothing to guess.
	BearerHash  [32]byte
	MACSecret   []byte // sealed by cloud/vault
	KEK         string // id of the key that MACSecret is sealed under
	Kid         string // names the MAC keys in frames
	Fingerprint string // SHA-256 of the client certificate, lower-case hex
	CertPEM     string
	Expires     time.Time // zero: never
}

// Identity is a set as stored.
type Identity struct {
	NewIdentity
	Tenant  string
	Host    string
	Number  int // from 1, per host
	Issued  time.Time
	Used    time.Time // when it was used first; zero before
	Revoked time.Time // zero while valid
}

func (id *NewIdentity) check() error {
	if id.BearerHash == [32]byte{} {
		return invalid("hash of the bearer is missing")
	}
	return check(
		inRange("size of the sealed MAC secret", int64(len(id.MACSecret)), 1, maxSealed),
		textOK("key id", id.KEK, 1, maxName), textOK("kid", id.Kid, 1, maxName),
		textOK("fingerprint", id.Fingerprint, 0, maxName), textOK("certificate", id.CertPEM, 0, maxText))
}

const identityColumns = `tenant, host, number, bearer_hash, mac_secret, kek, kid, fingerprint, cert_pem, expires, issued, used, revoked`

func scanIdentity(r scanner) (Identity, error) {
	var id Identity
	err := r.Scan(&id.Tenant, &id.Host, &id.Number, hashIn{&id.BearerHash}, &id.MACSecret, &id.KEK, &id.Kid, &id.Fingerprint, &id.CertPEM,
		timeIn{&id.Expires}, timeIn{&id.Issued}, timeIn{&id.Used}, timeIn{&id.Revoked})
	return id, err
}

// addIdentity stores the next set of a host, whose row is locked or new.
func (t *tx) addIdentity(host string, id NewIdentity) (Identity, error) {
	full := Identity{NewIdentity: id, Tenant: t.sc.Tenant, Host: host, Issued: fromMS(t.now)}
	full.Expires = fromMS(ms(id.Expires))
	err := t.row(`SELECT coalesce(max(number), 0) + 1 FROM identities WHERE host = ?`, host).Scan(&full.Number)
	if err != nil {
		return Identity{}, err
	}
	_, err = t.exec(`INSERT INTO identities (`+identityColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`,
		full.Tenant, host, full.Number, id.BearerHash[:], id.MACSecret, id.KEK, id.Kid, id.Fingerprint, id.CertPEM, ms(id.Expires), t.now)
	return full, err
}

// IssueIdentity gives a rack a new set by enrolment: all others end at once. ErrConflict: the rack is revoked.
func (s *Store) IssueIdentity(ctx context.Context, sc Scope, host string, id NewIdentity) (Identity, error) {
	return s.replaceIdentity(ctx, sc, host, id, "identity.issue", 0)
}

// RotateIdentity gives a rack a new set. The others end when the new one is used first (UseIdentity), or after grace.
func (s *Store) RotateIdentity(ctx context.Context, sc Scope, host string, id NewIdentity, grace time.Duration) (Identity, error) {
	if err := inRange("grace in ms", grace.Milliseconds(), 0, (90 * 24 * time.Hour).Milliseconds()); err != nil {
		return Identity{}, err
	}
	return s.replaceIdentity(ctx, sc, host, id, "identity.rotate", grace)
}

func (s *Store) replaceIdentity(ctx context.Context, sc Scope, host string, id NewIdentity, verb string, grace time.Duration) (full Identity, err error) {
	if err = check(sc.check(), id.check()); err != nil {
		return Identity{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		h, err := t.lockHost(host)
		if err != nil {
			return err
		}
		if !h.Revoked.IsZero() {
			return fmt.Errorf("%w: the rack is revoked", ErrConflict)
		}
		if grace > 0 {
			end := t.now + grace.Milliseconds()
			_, err = t.exec(`UPDATE identities SET expires = ? WHERE host = ? AND revoked = 0 AND (expires = 0 OR expires > ?)`, end, host, end)
		} else {
			_, err = t.exec(`UPDATE identities SET revoked = ? WHERE host = ? AND revoked = 0`, t.now, host)
		}
		if err != nil {
			return err
		}
		if full, err = t.addIdentity(host, id); err != nil {
			return err
		}
		return t.audit(verb, host, map[string]any{"number": full.Number, "kid": id.Kid})
	})
	return full, err
}

// UseIdentity notes that a set has proved itself; at the first time older sets of the host end. To be called when
// Identity.Used is zero.
func (s *Store) UseIdentity(ctx context.Context, sc Scope, host string, number int) error {
	if err := sc.check(); err != nil {
		return err
	}
	return s.write(ctx, sc, func(t *tx) error {
		if _, err := t.lockHost(host); err != nil {
			return err
		}
		var used, revoked int64
		err := t.row(`SELECT used, revoked FROM identities WHERE host = ? AND number = ?`, host, number).Scan(&used, &revoked)
		if err != nil || used != 0 {
			return err
		}
		if revoked != 0 {
			return fmt.Errorf("%w: identity set %d is revoked", ErrConflict, number)
		}
		if _, err = t.exec(`UPDATE identities SET used = ? WHERE host = ? AND number = ?`, t.now, host, number); err != nil {
			return err
		}
		if _, err = t.exec(`UPDATE identities SET revoked = ? WHERE host = ? AND number < ? AND revoked = 0`, t.now, host, number); err != nil {
			return err
		}
		return t.audit("identity.use", host, map[string]any{"number": number})
	})
}

// Identities gives the sets of a host that are valid now, newest first; none for a revoked host.
func (s *Store) Identities(ctx context.Context, sc Scope, host string) (all []Identity, err error) {
	if err = sc.check(); err != nil {
		return nil, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		if _, err := t.host(host); err != nil {
			return err
		}
		all, err = list(t, scanIdentity, `SELECT `+identityColumns+` FROM identities
			WHERE host = ? AND revoked = 0 AND (expires = 0 OR expires > ?) ORDER BY number DESC`, host, t.now)
		return err
	})
	return all, err
}

// IdentityByBearer finds the set that is valid now and has this bearer's SHA-256. It takes no scope: it is how the
// tenant becomes known.
func (y *System) IdentityByBearer(ctx context.Context, hash [32]byte) (id Identity, err error) {
	err = y.s.read(ctx, Scope{}, func(t *tx) error {
		id, err = scanIdentity(t.row(`SELECT `+identityColumns+` FROM identities
			WHERE bearer_hash = ? AND revoked = 0 AND (expires = 0 OR expires > ?)`, hash[:], t.now))
		return err
	})
	return id, err
}
