package fleet

import (
	"context"
	"encoding/json"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/wire"
)

// Runner is the rack's phones and what runs on them. It is safe for concurrent
// use. Only Prepare and Execute may block for long.
type Runner interface {
	// Slots is every slot of the rack.
	Slots() []Slot
	// Prepare fetches what an attempt of a task with files needs, and wakes a phone
	// that is asleep, before Start: nothing is written to the phone. ctx ends with
	// the lease, and when the attempt is to end. What it refuses goes back, with the
	// reason of a *wire.Refusal.
	Prepare(ctx context.Context, a Assignment) error
	// Start begins an attempt and returns at once. If it refuses, nothing was
	// written to the phone; a *wire.Refusal says why not. It is called at most once
	// for an attempt, whatever happens.
	Start(a Assignment) error
	// Extend moves the write fence of an attempt to a later time of the boot clock.
	Extend(ref wire.AttemptRef, fence time.Duration)
	// Cancel asks an attempt to end; it still finishes with a result. An attempt
	// that is not there is ignored.
	Cancel(ref wire.AttemptRef, why *wire.Refusal)
	// Answer hands on a person's answer, which may come again and again. What was
	// not asked is ignored.
	Answer(ref wire.AttemptRef, questionID, text string)
	// Execute does what a command says, until ctx ends. A *wire.Refusal says why
	// not; one of code outcome_unknown, that nobody knows.
	Execute(ctx context.Context, c wire.Command) (Report, error)
	// Knows tells whether there is such a command, and whether it may be done
	// again when a restart has cut it.
	Knows(name string) (known, idempotent bool)
}

// Slot is a slot as it is now.
type Slot struct {
	Number int    // from 1
	State  string // one word
	Phone  string // serial number, empty without a phone
	Model  string
	Idle   bool     // a task may start now
	Asleep bool     // if Idle: after Prepare has given the phone its power back
	Apps   []string // installed packages, at most 500; nil if not known
}

// Assignment is an attempt that the cloud has granted. Its functions may be
// called from any goroutine and after the attempt is over.
type Assignment struct {
	Task    wire.Task
	Attempt int
	Slot    int
	Phone   string // that was claimed for: another one in the slot is a reason to refuse

	// Fence is a time of the boot clock: no write to the phone at or after it,
	// unless Extend has moved it.
	Fence time.Duration

	// Wrote has to be called, and to succeed, before the first write to the phone:
	// it commits that something may have been written. Later calls cost nothing.
	Wrote func() error
	// Stepped tells how many steps are done, for heartbeats. It may be left out.
	Stepped func(steps int)
	// Answered tells that somebody at the rack has answered a question of this
	// attempt, so that nobody else is asked for it. It may be left out.
	Answered func(questionID string)
	// Ask makes sure that a question reaches the cloud: it repeats it until the
	// cloud has it (nil), refuses it (a *wire.Refusal) or ctx ends. The answer comes
	// by Runner.Answer.
	Ask func(ctx context.Context, q wire.Question) error
	// Finish is a part of the transaction that writes the result down, in the
	// database of Options.Bucket: the result goes into the outbox, the record of the
	// attempt away. Task and attempt are filled in, and Wrote if it was committed.
	// After a rollback it may be called again; after a commit it does nothing.
	Finish func(tx *bolt.Tx, r wire.Result) error
	// Finished is called after the commit. It does nothing if Start has refused.
	Finished func()
}

// Ref names the attempt.
func (a Assignment) Ref() wire.AttemptRef {
	return wire.AttemptRef{TaskID: a.Task.TaskID, Attempt: a.Attempt}
}

// Report is what a command has brought.
type Report struct {
	Detail      json.RawMessage // an object, or nil
	Attachments []wire.Attachment
}
