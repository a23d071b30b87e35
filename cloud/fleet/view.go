package fleet

import (
	"encoding/json"
	"time"

	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// What operators see. Times are milliseconds since the epoch, 0 for none.

// Host is a rack.
type Host struct {
	Rack          string            `json:"rack_id"`
	Name          string            `json:"name,omitempty"`
	Tags          []string          `json:"tags,omitempty"`
	Created       int64             `json:"created"`
	Revoked       int64             `json:"revoked,omitempty"`
	Presence      string            `json:"presence"`
	LastSeen      int64             `json:"last_seen,omitempty"`
	Generation    int64             `json:"generation"`
	Session       int64             `json:"session"`
	Boot          string            `json:"boot,omitempty"`
	Versions      map[string]string `json:"versions,omitempty"`
	SkillsVersion string            `json:"skills_version,omitempty"`
	Slots         []wire.SlotReport `json:"slots,omitempty"`
	Settings      *Settled          `json:"settings,omitempty"` // with a single rack only; nil if nothing is set for it here
}

// Settled tells how far a rack is with what it should be set to; [Fleet.Configuration] tells what that is.
type Settled struct {
	Version int64 `json:"version"`
	Applied int64 `json:"applied"` // version that the rack says it has applied
}

// Task is a task with where it stands. Attempts and the open question come with a single task only.
type Task struct {
	wire.Task
	State    wire.TaskState `json:"state"`
	Attempt  int            `json:"attempt"` // the number in force; 0 before the first claim
	Tries    int            `json:"tries"`
	Cancel   bool           `json:"cancel,omitempty"` // the rack has not reported the end yet
	Created  int64          `json:"created"`
	Ended    int64          `json:"ended,omitempty"`
	Error    *wire.Refusal  `json:"error,omitempty"` // why the cloud itself ended it
	Question *Question      `json:"question,omitempty"`
	Attempts []Attempt      `json:"attempts,omitempty"`
}

// Question is one that waits for a person.
type Question struct {
	QuestionID string   `json:"question_id"`
	Text       string   `json:"text"`
	Choices    []string `json:"choices,omitempty"`
}

// Attempt is a task tried once. Wrote is absent while nobody knows.
type Attempt struct {
	Attempt int             `json:"attempt"`
	Rack    string          `json:"rack_id"`
	Slot    int             `json:"slot"`
	Phone   string          `json:"phone,omitempty"`
	State   string          `json:"state"`
	Started int64           `json:"started"`
	Until   int64           `json:"until"`
	Ended   int64           `json:"ended,omitempty"`
	Wrote   *bool           `json:"wrote,omitempty"`
	Steps   int             `json:"steps,omitempty"`
	Tokens  int             `json:"tokens,omitempty"`
	Outcome string          `json:"outcome,omitempty"`
	Message string          `json:"message,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *wire.Refusal   `json:"error,omitempty"`
}

// Command is a command with where it stands.
type Command struct {
	CommandID string            `json:"command_id"`
	Rack      string            `json:"rack_id"`
	Slot      int               `json:"slot,omitempty"`
	Seq       int64             `json:"seq"`
	Name      string            `json:"name"`
	Args      json.RawMessage   `json:"args,omitempty"`
	State     wire.CommandState `json:"state"`
	Version   int64             `json:"version"`
	Progress  int               `json:"progress,omitempty"`
	Detail    json.RawMessage   `json:"detail,omitempty"`
	Error     *wire.Refusal     `json:"error,omitempty"`
	Created   int64             `json:"created"`
	Updated   int64             `json:"updated"`
	Expires   int64             `json:"expires"`
	Sent      int64             `json:"sent,omitempty"`
}

// Event is something that happened on a rack.
type Event struct {
	Rack    string          `json:"rack_id"`
	Kind    string          `json:"kind"`
	Slot    int             `json:"slot,omitempty"`
	Phone   string          `json:"phone,omitempty"`
	At      int64           `json:"at"`
	Got     int64           `json:"got"`
	Detail  json.RawMessage `json:"detail,omitempty"`
	Dropped int64           `json:"dropped,omitempty"`
}

// Audit is one thing that somebody did.
type Audit struct {
	At     int64           `json:"at"`
	Actor  string          `json:"actor"`
	Verb   string          `json:"verb"`
	Object string          `json:"object,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// views makes a list that is never null in JSON.
func views[A, B any](all []A, view func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = view(a)
	}
	return out
}

func viewHost(h store.Host) Host {
	v := Host{
		Rack: h.ID, Name: h.Name, Tags: h.Tags, Created: toMS(h.Created), Revoked: toMS(h.Revoked), Presence: string(h.Presence),
		LastSeen: toMS(h.LastSeen), Generation: h.Generation, Session: h.Session, Boot: h.Boot, SkillsVersion: h.SkillsVersion,
	}
	// Both were written by this package; what cannot be read is left out.
	_ = json.Unmarshal(h.Versions, &v.Versions)
	_ = json.Unmarshal(h.Slots, &v.Slots)
	return v
}

// longSilence is that of about twenty heartbeats.
const longSilence = 5 * time.Minute

// seen is a rack as it is shown. What says that one is gone is its will, which a broker that died with it never published, and
// which a host over HTTP does not have: one that was not heard of for long is not there.
func (f *Fleet) seen(h store.Host) Host {
	v := viewHost(h)
	if f.clock().Sub(h.LastSeen) > longSilence {
		v.Presence = string(wire.Offline)
	}
	return v
}

func viewTask(t store.Task) Task {
	v := Task{
		State: wire.TaskState(t.State), Attempt: t.Attempt, Tries: t.Tries, Cancel: t.Cancel, Created: toMS(t.Created), Ended: toMS(t.Ended),
		Error: viewRefusal(t.Error),
	}
	v.Task, _ = wireTask(t) // Submit has checked it
	v.TaskID = t.ID
	return v
}

func viewAttempt(a store.Attempt) Attempt {
	v := Attempt{
		Attempt: a.Attempt, Rack: a.Host, Slot: a.Slot, Phone: a.Phone, State: string(a.State), Started: toMS(a.Started), Until: toMS(a.Until),
		Ended: toMS(a.Ended), Wrote: a.Wrote, Steps: a.Steps, Outcome: a.Outcome, Error: viewRefusal(a.Error),
	}
	var r resultBody
	if json.Unmarshal(a.Result, &r) == nil {
		v.Message, v.Tokens, v.Result = r.Message, r.Tokens, r.Result
	}
	return v
}

func viewCommand(c store.Command) Command {
	v := Command{
		CommandID: c.ID, Rack: c.Host, Slot: c.Slot, Seq: c.Seq, Name: c.Name, Args: c.Args, State: c.State, Version: c.Version,
		Created: toMS(c.Created), Updated: toMS(c.Updated), Expires: toMS(c.Expires), Sent: toMS(c.Sent),
	}
	var s statusBody
	if json.Unmarshal(c.Detail, &s) == nil {
		v.Detail, v.Error = s.Detail, s.Error
	}
	_ = json.Unmarshal(c.Progress, &v.Progress)
	return v
}

func viewEvent(e store.Event) Event {
	return Event{Rack: e.Host, Kind: e.Kind, Slot: e.Slot, Phone: e.Phone, At: toMS(e.At), Got: toMS(e.Got), Detail: e.Detail, Dropped: e.Dropped}
}

func viewAudit(a store.Audit) Audit {
	return Audit{At: toMS(a.At), Actor: a.Actor, Verb: a.Verb, Object: a.Object, Detail: a.Detail}
}

func viewRefusal(raw json.RawMessage) *wire.Refusal {
	var r wire.Refusal
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return nil
	}
	return &r
}
