package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

const maxNonce = 80 // bytes; wire.Message.Sess takes no more

// Hello begins a session, and publishes the rack's configuration anew: the broker may have lost it. A generation that the cloud has not seen ends what the rack's former life left open; one that
// is history, or an older session, is refused with conflict.
func (f *Fleet) Hello(ctx context.Context, c enroll.Caller, h wire.Hello) (wire.Welcome, error) {
	if len(h.Nonce) < 16 || len(h.Nonce) > maxNonce || strings.ContainsFunc(h.Nonce, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return wire.Welcome{}, bad("the nonce is not 16 to %d printable characters", maxNonce)
	}
	if h.Generation > 1<<62 || h.Session > 1<<62 {
		return wire.Welcome{}, bad("generation or session is out of range")
	}
	versions, err := json.Marshal(h.Versions)
	if err != nil {
		return wire.Welcome{}, bad("the versions cannot be stored")
	}
	hello := store.Hello{Host: c.Rack, Generation: int64(h.Generation), Session: int64(h.Session), Boot: h.Boot, Versions: versions}
	w, err := f.store.Hello(ctx, c.Scope(), hello)
	if err != nil {
		return wire.Welcome{}, ofRack(err, "", 0)
	}
	if err := f.store.SetSession(ctx, c.Scope(), hello, h.Nonce); err != nil {
		return wire.Welcome{}, ofRack(err, "", 0)
	}
	desired, err := f.store.Desired(ctx, c.Scope(), c.Rack)
	if err != nil {
		return wire.Welcome{}, ofRack(err, "", 0)
	}
	kids, err := f.kids(ctx, c)
	if err != nil {
		return wire.Welcome{}, Refusal(err)
	}
	if w.NewGeneration {
		f.log.Info("a rack has a new generation", "rack", c.Rack, "generation", h.Generation, "lost", len(w.EndedAttempts), "commands", len(w.EndedCommands))
	}
	f.desire(ctx, c, desired)
	return wire.Welcome{
		Nonce: h.Nonce, Now: f.clock().UnixMilli(), Session: h.Session, DesiredVersion: uint64(desired.Version), CommandSeq: uint64(w.CommandSeq), Keys: kids,
	}, nil
}

// Session gives the nonce of a rack's newest hello, "" if it has said none.
func (f *Fleet) Session(ctx context.Context, c enroll.Caller) (string, error) {
	nonce, err := f.store.Session(ctx, c.Scope(), c.Rack)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return nonce, err
}

// State notes what a rack, or its will, says of it. applied is false for news that is older than what is known.
func (f *Fleet) State(ctx context.Context, c enroll.Caller, s wire.State) (applied bool, err error) {
	if s.Generation > 1<<62 || s.Session > 1<<62 || s.Desired > 1<<62 {
		return false, bad("generation, session or desired is out of range")
	}
	applied, err = f.store.SetPresence(ctx, c.Scope(), store.StateReport{
		Host: c.Rack, Generation: int64(s.Generation), Session: int64(s.Session), State: s.State, Desired: int64(s.Desired),
	})
	return applied, ofRack(err, "", 0)
}

// Event stores an event; id is its message's.
func (f *Fleet) Event(ctx context.Context, c enroll.Caller, id string, e wire.Event) (wire.Ack, error) {
	err := f.store.AddEvent(ctx, c.Scope(), store.NewEvent{
		Host: c.Rack, ID: id, Kind: e.Kind, Slot: e.Slot, Phone: e.Phone, At: fromMS(e.At), Detail: e.Detail, Dropped: int64(e.Dropped),
	})
	return wire.Ack{}, ofRack(err, "", 0)
}

// online tells whether it is worth while to push to a rack.
func (f *Fleet) online(ctx context.Context, c enroll.Caller) bool {
	h, err := f.store.Host(ctx, c.Scope(), c.Rack)
	return err == nil && h.Presence != store.Offline && h.Revoked.IsZero()
}
