package store

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A dialect turns the one set of SQL texts into a database's own. The texts are written with "?" for arguments, which
// stands in no literal, and with FOR UPDATE where a row is read to be changed.
type dialect struct {
	postgres bool
	texts    sync.Map // text -> rewritten text
}

// SQLite has one writer at a time and no row locks. Longest first.
var noRowLocks = strings.NewReplacer(" FOR UPDATE SKIP LOCKED", "", " FOR UPDATE", "")

// schemaForPostgres turns the words of the migrations.
var schemaForPostgres = strings.NewReplacer(
	"INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
	"INTEGER", "BIGINT",
	"BLOB", "BYTEA",
	") STRICT", ")",
)

func (d *dialect) text(q string) string {
	if t, ok := d.texts.Load(q); ok {
		return t.(string)
	}
	t := q
	if d.postgres {
		t = numbered(q)
	} else {
		t = noRowLocks.Replace(q)
	}
	d.texts.Store(q, t)
	return t
}

// numbered writes $1, $2 ... for each "?".
func numbered(q string) string {
	var b strings.Builder
	n := 0
	for _, r := range q {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

func (d *dialect) schema(q string) string {
	if d.postgres {
		return schemaForPostgres.Replace(q)
	}
	return q
}

// marks gives n question marks for an IN list.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// taken tells whether the error is a broken uniqueness.
func taken(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505" // unique_violation
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// full tells whether the disk of the database has no room.
func full(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "53100" // disk_full
	}
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && lite.Code()&0xff == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC)
}

// unstorable tells whether an argument has characters that PostgreSQL has in no text: NUL, or what is not UTF-8. What is stored is
// checked before, so that it was something to look for.
func unstorable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "22021" // character_not_in_repertoire
}

// again tells whether the database undid the transaction for the sake of another one, and asks for it anew.
func again(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40001" || pg.Code == "40P01") // serialization_failure, deadlock_detected
}
