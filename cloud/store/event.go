package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// keptEvents is how many events of a rack stay, the newest.
const keptEvents = 1000

// NewEvent is something that happened on a rack.
type NewEvent struct {
	Host    string
	ID      string // of the message: the same one again is the same event
	Kind    string
	Slot    int // 0: the rack itself
	Phone   string
	At      time.Time // as the rack says
	Detail  json.RawMessage
	Dropped int64 // events that the rack had to drop before this one
}

// Event as stored.
type Event struct {
	NewEvent
	Number int64
	Got    time.Time
}

// AddEvent stores an event of a rack. Of each rack the newest thousand stay.
func (s *Store) AddEvent(ctx context.Context, sc Scope, e NewEvent) error {
	err := check(sc.check(), textOK("event id", e.ID, 1, maxName), textOK("kind", e.Kind, 1, maxName), textOK("phone", e.Phone, 0, maxName),
		inRange("slot", int64(e.Slot), 0, maxSlot), inRange("dropped", e.Dropped, 0, 1<<53), inRange("time", e.At.UnixMilli(), 0, 1<<53),
		jsonOK("detail", e.Detail))
	if err != nil {
		return err
	}
	return s.ofRack(ctx, sc, e.Host, func(t *tx) error {
		n, err := t.exec(`INSERT INTO events (host, id, tenant, kind, slot, phone, at, got, detail, dropped) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (host, id) DO NOTHING`, e.Host, e.ID, sc.Tenant, e.Kind, e.Slot, e.Phone, ms(e.At), t.now, string(e.Detail), e.Dropped)
		if err != nil || n == 0 {
			return err
		}
		_, err = t.exec(`DELETE FROM events WHERE host = ? AND number <=
			(SELECT number FROM events WHERE host = ? ORDER BY number DESC LIMIT 1 OFFSET ?)`, e.Host, e.Host, keptEvents)
		return err
	})
}

// Events lists events, newest first; of all racks if host is empty.
func (s *Store) Events(ctx context.Context, sc Scope, host string, p Page) (all []Event, next string, err error) {
	size, err := p.size()
	before, e := p.before()
	if err = check(sc.check(), err, e); err != nil {
		return nil, "", err
	}
	scan := func(r scanner) (e Event, err error) {
		return e, r.Scan(&e.Number, &e.Host, &e.ID, &e.Kind, &e.Slot, &e.Phone, timeIn{&e.At}, timeIn{&e.Got}, jsonIn{&e.Detail}, &e.Dropped)
	}
	q, args := `SELECT number, host, id, kind, slot, phone, at, got, detail, dropped FROM events WHERE tenant = ? AND number < ?`, []any{sc.Tenant, before}
	if host != "" {
		q, args = q+` AND host = ?`, append(args, host)
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scan, q+` ORDER BY number DESC LIMIT ?`, append(args, size+1)...)
		return err
	})
	all, next = cut(all, size, func(e Event) string { return strconv.FormatInt(e.Number, 10) })
	return all, next, err
}
