package store

import (
	"encoding/json"
	"time"
)

// CommandState is where a command stands.
type CommandState string

// States of a command.
const (
	CommandQueued    CommandState = "queued"
	CommandAccepted  CommandState = "accepted"
	CommandRejected  CommandState = "rejected"
	CommandRunning   CommandState = "running"
	CommandSucceeded CommandState = "succeeded"
	CommandFailed    CommandState = "failed"
	CommandTimedOut  CommandState = "timed_out"
	CommandCancelled CommandState = "cancelled"
	CommandUnknown   CommandState = "unknown" // may or may not have run, and never runs again
)

// Terminal tells whether the command has ended.
func (s CommandState) Terminal() bool {
	return s != CommandQueued && s != CommandAccepted && s != CommandRunning
}

// NewCommand is what a command starts with.
type NewCommand struct {
	Host       string
	Slot       int // 0: the rack itself
	Name       string
	Args       json.RawMessage
	Expires    time.Time // zero: MaxCommandLife from now, which is also the most
	Idempotent bool
}

// Command as stored.
type Command struct {
	NewCommand
	ID       string
	Tenant   string
	Seq      int64 // per host, from 1
	State    CommandState
	Version  int64 // of the newest status
	Progress json.RawMessage
	Detail   json.RawMessage
	Created  time.Time
	Updated  time.Time
	Sent     time.Time // when it was first handed out; zero: it cannot have run
}

// CommandStatus is cmd.status.
type CommandStatus struct {
	Host     string
	ID       string
	Version  int64
	State    CommandState
	Progress json.RawMessage
	Detail   json.RawMessage
}

// CommandFilter selects commands; empty fields select all.
type CommandFilter struct {
	Host   string
	States []CommandState
}
