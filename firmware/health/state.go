package health

import "time"

// State is the word for a slot. There are no others, so that each can be counted, at 0 too.
type State string

// States of a slot.
const (
	Empty       State = "empty"
	Starting    State = "starting" // plugged in, not yet known
	Well        State = "well"
	Attention   State = "attention"  // works; something should be looked at
	Recovering  State = "recovering" // the ladder is at work
	NeedsHands  State = "needs_hands"
	Quarantined State = "quarantined"
	Resting     State = "resting" // its power is off for its battery's sake
	Maintenance State = "maintenance"
	UnknownHow  State = "unknown"
)

// States lists all of them.
func States() []State {
	return []State{Empty, Starting, Well, Attention, Recovering, NeedsHands, Quarantined, Resting, Maintenance, UnknownHow}
}

// stateOf is the state that follows from a diagnosis alone.
func stateOf(d Diagnosis) State {
	switch d {
	case Fine:
		return Well
	case NoPhone:
		return Empty
	case Booting:
		return Starting
	case Unknown:
		return UnknownHow
	case Dead, NotEnumerated, Offline, Hung, RecoveryMode:
		return Recovering
	}
	return NeedsHands
}

// A Finding is something that a technician should know: a code of the catalogue with its arguments.
type Finding struct {
	Code string         `json:"code"`
	Args map[string]any `json:"args,omitempty"`
}

func finding(code string, args map[string]any) Finding { return Finding{code, args} }

// Status is how a slot is.
type Status struct {
	Slot    int           `json:"slot"`
	State   State         `json:"state"`
	Since   time.Duration `json:"-"` // boot time at which the state began
	Main    Finding       `json:"finding"`
	Others  []Finding     `json:"others,omitempty"`
	Paused  bool          `json:"paused"` // may be given no new task
	Rung    string        `json:"rung,omitempty"`
	Ends    time.Duration `json:"-"` // boot time at which the quarantine ends; 0 without one
	Next    time.Duration `json:"-"` // boot time of the ladder's next act at the earliest; 0 if none is planned
	Ordered *Order        `json:"-"` // the order that is being carried out
}
