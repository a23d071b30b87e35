package store

import (
	"encoding/json"
	"time"
)

// Providers of a profile.
const (
	Anthropic       = "anthropic"
	OpenAI          = "openai"
	OpenAIResponses = "openai-responses"
	Scripted        = "scripted"
)

// Profile says how the planner reaches a model. At most one per tenant is active.
type Profile struct {
	ID       string // [a-z0-9-]{1,63}; unique over the installation
	Name     string // unique in the tenant
	Provider string
	Model    string
	BaseURL  string        // "" for the provider's own
	Timeout  time.Duration // of the whole provider call, retries included; whole milliseconds, above 0
	Options  json.RawMessage
	Limits   Limits
	Prices   Prices

	Credential []byte // sealed by cloud/vault; empty for a provider without one
	KEK        string // id of the key that Credential is sealed under
	KeyVersion int    // from 1; raised by each RotateCredential

	Active  bool
	Created time.Time
}

// Limits of a profile; 0 means none.
type Limits struct {
	RequestsPerMinute int64
	TokensPerDay      int64 // of a UTC day, in and out together
}

// Prices in millionths of the tenant's currency per million tokens.
type Prices struct {
	In  int64
	Out int64
}

// Reservation is room taken in a profile's limits before a call. Its tokens stay counted until Settle; if that never
// comes, until the end of the day.
type Reservation struct {
	Profile string
	Day     string // "2026-11-30", UTC
	Tokens  int64
}

// Spent is what a call did cost.
type Spent struct {
	Host      string
	Task      string // "" for a call outside a task
	TokensIn  int64
	TokensOut int64
}

// Usage is one row of the accounts.
type Usage struct {
	Day       string // "2026-11-30", UTC
	Host      string
	Task      string
	Profile   string
	Requests  int64
	TokensIn  int64
	TokensOut int64
	Cost      int64 // millionths of the currency, rounded up per call
}

// UsageQuery selects rows of the accounts; empty fields select all.
type UsageQuery struct {
	From, To   string // days, both included
	Host, Task string
	Profile    string
}
