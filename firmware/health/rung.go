package health

import "time"

// Rung is one act of the ladder, or of care.
type Rung int

// The ladder, from the mildest act to the harshest, then the acts of care.
const (
	Reopen       Rung = iota // close the link and open it again
	Resync                   // read what is left over, then greet again with CNXN: the protocol's own resync
	ClearHalt                // after a real stall only: on a healthy endpoint it breaks Samsung S20 to S24 (AOSP issue 404741058)
	Reset                    // USB reset of this device, for models that survive it
	Reboot                   // "reboot:" over adb
	PortCycle                // power of the port off and on
	HubCycle                 // power of the whole hub off and on
	Rest                     // power of the port off
	Wake                     // power of the port on
	CloseTCP                 // adbd back to USB alone
	BatteryReset             // "dumpsys battery reset": end of faked readings
	rungs                    // their number
)

var rungNames = [rungs]string{"reopen", "resync", "clear_halt", "usb_reset", "reboot", "port_cycle", "hub_cycle", "rest", "wake", "close_tcp", "battery_reset"}

// String is the word in records and metrics.
func (r Rung) String() string {
	if r < 0 || r >= rungs {
		return "unknown"
	}
	return rungNames[r]
}

// maxPerDay bounds what a configuration may allow, so that a slot's ledger holds 24 hours.
const maxPerDay = 24

// An Order is one act on one slot, to be carried out under recovery's lease.
type Order struct {
	Slot    int
	Rung    Rung
	Hub     string
	Why     Diagnosis
	Also    []int         // other slots of the hub, that lose their power too; for HubCycle
	OffTime time.Duration // between off and on; for the cycles
	Given   time.Duration // boot time
	number  uint64
}

// Outcome is how an order ended.
type Outcome string

// Outcomes.
const (
	Done    Outcome = "done"    // carried out; whether it helped is for the next look to say
	Failed  Outcome = "failed"  // could not be carried out
	NotCut  Outcome = "not_cut" // power was switched, and the phone had it all the same
	Refused Outcome = "refused" // the lease was not to be had: it does not count
	Lost    Outcome = "lost"    // nobody reported in time
)

// Outcomes lists all of them.
func Outcomes() []Outcome { return []Outcome{Done, Failed, NotCut, Refused, Lost} }

// orderBound is how long an order may take before its hub is free again.
const orderBound = 10 * time.Minute

// plan gives the rungs that may help against a diagnosis.
func plan(d Diagnosis) []Rung {
	switch d {
	case Offline, Hung:
		return []Rung{Reopen, Resync, ClearHalt, Reset, Reboot, PortCycle, HubCycle}
	case Dead, NotEnumerated:
		return []Rung{PortCycle, HubCycle}
	case RecoveryMode:
		return []Rung{Reboot}
	case Unknown:
		return []Rung{Reopen, Resync}
	}
	return nil // for hands, or nothing is wrong
}

// ladder tells whether a rung belongs to the ladder.
func (r Rung) ladder() bool { return r <= HubCycle }
