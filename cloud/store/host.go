package store

import (
	"encoding/json"
	"time"
)

// State of a rack as it says so itself, in up/state.
type Presence string

// Presences of a rack.
const (
	Online   Presence = "online"
	Draining Presence = "draining" // finishes what runs, claims nothing
	Offline  Presence = "offline"
)

// Host is a rack as the cloud knows it.
type Host struct {
	ID      string // unique over the installation, see NewID
	Tenant  string
	Name    string
	Tags    []string
	Created time.Time
	Revoked time.Time // zero while it may connect

	Generation int64           // of the last hello; 0 before the first
	Session    int64           // of the last hello
	Boot       string          // "<counter>-<random>" of the last hello
	Versions   json.RawMessage // as said in the last hello
	CommandSeq int64           // number of the newest command

	Presence      Presence
	LastSeen      time.Time // hello, state or heartbeat
	SkillsVersion string
	Slots         json.RawMessage // as last reported
}

// NewHost is what a rack starts with.
type NewHost struct {
	ID   string // [a-z0-9-]{1,63}, minted by the caller with NewID: its secrets are sealed for this id before
	Name string
	Tags []string
}

// Hello is session.hello.
type Hello struct {
	Host       string
	Generation int64 // above 0
	Session    int64
	Boot       string
	Versions   json.RawMessage
}

// Welcome is what the cloud's records say to a hello.
type Welcome struct {
	NewGeneration bool
	CommandSeq    int64 // number of the newest command: the rack goes on from there
	// Ended by a new generation, each told once.
	EndedAttempts []Ref
	EndedCommands []string
}

// StateReport is up/state or the will.
type StateReport struct {
	Host       string
	Generation int64
	Session    int64
	State      Presence
}
