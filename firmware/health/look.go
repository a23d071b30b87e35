package health

import "time"

// A Look is what was seen of a slot at one time, without a conclusion. Each stage is empty when it was not come to.
type Look struct {
	Bus    Bus
	Open   Open
	Greet  Greet
	Shell  Shell
	Kind   string // of the banner: device, recovery, sideload, rescue, bootloader
	Booted bool   // the phone says that it has booted
	Stall  bool   // an endpoint answered with a stall
	Holder string // the process that holds the interface, if it is known

	Phone string // key of the phone's record: its serial number if no other phone has it, else ""
	Model string
}

// Bus is what the enumeration shows at a slot's port.
type Bus string

// What a port can hold.
const (
	BusEmpty    Bus = "empty"
	BusADB      Bus = "adb"      // an interface FF/42/01, whatever the device's own class is (nmeum/android-tools#153)
	BusFastboot Bus = "fastboot" // an interface FF/42/03
	BusOther    Bus = "other"    // a device with neither
	BusFailed   Bus = "failed"   // something is plugged in, and the kernel gave up on it
	BusFull     Bus = "full"     // the controller has no room for it
)

// Open is how opening the interface went.
type Open string

// How opening went.
const (
	OpenOK     Open = "ok"
	OpenHeld   Open = "held"   // LIBUSB_ERROR_BUSY
	OpenDenied Open = "denied" // LIBUSB_ERROR_ACCESS
	OpenFailed Open = "failed"
)

// Greet is how the phone answered CNXN.
type Greet string

// How the phone answered.
const (
	GreetOK      Greet = "ok"
	GreetSilent  Greet = "silent"
	GreetAsked   Greet = "asked"   // it sent AUTH, and accepted no key
	GreetGarbled Greet = "garbled" // it sent what is no CNXN and no AUTH
	GreetStalled Greet = "stalled" // it has halted an endpoint
)

// Shell is how a harmless command went.
type Shell string

// How the command went.
const (
	ShellOK      Shell = "ok"
	ShellSilent  Shell = "silent"
	ShellRefused Shell = "refused" // the phone closed the stream
	ShellLost    Shell = "lost"    // the link broke
)

// Diagnosis is the one thing that a look shows.
type Diagnosis string

// Diagnoses.
const (
	Fine           Diagnosis = "fine"
	NoPhone        Diagnosis = "no_phone"
	Dead           Diagnosis = "dead"           // was there, and is gone from the bus
	NotEnumerated  Diagnosis = "not_enumerated" // plugged in; the kernel cannot talk to it
	ControllerFull Diagnosis = "controller_full"
	ChargingOnly   Diagnosis = "charging_only"
	FastbootMode   Diagnosis = "fastboot"
	RecoveryMode   Diagnosis = "recovery"
	HeldByOther    Diagnosis = "held"
	AccessDenied   Diagnosis = "access_denied"
	Offline        Diagnosis = "offline" // the interface is there, adbd does not answer
	Unauthorized   Diagnosis = "unauthorized"
	Hung           Diagnosis = "hung" // adbd answers, the phone behind it does not
	Booting        Diagnosis = "booting"
	Unknown        Diagnosis = "unknown"
)

// Diagnoses lists all of them.
func Diagnoses() []Diagnosis {
	return []Diagnosis{
		Fine, NoPhone, Dead, NotEnumerated, ControllerFull, ChargingOnly, FastbootMode, RecoveryMode, HeldByOther,
		AccessDenied, Offline, Unauthorized, Hung, Booting, Unknown,
	}
}

// Classify gives the diagnosis of a look; expected tells that a phone was in the slot.
func Classify(l Look, expected bool) Diagnosis {
	switch l.Bus {
	case BusEmpty:
		if expected {
			return Dead
		}
		return NoPhone
	case BusFull:
		return ControllerFull
	case BusFailed:
		return NotEnumerated
	case BusFastboot:
		return FastbootMode
	case BusOther:
		return ChargingOnly
	case BusADB:
		return classifyOpen(l)
	}
	return Unknown
}

func classifyOpen(l Look) Diagnosis {
	switch l.Open {
	case OpenHeld:
		return HeldByOther
	case OpenDenied:
		return AccessDenied
	case OpenFailed:
		return Offline
	case OpenOK:
		return classifyGreet(l)
	}
	return Unknown
}

func classifyGreet(l Look) Diagnosis {
	switch l.Greet {
	case GreetSilent, GreetGarbled, GreetStalled:
		return Offline
	case GreetAsked:
		return Unauthorized
	case GreetOK:
	default:
		return Unknown
	}
	switch l.Kind {
	case "recovery", "sideload", "rescue":
		return RecoveryMode
	case "bootloader":
		return FastbootMode
	}
	switch l.Shell {
	case ShellOK:
		if !l.Booted {
			return Booting
		}
		return Fine
	case ShellSilent:
		return Hung
	}
	// A refused shell or a broken link says that something is wrong, and not what.
	return Unknown
}

// lost tells whether nothing can be said to the phone any more.
func (d Diagnosis) lost() bool {
	return d == Dead || d == NotEnumerated || d == Offline || d == Hung
}

// A seen look, with its time.
type seen struct {
	look Look
	at   time.Duration
	is   Diagnosis
}
