package store

import (
	"encoding/json"
	"time"
)

// TaskState is where a task or an attempt stands.
type TaskState string

// States of a task. An attempt has the same ones but Queued, and Released besides.
const (
	Queued    TaskState = "queued"
	Leased    TaskState = "leased"
	Running   TaskState = "running"
	Waiting   TaskState = "waiting" // for a person's answer; the lease goes on
	Succeeded TaskState = "succeeded"
	Failed    TaskState = "failed"
	Cancelled TaskState = "cancelled"
	Lost      TaskState = "lost"     // nobody knows how it ended; a person may requeue
	Released  TaskState = "released" // given back before the first write
)

// Terminal tells whether nothing follows by itself.
func (s TaskState) Terminal() bool {
	return s == Succeeded || s == Failed || s == Cancelled || s == Lost || s == Released
}

// Target says where a task may run. Every field that is set must match; an empty Target matches any slot.
type Target struct {
	Rack  string `json:"rack,omitempty"`
	Slot  int    `json:"slot,omitempty"`
	Phone string `json:"phone,omitempty"`
	Tag   string `json:"tag,omitempty"`
	App   string `json:"app,omitempty"`
}

// NewTask is what a task starts with. The fields beside Body are those that decide when and where it runs; the store
// does not look into Body.
type NewTask struct {
	Key        string          // the client's; the same key again gives the same task. "" for none
	Body       json.RawMessage // the task object of the wire without task_id, an object of at most 256 KiB
	Target     Target
	NotBefore  time.Time
	Deadline   time.Time // zero: none. A task still queued then fails
	Priority   int       // higher first
	Repeatable bool      // may be tried again although it may have written
}

// Task as stored.
type Task struct {
	NewTask
	ID      string
	Tenant  string
	State   TaskState
	Attempt int  // the number in force; 0 before the first claim. Numbers are never used twice
	Tries   int  // attempts that count: released ones do not
	Cancel  bool // somebody asked for the end; the rack has not reported it yet
	Created time.Time
	Ended   time.Time       // when State became terminal
	Error   json.RawMessage // why the cloud itself ended it, a wire refusal
}

// Ref names an attempt.
type Ref struct {
	Task    string
	Attempt int
}

// Attempt is a task tried once.
type Attempt struct {
	Ref
	Host     string
	Slot     int
	Phone    string
	ClaimID  string
	State    TaskState
	Started  time.Time // when it was leased
	Until    time.Time // end of the lease
	Ended    time.Time
	NextStep int   // index that the next decision gets; from 0
	Wrote    *bool // nil: unknown
	Steps    int
	Outcome  string
	Result   json.RawMessage
	Error    json.RawMessage

	QuestionID string // the newest question
	Question   json.RawMessage
	Answer     json.RawMessage // empty while it is open
}

// TaskFilter selects tasks; empty fields select all.
type TaskFilter struct {
	States []TaskState
	Host   string // of the attempt in force
}

// Claim asks for a task for one slot.
type Claim struct {
	Host          string
	Slot          int
	Phone         string
	Tags          []string // of slot and phone; the rack's own are added
	Apps          []string // package names on the phone
	ID            string   // claim_id: the same one gives the same lease
	SkillsVersion string   // tasks that this rack gave back with it are not offered
	Lease         time.Duration
}

// Lease is a task given to a slot.
type Lease struct {
	Task    Task
	Attempt Attempt
}

// RunningAttempt is a line of a heartbeat.
type RunningAttempt struct {
	Ref
	Wrote bool // something was sent to the phone, or may have been
	// Ended: the attempt is over on the rack, its result is on the way, and nothing more is going to be written. Only
	// then !Wrote is believed: an attempt that still runs may write after the heartbeat.
	Ended bool
}

// Heartbeat is task.heartbeat.
type Heartbeat struct {
	Host          string
	Slots         json.RawMessage
	SkillsVersion string
	Running       []RunningAttempt
}

// Sync is what a heartbeat is answered with.
type Sync struct {
	Leases  []Lease // live ones of this rack; what is not listed must end
	Cancel  []Ref   // listed leases that somebody wants ended
	Unknown []Ref   // reported as running and not live here
}

// Question is what a rack asks a person.
type Question struct {
	ID   string // the same one again changes nothing
	Body json.RawMessage
}

// Result is task.result.
type Result struct {
	Ref
	Host    string
	Outcome TaskState // Succeeded, Failed, Cancelled, or Lost if the rack itself cannot tell
	Wrote   bool
	Steps   int
	Result  json.RawMessage
	Error   json.RawMessage
}

// Ack tells what a result did.
type Ack struct {
	Applied bool      // false: the attempt was over already
	State   TaskState // of the task now
}
