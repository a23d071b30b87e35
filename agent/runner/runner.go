package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
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

	Slot       int             // for refusals and the trajectory
	Phone      string          // the same: what the phone is called, such as model and serial
	Gone       <-chan struct{} // closed by its owner when the phone's connection ends; may be nil
	Screens    bool            // send the planner a picture of each screen
	Trajectory string          // folder, made if needed; "" keeps no trajectory

	Limits Limits
	Clock  func() time.Time // for timestamps; time.Now if nil
	Logger *slog.Logger     // nothing is logged if nil
	OnStep func(Step)       // called by Run after each turn; may be nil
}

// Limits bound a run. A zero field has the value in its comment.
type Limits struct {
	Steps           int           // 30; Task.MaxSteps goes before it
	Decide          time.Duration // 60 s, for the planner's answer
	PlannerFailures int           // 4 failed turns in a row end the task
	Malformed       int           // 3 unusable answers in a row end the task
	Observations    int           // 3 attempts to look
	Settle          time.Duration // 6 s, until an act's effect counts as all there is
	History         int           // 12 past turns in the prompt
	RepeatsTold     int           // 3 times the same act on the same screen: the planner is told
	RepeatsFailed   int           // 5 times: the task ends
}

// Pauses of the loop.
const (
	pollPause    = 300 * time.Millisecond  // between two looks at a screen that settles
	reactionTime = 1200 * time.Millisecond // given to a screen that does not change at all
	lookPause    = time.Second             // before a failed look is repeated, times the attempt
	backOff      = time.Second             // after a failed turn, doubled for each in a row
	maxBackOff   = 30 * time.Second
)

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
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if l.Decide <= 0 {
		l.Decide = 60 * time.Second
	}
	if l.Settle <= 0 {
		l.Settle = 6 * time.Second
	}
	return l
}

// Task is what has to be done.
type Task struct {
	ID       string // "" and Attempt 0 for work outside a task
	Attempt  int
	Goal     string
	Params   map[string]string
	MaxSteps int       // 0: the runner's limit
	Deadline time.Time // zero: none
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
	Outcome Outcome       `json:"outcome"`
	Message string        `json:"message"`           // the planner's own, or the refusal's sentence in English
	Steps   int           `json:"steps"`             // turns taken, failed ones included
	Wrote   bool          `json:"wrote"`             // something was sent to the phone, or may have been
	Refusal *wire.Refusal `json:"refusal,omitempty"` // why it did not succeed
}

// Run works on the task until it ends. It blocks; ctx ends it with the outcome
// Cancelled, or Failed if the cause of ctx's end is a refusal about the phone.
// The result counts also with an error, which is about the task's form
// (wire.BadRequest; nothing was done) or about writing the trajectory.
func (r *Runner) Run(ctx context.Context, task Task) (Result, error) {
	if err := task.Check(); err != nil {
		return Result{Outcome: Failed, Message: err.Error(), Refusal: wire.From(err)}, err
	}
	a := &attempt{Runner: r, limits: r.Limits.withDefaults(), task: task}
	if task.MaxSteps > 0 {
		a.limits.Steps = task.MaxSteps
	}
	a.fillIn()
	var err error
	if a.diary, err = openTrajectory(r.Trajectory); err != nil {
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

	a.log.Info("task ended", "outcome", result.Outcome, "steps", result.Steps, "message", result.Message)
	err = a.diary.close(page{
		Goal: task.Goal, Task: task.ID, Attempt: task.Attempt, Slot: r.Slot, Phone: r.Phone,
		Started: a.started, Ended: a.now(), Result: result,
	})
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
	}
	for name, value := range t.Params {
		if !paramName.MatchString(name) {
			reason = fmt.Sprintf("the parameter name %.60q is not of the form a_b_c: small letters, digits and _, a letter first", name)
		}
		if len(value) > maxGoal {
			reason = fmt.Sprintf("the parameter %.60q is longer than %d bytes", name, maxGoal)
		}
	}
	if reason == "" {
		return nil
	}
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
}

// bound ends ctx at the deadline and when the phone is gone. stop releases what
// it holds and waits for it.
func (a *attempt) bound(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := func() {}
	if !a.task.Deadline.IsZero() {
		ctx, release = context.WithDeadlineCause(ctx, a.task.Deadline,
			wire.Refuse(wire.DeadlinePassed, map[string]any{"deadline": a.task.Deadline}))
	}
	watcher := make(chan struct{}) // closed by the goroutine below
	go func() {
		defer close(watcher)
		select {
		case <-a.Gone:
			cancel(wire.Refuse(wire.PhoneLost, map[string]any{"slot": a.Slot, "serial": a.Phone}))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watcher
		release()
	}
}

// whyEnded tells what ended ctx.
func (a *attempt) whyEnded(ctx context.Context) *wire.Refusal {
	if r, ok := errors.AsType[*wire.Refusal](context.Cause(ctx)); ok {
		return r
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return wire.Refuse(wire.DeadlinePassed, nil)
	}
	return wire.Refuse(wire.TaskCancelled, map[string]any{"task": a.task.ID})
}

// ended makes the result of a run that did not succeed.
func (a *attempt) ended(refusal *wire.Refusal) *Result {
	outcome := Failed
	switch refusal.Code {
	case wire.TaskCancelled, wire.ShuttingDown:
		outcome = Cancelled
	}
	return &Result{Outcome: outcome, Message: refusal.Error(), Refusal: refusal}
}

// final tells whether a refusal leaves nothing to try on this phone under this
// lease.
func final(code wire.Code) bool {
	switch code {
	case wire.NotLeased, wire.AttemptOver, wire.SlotBusy, wire.TaskCancelled, wire.ShuttingDown, wire.NotYourTask,
		wire.PhoneLost, wire.PhoneOffline, wire.PhoneUnauthorized, wire.PhoneSetup, wire.SlotEmpty, wire.SlotUnknown,
		wire.DeadlinePassed:
		return true
	}
	return false
}
