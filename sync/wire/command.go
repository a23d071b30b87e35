package wire

import "encoding/json"

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
