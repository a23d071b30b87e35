package status

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/power"
)

// Source tells how the rack is. It is called by many requests at once. What takes a context may ask a phone or the disk
// and ends with it; everything else answers at once from memory. Errors are refusals.
type Source interface {
	Snapshot() Snapshot
	// Changed is closed when the next Snapshot would not be the Same as one that is taken now, or Events have come.
	Changed() <-chan struct{}

	// Events are the last of a slot, of the whole rack for slot 0, the newest first.
	Events(slot, most int) []Event
	// Log gives at most so many of the last lines after one, the oldest first; 0 stands before the first line.
	Log(after uint64, most int) []LogLine
	// Logged is closed when a line comes after those that Log gives now.
	Logged() <-chan struct{}

	// Picture takes one of a phone's screen.
	Picture(ctx context.Context, slot int) (Picture, error)

	// Tasks are the last ones, the newest first.
	Tasks(ctx context.Context, most int) ([]action.TaskStatus, error)
	// Steps are those of a task's trajectory, without the scenes.
	Steps(ctx context.Context, task string) ([]record.Step, error)
	// StepPicture is the JPEG of that name in a task's trajectory.
	StepPicture(ctx context.Context, task, name string) ([]byte, error)

	// Attachments are texts for a support bundle, such as the configuration: file name and content. They are redacted
	// by the page once more.
	Attachments(ctx context.Context) map[string][]byte
}

// Actor runs actions; *action.Registry is one.
type Actor interface {
	Call(ctx context.Context, actor action.Actor, name string, args json.RawMessage, pipes action.Pipes) (any, error)
}

// Snapshot is the rack at one moment. Nobody changes what it points to.
type Snapshot struct {
	Rack     Rack      `json:"rack"`
	Hubs     []Hub     `json:"hubs"`
	Slots    []Slot    `json:"slots"` // by number
	Services []Service `json:"services"`
}

// Rack is the controller.
type Rack struct {
	Name        string            `json:"name"`
	ID          string            `json:"id,omitempty"` // "" before enrolment
	Board       string            `json:"board,omitempty"`
	Version     string            `json:"version"`
	Boot        string            `json:"boot"` // id of this start
	Up          time.Duration     `json:"up_ns"`
	Maintenance bool              `json:"maintenance"` // of the whole rack
	Findings    []health.Finding  `json:"findings,omitempty"`
	Network     []Interface       `json:"network"`
	Link        action.LinkStatus `json:"link"`
	Clock       Clock             `json:"clock"`
	Images      []Image           `json:"images,omitempty"` // slots of the update
}

// Interface is one way into the network.
type Interface struct {
	Name      string   `json:"name"`
	Up        bool     `json:"up"`
	Addresses []string `json:"addresses"`
}

// Clock is the board's.
type Clock struct {
	Time    time.Time `json:"time"`
	Trusted bool      `json:"trusted"` // somebody who knows has set it
}

// Image is one of the two systems on the card.
type Image struct {
	Name    string     `json:"name"` // "A", "B"
	Version string     `json:"version"`
	State   ImageState `json:"state"`
	Booted  bool       `json:"booted"`
}

// ImageState is how a system on the card is.
type ImageState string

// States of an image.
const (
	ImageGood    ImageState = "good"
	ImageTrial   ImageState = "trial"   // booted to be tried, not confirmed
	ImageWriting ImageState = "writing" // an update is being written
	ImageBad     ImageState = "bad"     // was tried and did not do
	ImageEmpty   ImageState = "empty"
)

// Hub is a USB hub of the board file.
type Hub struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	On          bool   `json:"on"`
	Switched    bool   `json:"switched"` // its power can be switched, whole or by port
	OverCurrent bool   `json:"over_current,omitempty"`

	Outlet *Outlet `json:"outlet,omitempty"` // that feeds the whole hub; nil if nothing switches it
}

// Outlet is what feeds a port or a hub, and what was seen of switching it: hubs claim more than they do.
type Outlet struct {
	Cut       power.Cut     `json:"cut,omitempty"` // what taking its power does
	Busy      string        `json:"busy,omitempty"`
	Fault     string        `json:"fault,omitempty"`     // of the last time that it was switched
	Repowered int           `json:"repowered,omitempty"` // times that its power came back by itself
	Resets    int           `json:"resets,omitempty"`    // times that a reset of its hub gave the power back
	Silent    time.Duration `json:"silent_ns,omitempty"` // the longest that it did not answer after switching
}

// Slot is a place for a phone, and what sits there.
type Slot struct {
	Number    int              `json:"slot"`
	Label     string           `json:"label,omitempty"`
	Row       int              `json:"row,omitempty"`    // from 1; 0: not given
	Column    int              `json:"column,omitempty"` // from 1; 0: not given
	Hub       string           `json:"hub,omitempty"`
	Port      string           `json:"port"` // USB port path
	State     health.State     `json:"state"`
	Since     time.Duration    `json:"since_ns"` // how long it has been in it
	Main      health.Finding   `json:"finding"`
	Others    []health.Finding `json:"others,omitempty"`
	Rung      string           `json:"rung,omitempty"`    // of the ladder, while it is at work
	Ends      time.Duration    `json:"ends_ns,omitempty"` // until the quarantine ends
	Power     Power            `json:"power"`
	Phone     *Phone           `json:"phone,omitempty"`
	Lease     *lease.State     `json:"lease,omitempty"`
	Task      *Task            `json:"task,omitempty"`
	PowerActs bool             `json:"power_acts"`       // its power can be switched and is really cut
	Outlet    *Outlet          `json:"outlet,omitempty"` // of its port; nil if that cannot be switched by itself
	Fed       string           `json:"fed_by,omitempty"` // hub whose power can be switched as a whole, and is this slot's too; "" for none
	Hands     bool             `json:"hands,omitempty"`  // it is in maintenance by itself
	Lit       bool             `json:"lit,omitempty"`    // a light can show where it is: the rack's, or an LED of its own
}

// Power is what a slot's port is wanted to have.
type Power string

// Powers.
const (
	PowerOn      Power = "on"
	PowerOff     Power = "off"
	PowerUnknown Power = "unknown" // nobody can tell
)

// Phone is what is known of the phone in a slot. What was not read is nil.
type Phone struct {
	Serial  string   `json:"serial,omitempty"`
	Model   string   `json:"model,omitempty"`
	Android string   `json:"android,omitempty"`
	Ready   bool     `json:"ready"` // pictures can be taken
	Battery *Battery `json:"battery,omitempty"`
	Storage *Storage `json:"storage,omitempty"`
}

// Battery is the last reading.
type Battery struct {
	Level    int           `json:"level"`              // percent
	Celsius  *float64      `json:"celsius,omitempty"`  // nil if not known
	Charging *bool         `json:"charging,omitempty"` // nil if not known
	Age      time.Duration `json:"age_ns"`             // of the reading
}

// Storage is that of /data.
type Storage struct {
	Free  int64 `json:"free"`  // bytes
	Total int64 `json:"total"` // bytes
}

// Task is what a slot works on.
type Task struct {
	ID    string        `json:"id"`
	Goal  string        `json:"-"` // told to who has the PIN: it may name what is nobody's business
	State string        `json:"state"`
	Steps int           `json:"steps"`
	Since time.Duration `json:"since_ns"`
}

// Service is a part of rackd that is restarted when it fails.
type Service struct {
	Name     string        `json:"name"`
	State    ServiceState  `json:"state"`
	Since    time.Duration `json:"since_ns"`
	Restarts int           `json:"restarts"`
	LastLog  string        `json:"-"` // its last line, told to who has the PIN
}

// ServiceState is how a service is.
type ServiceState string

// States of a service.
const (
	ServiceRunning    ServiceState = "running"
	ServiceRestarting ServiceState = "restarting" // it ended and waits for its next start
	ServiceStopped    ServiceState = "stopped"
)

// Event is something that happened. Order is by boot and sequence: there may be no clock.
type Event struct {
	Seq    uint64          `json:"seq"`
	Boot   string          `json:"boot"`
	Age    time.Duration   `json:"age_ns"`
	Slot   int             `json:"slot,omitempty"`
	Kind   string          `json:"kind"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// LogLine is a line of rackd's log.
type LogLine struct {
	Seq   uint64    `json:"seq"`
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"` // secrets redacted
}

// Picture is a phone's screen.
type Picture struct {
	JPEG          []byte
	Width, Height int // pixels
}

var _ Actor = (*action.Registry)(nil)

// discard is where streams go that an action should not use.
var discard = action.Pipes{Out: io.Discard, Err: io.Discard}
