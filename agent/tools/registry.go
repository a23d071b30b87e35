package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"time"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Controls are the writes to a phone that tools use, under a lease;
// *phone.Controls implements it.
type Controls interface {
	Tap(ctx context.Context, x, y int) error
	LongPress(ctx context.Context, x, y int, d time.Duration) error
	Swipe(ctx context.Context, x1, y1, x2, y2 int, d time.Duration) error
	InputText(ctx context.Context, text string) error
	Key(ctx context.Context, name string) error
	Launch(ctx context.Context, pkg string) error
}

// Role says who may call a tool.
type Role string

// Roles, the lesser first.
const (
	Viewer   Role = "viewer"   // may look
	Operator Role = "operator" // may act on phones
)

// Tool is one thing that can be done.
type Tool struct {
	Name        string
	Description string          // for a planner: what it does and when to use it
	Schema      json.RawMessage // of the arguments, in the subset of planner.ParseSchema
	ReadOnly    bool            // never writes to the phone
	Destructive bool            // may do what cannot be undone
	Role        Role

	run func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error
}

// Env is what tools act on.
type Env struct {
	Controls Controls
	Scene    *perception.Scene // that the decision was made on
	Slot     int               // for refusals, as Phone
	Phone    string            // its serial number
}

// Outcome is what an execution came to, also one that failed.
type Outcome struct {
	Tool     string
	Finished bool                // the task is over
	Success  bool                // with Finished: the goal is reached
	Message  string              // with Finished: what the planner reports
	Target   *perception.Element // the element that was acted on
	Points   []image.Point       // where the screen was touched: one point, or the two ends of a swipe
	Wrote    bool                // something was sent to the phone, or may have been
	Unknown  bool                // whether the act happened is not known
	Typed    *Typed              // with text: what the next scene has to show
	Settle   bool                // the screen may change now: wait until it rests
}

// Registry is a fixed list of tools.
type Registry struct {
	tools  []Tool
	byName map[string]*Tool
}

// newRegistry refuses nothing: its tools are this package's own, and a test
// holds their schemas to the subset.
func newRegistry(tools ...Tool) *Registry {
	r := &Registry{tools: tools, byName: make(map[string]*Tool, len(tools))}
	for i := range r.tools {
		r.byName[r.tools[i].Name] = &r.tools[i]
	}
	return r
}

// Default returns the tools that a task may use: tap, long_press, swipe,
// input_text, press_key, launch_app, wait and finish.
func Default() *Registry {
	return newRegistry(tap, longPress, swipe, inputText, pressKey, launchApp, wait, finish)
}

// Offer returns the tools as a planner is told about them.
func (r *Registry) Offer() []planner.Tool {
	offer := make([]planner.Tool, len(r.tools))
	for i, t := range r.tools {
		offer[i] = planner.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema}
	}
	return offer
}

// Execute checks d and does it. It blocks until the phone has taken the act, or
// ctx ends. The outcome counts also when there is an error, which is a
// *wire.Refusal unless ctx ended.
func (r *Registry) Execute(ctx context.Context, env Env, d planner.Decision) (Outcome, error) {
	out := Outcome{Tool: d.Tool}
	if err := planner.Validate(d, r.Offer()); err != nil {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	err := r.byName[d.Tool].run(ctx, env, d.Arguments, &out)
	return out, err
}

// decode reads arguments that have passed their schema.
func decode[T any](args json.RawMessage) (T, error) {
	var v T
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, wire.Refuse(wire.Internal, nil).Because(fmt.Errorf("arguments pass their schema but cannot be read: %w", err))
	}
	return v, nil
}
