package store

import (
	"encoding/json"
	"time"
)

// PlanRequest claims the right to ask the provider for one decision.
type PlanRequest struct {
	Host     string
	ID       string
	Ref                    // zero for a request outside a task
	BodyHash [32]byte      // SHA-256 of the request's body
	Owner    string        // this replica's process, unique per start
	Lease    time.Duration // longer than the provider call can take
}

// Standing is what Begin found.
type Standing int

// Standings. With Fresh and TakenOver the caller owns the request and must end it by Finish or Fail.
const (
	Fresh     Standing = iota + 1 // nobody has asked before
	TakenOver                     // the owner before ran out of time: its call may have been billed
	Answered                      // Decision or Failure holds the answer
	InFlight                      // another call is under way until Until
)

// Begun is the answer of Begin.
type Begun struct {
	Standing Standing
	Decision *Decision       // Answered, one of the two
	Failure  json.RawMessage // Answered, one of the two: a wire refusal
	Until    time.Time       // InFlight
}

// Decision is a row of the planner's log. A decision outside a task has only Tool and Arguments, kept for an hour.
type Decision struct {
	Ref
	Step         int // from 0, without gaps
	Host         string
	RequestID    string
	SystemPrompt string
	UserPrompt   string
	Tool         string
	Arguments    json.RawMessage
	TokensIn     int64
	TokensOut    int64
	Profile      string
	At           time.Time
}

// Finish ends an owned request with a decision.
type Finish struct {
	Host         string
	RequestID    string
	Owner        string
	SystemPrompt string // dropped outside a task
	UserPrompt   string
	Tool         string
	Arguments    json.RawMessage
	TokensIn     int64
	TokensOut    int64
	Profile      string
}
