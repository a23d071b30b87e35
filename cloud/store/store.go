package store

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers decide on. They are wrapped with what was being done; use errors.Is.
var (
	// ErrNotFound: no such record in this tenant.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the arguments can never be stored, for example an id with a slash.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: the record is in a state that forbids the change, or its id is taken.
	ErrConflict = errors.New("conflict")
	// ErrRequestConflict: a known request id, claim id or submit key came with other contents.
	ErrRequestConflict = errors.New("known id with other contents")
	// ErrNotYourTask: the task exists and is not leased to this rack, or the attempt never was.
	ErrNotYourTask = errors.New("task is not leased to this rack")
	// ErrAttemptOver: the attempt was this rack's and has ended, or its lease ran out.
	ErrAttemptOver = errors.New("attempt is over")
	// ErrNotOwner: another replica has taken the planner request over.
	ErrNotOwner = errors.New("planner request belongs to another replica")
	// ErrRevoked: the rack's credentials have ended, though they were valid when its request came.
	ErrRevoked = errors.New("rack is revoked")
	// ErrFull: the database's disk has no room. Nothing was stored, and it can be tried again when there is.
	ErrFull = errors.New("the database has no room on its disk")
	// ErrNewerSchema: the database was written by a newer version of phonerack.
	ErrNewerSchema = errors.New("database is newer than this program")
)

// LimitError says that a profile's limit is used up; errors.As finds it.
type LimitError struct {
	Limit   string    // "requests" of the minute or "tokens" of the day
	RetryAt time.Time // start of the next window
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("limit of %s is used up until %s", e.Limit, e.RetryAt.UTC().Format(time.RFC3339))
}

// Scope is on whose behalf a method runs. Both are needed: the tenant decides what can be seen, the actor is written
// down ("rack:r1", "admin:token-3", "system").
type Scope struct {
	Tenant string // [a-z0-9-]{1,63}
	Actor  string // 1 to 200 bytes
}

// Page asks for part of a list. The zero Page is the first 100 records.
type Page struct {
	After string // the "next" of the page before; "" for the first
	Limit int    // 1 to 1000; 0 means 100
}

// Options of Open.
type Options struct {
	Clock func() time.Time // nil: time.Now
}

// Grace is how long after a lease's end the cloud waits before it frees the task. The rack closes its write fence
// 10 s before the end, so that clocks of different speed cannot make two racks write.
const Grace = 30 * time.Second

// MaxCommandLife bounds how long a command may wait for its rack.
const MaxCommandLife = 7 * 24 * time.Hour
