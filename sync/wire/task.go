package wire

import "encoding/json"

// Target says where a task may run. Empty fields do not restrict.
type Target struct {
	Rack  string `json:"rack,omitempty"`
	Slot  int    `json:"slot,omitempty"`
	Phone string `json:"phone,omitempty"` // serial number
	Tag   string `json:"tag,omitempty"`   // of the rack
	App   string `json:"app,omitempty"`   // package that must be installed
}

// Budget bounds an attempt; 0 is the rack's own bound.
type Budget struct {
	Steps  int   `json:"steps,omitempty"`
	MS     int64 `json:"ms,omitempty"`
	Tokens int   `json:"tokens,omitempty"`
}

// Task is what somebody wants done on a phone. Times are milliseconds since the
// epoch, 0 for none.
type Task struct {
	TaskID       string            `json:"task_id"`
	Goal         string            `json:"goal"`
	Target       Target            `json:"target"`
	Skills       []string          `json:"skills,omitempty"`
	Params       map[string]string `json:"params,omitempty"`
	Inputs       []Input           `json:"inputs,omitempty"`
	Permissions  []string          `json:"permissions,omitempty"`
	Budget       Budget            `json:"budget"`
	NotBefore    int64             `json:"not_before,omitempty"`
	Deadline     int64             `json:"deadline,omitempty"`
	Priority     int               `json:"priority,omitempty"`   // the higher, the sooner
	Repeatable   bool              `json:"repeatable,omitempty"` // it may be done again after an attempt that was lost
	ResultSchema json.RawMessage   `json:"result_schema,omitempty"`
}

// Bounds of the files of a task.
const (
	MaxInputs = 4
	MaxInput  = 8 << 20 // bytes of one
)

// Input is a file that a task needs, by its content. The rack that has the task's lease fetches it by [BlobGet].
type Input struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// TaskState is where a task is on its way.
type TaskState string

// The states of a task. A lost one waits for a person.
const (
	TaskQueued    TaskState = "queued"
	TaskLeased    TaskState = "leased"
	TaskRunning   TaskState = "running"
	TaskWaiting   TaskState = "waiting" // for the answer to a question
	TaskSucceeded TaskState = "succeeded"
	TaskFailure   TaskState = "failed"
	TaskStopped   TaskState = "cancelled"
	TaskLost      TaskState = "lost"
)

// Over tells whether the state is terminal. A lost task can be queued again by a
// person, but its attempt is over.
func (s TaskState) Over() bool {
	switch s {
	case TaskSucceeded, TaskFailure, TaskStopped, TaskLost:
		return true
	}
	return false
}

// Claim asks for a task for a slot. ClaimID is committed before it is sent: the
// same one gets the same lease, whatever was lost on the way.
type Claim struct {
	Slot          int      `json:"slot"`
	Phone         string   `json:"phone"`
	ClaimID       string   `json:"claim_id"`
	SkillsVersion string   `json:"skills_version"`
	Apps          []string `json:"apps,omitempty"` // installed packages, at most 500
}

// Lease grants an attempt. LeaseMS counts from the sending of the claim, on the
// rack's clock.
type Lease struct {
	Task    Task   `json:"task"`
	Attempt int    `json:"attempt"` // from 1
	LeaseMS int64  `json:"lease_ms"`
	ClaimID string `json:"claim_id"`
}

// NoTask says that there is none, and when to ask again.
type NoTask struct {
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// Renew asks for more time; refused with attempt_over.
type Renew struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
	Wrote   bool   `json:"wrote"` // something was written to the phone
	Steps   int    `json:"steps,omitempty"`
}

// Renewed counts LeaseMS from the sending of the renewal.
type Renewed struct {
	LeaseMS int64 `json:"lease_ms"`
}

// Release gives a lease back before anything was written to the phone. It counts
// no attempt, and the task is not offered to this rack again until its
// skills_version changes.
type Release struct {
	TaskID        string   `json:"task_id"`
	Attempt       int      `json:"attempt"`
	SkillsVersion string   `json:"skills_version,omitempty"` // as in the claim; without it the last heartbeat's counts
	Error         *Refusal `json:"error,omitempty"`
}

// Running is an attempt that the rack works on.
type Running struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
	Slot    int    `json:"slot"`
	Wrote   bool   `json:"wrote"` // something was sent to the phone, or may have been
	Ended   bool   `json:"ended"` // nothing more is going to be written; the result is on its way
	Steps   int    `json:"steps"`

	// Answered is the id of the newest question that somebody at the rack has
	// answered: the cloud waits for no other answer to it.
	Answered string `json:"answered,omitempty"`
}

// SlotReport is what a rack says about a slot.
type SlotReport struct {
	Slot  int    `json:"slot"`
	State string `json:"state"`
	Phone string `json:"phone,omitempty"`
	Model string `json:"model,omitempty"`
}

// Heartbeat comes every 15 s.
type Heartbeat struct {
	Slots         []SlotReport `json:"slots"`
	Running       []Running    `json:"running"`
	SkillsVersion string       `json:"skills_version"`
}

// LeaseRef names an attempt and how long its lease still lasts, counted from the
// sending of the heartbeat.
type LeaseRef struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
	LeaseMS int64  `json:"lease_ms"`
}

// AttemptRef names an attempt.
type AttemptRef struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
}

// Sync answers a [Heartbeat]. The rack ends what it runs and Leases does not list.
type Sync struct {
	Leases  []LeaseRef   `json:"leases"`
	Cancel  []AttemptRef `json:"cancel"`
	Unknown []AttemptRef `json:"unknown"`
	Answers []Answer     `json:"answers,omitempty"`
}

// Cancel is the hint to end an attempt now; a [Sync] says so in any case.
type Cancel struct {
	TaskID  string `json:"task_id"`
	Attempt int    `json:"attempt"`
}

// Question is what an attempt asks a person.
type Question struct {
	TaskID     string   `json:"task_id"`
	Attempt    int      `json:"attempt"`
	QuestionID string   `json:"question_id"` // the same one is the same question
	Text       string   `json:"text"`
	Choices    []string `json:"choices,omitempty"`
}

// Answer is a person's.
type Answer struct {
	TaskID     string `json:"task_id"`
	Attempt    int    `json:"attempt"`
	QuestionID string `json:"question_id"`
	Text       string `json:"text"`
}

// Outcome is how an attempt ended, as the rack sees it.
type Outcome string

// The outcomes of an attempt.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
	Lost      Outcome = "lost" // the rack itself cannot tell: a restart has cut it
)

// Result ends an attempt. It leaves the rack's outbox only with its [Ack].
type Result struct {
	TaskID  string          `json:"task_id"`
	Attempt int             `json:"attempt"`
	Outcome Outcome         `json:"outcome"`
	Wrote   bool            `json:"wrote"`
	Steps   int             `json:"steps"`
	Tokens  int             `json:"tokens,omitempty"`
	Message string          `json:"message,omitempty"`
	Error   *Refusal        `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// Ack says that the message named by corr is committed. Ignored tells that it
// came too late to change anything.
type Ack struct {
	Ignored bool `json:"ignored,omitempty"`
}
