package wire

import (
	"encoding/json"
	"strings"
)

// Type is what a message says. A receiver answers one that it does not know
// with an error of code [Unsupported].
type Type string

// The types, by the topic's kind.
const (
	TypeHello   Type = "session.hello"   // [Hello]
	TypeWelcome Type = "session.welcome" // [Welcome]
	TypeError   Type = "error"           // [Refusal]: the request named by corr is refused

	TypeState     Type = "state"     // [State]
	TypeTelemetry Type = "telemetry" // any object
	TypeDesired   Type = "desired"   // [Desired]

	TypePlanRequest  Type = "plan.request"  // [PlanRequest]
	TypePlanAccepted Type = "plan.accepted" // [PlanAccepted]
	TypePlanDecision Type = "plan.decision" // [PlanDecision]
	TypePlanFailure  Type = "plan.failure"  // [PlanFailure]

	TypeClaim     Type = "task.claim"     // [Claim]
	TypeLease     Type = "task.lease"     // [Lease]
	TypeNone      Type = "task.none"      // [NoTask]
	TypeRenew     Type = "task.renew"     // [Renew]
	TypeRenewed   Type = "task.renewed"   // [Renewed]
	TypeRelease   Type = "task.release"   // [Release]
	TypeHeartbeat Type = "task.heartbeat" // [Heartbeat]
	TypeSync      Type = "task.sync"      // [Sync]
	TypeCancel    Type = "task.cancel"    // [Cancel]
	TypeQuestion  Type = "task.question"  // [Question]
	TypeAnswer    Type = "task.answer"    // [Answer]
	TypeResult    Type = "task.result"    // [Result]
	TypeTaskAck   Type = "task.ack"       // [Ack]

	TypeExecute       Type = "cmd.execute" // [Command]
	TypePending       Type = "cmd.pending" // [Pending]
	TypeCommands      Type = "cmd.list"    // [Commands]
	TypeCommandStatus Type = "cmd.status"  // [CommandStatus]
	TypeCommandAck    Type = "cmd.ack"     // [Ack]

	TypeEvent    Type = "event"     // [Event]
	TypeEventAck Type = "event.ack" // [Ack]
)

// spec says where a type belongs. An empty word means anywhere.
type spec struct {
	direction Direction
	kind      Kind
	lasting   bool // exp is 0: the message never expires
}

var specs = map[Type]spec{
	TypeHello:         {Up, KindSession, false},
	TypeWelcome:       {Down, KindSession, false},
	TypeError:         {},
	TypeState:         {Up, KindState, true},
	TypeTelemetry:     {Up, KindTelemetry, false},
	TypeDesired:       {Down, KindDesired, true},
	TypePlanRequest:   {Up, KindPlan, false},
	TypePlanAccepted:  {Down, KindPlan, false},
	TypePlanDecision:  {Down, KindPlan, false},
	TypePlanFailure:   {Down, KindPlan, false},
	TypeClaim:         {Up, KindTask, false},
	TypeLease:         {Down, KindTask, false},
	TypeNone:          {Down, KindTask, false},
	TypeRenew:         {Up, KindTask, false},
	TypeRenewed:       {Down, KindTask, false},
	TypeRelease:       {Up, KindTask, false},
	TypeHeartbeat:     {Up, KindTask, false},
	TypeSync:          {Down, KindTask, false},
	TypeCancel:        {Down, KindTask, false},
	TypeQuestion:      {Up, KindTask, false},
	TypeAnswer:        {Down, KindTask, false},
	TypeResult:        {Up, KindTask, true},
	TypeTaskAck:       {Down, KindTask, false},
	TypeExecute:       {Down, KindCommand, false},
	TypePending:       {Up, KindCommand, false},
	TypeCommands:      {Down, KindCommand, false},
	TypeCommandStatus: {Up, KindCommand, true},
	TypeCommandAck:    {Down, KindCommand, false},
	TypeEvent:         {Up, KindEvent, true},
	TypeEventAck:      {Down, KindSession, false},
}

// Types returns every type that this version knows, in no order.
func Types() []Type {
	list := make([]Type, 0, len(specs))
	for t := range specs {
		list = append(list, t)
	}
	return list
}

// Known tells whether this version knows the type.
func (t Type) Known() bool { _, ok := specs[t]; return ok }

func (t Type) lasting() bool { return specs[t].lasting }

// valid tells whether t could be a type of any version.
func (t Type) valid() bool {
	if t == "" || len(t) > maxIDBytes {
		return false
	}
	return strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz_.") == ""
}

// Hello opens a session, after each connect. Reading the answer proves that the
// cloud is there now: it repeats the nonce.
type Hello struct {
	Nonce      string            `json:"nonce"`      // fresh for each connect, at least 16 random bytes
	Generation uint64            `json:"generation"` // of the rack's database and enrolment
	Boot       string            `json:"boot"`
	Session    uint64            `json:"session"` // counts the connects of a generation
	Versions   map[string]string `json:"versions,omitempty"`
}

// Welcome answers a [Hello].
type Welcome struct {
	Nonce          string   `json:"nonce"`
	Now            int64    `json:"now"` // the cloud's time, in milliseconds
	Session        uint64   `json:"session"`
	DesiredVersion uint64   `json:"desired_version"`
	CommandSeq     uint64   `json:"command_seq"` // what is at or below it was handed out to an older generation
	Keys           []string `json:"keys"`        // kids that the cloud takes at the moment
}

// Presence is a rack's own word about itself.
type Presence string

// The presences of a rack. The will says offline.
const (
	Online   Presence = "online"
	Draining Presence = "draining" // it takes no more tasks
	Offline  Presence = "offline"
)

// State is retained. States are ordered by (Generation, Session): an older will
// that comes late is ignored.
type State struct {
	State      Presence          `json:"state"`
	Generation uint64            `json:"generation"`
	Session    uint64            `json:"session"`
	Boot       string            `json:"boot,omitempty"`
	Versions   map[string]string `json:"versions,omitempty"`
}

// Desired is the configuration that a rack should have. Versions only rise.
type Desired struct {
	Version uint64          `json:"version"`
	Config  json.RawMessage `json:"config"`
}

// PlanTool is a tool that may be called in a turn.
type PlanTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// PlanRequest asks for the decision of one turn. The attachment "screen", a
// JPEG, is optional. TaskID and Attempt are both there or both absent. A timeout,
// model or key in it is ignored: the cloud's profile alone counts (spec 003).
type PlanRequest struct {
	RequestID    string     `json:"request_id"`
	HostID       string     `json:"host_id"` // must be the rack of the topic
	TaskID       string     `json:"task_id,omitempty"`
	Attempt      int        `json:"attempt,omitempty"`
	SystemPrompt string     `json:"system_prompt"`
	UserPrompt   string     `json:"user_prompt"`
	Tools        []PlanTool `json:"tools"`
}

// ScreenAttachment names the screenshot of a [PlanRequest].
const ScreenAttachment = "screen"

// PlanAccepted comes at once: the rack waits for DeadlineMS from the arrival of
// this, then the turn has failed.
type PlanAccepted struct {
	RequestID  string `json:"request_id"`
	DeadlineMS int64  `json:"deadline_ms"`
}

// PlanDecision is the one tool call of a turn.
type PlanDecision struct {
	RequestID string          `json:"request_id"`
	StepIndex int             `json:"step_index"` // counts the decisions of (task, attempt) from 0; 0 outside of a task
	ToolName  string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"` // an object
	Tokens    int             `json:"tokens,omitempty"`
}

// PlanFailure says why a turn has no decision.
type PlanFailure struct {
	RequestID string   `json:"request_id"`
	Error     *Refusal `json:"error"`
}

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

// Input is a file that a task needs, by its content.
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

// CommandTarget is a slot, or the rack if Slot is 0. Order holds for each.
type CommandTarget struct {
	Slot int `json:"slot,omitempty"`
}

// Command is something that a rack has to do once.
type Command struct {
	CommandID  string          `json:"command_id"`
	Seq        uint64          `json:"seq"` // of the rack, from the cloud's database
	Name       string          `json:"name"`
	Target     CommandTarget   `json:"target"`
	Args       json.RawMessage `json:"args,omitempty"`
	Expires    int64           `json:"expires"` // milliseconds since the epoch
	Idempotent bool            `json:"idempotent,omitempty"`
}

// Pending asks for the commands above a sequence number, after the welcome.
type Pending struct {
	After uint64 `json:"after"`
}

// Commands answers a [Pending], in their order. With More there are others.
type Commands struct {
	Commands []Command `json:"commands"`
	More     bool      `json:"more,omitempty"`
}

// CommandState is where a command is on its way.
type CommandState string

// The states of a command. Those after running are terminal, and so is rejected.
const (
	CommandQueued    CommandState = "queued"
	CommandAccepted  CommandState = "accepted"
	CommandRejected  CommandState = "rejected"
	CommandRunning   CommandState = "running"
	CommandSucceeded CommandState = "succeeded"
	CommandFailed    CommandState = "failed"
	CommandTimedOut  CommandState = "timed_out"
	CommandCancelled CommandState = "cancelled"
	CommandUnknown   CommandState = "unknown" // it may have happened: a restart has cut it
)

// Over tells whether the state is terminal.
func (s CommandState) Over() bool {
	return s != CommandQueued && s != CommandAccepted && s != CommandRunning
}

// CommandStatus tells how a command goes on. Versions rise; an older one is
// acknowledged and ignored. A picture is the attachment "screen".
type CommandStatus struct {
	CommandID string          `json:"command_id"`
	Version   int             `json:"version"`
	Status    CommandState    `json:"status"`
	Progress  int             `json:"progress,omitempty"` // in per cent
	Detail    json.RawMessage `json:"detail,omitempty"`
	Error     *Refusal        `json:"error,omitempty"`
}

// Event is something that happened on a rack. Events may be dropped, the oldest
// first, and Dropped counts them.
type Event struct {
	Kind    string          `json:"kind"`
	Slot    int             `json:"slot,omitempty"`
	Phone   string          `json:"phone,omitempty"`
	At      int64           `json:"at"`
	Detail  json.RawMessage `json:"detail,omitempty"`
	Dropped int             `json:"dropped,omitempty"`
}
