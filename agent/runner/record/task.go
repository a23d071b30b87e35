package record

import (
	"encoding/json"
	"time"

	"phonerack/sync/wire"
)

// Version of the form of task.json and steps.jsonl.
const Version = 1

// Task is task.json. It is written when the attempt begins and again when it
// ends.
type Task struct {
	Version     int      `json:"version"`
	ID          string   `json:"task,omitempty"`
	Attempt     int      `json:"attempt,omitempty"`
	Goal        string   `json:"goal"`
	Params      []string `json:"params,omitempty"` // their names
	Permissions []string `json:"permissions,omitempty"`
	Skills      []string `json:"skills,omitempty"` // that it named

	ResultSchema json.RawMessage `json:"result_schema,omitempty"`

	MaxSteps  int    `json:"max_steps"`
	MaxTokens int    `json:"max_tokens,omitempty"` // 0: no bound
	Popups    bool   `json:"popups"`               // watchers were at work
	Slot      int    `json:"slot"`
	Phone     Phone  `json:"phone"`
	Rack      string `json:"rack,omitempty"` // version of the program

	Started time.Time `json:"started"`
	End     *End      `json:"end,omitempty"` // nil: the attempt was cut off
}

// Phone is what has to be known of a phone to build a simulated one like it.
type Phone struct {
	Name         string            `json:"name,omitempty"` // what people call it
	Serial       string            `json:"serial,omitempty"`
	Manufacturer string            `json:"manufacturer,omitempty"`
	Model        string            `json:"model,omitempty"`
	Android      string            `json:"android,omitempty"` // "14"
	SDK          int               `json:"sdk,omitempty"`
	Build        string            `json:"build,omitempty"`
	Locale       string            `json:"locale,omitempty"`
	Width        int               `json:"width,omitempty"`  // pixels, as it was turned
	Height       int               `json:"height,omitempty"` // pixels
	Rotation     int               `json:"rotation"`         // quarter turns anticlockwise
	Density      int               `json:"density,omitempty"`
	Dark         *bool             `json:"dark,omitempty"` // nil: not known
	Apps         map[string]string `json:"apps,omitempty"` // versions by package, "" if not known
}

// End is how an attempt ended.
type End struct {
	At      time.Time     `json:"at"`
	Outcome string        `json:"outcome"` // succeeded, failed or cancelled
	Message string        `json:"message"`
	Steps   int           `json:"steps"` // turns of the planner
	Tokens  int           `json:"tokens"`
	Wrote   bool          `json:"wrote"`
	Refusal *wire.Refusal `json:"refusal,omitempty"`
}

// Code is the code of the end's refusal, or "".
func (e *End) Code() wire.Code {
	if e.Refusal == nil {
		return ""
	}
	return e.Refusal.Code
}
