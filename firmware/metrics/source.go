package metrics

import (
	"time"

	"phonerack/firmware/health"
)

// Source tells how the rack is. Rack is called with each scrape, by several at once perhaps, and must not wait for phones.
type Source interface {
	Rack() Rack
}

// Rack is a rack at one time. Counters are since rackd's start.
type Rack struct {
	ID, Version string
	Connected   bool // to the broker
	Clock       bool // the wall clock can be trusted
	Running     int  // tasks that run or wait
	Alarms      []health.Alarm
	Slots       []Slot
	Hubs        []Hub
	Tasks       map[Ending]int64
	Restarts    map[string]int64 // of parts of rackd, by name
	LinesLost   int64            // of the log, that were not kept to spare the card
}

// Slot is a slot and what sits there.
type Slot struct {
	Number   int
	State    health.State
	LastSeen time.Time // when its phone answered last; zero for never
	Attempts map[Attempt]int64
	Cycles   int64 // of the port's power
	Leased   bool
	Phone    *Phone // nil for none
}

// Attempt is a kind of act of recovery.
type Attempt struct {
	Rung   health.Rung
	Result health.Outcome
}

// Phone is what a phone says of itself.
type Phone struct {
	Serial, Model, Android string
	Battery                *Battery // nil if it was not read
}

// Battery is a battery's last reading.
type Battery struct {
	Level   int     // percent
	Celsius float64 // its temperature
}

// Hub is a hub of the board file.
type Hub struct {
	Name        string
	Overcurrent int64 // times that it was reported
}

// Ending is how tasks end.
type Ending string

// How tasks end, as package action names them.
const (
	Succeeded Ending = "succeeded"
	Failed    Ending = "failed"
	Cancelled Ending = "cancelled"
	Lost      Ending = "lost"
)

// endings lists all of them.
func endings() []Ending { return []Ending{Succeeded, Failed, Cancelled, Lost} }
