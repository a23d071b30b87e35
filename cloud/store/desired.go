package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	maxSettings = 100     // keys of a configuration
	maxConfig   = 8 << 10 // bytes of one, as JSON
)

// Desired is the configuration that a rack should have. Version is 0 if there is none.
type Desired struct {
	Host    string
	Version int64           // only rises, over restored databases too
	Config  json.RawMessage // an object
	At      time.Time       // of the newest change
	Applied int64           // version that the rack has applied, as it last said; 0 for none
}

// Settings change a configuration key by key. What they do not name stays.
type Settings struct {
	Host  string
	Set   map[string]json.RawMessage
	Unset []string
}

func (n Settings) check() error {
	err := listOK("settings", append(slices.Collect(maps.Keys(n.Set)), n.Unset...), maxSettings)
	for key, value := range n.Set {
		if len(value) == 0 {
			err = check(err, invalid("the value of %.80q is missing", key))
		}
		err = check(err, jsonOK("the value of "+key, value))
	}
	return err
}

func (t *tx) desired(host string) (d Desired, err error) {
	d.Host = host
	err = t.row(`SELECT version, config, at, applied FROM desired WHERE host = ?`, host).
		Scan(&d.Version, jsonIn{&d.Config}, timeIn{&d.At}, &d.Applied)
	if errors.Is(err, sql.ErrNoRows) {
		return Desired{Host: host, Config: json.RawMessage(`{}`)}, nil
	}
	return d, err
}

// Desired gives the configuration that a rack should have.
func (s *Store) Desired(ctx context.Context, sc Scope, host string) (d Desired, err error) {
	if err = sc.check(); err != nil {
		return Desired{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		if _, err := t.host(host); err != nil {
			return err
		}
		d, err = t.desired(host)
		return err
	})
	return d, err
}

// Configure changes what a rack should be set to, under a new version; what changes nothing keeps the old one. ErrConflict: the
// rack is revoked.
func (s *Store) Configure(ctx context.Context, sc Scope, n Settings) (d Desired, err error) {
	if err = check(sc.check(), n.check()); err != nil {
		return Desired{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		host, err := t.lockHost(n.Host)
		if err != nil {
			return err
		}
		if !host.Revoked.IsZero() {
			return fmt.Errorf("%w: the rack is revoked", ErrConflict)
		}
		if d, err = t.desired(n.Host); err != nil {
			return err
		}
		config, err := n.on(d.Config)
		if err != nil || string(config) == string(d.Config) {
			return err
		}
		// A database that was restored must not count again what a rack has seen: the version is the time in seconds,
		// or the next number if it changes more often.
		next := max(d.Version+1, t.now/1000)
		_, err = t.exec(`INSERT INTO desired (host, version, config, at, applied) VALUES (?, ?, ?, ?, 0)
			ON CONFLICT (host) DO UPDATE SET version = excluded.version, config = excluded.config, at = excluded.at`,
			n.Host, next, string(config), t.now)
		if err != nil {
			return err
		}
		if d, err = t.desired(n.Host); err != nil {
			return err
		}
		return t.audit("host.configure", n.Host, map[string]any{"version": next, "set": n.Set, "unset": n.Unset})
	})
	return d, err
}

// on gives the configuration that the change makes of one, with its keys in order.
func (n Settings) on(config json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &all); err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	maps.Copy(all, n.Set)
	for _, key := range n.Unset {
		delete(all, key)
	}
	made, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if len(all) > maxSettings || len(made) > maxConfig {
		return nil, invalid("the configuration has %d settings in %d bytes, at most %d in %d are allowed", len(all), len(made), maxSettings, maxConfig)
	}
	return made, nil
}

// setApplied notes which version a rack says it has applied.
func (t *tx) setApplied(host string, version int64) error {
	_, err := t.exec(`UPDATE desired SET applied = ? WHERE host = ? AND applied <> ?`, version, host, version)
	return err
}
