package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// Migrations are numbered from 1 without gaps, and are never changed once they were released.
//
//go:embed migrations/*.sql
var migrations embed.FS

// advisoryLock is the key under which replicas take turns on PostgreSQL: "phonerac" as a number.
const advisoryLock = 0x70686f6e65726163

// migrate brings the tables up to date in one transaction. Replicas that start at once take turns: on SQLite by the
// write lock, on PostgreSQL by an advisory lock.
func (s *Store) migrate(ctx context.Context) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	return s.write(ctx, Scope{}, func(t *tx) error {
		if s.d.postgres {
			if _, err := t.exec(`SELECT pg_advisory_xact_lock(?)`, int64(advisoryLock)); err != nil {
				return err
			}
		}
		if _, err := t.exec(s.d.schema(`CREATE TABLE IF NOT EXISTS schema_versions (version INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT`)); err != nil {
			return err
		}
		var have int
		if err := t.row(`SELECT coalesce(max(version), 0) FROM schema_versions`).Scan(&have); err != nil {
			return err
		}
		if have > len(names) {
			return fmt.Errorf("%w: its tables are of version %d and this program knows up to %d; run the version that wrote it, or a later one", ErrNewerSchema, have, len(names))
		}
		for i := have; i < len(names); i++ {
			if err := t.step(names[i], i+1); err != nil {
				return fmt.Errorf("%s: %w", names[i], err)
			}
		}
		if have > 0 {
			return nil
		}
		_, err := t.exec(`INSERT INTO installation (one, id, generation, created, backup) VALUES (1, ?, 1, ?, 0)`, NewID(), t.now)
		return err
	})
}

// step runs one migration. Its statements end with a semicolon at the end of a line.
func (t *tx) step(name string, version int) error {
	script, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(string(script), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err = t.ExecContext(t.ctx, t.d.schema(statement)); err != nil {
			return err
		}
	}
	_, err = t.exec(`INSERT INTO schema_versions (version, at) VALUES (?, ?)`, version, t.now)
	return err
}
