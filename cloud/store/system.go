package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"phonerack/cloud/durable"
)

// System holds the methods that belong to no tenant, or come before one is known.
type System struct{ s *Store }

// System gives the methods without a tenant. Only the process itself may use them, never a request's handler on a
// caller's word; IdentityByBearer is how a handler learns the tenant.
func (s *Store) System() *System { return &System{s} }

// Installation tells which database this is.
type Installation struct {
	ID         string
	Generation int64 // raised by Restored
	Created    time.Time
}

// Expired is what Expire ended.
type Expired struct {
	Lost     []TenantRef // attempts
	Requeued []TenantRef // of Lost: their tasks are queued again
	Late     []TenantRef // tasks whose deadline passed while queued; Attempt is 0
	Commands []string
}

// TenantRef names an attempt with its tenant.
type TenantRef struct {
	Tenant string
	Host   string
	Ref
}

// PruneOptions bound a run of Prune.
type PruneOptions struct {
	Before      time.Time // decisions and request rows of tasks that were terminal before go
	AuditBefore time.Time // audit rows before go; zero keeps all

	// What is over and older goes too; zero keeps all. A task goes after its decisions, with its attempts.
	TasksBefore    time.Time
	CommandsBefore time.Time
	AccountsBefore time.Time // whole days

	Batch  int           // rows of one transaction; 0 means 500
	Budget time.Duration // no further batch begins after it; 0 means a minute
}

// Pruned is what a run of Prune did.
type Pruned struct {
	Decisions int64
	Requests  int64
	Audits    int64
	Tasks     int64
	Commands  int64
	Accounts  int64
	Windows   int64 // used windows of limits
	Files     int64 // of tasks
	Skills    int64 // bodies of old versions, and rows about what was removed
	Done      bool  // false: the budget ended first
	Left      int64 // decisions that are due and still there, counted up to 100,000; 0 if Done
}

// Sealed is one sealed value, for sealing it anew.
type Sealed struct {
	Purpose string // "profile", "identity" or "catalog-key"
	Tenant  string
	Owner   []string // id of the profile, host or key
	Version int      // key version of the profile, number of the identity set or key
	KEK     string
	Value   []byte
}

// Installation tells which database this is.
func (y *System) Installation(ctx context.Context) (i Installation, err error) {
	err = y.s.read(ctx, Scope{}, func(t *tx) error {
		i, err = t.installation()
		return err
	})
	return i, err
}

func (t *tx) installation() (i Installation, err error) {
	err = t.row(`SELECT id, generation, created FROM installation`).Scan(&i.ID, &i.Generation, timeIn{&i.Created})
	return i, err
}

// seqLeap is how far Restored moves command numbers: further than a rack can have got since the backup, so that none of
// its watermarks is above a new command's number.
const seqLeap = 1_000_000

// Restored makes a new generation of the installation, so that nothing runs again that ran after the backup: every open
// task and attempt is lost and waits for a person, open commands are unknown, and command numbers leap ahead. Configurations get
// versions above those that racks may have seen since.
func (y *System) Restored(ctx context.Context) (i Installation, err error) {
	err = y.s.write(ctx, Scope{Actor: system}, func(t *tx) error {
		for _, j := range []struct {
			q    string
			args []any
		}{
			{`UPDATE attempts SET state = ?, ended = ? WHERE ` + liveAttempt, []any{Lost, t.now}},
			{
				`UPDATE tasks SET state = ?, ended = ?, error = ? WHERE state IN ('queued', 'leased', 'running', 'waiting')`,
				[]any{Lost, t.now, string(refusal("outcome_unknown"))},
			},
			{`UPDATE commands SET state = ?, updated = ? WHERE ` + openCommand, []any{CommandUnknown, t.now}},
			{`UPDATE hosts SET command_seq = command_seq + ?`, []any{seqLeap}},
			// Racks may have newer configurations than these, and are to have these again.
			{`UPDATE desired SET version = CASE WHEN version < ? THEN ? ELSE version + 1 END`, []any{t.now / 1000, t.now / 1000}},
			{`UPDATE installation SET generation = generation + 1, backup = 0`, nil},
		} {
			if _, err := t.exec(j.q, j.args...); err != nil {
				return err
			}
		}
		i, err = t.installation()
		if err != nil {
			return err
		}
		tenants, err := list(t, func(r scanner) (s string, err error) { return s, r.Scan(&s) }, `SELECT DISTINCT tenant FROM hosts`)
		for _, tenant := range tenants {
			if err == nil {
				err = t.auditFor(Scope{tenant, system}, "installation.restore", i.ID, map[string]any{"generation": i.Generation})
			}
		}
		return err
	})
	return i, err
}

// Tenants lists the tenants that own anything, by id.
func (y *System) Tenants(ctx context.Context) (all []string, err error) {
	err = y.s.read(ctx, Scope{}, func(t *tx) error {
		all, err = list(t, func(r scanner) (s string, err error) { return s, r.Scan(&s) },
			`SELECT tenant FROM hosts UNION SELECT tenant FROM profiles UNION SELECT tenant FROM tasks UNION SELECT tenant FROM subscriptions UNION SELECT tenant FROM files ORDER BY 1`)
		return err
	})
	return all, err
}

// TenantOf tells whose a rack is.
func (y *System) TenantOf(ctx context.Context, host string) (tenant string, err error) {
	err = y.s.read(ctx, Scope{}, func(t *tx) error {
		return t.row(`SELECT tenant FROM hosts WHERE id = ?`, host).Scan(&tenant)
	})
	return tenant, err
}

// Backup writes a whole copy of an SQLite database to path, which must not exist. The copy is marked: the first Open of
// it does what Restored does. PostgreSQL has pg_dump, after whose restore Restored must be called.
func (y *System) Backup(ctx context.Context, path string) error {
	if y.s.d.postgres {
		return invalid("a PostgreSQL database is copied by pg_dump")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	temp := path + ".new-" + NewID()
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // VACUUM INTO takes an empty file, and leaves its mode
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	defer func() { _ = f.Close() }()
	from := connectSQLite(y.s.path, "query_only(0)", 1) // of its own, so that nobody waits
	_, err = from.ExecContext(ctx, `VACUUM INTO ?`, temp)
	if err = errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("copying the database: %w", err)
	}
	to := connectSQLite(temp, "journal_mode(DELETE)", 1)
	_, err = to.ExecContext(ctx, `UPDATE installation SET backup = 1`)
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("marking the copy: %w", err)
	}
	if err = f.Sync(); err != nil {
		return err
	}
	err = os.Link(temp, path) // not Rename, which would replace
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and is not replaced", path)
	}
	if err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(path))
}

// sealedTables says where sealed values are: purpose -> the columns' names.
var sealedTables = []struct{ purpose, table, owner, version, value string }{
	{"profile", "profiles", "id", "key_version", "credential"},
	{"identity", "identities", "host", "number", "mac_secret"},
	{"catalog-key", "catalog_keys", "id", "number", "private"},
}

// SealedUnder lists values that are sealed under another key than kek, at most limit.
func (y *System) SealedUnder(ctx context.Context, kek string, limit int) (all []Sealed, err error) {
	err = y.s.read(ctx, Scope{}, func(t *tx) error {
		all = nil
		for _, w := range sealedTables {
			scan := func(r scanner) (Sealed, error) {
				v := Sealed{Purpose: w.purpose, Owner: make([]string, 1)}
				return v, r.Scan(&v.Tenant, &v.Owner[0], &v.Version, &v.KEK, &v.Value)
			}
			some, err := list(t, scan, fmt.Sprintf(`SELECT tenant, %s, %s, kek, %s FROM %s WHERE kek <> ? AND kek <> '' ORDER BY %s, %s LIMIT ?`,
				w.owner, w.version, w.value, w.table, w.owner, w.version), kek, limit-len(all))
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		return nil
	})
	return all, err
}

// Reseal replaces a sealed value, unless it was changed since it was listed: then done is false.
func (y *System) Reseal(ctx context.Context, old Sealed, kek string, value []byte) (done bool, err error) {
	if err = check(textOK("key id", kek, 1, maxName), inRange("size of the value", int64(len(value)), 1, maxSealed)); err != nil {
		return false, err
	}
	for _, w := range sealedTables {
		if w.purpose != old.Purpose || len(old.Owner) != 1 {
			continue
		}
		err = y.s.write(ctx, Scope{old.Tenant, system}, func(t *tx) error {
			n, err := t.exec(fmt.Sprintf(`UPDATE %s SET kek = ?, %s = ? WHERE tenant = ? AND %s = ? AND %s = ? AND %s = ?`,
				w.table, w.value, w.owner, w.version, w.value), kek, value, old.Tenant, old.Owner[0], old.Version, old.Value)
			if done = n == 1; err != nil || !done {
				return err
			}
			return t.audit(w.purpose+".reseal", old.Owner[0], map[string]any{"version": old.Version, "from": old.KEK, "to": kek})
		})
		return done, err
	}
	return false, invalid("purpose %.40q", old.Purpose)
}
