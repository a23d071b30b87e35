package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// attempt is the state of one Run.
type attempt struct {
	*Runner
	limits  Limits
	task    Task
	tools   *tools.Registry
	offer   []planner.Tool
	system  string // prompt
	fixed   int    // tokens of what is the same in every question
	log     *slog.Logger
	now     func() time.Time
	started time.Time
	diary   *record.Writer
	mask    record.Mask

	scene   *perception.Scene // to decide on; nil: look first
	began   time.Time         // when the newest look began
	seen    time.Time         // when it was over
	looks   int               // begun
	looking time.Duration     // spent on scene beyond the step before
	asked   question          // the newest one
	down    *outage           // the planner is out of reach; nil: it is not
	show    bool              // a picture goes with the next question

	past    []string // lines of the prompt, as many as it shows
	notes   []string // for the next prompt only
	learned learned  // results and answers

	loops     loopDetector
	still     int            // acts in a row that changed nothing
	calmed    bool           // animations were stopped, or could not be
	wakes     int            // of the phone
	popups    map[string]int // presses, by popup
	pressed   int            // presses in all
	failures  int            // turns in a row without an answer
	malformed int            // turns in a row with an answer that cannot be used

	steps  int // of the record
	turns  int // of the planner
	tokens int
	wrote  bool
	apps   []string
	state  State
}

func newAttempt(r *Runner, task Task) *attempt {
	a := &attempt{
		Runner: r, limits: r.Limits.withDefaults(), task: task, tools: cmp.Or(r.Registry, defaultTools),
		now: r.Clock, log: r.Logger, mask: record.NewMask(task.Params), popups: map[string]int{}, state: Running, system: systemPrompt,
	}
	if r.Pictures == PicturesMarked {
		a.system += marksPrompt
	}
	if task.Result != nil {
		a.system += resultPrompt
	}
	a.system += task.Knowledge
	a.limits.Steps = cmp.Or(task.MaxSteps, a.limits.Steps)
	a.limits.Tokens = cmp.Or(task.Tokens, a.limits.Tokens)
	if r.Ask == nil {
		a.tools = a.tools.Where(func(t tools.Tool) bool { return t.Name != "ask_human" })
	}
	a.offer = a.tools.Offer(task.Permissions...)
	a.fixed = perception.Tokens(a.system) + toolTokens(a.offer)
	if a.now == nil {
		a.now = time.Now
	}
	a.started = a.now()
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.log = a.log.With("slot", a.Slot, "phone", a.Phone, "task", task.ID, "attempt", task.Attempt)
	return a
}

var defaultTools = tools.Default()

// header is what the trajectory begins with.
func (a *attempt) header() record.Task {
	phone := a.Device
	phone.Name = cmp.Or(phone.Name, a.Phone)
	var schema json.RawMessage
	if a.task.Result != nil {
		schema = json.RawMessage(a.task.Result.String())
	}
	return record.Task{
		ResultSchema: schema,
		ID:           a.task.ID, Attempt: a.task.Attempt, Goal: a.task.Goal, Params: slices.Sorted(maps.Keys(a.task.Params)),
		Permissions: a.task.Permissions, Skills: a.task.Skills, MaxSteps: a.limits.Steps, MaxTokens: a.limits.Tokens, Popups: !a.task.KeepPopups,
		Slot: a.Slot, Phone: phone, Rack: a.Rack, Started: a.started,
	}
}

// loop takes turns until the attempt ends.
func (a *attempt) loop(ctx context.Context) Result {
	for {
		end := a.ready(ctx)
		if end == nil {
			end = a.turn(ctx)
		}
		if end != nil {
			end.Steps, end.Tokens, end.Wrote, end.Apps = a.turns, a.tokens, a.wrote, a.apps
			return *end
		}
	}
}

// ready brings a scene to decide on and a question that can be paid for, or the
// end. Popups that are in the way of the scene are closed.
func (a *attempt) ready(ctx context.Context) *Result {
	for a.turns < a.limits.Steps {
		if a.scene == nil {
			begun := time.Now()
			scene, err := a.lookAnew(ctx)
			a.looking += time.Since(begun)
			if err != nil {
				return a.ended(wire.From(err))
			}
			a.scene = scene
		}
		a.front(a.scene)
		done, end := a.prepareScreen(ctx)
		if !done {
			done, end = a.closePopup(ctx)
		}
		if end != nil {
			return end
		}
		if !done {
			return a.prepare()
		}
	}
	return a.ended(wire.Refuse(wire.BudgetSpent, map[string]any{"steps": a.limits.Steps}))
}

// maxApps bounds Result.Apps.
const maxApps = 40

// front notes what is in front.
func (a *attempt) front(s *perception.Scene) {
	if s.Package != "" && len(a.apps) < maxApps && !slices.Contains(a.apps, s.Package) {
		a.apps = append(a.apps, s.Package)
	}
}

// tell tells a new state.
func (a *attempt) tell(s State) {
	if s == a.state {
		return
	}
	a.state = s
	a.log.Info("attempt", "state", s)
	if a.OnState != nil {
		a.OnState(s)
	}
}

// begin makes the record of a step on the present scene.
func (a *attempt) begin() *Step {
	step := &Step{N: a.steps + 1, At: a.now()}
	step.Times.Observe = a.looking.Milliseconds()
	a.looking = 0
	see(step, a.scene)
	return step
}

// note records a step that began with scene, and tells it. It is the last thing
// that is done with the step.
func (a *attempt) note(step *Step, scene *perception.Scene) {
	a.steps++
	if step.Kind == record.Turn || step.Kind == record.Failed {
		a.turns++
	}
	step.Times.All = max(a.now().Sub(step.At).Milliseconds()-step.Times.Waited, 0)
	if step.Tool == "input_text" && step.Target == "" { // it may have been meant for a password field
		step.Arguments = withoutText(step.Arguments)
	}
	a.past = append(a.past, pastLine(step))
	a.past = a.past[max(0, len(a.past)-a.limits.History):]

	var picture []byte
	if scene.Picture != nil {
		picture = scene.Picture.JPEG
	}
	kept := *step
	a.hide(&kept)
	if a.diary != nil {
		kept.Scene = a.mask.Scene(scene)
	}
	a.diary.Add(&kept, picture)
	a.log.Info("step", "n", step.N, "kind", step.Kind, "tool", step.Tool, "outcome", step.Outcome, "effect", step.Effect, "code", step.Code())
	if a.OnStep != nil {
		a.OnStep(kept)
	}
}

// hide puts names in the place of values.
func (a *attempt) hide(s *Step) {
	s.Arguments = a.mask.JSON(s.Arguments)
	s.Refusal = a.mask.Refusal(s.Refusal)
	s.Target, s.Changes = a.mask.Line(s.Target), a.mask.Lines(s.Changes)
	s.Result, s.Message = a.mask.Text(s.Result), a.mask.Text(s.Message)
}
