package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/runner"
	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// Phone is the phone that the record is taken again on. Source and Controls must
// be there; the rest is what runner.Runner takes of the same name.
type Phone struct {
	Source    perception.Source
	Controls  tools.Controls
	Reads     tools.Reads
	Documents tools.Documents
	Keep      func(name string, r io.Reader) (string, error)
	Install   func(ctx context.Context, name string) (io.ReadCloser, int64, error)
}

// Options of Run; the zero value is usable.
type Options struct {
	Params map[string]string // values of the task's parameters, which the record does not hold
	Fast   bool              // decide at once; otherwise as slowly as the planner did, and people

	// At is told the moments of the record, never an earlier one: a simulated phone
	// sets its clock by it, so that what an app does by itself comes at the step at
	// which it came. May be nil.
	At func(time.Time)

	Trajectory string          // where to write the replay's own trajectory; "" nowhere
	Registry   *tools.Registry // tools.Default() if nil
	Logger     *slog.Logger    // nothing is logged if nil
}

// Report is what a replay came to.
type Report struct {
	Steps   int           // that were taken and are as in the record
	Of      int           // steps of the record that can be taken
	Differs int           // the step of the record that differs first; 0 if none does
	Lines   []string      // what differs there: "- " as recorded, "+ " as it is now
	Result  runner.Result // of the replay
}

// Run takes the record again. It returns nil if nothing differs, and otherwise a
// *wire.Refusal: wire.ReplayDiffers, or wire.BadRequest for what it cannot start
// with. It blocks for about as long as the record lasted, unless Fast is set.
func Run(ctx context.Context, rec *Record, phone Phone, o Options) (Report, error) {
	p := &player{record: rec, options: o, acts: rec.acts(), mask: record.NewMask(o.Params)}
	report := Report{Of: len(p.acts)}
	if name := rec.missing(o.Params); name != "" {
		return report, wire.Refuse(wire.BadRequest, map[string]any{
			"reason": fmt.Sprintf("the record does not hold the value of the parameter %.40q, which has to be given", name),
		})
	}
	eyes := &eyes{Observer: perception.NewObserver(phone.Source, perception.Options{})}
	p.eyes = eyes
	ctx, p.stop = context.WithCancelCause(ctx)
	defer p.stop(nil)
	p.at(rec.Task.Started)
	r := runner.Runner{
		Observer: eyes, Controls: phone.Controls, Planner: p, Registry: p.registry(o.Registry),
		Reads: phone.Reads, Documents: phone.Documents, Keep: phone.Keep, Install: phone.Install, Ask: p.answer,
		Slot: rec.Task.Slot, Phone: rec.Task.Phone.Name, Device: rec.Task.Phone,
		Trajectory: o.Trajectory, Logger: o.Logger, OnStep: p.took, Expect: p.expects, Limits: p.limits(),
	}
	var err error
	report.Result, err = r.Run(ctx, p.task())
	report.Steps = p.taken
	if p.differs == nil && !p.over {
		p.end(report.Result)
	}
	if p.differs != nil {
		report.Differs, report.Lines = p.differs.step, p.differs.lines
		return report, p.differs.refusal()
	}
	return report, err
}

// limits are those of a runner that records, but for the planner's time. In a
// replay that takes no time to decide, a look before each touch shows what came
// while the planner thought, if it ever thought for long.
func (p *player) limits() runner.Limits {
	l := runner.Limits{Decide: time.Hour}
	for _, act := range p.acts {
		if p.options.Fast && act.Times.Decide > longThought.Milliseconds() {
			l.Fresh = 1
		}
	}
	return l
}

// longThought is as long as a runner trusts its look.
const longThought = 5 * time.Second

// at tells the phone what time it is in the record.
func (p *player) at(t time.Time) {
	if p.options.At != nil && t.After(p.now) {
		p.now = t
		p.options.At(t)
	}
}

// eyes keep the newest scene, which is the one that is decided on.
type eyes struct {
	runner.Observer
	newest *perception.Scene
}

func (e *eyes) Observe(ctx context.Context, want perception.Want) (*perception.Scene, error) {
	scene, err := e.Observer.Observe(ctx, want)
	if err == nil {
		e.newest = scene
	}
	return scene, err
}

// player decides as the record did. All its methods are called by the one
// goroutine that runs the attempt.
type player struct {
	record  *Record
	options Options
	acts    []*record.Step
	mask    record.Mask
	eyes    *eyes
	stop    context.CancelCauseFunc

	taken   int         // acts that were taken and compared
	now     time.Time   // that At was told last
	unmet   []string    // how the first screen that rested after the present act differs from the recorded one
	over    bool        // all acts were taken, and the end is none of their making
	differs *difference // the first one
}

// task is the recorded task, with room for all of its steps.
func (p *player) task() runner.Task {
	t := p.record.Task
	params := map[string]string{}
	for _, name := range t.Params {
		params[name] = cmp.Or(p.options.Params[name], "(param "+name+")")
	}
	result, err := resultschema.Parse(t.ResultSchema)
	if err != nil { // of a newer version; the acts tell
		result = nil
	}
	return runner.Task{
		Result: result, Goal: t.Goal, Params: params, Permissions: t.Permissions, Skills: t.Skills, KeepPopups: !t.Popups, MaxSteps: len(p.acts) + 1,
	}
}

// errStopped is what a player answers when there is nothing more to decide.
var errStopped = errors.New("the replay is over")

// Decide implements planner.Planner.
func (p *player) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	if p.taken == len(p.acts) {
		if p.record.decides() {
			p.found(p.lastStep(), "the attempt goes on where the record ends with "+endWords(p.record.Task.End))
		} else {
			p.over = true
		}
		p.stop(nil)
		return planner.Decision{}, errStopped
	}
	act := p.acts[p.taken]
	if act.Kind != record.Turn {
		p.found(act, "the planner is asked where the record has the step "+stepWords(act))
		return planner.Decision{}, errStopped
	}
	if act.Sum != "" && act.Sum != act.SumOf() {
		p.found(act, "its decision is not the one that was recorded: the record was altered")
		return planner.Decision{}, errStopped
	}
	scene := p.eyes.newest
	if lines := compareScenes(act, scene, p.mask.Scene(scene)); lines != nil {
		p.found(act, lines...)
		return planner.Decision{}, errStopped
	}
	p.unmet = nil
	if err := p.think(ctx, act.Times.Decide); err != nil {
		return planner.Decision{}, err
	}
	p.at(act.At.Add(time.Duration(act.Times.Decide) * time.Millisecond))
	args, err := record.Reveal(act.Arguments, p.options.Params)
	if err != nil {
		p.found(act, err.Error())
		return planner.Decision{}, errStopped
	}
	return planner.Decision{StepIndex: act.Decision, Tool: act.Tool, Arguments: onScreen(args, act.Screen, scene.Generation)}, nil
}

// think takes as long as the record says, or next to nothing.
func (p *player) think(ctx context.Context, ms int64) error {
	if p.options.Fast {
		ms = 1
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// someAnswer stands for what a person answered: that is not in the record. Where
// an answer was typed as it was, its name is.
const someAnswer = "(an answer)"

// answer stands for a person.
func (p *player) answer(ctx context.Context, _ tools.Question) (string, error) {
	if p.taken < len(p.acts) {
		if err := p.think(ctx, p.acts[p.taken].Times.Waited); err != nil {
			return "", err
		}
	}
	return someAnswer, nil
}

// onScreen gives the arguments the generation of the present screen if they had
// that of the recorded one; another one stays another one.
func onScreen(args json.RawMessage, recorded, now uint64) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil || m["generation"] == nil {
		return args
	}
	var generation uint64
	if json.Unmarshal(m["generation"], &generation) != nil {
		return args
	}
	if generation != recorded {
		now += 1 << 20 // of no screen
	}
	m["generation"] = json.RawMessage(fmt.Sprint(now))
	b, err := json.Marshal(m)
	if err != nil {
		return args
	}
	return b
}

// took compares a step with the record.
func (p *player) took(now runner.Step) {
	if p.differs != nil || p.over {
		return
	}
	if now.Kind == record.Failed {
		act := p.lastStep()
		if p.taken < len(p.acts) {
			act = p.acts[p.taken]
		}
		p.found(act, "it comes to "+stepWords(&now))
		return
	}
	if p.taken == len(p.acts) {
		p.found(p.lastStep(), "the record ends, but here follows "+stepWords(&now))
		return
	}
	act := p.acts[p.taken]
	lines := compareActs(act, &now)
	if lines == nil {
		lines = p.unmet
	}
	if lines == nil {
		lines = compareEffects(act, &now)
	}
	if lines == nil {
		lines = p.compareAfter(&now)
	}
	if lines != nil {
		p.found(act, lines...)
		return
	}
	p.taken++
	p.unmet = nil
	if p.taken < len(p.acts) { // the runner may look again before it asks
		p.at(p.acts[p.taken].At)
	}
}

// expects tells whether a screen that rests is the one of the n-th step that is
// taken again. Phones are not equally fast: it is given time to come.
func (p *player) expects(n int, scene *perception.Scene) bool {
	i := n - 1
	if i >= len(p.acts) || i == p.taken+1 && p.after() == nil || p.differs != nil || p.over {
		return true
	}
	p.at(p.acts[i].At)
	lines := compareScenes(p.acts[i], scene, p.mask.Scene(scene))
	if p.unmet == nil || lines == nil {
		p.unmet = lines
	}
	return lines == nil
}

// after returns the step whose scene is what the present one has come to, nil if
// the record does not have it: it is the next step's if that was decided on it
// without another look.
func (p *player) after() *record.Step {
	if p.taken+1 >= len(p.acts) {
		return nil
	}
	act, next := p.acts[p.taken], p.acts[p.taken+1]
	if next.N != act.N+1 || next.Times.Observe > 0 {
		return nil
	}
	return next
}

// compareAfter returns what differs in the screen that a step has come to.
func (p *player) compareAfter(now *record.Step) []string {
	next, scene := p.after(), p.eyes.newest
	if next == nil || now.Effect == "not seen" {
		return nil
	}
	return compareScenes(next, scene, p.mask.Scene(scene))
}

// end compares how the attempt ended with how the record did.
func (p *player) end(result runner.Result) {
	was := p.record.Task.End
	switch {
	case p.taken < len(p.acts):
		p.found(p.acts[p.taken], "the attempt ended before it: "+result.Message)
	case !p.record.decides():
	default:
		now := &record.End{Outcome: string(result.Outcome), Message: p.mask.Text(result.Message), Refusal: result.Refusal}
		if a, b := endWords(was), endWords(now); a != b {
			p.found(p.lastStep(), "- the end: "+a, "+ the end: "+b)
		}
	}
}

// lastStep is where a difference after all steps is told of.
func (p *player) lastStep() *record.Step {
	if len(p.acts) == 0 {
		return &record.Step{}
	}
	return p.acts[len(p.acts)-1]
}

// found keeps the first difference and ends the attempt.
func (p *player) found(act *record.Step, lines ...string) {
	if p.differs == nil {
		p.differs = &difference{act.N, lines}
	}
	p.stop(p.differs.refusal())
}

// difference is where the replay parts from the record.
type difference struct {
	step  int
	lines []string
}

func (d *difference) refusal() *wire.Refusal {
	return wire.Refuse(wire.ReplayDiffers, map[string]any{"step": d.step, "reason": reason(d.lines)})
}

// reason makes one sentence of the first lines.
func reason(lines []string) string {
	for i, line := range lines {
		was, isWas := strings.CutPrefix(line, "- ")
		if !isWas {
			continue
		}
		if i+1 < len(lines) {
			if now, ok := strings.CutPrefix(lines[i+1], "+ "); ok {
				return "it was " + was + " and is " + now
			}
		}
		return was + " is gone"
	}
	if len(lines) == 0 {
		return ""
	}
	if now, ok := strings.CutPrefix(lines[0], "+ "); ok {
		return now + " is new"
	}
	return lines[0]
}
