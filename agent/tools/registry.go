package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Role says who may call a tool.
type Role string

// Roles, the lesser first.
const (
	Viewer   Role = "viewer"   // may look
	Operator Role = "operator" // may act on phones
)

// Annotations say what calling a tool may do, in MCP's words. Each counts for
// the tool as a whole: the worst that any arguments may do.
type Annotations struct {
	ReadOnly    bool // changes nothing, neither on the phone nor on the rack
	Destructive bool // may do what cannot be undone
	Idempotent  bool // a second call with the same arguments changes nothing more
	OpenWorld   bool // reaches what is neither phone nor rack: services behind apps, people
}

// Tool is one thing that can be done.
type Tool struct {
	Name        string
	Description string          // for a planner: what it does and when to use it
	Schema      json.RawMessage // of the arguments, in the subset of planner.ParseSchema
	Annotations Annotations
	Role        Role
	Permission  string // that a task needs; "" if none

	run runs
}

// runs executes a tool whose arguments fit its schema.
type runs func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error

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

// Default returns all tools, in the order in which planners are offered them.
func Default() *Registry {
	return newRegistry(
		observe, takeScreenshot,
		tap, doubleTap, longPress, swipe, scrollTo,
		inputText, clearText, pressKey, setClipboard,
		launchApp, stopApp, listApps, installApp, openURL,
		wait, waitFor,
		readDocument, pullFile,
		askHuman, finish, fail,
	)
}

// forTasks are the tools that mean nothing without a task: they end it, ask its
// people, or move files between the phone and its folder.
var forTasks = []string{installApp.Name, pullFile.Name, askHuman.Name, finish.Name, fail.Name}

// WithoutTask returns the tools that can also be called when there is no task.
func WithoutTask() *Registry {
	return Default().Where(func(t Tool) bool { return !slices.Contains(forTasks, t.Name) })
}

// Tools returns the tools in their fixed order.
func (r *Registry) Tools() []Tool { return slices.Clone(r.tools) }

// Where returns a registry of the tools that keep wants, such as those of a role
// or those that a task's skills name.
func (r *Registry) Where(keep func(Tool) bool) *Registry {
	var kept []Tool
	for _, t := range r.tools {
		if keep(t) {
			kept = append(kept, t)
		}
	}
	return newRegistry(kept...)
}

// Offer returns the tools that a task with these permissions may use, as a
// planner is told about them.
func (r *Registry) Offer(permissions ...string) []planner.Tool {
	env := Env{Permissions: permissions}
	var offer []planner.Tool
	for _, t := range r.tools {
		if env.permits(t.Permission) {
			offer = append(offer, planner.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema})
		}
	}
	return offer
}

// Execute checks d and does it. It blocks until the phone has taken the act, or
// ctx ends. The outcome counts also when there is an error, which is a
// *wire.Refusal unless ctx ended.
func (r *Registry) Execute(ctx context.Context, env Env, d planner.Decision) (Outcome, error) {
	out := Outcome{Tool: d.Tool}
	if t := r.byName[d.Tool]; t != nil && !env.permits(t.Permission) {
		return out, notPermitted(d.Tool, t.Permission)
	}
	if err := planner.Validate(d, r.Offer(env.Permissions...)); err != nil {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if env.Scene == nil {
		env.Scene = &perception.Scene{} // which has no elements
	}
	err := r.byName[d.Tool].run(ctx, env, d.Arguments, &out)
	return out, err
}

func notPermitted(tool, permission string) error {
	return wire.Refuse(wire.PermissionMissing, map[string]any{"tool": tool, "permission": permission})
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
