package wire

import "encoding/json"

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

	// Desired is the version of the configuration that the rack has applied, 0 for none. The will does not know it.
	Desired uint64 `json:"desired,omitempty"`
}

// Desired is the configuration that a rack should have, an object of which [ReadSettings] knows the keys. Versions
// only rise.
type Desired struct {
	Version uint64          `json:"version"`
	Config  json.RawMessage `json:"config"`
}
