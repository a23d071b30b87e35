package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// Observer looks at the phone; *perception.Observer implements it.
type Observer interface {
	Observe(ctx context.Context, want perception.Want) (*perception.Scene, error)
}

// Runner works on tasks with one phone, one at a time.
type Runner struct {
	Observer Observer
	Controls tools.Controls // under the lease of the task
	Planner  planner.Planner
	Registry *tools.Registry // tools.Default() if nil

	// What tools may need beyond the screen, as in tools.Env; each may be nil.
	Reads     tools.Reads
	Documents tools.Documents
	Keep      func(name string, r io.Reader) (string, error)
	Install   func(ctx context.Context, name string) (io.ReadCloser, int64, error)

	// Ask puts a question to a person. It blocks until one has answered or ctx
	// ends; nil: planners are not offered to ask.
	Ask func(ctx context.Context, q tools.Question) (string, error)

	Slot       int             // for refusals and the trajectory
	Phone      string          // the same: what the phone is called, such as model and serial
	Device     record.Phone    // for the trajectory
	Rack       string          // the same: version of the program
	Gone       <-chan struct{} // closed by its owner when the phone's connection ends; may be nil
	Pictures   Pictures        // which screens the planner is sent a picture of
	Trajectory string          // folder, made if needed; "" keeps no trajectory

	// Expect tells whether a screen that rests is the one that step n of the record
	// is to be decided on; it is given the limit for settling to become that. nil:
	// any screen is.
	Expect func(n int, scene *perception.Scene) bool

	Limits  Limits
	Clock   func() time.Time // for timestamps; time.Now if nil
	Logger  *slog.Logger     // nothing is logged if nil
	OnStep  func(Step)       // called by Run after each step, with values of parameters masked; may be nil
	OnState func(State)      // called by Run when the attempt stands still and when it goes on; may be nil
}

// Step is what OnStep tells.
type Step = record.Step

// NotKept stands for text that is not written down.
const NotKept = record.NotKept

// State says whether an attempt goes on.
type State string

// States of an attempt that has not ended.
const (
	Running State = "running"
	Waiting State = "waiting" // for a person's answer
	Paused  State = "paused"  // the planner is out of reach
)

// Pictures says which screens the planner is sent a picture of.
type Pictures string

// Pictures that the planner is sent.
const (
	PicturesNeeded Pictures = "needed" // of screens without elements, and after take_screenshot; so is ""
	PicturesAlways Pictures = "always" // of each screen that a picture can be taken of
	PicturesMarked Pictures = "marked" // the same, with the elements' indices or a grid drawn on it
)

// Limits bound a run. A zero field has the value in its comment.
type Limits struct {
	Steps           int           // 30 turns of the planner; Task.MaxSteps goes before it
	Tokens          int           // no bound; Task.Tokens goes before it
	Decide          time.Duration // 60 s, for the planner's answer
	Outage          time.Duration // 15 min, for a planner that is out of reach to come back
	PlannerFailures int           // 4 failed turns in a row end the task
	Malformed       int           // 3 unusable answers in a row end the task
	Observations    int           // 3 attempts to look
	Look            time.Duration // 90 s, for all of them
	Settle          time.Duration // 6 s, until an act's effect counts as all there is
	Fresh           time.Duration // 5 s: before a touch, an older scene is looked at again
	History         int           // 12 past steps in the prompt
	RepeatsTold     int           // 3 times the same act on the same screen: the planner is told
	RepeatsFailed   int           // 5 times: the task ends
	CirclesTold     int           // 2 times round the same two or three acts: the planner is told
	CirclesFailed   int           // 4 times: the task ends
	NoChangeTold    int           // 4 acts in a row that change nothing: the planner is told
	NoChangeFailed  int           // 8 in a row: the task ends
	Popups          int           // 10 presses of watchers in all
	SamePopup       int           // 3 presses of a watcher for the same popup
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.Steps, 30},
		{&l.PlannerFailures, 4},
		{&l.Malformed, 3},
		{&l.Observations, 3},
		{&l.History, 12},
		{&l.RepeatsTold, 3},
		{&l.RepeatsFailed, 5},
		{&l.CirclesTold, 2},
		{&l.CirclesFailed, 4},
		{&l.NoChangeTold, 4},
		{&l.NoChangeFailed, 8},
		{&l.Popups, 10},
		{&l.SamePopup, 3},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.Decide, time.Minute},
		{&l.Outage, 15 * time.Minute},
		{&l.Look, 90 * time.Second},
		{&l.Settle, 6 * time.Second},
		{&l.Fresh, 5 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

// Task is what has to be done.
type Task struct {
	ID          string // "" and Attempt 0 for work outside a task
	Attempt     int
	Goal        string
	Params      map[string]string
	Permissions []string             // of tools.Permissions
	MaxSteps    int                  // 0: the runner's limit
	Tokens      int                  // 0: the runner's limit
	Deadline    time.Time            // zero: none
	Result      *resultschema.Schema // of what a success brings; nil: anything
	KeepPopups  bool                 // no watcher closes anything: the planner sees every popup

	Skills    []string     // that the task names, for the trajectory
	Knowledge string       // what they say, for the system prompt; "" for nothing
	Allowed   func() error // asked before each question: why the attempt may not go on with them; nil: it may
}

// Outcome is how an attempt ended.
type Outcome string

// Outcomes of an attempt.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Result of an attempt.
type Result struct {
	Outcome Outcome         `json:"outcome"`
	Message string          `json:"message"`           // the planner's own, or the refusal's sentence in English
	Object  json.RawMessage `json:"object,omitempty"`  // the planner's result object
	Steps   int             `json:"steps"`             // turns taken, failed ones included
	Tokens  int             `json:"tokens"`            // spent, as the planner counts or as estimated
	Wrote   bool            `json:"wrote"`             // something was sent to the phone, or may have been
	Apps    []string        `json:"apps,omitempty"`    // packages that were in front, in the order of their appearance
	Refusal *wire.Refusal   `json:"refusal,omitempty"` // why it did not succeed
}

// Run works on the task until it ends. It blocks; ctx ends it with the outcome
// Cancelled, or Failed if the cause of ctx's end is a refusal about the phone.
// The result counts also with an error, which is about the task's form
// (wire.BadRequest; nothing was done) or about writing the trajectory.
func (r *Runner) Run(ctx context.Context, task Task) (Result, error) {
	if err := task.Check(); err != nil {
		return Result{Outcome: Failed, Message: err.Error(), Refusal: wire.From(err)}, err
	}
	a := newAttempt(r, task)
	var err error
	if a.diary, err = record.Create(r.Trajectory, a.header(), a.mask); err != nil {
		code := wire.Internal
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			code = wire.RackFull
		}
		refusal := wire.Refuse(code, nil).Because(err)
		return Result{Outcome: Failed, Message: refusal.Error(), Refusal: refusal}, err
	}

	ctx, stop := a.bound(ctx)
	result := a.loop(ctx)
	stop()

	// The mask of now also knows what people have answered.
	end := record.End{
		At: a.now(), Outcome: string(result.Outcome), Message: a.mask.Text(result.Message),
		Steps: result.Steps, Tokens: result.Tokens, Wrote: result.Wrote, Refusal: a.mask.Refusal(result.Refusal),
	}
	a.log.Info("task ended", "outcome", end.Outcome, "steps", end.Steps, "tokens", end.Tokens, "message", end.Message)
	err = a.diary.Close(end)
	return result, err
}

// Bounds of a task's own words.
const (
	maxGoal   = 4000
	maxParams = 50
)

// Check refuses a task of bad form, as Run does, with wire.BadRequest.
func (t Task) Check() error {
	reason := ""
	switch {
	case t.Goal == "":
		reason = "the task has no goal"
	case len(t.Goal) > maxGoal:
		reason = "the goal is too long"
	case len(t.Params) > maxParams:
		reason = "the task has too many parameters"
	case (t.ID == "") != (t.Attempt == 0):
		reason = "task id and attempt have to be there together"
	case t.MaxSteps < 0 || t.Tokens < 0:
		reason = "a budget is below zero"
	}
	for name, value := range t.Params {
		if !paramName.MatchString(name) {
			reason = fmt.Sprintf("the parameter name %.60q is not of the form a_b_c: small letters, digits and _, a letter first", name)
		}
		if len(value) > maxGoal {
			reason = fmt.Sprintf("the parameter %.60q is longer than %d bytes", name, maxGoal)
		}
	}
	for _, p := range t.Permissions {
		if !slices.Contains(tools.Permissions(), p) {
			reason = fmt.Sprintf("there is no permission %.60q", p)
		}
	}
	if reason == "" {
		return nil
	}
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
}
