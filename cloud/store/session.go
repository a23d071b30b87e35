package store

import (
	"context"
	"fmt"
)

// SetSession notes the nonce of the hello that Hello has taken, so that every replica can answer the rack. ErrConflict:
// a newer hello was taken meanwhile.
func (s *Store) SetSession(ctx context.Context, sc Scope, h Hello, nonce string) error {
	if err := check(sc.check(), textOK("nonce", nonce, 1, maxName)); err != nil {
		return err
	}
	return s.ofRack(ctx, sc, h.Host, func(t *tx) error {
		return t.one(fmt.Errorf("%w: a newer hello has come", ErrConflict), `INSERT INTO sessions (host, nonce)
			SELECT id, ? FROM hosts WHERE id = ? AND generation = ? AND session = ?
			ON CONFLICT (host) DO UPDATE SET nonce = excluded.nonce`, nonce, h.Host, h.Generation, h.Session)
	})
}

// Session gives the nonce of a rack's newest hello; ErrNotFound before the first.
func (s *Store) Session(ctx context.Context, sc Scope, host string) (nonce string, err error) {
	if err = sc.check(); err != nil {
		return "", err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		return t.row(`SELECT nonce FROM sessions JOIN hosts ON hosts.id = host WHERE host = ? AND tenant = ?`, host, sc.Tenant).Scan(&nonce)
	})
	return nonce, err
}
