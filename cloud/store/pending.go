package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

var errPending = errors.New("store: not there yet")

// Store is the records. See the package's documentation.
type Store struct{}

// Open opens the database named by dsn, "sqlite:PATH" or "postgres://...", makes it if it is new, and brings its tables
// up to date. It blocks until done or until ctx ends.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) { return nil, errPending }

// Close ends the store. No method may be running.
func (s *Store) Close() error { return errPending }

// NewID mints an id for a record: 26 characters of [0-9a-z], ordered by time.
func NewID() string { return "" }

// Ping tells whether the database answers.
func (y *System) Ping(ctx context.Context) error { return errPending }

// Racks and identities.

// CreateHost records a rack together with its first identity set. ErrConflict: the id or the bearer is taken.
func (s *Store) CreateHost(ctx context.Context, sc Scope, h NewHost, id NewIdentity) (Host, error) {
	return Host{}, errPending
}

// Host gives a rack.
func (s *Store) Host(ctx context.Context, sc Scope, id string) (Host, error) {
	return Host{}, errPending
}

// Hosts lists racks by id.
func (s *Store) Hosts(ctx context.Context, sc Scope, p Page) (list []Host, next string, err error) {
	return nil, "", errPending
}

// LabelHost sets a rack's name and tags.
func (s *Store) LabelHost(ctx context.Context, sc Scope, id, name string, tags []string) error {
	return errPending
}

// RevokeHost ends all identity sets of a rack and its open commands (unknown), for good. Its attempts end with their
// leases. Revoking again changes nothing.
func (s *Store) RevokeHost(ctx context.Context, sc Scope, id string) error { return errPending }

// IssueIdentity gives a rack a new set by enrolment: all others end at once. ErrConflict: the rack is revoked.
func (s *Store) IssueIdentity(ctx context.Context, sc Scope, host string, id NewIdentity) (Identity, error) {
	return Identity{}, errPending
}

// RotateIdentity gives a rack a new set. The others end when the new one is used first (UseIdentity), or after grace.
func (s *Store) RotateIdentity(ctx context.Context, sc Scope, host string, id NewIdentity, grace time.Duration) (Identity, error) {
	return Identity{}, errPending
}

// UseIdentity notes that a set has proved itself; at the first time older sets of the host end. To be called when
// Identity.Used is zero.
func (s *Store) UseIdentity(ctx context.Context, sc Scope, host string, number int) error {
	return errPending
}

// Identities gives the sets of a host that are valid now, newest first; none for a revoked host.
func (s *Store) Identities(ctx context.Context, sc Scope, host string) ([]Identity, error) {
	return nil, errPending
}

// IdentityByBearer finds the set that is valid now and has this bearer's SHA-256. It takes no scope: it is how the
// tenant becomes known.
func (y *System) IdentityByBearer(ctx context.Context, hash [32]byte) (Identity, error) {
	return Identity{}, errPending
}

// Hello notes a rack's hello. A generation that this rack never had ends its open commands (unknown) and live attempts
// (lost). ErrConflict: a generation or session that is already history, as a replay has it.
func (s *Store) Hello(ctx context.Context, sc Scope, h Hello) (Welcome, error) {
	return Welcome{}, errPending
}

// SetPresence notes a rack's state. A report of an older (generation, session) than the newest one is ignored.
func (s *Store) SetPresence(ctx context.Context, sc Scope, r StateReport) (applied bool, err error) {
	return false, errPending
}

// Profiles and limits.

// AddProfile records a profile, not active. Its id is the caller's, minted with NewID (the credential is sealed for
// it); KeyVersion must be 1. ErrConflict: the id or name is taken.
func (s *Store) AddProfile(ctx context.Context, sc Scope, p Profile) (Profile, error) {
	return Profile{}, errPending
}

// Profiles lists profiles by id.
func (s *Store) Profiles(ctx context.Context, sc Scope, p Page) (list []Profile, next string, err error) {
	return nil, "", errPending
}

// Profile gives a profile.
func (s *Store) Profile(ctx context.Context, sc Scope, id string) (Profile, error) {
	return Profile{}, errPending
}

// ActiveProfile gives the tenant's active profile; ErrNotFound without one.
func (s *Store) ActiveProfile(ctx context.Context, sc Scope) (Profile, error) {
	return Profile{}, errPending
}

// ActivateProfile makes a profile the active one in place of any other.
func (s *Store) ActivateProfile(ctx context.Context, sc Scope, id string) error { return errPending }

// DeactivateProfile leaves the tenant without an active profile, if it was this one.
func (s *Store) DeactivateProfile(ctx context.Context, sc Scope, id string) error { return errPending }

// RotateCredential replaces a profile's sealed credential. version must be the stored KeyVersion plus one, else
// ErrConflict.
func (s *Store) RotateCredential(ctx context.Context, sc Scope, id string, sealed []byte, kek string, version int) error {
	return errPending
}

// Reserve takes room for one call of about so many tokens (a call above the day's whole limit passes if the day is
// untouched). A *LimitError says when to try again; then nothing was taken.
func (s *Store) Reserve(ctx context.Context, sc Scope, profile string, tokens int64) (Reservation, error) {
	return Reservation{}, errPending
}

// Settle replaces a reservation's estimate by what was spent, and writes it to the accounts. Once per reservation.
func (s *Store) Settle(ctx context.Context, sc Scope, r Reservation, spent Spent) error {
	return errPending
}

// Usage lists the accounts by day, host, task and profile.
func (s *Store) Usage(ctx context.Context, sc Scope, q UsageQuery, p Page) (list []Usage, next string, err error) {
	return nil, "", errPending
}

// Tasks.

// Submit queues a task. The same key with the same contents gives the task of the first time; with others,
// ErrRequestConflict.
func (s *Store) Submit(ctx context.Context, sc Scope, t NewTask) (task Task, created bool, err error) {
	return Task{}, false, errPending
}

// Task gives a task.
func (s *Store) Task(ctx context.Context, sc Scope, id string) (Task, error) {
	return Task{}, errPending
}

// Tasks lists tasks, newest first.
func (s *Store) Tasks(ctx context.Context, sc Scope, f TaskFilter, p Page) (list []Task, next string, err error) {
	return nil, "", errPending
}

// Attempts lists the attempts of a task in their order.
func (s *Store) Attempts(ctx context.Context, sc Scope, task string) ([]Attempt, error) {
	return nil, errPending
}

// CancelTask ends a queued or lost task at once; of a leased one it notes the wish (Task.Cancel), which the rack learns
// by task.cancel or its next heartbeat. A task that has ended stays as it is.
func (s *Store) CancelTask(ctx context.Context, sc Scope, id string) (Task, error) {
	return Task{}, errPending
}

// RequeueTask queues a lost or failed task again, as a person decides. ErrConflict in any other state.
func (s *Store) RequeueTask(ctx context.Context, sc Scope, id string) (Task, error) {
	return Task{}, errPending
}

// Claim gives a slot its task: the lease of the same claim id; else the slot's live lease; else the first queued task
// that fits by priority and age. ok is false if there is none. A lease that was there already is prolonged to c.Lease
// from now. ErrAttemptOver: the lease of this claim id has ended, claim with a new one. ErrRequestConflict: the claim
// id was another slot's.
func (s *Store) Claim(ctx context.Context, sc Scope, c Claim) (lease Lease, ok bool, err error) {
	return Lease{}, false, errPending
}

// Renew prolongs a live lease to length from now and gives its new end.
func (s *Store) Renew(ctx context.Context, sc Scope, host string, r Ref, length time.Duration) (time.Time, error) {
	return time.Time{}, errPending
}

// Release gives a task back before the first write. It is queued again at once, the attempt does not count, and this
// rack is not offered it until its skills version is another than the one given here.
func (s *Store) Release(ctx context.Context, sc Scope, host string, r Ref, skillsVersion string, cause json.RawMessage) error {
	return errPending
}

// Heartbeat notes what a rack has and does, and answers what it should be doing. It prolongs no lease.
func (s *Store) Heartbeat(ctx context.Context, sc Scope, h Heartbeat) (Sync, error) {
	return Sync{}, errPending
}

// Ask stores a question to a person; the task waits, its lease goes on.
func (s *Store) Ask(ctx context.Context, sc Scope, host string, r Ref, q Question) error {
	return errPending
}

// Answer stores a person's answer to the open question of a task and gives the attempt and rack to tell. The first
// answer counts; ErrConflict if nothing is asked.
func (s *Store) Answer(ctx context.Context, sc Scope, task string, answer json.RawMessage) (Attempt, error) {
	return Attempt{}, errPending
}

// SetResult ends an attempt as its rack says. It may come any number of times and late: for an attempt that is over it
// is acknowledged and ignored. One thing counts late: that nothing was written lets a task which is still lost by this
// very attempt be queued again.
func (s *Store) SetResult(ctx context.Context, sc Scope, r Result) (Ack, error) {
	return Ack{}, errPending
}

// Planner.

// Begin claims a request, before the provider is called. ErrRequestConflict: same id, other body. ErrNotYourTask,
// ErrAttemptOver: nothing was stored.
func (s *Store) Begin(ctx context.Context, sc Scope, r PlanRequest) (Begun, error) {
	return Begun{}, errPending
}

// Finish stores a decision, gives it its step and answers the request. ErrNotOwner, ErrAttemptOver: nothing was stored.
func (s *Store) Finish(ctx context.Context, sc Scope, f Finish) (Decision, error) {
	return Decision{}, errPending
}

// Fail answers an owned request with a failure (a wire refusal); no decision row comes of it.
func (s *Store) Fail(ctx context.Context, sc Scope, host, requestID, owner string, failure json.RawMessage) error {
	return errPending
}

// Decisions lists the decisions of a task by attempt and step; attempt 0 lists all attempts.
func (s *Store) Decisions(ctx context.Context, sc Scope, task string, attempt int, p Page) (list []Decision, next string, err error) {
	return nil, "", errPending
}

// Commands.

// QueueCommand stores a command under the rack's next number. ErrConflict: the rack is revoked.
func (s *Store) QueueCommand(ctx context.Context, sc Scope, c NewCommand) (Command, error) {
	return Command{}, errPending
}

// PendingCommands gives a rack's open, unexpired commands above a number, in order, at most 100, and notes that they
// were handed out. A push is PendingCommands too.
func (s *Store) PendingCommands(ctx context.Context, sc Scope, host string, after int64) ([]Command, error) {
	return nil, errPending
}

// SetCommandStatus notes what a rack says of a command. Only a higher version counts, and nothing after a terminal
// state, except that the rack's own end replaces one that the cloud had to assume at expiry.
func (s *Store) SetCommandStatus(ctx context.Context, sc Scope, st CommandStatus) (applied bool, err error) {
	return false, errPending
}

// Command gives a command.
func (s *Store) Command(ctx context.Context, sc Scope, id string) (Command, error) {
	return Command{}, errPending
}

// Commands lists commands, newest first.
func (s *Store) Commands(ctx context.Context, sc Scope, f CommandFilter, p Page) (list []Command, next string, err error) {
	return nil, "", errPending
}

// Audits lists what was done in the tenant, newest first.
func (s *Store) Audits(ctx context.Context, sc Scope, p Page) (list []Audit, next string, err error) {
	return nil, "", errPending
}

// Installation tells which database this is.
func (y *System) Installation(ctx context.Context) (Installation, error) {
	return Installation{}, errPending
}

// Expire ends what ran out of time: leases that ended Grace ago, tasks still queued at their deadline, commands past
// their expiry (timed_out if they were never handed out, else unknown). Any number of replicas may run it.
func (y *System) Expire(ctx context.Context) (Expired, error) { return Expired{}, errPending }

// Prune removes what is older than asked, in bounded batches, and gives the room back to the file system.
func (y *System) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	return Pruned{}, errPending
}

// Backup writes a whole copy of an SQLite database to path, which must not exist. The copy is marked: the first Open of
// it does what Restored does. PostgreSQL has pg_dump, after whose restore Restored must be called.
func (y *System) Backup(ctx context.Context, path string) error { return errPending }

// Restored makes a new generation of the installation, so that nothing runs again that ran after the backup: every open
// task and attempt is lost and waits for a person, open commands are unknown, and command numbers leap ahead.
func (y *System) Restored(ctx context.Context) (Installation, error) {
	return Installation{}, errPending
}

// SealedUnder lists values that are sealed under another key than kek, at most limit.
func (y *System) SealedUnder(ctx context.Context, kek string, limit int) ([]Sealed, error) {
	return nil, errPending
}

// Reseal replaces a sealed value, unless it was changed since it was listed: then done is false.
func (y *System) Reseal(ctx context.Context, old Sealed, kek string, value []byte) (done bool, err error) {
	return false, errPending
}
