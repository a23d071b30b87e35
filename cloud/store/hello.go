package store

import (
	"context"
	"errors"
	"fmt"
)

// Hello notes a rack's hello. A generation that this rack never had ends its open commands (unknown) and live attempts
// (lost). ErrConflict: a generation or session that is already history, as a replay has it, or the rack is revoked.
func (s *Store) Hello(ctx context.Context, sc Scope, h Hello) (w Welcome, err error) {
	err = check(sc.check(), inRange("generation", h.Generation, 1, 1<<62), inRange("session", h.Session, 0, 1<<62),
		textOK("boot", h.Boot, 0, maxName), jsonOK("versions", h.Versions))
	if err != nil {
		return Welcome{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		w = Welcome{}
		host, err := t.lockHost(h.Host)
		if err != nil {
			return err
		}
		if !host.Revoked.IsZero() {
			return fmt.Errorf("%w: the rack is revoked", ErrConflict)
		}
		if h.Generation != host.Generation {
			w, err = t.newGeneration(host, h.Generation)
		} else if h.Session < host.Session {
			err = fmt.Errorf("%w: session %d came after session %d", ErrConflict, h.Session, host.Session)
		}
		if err != nil {
			return err
		}
		_, err = t.exec(`UPDATE hosts SET generation = ?, session = ?, boot = ?, versions = ?, presence = ?, state_gen = ?, state_sess = ?,
			last_seen = ? WHERE id = ?`, h.Generation, h.Session, h.Boot, string(h.Versions), Online, h.Generation, h.Session, t.now, host.ID)
		if err != nil {
			return err
		}
		if err = t.row(`SELECT base_seq FROM hosts WHERE id = ?`, host.ID).Scan(&w.CommandSeq); err != nil {
			return err
		}
		if !w.NewGeneration { // one of a rack's many: each connection and each hour brings one
			return nil
		}
		return t.audit("host.hello", host.ID, map[string]any{"generation": h.Generation, "session": h.Session})
	})
	if errors.Is(err, ErrConflict) { // it comes at most once a minute: refused racks wait
		err = errors.Join(err, s.write(ctx, sc, func(t *tx) error {
			return t.audit("host.refuse", h.Host, map[string]any{"generation": h.Generation, "session": h.Session, "because": err.Error()})
		}))
	}
	return w, err
}

// newGeneration ends what the rack's former life left open. A rack's first generation ends nothing: it cannot have been
// handed anything before.
func (t *tx) newGeneration(h Host, generation int64) (w Welcome, err error) {
	err = t.one(fmt.Errorf("%w: generation %d of the rack is over", ErrConflict, generation),
		`INSERT INTO host_generations (host, generation, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, h.ID, generation, t.now)
	if err != nil {
		return w, err
	}
	w.NewGeneration = true
	if h.Generation == 0 {
		return w, nil
	}
	if w.EndedAttempts, err = t.liveOf(h.ID); err != nil {
		return w, err
	}
	for _, r := range w.EndedAttempts {
		task, a, err := t.lockAttempt(h.ID, r)
		if err != nil {
			return w, err
		}
		if _, err = t.lose(task, a, "generation"); err != nil {
			return w, err
		}
	}
	if w.EndedCommands, err = t.endCommands(h.ID); err != nil {
		return w, err
	}
	_, err = t.exec(`UPDATE hosts SET base_seq = command_seq WHERE id = ?`, h.ID)
	return w, err
}

// SetPresence notes a rack's state. A report of an older (generation, session) than the newest one is ignored.
func (s *Store) SetPresence(ctx context.Context, sc Scope, r StateReport) (applied bool, err error) {
	err = check(sc.check(), inRange("generation", r.Generation, 1, 1<<62), inRange("session", r.Session, 0, 1<<62), inRange("desired", r.Desired, 0, 1<<62))
	if err == nil && r.State != Online && r.State != Draining && r.State != Offline {
		err = invalid("presence %.40q", string(r.State))
	}
	if err != nil {
		return false, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		applied = false
		host, err := t.lockHost(r.Host)
		if err != nil {
			return err
		}
		n, err := t.exec(`UPDATE hosts SET presence = ?, state_gen = ?, state_sess = ?, last_seen = ? WHERE id = ? AND
			(state_gen < ? OR (state_gen = ? AND state_sess <= ?))`,
			r.State, r.Generation, r.Session, t.now, r.Host, r.Generation, r.Generation, r.Session)
		if err != nil || n == 0 {
			return err
		}
		applied = true
		if r.State != Offline { // a will is written before anything is applied
			if err := t.setApplied(r.Host, r.Desired); err != nil {
				return err
			}
		}
		if host.Presence == r.State {
			return nil
		}
		return t.audit("host.state", r.Host, map[string]any{"state": r.State})
	})
	return applied, err
}
