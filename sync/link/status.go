package link

import (
	"maps"
	"sync"
	"time"

	"phonerack/sync/wire"
)

// State is where a link is.
type State string

// The states of a link.
const (
	Stopped    State = "stopped"    // Run was not called, or has returned
	Waiting    State = "waiting"    // for the next try
	Connecting State = "connecting" // to the broker
	Greeting   State = "greeting"   // the broker is there, the cloud has not answered yet
	Online     State = "online"
)

// Status is what a person wants to know of the link.
type Status struct {
	State     State             `json:"state"`
	Broker    string            `json:"broker"` // without credentials
	Tenant    string            `json:"tenant"`
	Rack      string            `json:"rack"`
	Since     time.Time         `json:"since"` // of the state, on the clock of Now
	Session   uint64            `json:"session"`
	Presence  wire.Presence     `json:"presence"`              // that the rack says while it is online
	Desired   uint64            `json:"desired,omitempty"`     // version of the cloud's configuration that is applied
	NextTry   time.Duration     `json:"next_try_ns,omitempty"` // from now, while waiting
	LastError string            `json:"last_error,omitempty"`  // why the last session ended, or the last try failed
	RoundTrip time.Duration     `json:"round_trip_ns"`         // of the last hello
	Time      time.Time         `json:"time"`
	Trusted   bool              `json:"trusted"`   // Time is the cloud's
	Offset    time.Duration     `json:"offset_ns"` // of the cloud's time from the board's clock
	Outbox    OutboxStatus      `json:"outbox"`
	Counters  map[string]uint64 `json:"counters"` // by reason; docs/link.md lists them
}

// OutboxStatus is how full the outbox is.
type OutboxStatus struct {
	Entries map[Class]int `json:"entries"`
	Bytes   int64         `json:"bytes"`
	Limit   int64         `json:"limit"`
	Refused int           `json:"refused"` // kept for a person to look at
	Dropped uint64        `json:"dropped"` // events, since the database is there
}

// counters count by name.
type counters struct {
	mu sync.Mutex // guards n
	n  map[string]uint64
}

func (c *counters) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]uint64{}
	}
	c.n[name]++
}

func (c *counters) all() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}
