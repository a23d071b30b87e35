package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
)

// Audit is one thing that somebody did.
type Audit struct {
	ID     int64
	At     time.Time
	Actor  string
	Verb   string // "host.create", "task.cancel" ...
	Object string // id of the record; "task/attempt" of an attempt
	Detail json.RawMessage
}

// Audits lists what was done in the tenant, newest first.
func (s *Store) Audits(ctx context.Context, sc Scope, p Page) (all []Audit, next string, err error) {
	size, err := p.size()
	before, e := p.before()
	if err = check(sc.check(), err, e); err != nil {
		return nil, "", err
	}
	scan := func(r scanner) (a Audit, err error) {
		return a, r.Scan(&a.ID, timeIn{&a.At}, &a.Actor, &a.Verb, &a.Object, jsonIn{&a.Detail})
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scan, `SELECT id, at, actor, verb, object, detail FROM audits WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?`,
			sc.Tenant, before, size+1)
		return err
	})
	all, next = cut(all, size, func(a Audit) string { return strconv.FormatInt(a.ID, 10) })
	return all, next, err
}
