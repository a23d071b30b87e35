package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

const (
	// MaxFiles bounds the files of a tenant, in bytes of all.
	MaxFiles = 1 << 30

	keptFiles = 24 * time.Hour // of files that no task names: a task is about to be submitted with them
)

// File is one that tasks may name.
type File struct {
	SHA256 string // 64 lower-case hexadecimal digits
	Size   int64
}

// PutFile keeps a file for tasks, for a day unless a task names it. ErrConflict: the tenant has as many as it may have.
func (s *Store) PutFile(ctx context.Context, sc Scope, body []byte) (f File, err error) {
	if err = check(sc.check(), inRange("size of the file", int64(len(body)), 1, wire.MaxInput)); err != nil {
		return File{}, err
	}
	hash := sha256.Sum256(body)
	f = File{hex.EncodeToString(hash[:]), int64(len(body))}
	err = s.write(ctx, sc, func(t *tx) error {
		n, err := t.exec(`UPDATE files SET at = ? WHERE tenant = ? AND sha256 = ?`, t.now, sc.Tenant, f.SHA256)
		if err != nil || n > 0 {
			return err
		}
		var all int64
		if err := t.row(`SELECT CAST(coalesce(SUM(size), 0) AS BIGINT) FROM files WHERE tenant = ?`, sc.Tenant).Scan(&all); err != nil {
			return err
		}
		if all+f.Size > MaxFiles {
			return fmt.Errorf("%w: the files of the tenant's tasks have %d bytes, at most %d are allowed", ErrConflict, all, MaxFiles)
		}
		_, err = t.exec(`INSERT INTO files (tenant, sha256, size, at, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			sc.Tenant, f.SHA256, f.Size, t.now, body)
		if err != nil {
			return err
		}
		return t.audit("file.put", f.SHA256, map[string]any{"size": f.Size})
	})
	return f, err
}

// File tells of a file that was put.
func (s *Store) File(ctx context.Context, sc Scope, hash string) (f File, err error) {
	if err = sc.check(); err != nil {
		return File{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		return t.row(`SELECT sha256, size FROM files WHERE tenant = ? AND sha256 = ?`, sc.Tenant, hash).Scan(&f.SHA256, &f.Size)
	})
	return f, err
}

// addFiles notes which files a task names, so that they stay as long as it does.
func (t *tx) addFiles(task string, hashes []string) error {
	for _, hash := range hashes {
		missing := invalid("the file %.64s is not here: upload it first", hash)
		if err := t.one(missing, `UPDATE files SET at = ? WHERE tenant = ? AND sha256 = ?`, t.now, t.sc.Tenant, hash); err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO task_files (task, tenant, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, task, t.sc.Tenant, hash); err != nil {
			return err
		}
	}
	return nil
}

// RackFile gives at most limit bytes of a file from an offset on, and its size, if the rack has the live lease of a
// task that names the file. ErrNotFound otherwise.
func (s *Store) RackFile(ctx context.Context, sc Scope, rack, hash string, offset, limit int64) (part []byte, size int64, err error) {
	err = check(sc.check(), textOK("hash", hash, 1, 64), inRange("offset", offset, 0, wire.MaxInput), inRange("limit", limit, 1, wire.MaxInput))
	if err != nil {
		return nil, 0, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		return t.row(`SELECT size, substr(body, CAST(? AS INTEGER), CAST(? AS INTEGER)) FROM files f WHERE tenant = ? AND sha256 = ? AND EXISTS (
			SELECT 1 FROM task_files x JOIN attempts a ON a.task = x.task WHERE x.tenant = f.tenant AND x.sha256 = f.sha256
			AND a.tenant = f.tenant AND a.host = ? AND a.`+liveAttempt+` AND a.until > ?)`,
			offset+1, limit, sc.Tenant, hash, rack, t.now).Scan(&size, &part)
	})
	return part, size, err
}
