package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// noTaskRetry is when a slot without a task asks again.
const noTaskRetry = 5 * time.Second

// Bounds of what a rack reports.
const (
	maxSlots    = 999
	maxQuestion = 8 << 10 // bytes
	maxChoices  = 20
)

// Claim gives a slot a task under a lease, or none: then lease is nil.
func (f *Fleet) Claim(ctx context.Context, c enroll.Caller, b wire.Claim) (lease *wire.Lease, none *wire.NoTask, err error) {
	l, ok, err := f.store.Claim(ctx, c.Scope(), store.Claim{
		Host: c.Rack, Slot: b.Slot, Phone: b.Phone, Apps: b.Apps, ID: b.ClaimID, SkillsVersion: b.SkillsVersion, Lease: wire.LeaseTime,
	})
	if err != nil {
		return nil, nil, claimRefusal(err, b.ClaimID)
	}
	if !ok {
		return nil, &wire.NoTask{RetryAfterMS: noTaskRetry.Milliseconds()}, nil
	}
	task, err := wireTask(l.Task)
	if err != nil {
		return nil, nil, Refusal(err)
	}
	return &wire.Lease{Task: task, Attempt: l.Attempt.Attempt, LeaseMS: wire.LeaseTime.Milliseconds(), ClaimID: l.Attempt.ClaimID}, nil, nil
}

func claimRefusal(err error, claim string) error {
	err = ofRack(err, "", 0)
	if wire.Is(err, wire.RequestConflict) || wire.Is(err, wire.AttemptOver) {
		return wire.From(err).With(map[string]any{"request": claim})
	}
	return err
}

// Renew prolongs a lease.
func (f *Fleet) Renew(ctx context.Context, c enroll.Caller, b wire.Renew) (wire.Renewed, error) {
	_, err := f.store.Renew(ctx, c.Scope(), c.Rack, store.Ref{Task: b.TaskID, Attempt: b.Attempt}, wire.LeaseTime)
	return wire.Renewed{LeaseMS: wire.LeaseTime.Milliseconds()}, ofRack(err, b.TaskID, b.Attempt)
}

// Release takes a task back before its first write.
func (f *Fleet) Release(ctx context.Context, c enroll.Caller, b wire.Release) (wire.Ack, error) {
	cause, err := marshalRefusal(b.Error)
	if err != nil {
		return wire.Ack{}, err
	}
	ref := store.Ref{Task: b.TaskID, Attempt: b.Attempt}
	if b.Error != nil && b.Error.Retryable { // a slot that somebody holds must not keep the task from its rack for good
		return wire.Ack{}, ofRack(f.store.ReleaseForNow(ctx, c.Scope(), c.Rack, ref, cause), b.TaskID, b.Attempt)
	}
	skills := b.SkillsVersion
	if skills == "" {
		h, err := f.store.Host(ctx, c.Scope(), c.Rack)
		if err != nil {
			return wire.Ack{}, ofRack(err, "", 0)
		}
		skills = h.SkillsVersion
	}
	err = f.store.Release(ctx, c.Scope(), c.Rack, ref, skills, cause)
	return wire.Ack{}, ofRack(err, b.TaskID, b.Attempt)
}

// Heartbeat notes what a rack does and answers what it should be doing. Commands that it has not taken yet are pushed to
// it once more.
func (f *Fleet) Heartbeat(ctx context.Context, c enroll.Caller, b wire.Heartbeat) (wire.Sync, error) {
	if len(b.Slots) > maxSlots || len(b.Running) > maxSlots {
		return wire.Sync{}, bad("more than %d slots are reported", maxSlots)
	}
	slots, err := json.Marshal(b.Slots)
	if err != nil {
		return wire.Sync{}, bad("the slots cannot be stored")
	}
	h := store.Heartbeat{Host: c.Rack, Slots: slots, SkillsVersion: b.SkillsVersion}
	for _, r := range b.Running {
		h.Running = append(h.Running, store.RunningAttempt{Ref: store.Ref{Task: r.TaskID, Attempt: r.Attempt}, Wrote: r.Wrote, Ended: r.Ended, Answered: r.Answered})
	}
	s, err := f.store.Heartbeat(ctx, c.Scope(), h)
	if err != nil {
		return wire.Sync{}, ofRack(err, "", 0)
	}
	f.remind(ctx, c)
	return f.sync(s), nil
}

func (f *Fleet) sync(s store.Sync) wire.Sync {
	out := wire.Sync{Leases: []wire.LeaseRef{}, Cancel: attempts(s.Cancel), Unknown: attempts(s.Unknown)}
	now := f.clock()
	for _, l := range s.Leases {
		a := l.Attempt
		left := max(0, a.Until.Sub(now).Milliseconds())
		out.Leases = append(out.Leases, wire.LeaseRef{TaskID: a.Task, Attempt: a.Attempt, LeaseMS: left})
		if answer, ok := answerOf(a); ok {
			out.Answers = append(out.Answers, answer)
		}
	}
	return out
}

func attempts(refs []store.Ref) []wire.AttemptRef {
	out := make([]wire.AttemptRef, len(refs))
	for i, r := range refs {
		out[i] = wire.AttemptRef{TaskID: r.Task, Attempt: r.Attempt}
	}
	return out
}

// Ask stores a question to a person.
func (f *Fleet) Ask(ctx context.Context, c enroll.Caller, b wire.Question) (wire.Ack, error) {
	if b.Text == "" || len(b.Text) > maxQuestion || len(b.Choices) > maxChoices {
		return wire.Ack{}, bad("a question has 1 to %d bytes and at most %d choices", maxQuestion, maxChoices)
	}
	body, err := stored(questionBody{b.Text, b.Choices})
	if err != nil {
		return wire.Ack{}, bad("the question cannot be stored")
	}
	err = f.store.Ask(ctx, c.Scope(), c.Rack, store.Ref{Task: b.TaskID, Attempt: b.Attempt}, store.Question{ID: b.QuestionID, Body: body})
	return wire.Ack{}, ofRack(err, b.TaskID, b.Attempt)
}

// Result ends an attempt as its rack says. A second one, or one that comes too late, is acknowledged and ignored.
func (f *Fleet) Result(ctx context.Context, c enroll.Caller, b wire.Result) (wire.Ack, error) {
	result, err := stored(resultBody{b.Message, b.Tokens, b.Result})
	if err != nil {
		return wire.Ack{}, bad("the result cannot be stored")
	}
	cause, err := marshalRefusal(b.Error)
	if err != nil {
		return wire.Ack{}, err
	}
	outcome := store.TaskState(b.Outcome)
	switch b.Outcome {
	case wire.Succeeded:
		unfit, err := f.unfit(ctx, c, b)
		if err != nil {
			return wire.Ack{}, ofRack(err, b.TaskID, b.Attempt)
		}
		if unfit != nil {
			outcome = store.Failed
			if cause, err = marshalRefusal(unfit); err != nil {
				return wire.Ack{}, err
			}
		}
	case wire.Failed, wire.Cancelled, wire.Lost:
	default:
		return wire.Ack{}, bad("the outcome %.40q is not known", string(b.Outcome))
	}
	ack, err := f.store.SetResult(ctx, c.Scope(), store.Result{
		Ref: store.Ref{Task: b.TaskID, Attempt: b.Attempt}, Host: c.Rack, Outcome: outcome, Wrote: b.Wrote, Steps: b.Steps, Result: result, Error: cause,
	})
	return wire.Ack{Ignored: !ack.Applied}, ofRack(err, b.TaskID, b.Attempt)
}

// unfit tells why a success does not count: its result is not what its task wants. Racks look at that themselves; nobody
// has to believe them.
func (f *Fleet) unfit(ctx context.Context, c enroll.Caller, b wire.Result) (*wire.Refusal, error) {
	t, err := f.store.Task(ctx, c.Scope(), b.TaskID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // and the store says so in its own words
	}
	if err != nil {
		return nil, err
	}
	w, err := wireTask(t)
	if err != nil {
		return nil, err
	}
	schema, err := resultschema.Parse(w.ResultSchema)
	if err != nil {
		return nil, err
	}
	if e, ok := errors.AsType[*resultschema.Error](schema.Check(b.Result)); ok {
		return wire.Refuse(wire.ResultMismatch, map[string]any{"path": e.Path, "reason": e.Reason}), nil
	}
	return nil, nil
}

// questionBody and resultBody are what the store keeps of a question and of a result.
type questionBody struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices,omitempty"`
}

type resultBody struct {
	Message string          `json:"message,omitempty"`
	Tokens  int             `json:"tokens,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// answerOf gives the answer of an attempt's newest question, if a person has given one.
func answerOf(a store.Attempt) (wire.Answer, bool) {
	var text string
	if len(a.Answer) == 0 || json.Unmarshal(a.Answer, &text) != nil {
		return wire.Answer{}, false
	}
	return wire.Answer{TaskID: a.Task, Attempt: a.Attempt, QuestionID: a.QuestionID, Text: text}, true
}

// stored is JSON as the store keeps it. Without the escapes for HTML it is no longer than what the rack has sent: with them, each
// "<" has six bytes, and a result that is allowed on the wire could not be stored.
func stored(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func marshalRefusal(r *wire.Refusal) (json.RawMessage, error) {
	if r == nil {
		return nil, nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, bad("the error cannot be stored")
	}
	return raw, nil
}

// wireTask is a task as its rack gets it.
func wireTask(t store.Task) (wire.Task, error) {
	var w wire.Task
	if err := wire.Unmarshal(t.Body, &w); err != nil {
		return w, err
	}
	w.TaskID = t.ID
	return w, nil
}

func fromMS(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
