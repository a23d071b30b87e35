package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

// Kinds of step.
const (
	Turn   = ""       // a decision of the planner, and what it came to
	Popup  = "popup"  // a watcher closed something; no turn of the planner
	Calm   = "calm"   // animations were stopped because the screen never rested; no turn of the planner
	Wake   = "wake"   // the screen was switched on and unlocked; no turn of the planner
	Failed = "failed" // a turn without a usable decision: nothing was done
)

// Outcomes of a step, as in the prompt's past lines.
const (
	Done    = "done"
	Refused = "refused" // nothing was done
	Partly  = "failed"  // the turn came to nothing, or the act to a part
	Unknown = "unknown" // the act may have happened
)

// NotKept stands for text that is not written down: what went, or may have been
// meant to go, into a password field, and what a person answered.
const NotKept = "(not kept)"

// Step is one line of steps.jsonl.
type Step struct {
	N     int       `json:"n"` // counts all steps, whatever their kind
	Kind  string    `json:"kind,omitempty"`
	At    time.Time `json:"at"`
	Times Times     `json:"times"`

	// The scene that was decided on.
	Screen   uint64 `json:"screen"` // its generation
	Hash     string `json:"hash"`   // of its content
	App      string `json:"app,omitempty"`
	Activity string `json:"activity,omitempty"`
	Size     [2]int `json:"size"`            // of the display, in pixels
	Scene    string `json:"scene,omitempty"` // the lines that the planner saw
	Image    string `json:"image,omitempty"` // file name
	LeftOut  string `json:"left_out,omitempty"`

	// The decision.
	Tool      string          `json:"tool,omitempty"` // "" if there was none; "popup" for what a watcher did
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Decision  int             `json:"decision"`         // the planner's own count, 0 if it has none
	Sum       string          `json:"sum,omitempty"`    // over kind, tool and arguments: they are as they were written
	Tokens    int             `json:"tokens,omitempty"` // spent on it

	// What it came to.
	Target  string        `json:"target,omitempty"`
	Bounds  []int         `json:"bounds,omitempty"` // of the target: x1, y1, x2, y2 in pixels of the display
	Points  [][2]int      `json:"points,omitempty"` // touches, in pixels of the display
	Outcome string        `json:"outcome"`
	Refusal *wire.Refusal `json:"refusal,omitempty"`
	Retried bool          `json:"retried,omitempty"` // it was tried twice
	Effect  string        `json:"effect"`
	Changes []string      `json:"changes,omitempty"` // the first few differences between the screens before and after
	Text    string        `json:"text,omitempty"`    // verified, unverified or failed
	Moving  bool          `json:"moving,omitempty"`  // the screen did not come to rest
	Result  string        `json:"result,omitempty"`  // what a reading tool brought
	Message string        `json:"message,omitempty"` // of finish
}

// Times say where a step's time went, in milliseconds.
type Times struct {
	Observe int64 `json:"observe_ms"`          // looking at what was decided on, beyond the step before
	Decide  int64 `json:"decide_ms"`           // the planner's
	Act     int64 `json:"act_ms"`              // the tool's
	Settle  int64 `json:"settle_ms"`           // until the screen rested and was read
	Waited  int64 `json:"waited_ms,omitempty"` // for a person's answer
	Paused  int64 `json:"paused_ms,omitempty"` // while the planner was out of reach
	All     int64 `json:"all_ms"`              // of the step, without Waited and Paused
}

// SumOf is the sum of a step's decision as it stands.
func (s *Step) SumOf() string {
	h := sha256.New()
	for _, part := range []string{s.Kind, s.Tool, string(plain(s.Arguments))} {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// plain is a JSON value in one form, however it was written.
func plain(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return mapStrings(raw, func(s string) string { return s })
}

// Code is the code of the step's refusal, or "".
func (s *Step) Code() wire.Code {
	if s.Refusal == nil {
		return ""
	}
	return s.Refusal.Code
}
