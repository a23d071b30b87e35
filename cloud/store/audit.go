package store

import (
	"encoding/json"
	"time"
)

// Audit is one thing that somebody did.
type Audit struct {
	ID     int64
	At     time.Time
	Actor  string
	Verb   string // "host.create", "task.cancel" ...
	Object string // id of the record; "task/attempt" of an attempt
	Detail json.RawMessage
}
