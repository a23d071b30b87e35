package action

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"time"

	"phonerack/agent/phone"
	"phonerack/agent/planner"
	"phonerack/firmware/lease"
	"phonerack/firmware/remembered"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// Fence is asked before each write to a phone.
type Fence interface{ Check() error }

// Rack is what the actions work on; package firmware implements it. Errors are refusals.
type Rack interface {
	Phones() []PhoneState
	// Phone returns the phone of a slot that is ready, else the refusal that says why there is none.
	Phone(slot int) (Phone, error)

	// Ping tells that the rack is there.
	Ping() Pong
	// Care is what keeps the slots well.
	Care() Care

	// Link tells how the rack stands with its cloud.
	Link() LinkStatus
	// RetryLink ends the pause before the next try, if there is one.
	RetryLink()

	// Skills returns the rack's skills, or the refusal that it has none.
	Skills() (Skills, error)

	StartTask(ctx context.Context, spec TaskSpec, actor string) (TaskStatus, error)
	Tasks(limit int) ([]TaskStatus, error)
	Task(id string) (TaskStatus, error)
	CancelTask(id, actor string) (TaskStatus, error)
	// AnswerTask answers the question of a task that waits.
	AnswerTask(id, answer, actor string) (TaskStatus, error)
	// PutInput keeps a file for tasks and says how it is named.
	PutInput(ctx context.Context, r io.Reader) (Input, error)
	// WatchTask calls step with each step of a task from its first on, last with its status at the end, and returns then.
	WatchTask(ctx context.Context, id string, step func(TaskEvent) error) error
	// SpeakMCP answers an MCP client until it ends its input.
	SpeakMCP(ctx context.Context, actor Actor, in io.Reader, out io.Writer) error
	// TaskFiles writes the task's trajectory as a tar archive.
	TaskFiles(ctx context.Context, id string, w io.Writer) error
}

// Pong is the result of ping.
type Pong struct {
	Boot  string `json:"boot"` // id of this start
	Slots int    `json:"slots"`
}

// Want says what an observation needs beyond the elements.
type Want struct {
	Image bool
	Marks bool // drawn on the image: the elements, or a grid where there are none
	Grid  bool // drawn on the image, whatever is on the screen; not with Marks
}

// Phone is one ready phone.
type Phone interface {
	Observe(ctx context.Context, want Want) (Observation, error)
	// Element finds the middle of an element of an earlier observation, Text that of a visible text.
	Element(ctx context.Context, generation uint64, index int) (x, y int, err error)
	Text(ctx context.Context, text string) (x, y int, err error)
	Under(fence Fence) Controls
	// Tool executes a tool of package tools with the looks of the actor: elements are those of the actor's last look.
	// Without a fence it only reads.
	Tool(ctx context.Context, fence Fence, actor string, d planner.Decision) (ToolOutcome, error)
	// Info reads what the phone tells of itself, and what is remembered of it.
	Info(ctx context.Context) (PhoneInfo, error)

	// HelperStatus tells which helper apps are there; InstallHelpers installs and starts them, RemoveHelpers takes them away.
	HelperStatus(ctx context.Context) (HelperStatus, error)
	InstallHelpers(ctx context.Context, fence Fence) error
	RemoveHelpers(ctx context.Context, fence Fence) error

	Shell(ctx context.Context, cmd string, pipes Pipes) (exit int, err error)
	Push(ctx context.Context, r io.Reader, path string, mode fs.FileMode, mtime time.Time) error
	Pull(ctx context.Context, path string, w io.Writer) error
}

// Controls write to a phone.
type Controls interface {
	Tap(ctx context.Context, x, y int) error
	LongPress(ctx context.Context, x, y int, d time.Duration) error
	Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error
	// Type tells whether the field shows the text ("verified") or could not be read ("unverified"); a field that shows something else is an error.
	Type(ctx context.Context, text string) (verdict string, err error)
	Key(ctx context.Context, name string) error
	Launch(ctx context.Context, pkg string) error
}

// State is where a slot stands.
type State string

// States of a slot.
const (
	Empty        State = "empty"        // nothing is plugged in
	Connecting   State = "connecting"   // plugged in, not yet usable
	Unauthorized State = "unauthorized" // waits for a person to accept the prompt on the phone
	Ready        State = "ready"
	Limited      State = "limited" // shell and files work, the screen does not: still booting, in recovery, or no Android
	Lost         State = "lost"    // was ready, does not answer; being tried again
	Failed       State = "failed"  // cannot be used; being tried again, more and more seldom
)

// PhoneState is one slot as `phones` lists it.
type PhoneState struct {
	Slot   int          `json:"slot"` // 0 for a phone at a port that is not on the board file
	Label  string       `json:"label,omitempty"`
	Port   string       `json:"port"` // USB port path or address of the stream
	State  State        `json:"state"`
	Reason string       `json:"reason,omitempty"` // why it is not ready
	Serial string       `json:"serial,omitempty"`
	Model  string       `json:"model,omitempty"`
	Lease  *lease.State `json:"lease,omitempty"`
	Since  time.Time    `json:"since"`

	Android string `json:"android,omitempty"` // release, such as "14"

	// Duplicate tells that another slot's phone has the same serial number.
	Duplicate bool `json:"duplicate_serial,omitempty"`
}

// Observation is what a phone shows.
type Observation struct {
	Generation uint64   `json:"generation"`
	Package    string   `json:"package"`
	Activity   string   `json:"activity"`
	Width      int      `json:"width"`
	Height     int      `json:"height"`
	Screen     string   `json:"screen"`            // the elements, one a line
	Missing    []string `json:"missing,omitempty"` // parts that could not be read
	Image      []byte   `json:"image,omitempty"`   // JPEG
}

// PhoneInfo is what is known of a phone. A part that could not be read is nil, and Missing says why.
type PhoneInfo struct {
	Slot    int               `json:"slot"`
	Serial  string            `json:"serial"`
	Model   string            `json:"model"`
	Android string            `json:"android"`
	Width   int               `json:"width"`
	Height  int               `json:"height"`
	Ways    phone.Strategies  `json:"ways"` // that work on it
	Battery *phone.Battery    `json:"battery,omitempty"`
	Thermal *phone.Thermal    `json:"thermal,omitempty"`
	Storage *phone.Storage    `json:"storage,omitempty"`
	Power   *phone.Power      `json:"power,omitempty"`
	Missing map[string]string `json:"missing,omitempty"` // part -> why it could not be read

	Remembered *remembered.Phone `json:"remembered,omitempty"`
}

// HelperStatus is what a phone has of the helper apps.
type HelperStatus struct {
	Wanted    bool        `json:"wanted"`    // a person had them installed
	Supported bool        `json:"supported"` // the phone's Android is new enough for them
	Running   bool        `json:"running"`   // the one that reads the screen runs
	Apps      []HelperApp `json:"apps"`
}

// HelperApp is one of the helper apps.
type HelperApp struct {
	Package   string `json:"package"`
	Installed bool   `json:"installed"`
	Version   string `json:"version,omitempty"`
	Current   bool   `json:"current"` // it is the release that this rack has
}

// TaskSpec is a task as it is asked for.
type TaskSpec struct {
	Slot   int
	Goal   string
	Params map[string]string
	Steps  int           // at most this many
	Within time.Duration // at most this long
	Tokens int           // at most this many, as estimated; 0 is no bound

	Permissions []string          // of tools.Permissions
	Inputs      map[string]string // name -> sha256 of a file that PutInput kept
	Skills      []string          // that bound and teach the task
	LeavePopups bool              // leave every popup to the planner

	Result *resultschema.Schema // of what a success brings; nil: anything
}

// TaskState is where a task stands.
type TaskState string

// States of a task.
const (
	Running   TaskState = "running"
	Waiting   TaskState = "waiting" // for a person's answer
	Paused    TaskState = "paused"  // for a planner that can be reached
	Succeeded TaskState = "succeeded"
	TaskError TaskState = "failed"
	Cancelled TaskState = "cancelled"
	TaskLost  TaskState = "lost" // rackd stopped or died in the middle
)

// TaskStatus is a task as it is remembered.
type TaskStatus struct {
	ID        string          `json:"id"`
	Attempt   int             `json:"attempt"`
	CloudTask string          `json:"cloud_task,omitempty"` // task_id of the cloud, if it comes from there
	Slot      int             `json:"slot"`
	Serial    string          `json:"serial"`
	Goal      string          `json:"goal"`
	Params    []string        `json:"params,omitempty"` // names only: a value may be a password
	State     TaskState       `json:"state"`
	Message   string          `json:"message,omitempty"`
	Refusal   *wire.Refusal   `json:"refusal,omitempty"`  // why it did not succeed
	Result    json.RawMessage `json:"result,omitempty"`   // the object that finish gave
	Question  *Question       `json:"question,omitempty"` // what a task that waits asks
	Steps     int             `json:"steps"`
	Tokens    int             `json:"tokens,omitempty"` // that the planner cost, as it counts or as estimated
	Wrote     bool            `json:"wrote"`            // something was sent to the phone, or may have been
	StartedBy string          `json:"started_by"`
	Started   time.Time       `json:"started"`
	Ended     time.Time       `json:"ended,omitzero"`
	Boot      string          `json:"boot"` // of the rackd that ran it
}

// Question is what a task asks a person.
type Question struct {
	Text    string    `json:"text"`
	Options []string  `json:"options,omitempty"`
	Asked   time.Time `json:"asked"`
}

// TaskEvent is one line of a watched task: a step, or its status when it waits, pauses, goes on and at last ends.
type TaskEvent struct {
	Step   json.RawMessage `json:"step,omitempty"`
	Status *TaskStatus     `json:"status,omitempty"`
}
