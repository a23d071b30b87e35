package action

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// Role is what an actor may do.
type Role string

// Roles.
const (
	Viewer   Role = "viewer"   // look
	Operator Role = "operator" // act
)

// Actor is who asks.
type Actor struct {
	Name string // names leases: the same name is the same person
	Role Role
	Via  string // the door, such as "socket"
}

// Button is who presses the button of the rack: hands are there.
var Button = Actor{Name: "button", Role: Operator, Via: "button"}

// Streams says which streams an action uses besides its arguments and its result.
type Streams string

// Kinds of stream.
const (
	NoStream Streams = ""
	Upload   Streams = "upload"   // reads In
	Download Streams = "download" // writes Out
	Terminal Streams = "terminal" // reads In, writes Out and Err
)

// Pipes are the streams of one call; those that the action does not use may be nil.
type Pipes struct {
	In       io.Reader
	Out, Err io.Writer
}

// Definition describes an action.
type Definition struct {
	Name       string          `json:"name"`
	Summary    string          `json:"summary"`
	Schema     json.RawMessage `json:"schema"` // of the arguments, JSON Schema
	Role       Role            `json:"role"`   // least that the actor needs
	NeedsLease bool            `json:"needs_lease,omitempty"`
	NeedsQuiet bool            `json:"needs_quiet,omitempty"` // nobody else may have a phone that it touches
	Idempotent bool            `json:"idempotent,omitempty"`  // twice is as good as once
	Streams    Streams         `json:"streams,omitempty"`
	Timeout    time.Duration   `json:"timeout_ns"`

	run func(ctx context.Context, c *call) (any, error)
}

// call is what an action's function gets.
type call struct {
	rack   Rack
	leases *lease.Table
	actor  Actor
	args   any // pointer to the action's argument struct
	pipes  Pipes
	fence  Fence // set if the action needs a lease
}

// Registry holds the actions of a rack.
type Registry struct {
	rack   Rack
	leases *lease.Table
	log    *slog.Logger
	byName map[string]entry
}

type entry struct {
	Definition
	newArgs func() any
}

// New returns the registry with every action.
func New(rack Rack, leases *lease.Table, log *slog.Logger) *Registry {
	r := &Registry{rack: rack, leases: leases, log: log, byName: map[string]entry{}}
	for _, e := range slices.Concat(phoneActions(), fileActions(), toolActions(), taskActions(), linkActions(), skillActions(), careActions(), keyActions(), factoryActions(), configActions(), logActions()) {
		r.byName[e.Name] = e
	}
	return r
}

// define makes an entry whose arguments are of type A.
func define[A any](d Definition, run func(ctx context.Context, c *call, args *A) (any, error)) entry {
	d.Schema = schemaOf[A]()
	d.run = func(ctx context.Context, c *call) (any, error) { return run(ctx, c, c.args.(*A)) }
	return entry{Definition: d, newArgs: func() any { return new(A) }}
}

// Definitions lists the actions by name.
func (r *Registry) Definitions() []Definition {
	var all []Definition
	for _, e := range r.byName {
		all = append(all, e.Definition)
	}
	slices.SortFunc(all, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Definition finds an action.
func (r *Registry) Definition(name string) (Definition, error) {
	e, ok := r.byName[name]
	if !ok {
		return Definition{}, wire.Refuse(wire.UnknownAction, map[string]any{"action": name})
	}
	return e.Definition, nil
}

// ErrCallerGone is the cause with which a door ends the context of a call that nobody waits for any longer.
var ErrCallerGone = errors.New("the caller is gone")

// Call runs an action with its arguments as JSON. The error is always a *wire.Refusal. Call returns when the action
// has ended, at the latest when ctx or the action's own time ends and the phone's work could be stopped.
func (r *Registry) Call(ctx context.Context, actor Actor, name string, args json.RawMessage, pipes Pipes) (any, error) {
	start := time.Now()
	c := &call{rack: r.rack, leases: r.leases, actor: actor, pipes: pipes}
	result, err := r.call(ctx, c, name, args)
	if err != nil && errors.Is(context.Cause(ctx), ErrCallerGone) { // what it came to is nobody's fault and is not told to anybody
		r.log.Info("action ended because its caller is gone", "action", printable(name), "actor", c.actor.Name, "via", c.actor.Via, "slot", slotOf(c.args))
		return nil, wire.From(err)
	}
	r.audit(c, name, time.Since(start), err)
	if err != nil {
		return nil, wire.From(err)
	}
	return result, nil
}

// call runs an action. A panic in there fails this call and nothing more, whichever goroutine a door runs it on.
func (r *Registry) call(ctx context.Context, c *call, name string, args json.RawMessage) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("an action panicked", "action", printable(name), "panic", p, "stack", string(debug.Stack()))
			result, err = nil, wire.Refuse(wire.Internal, nil)
		}
	}()
	e, ok := r.byName[name]
	if !ok {
		return nil, wire.Refuse(wire.UnknownAction, map[string]any{"action": name})
	}
	if e.Role == Operator && c.actor.Role != Operator {
		return nil, wire.Refuse(wire.Forbidden, map[string]any{"action": name, "role": string(e.Role)})
	}
	c.args = e.newArgs()
	if err := decode(args, c.args); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.Timeout, errTimeout)
	defer cancel()
	if e.NeedsLease {
		return r.callLeased(ctx, c, e)
	}
	if e.NeedsQuiet {
		return r.callQuiet(ctx, c, e)
	}
	result, err = e.run(ctx, c)
	return result, timedOut(ctx, e, c, err)
}

// callLeased runs an act on a phone under a lease, and ends the act when the lease ends.
func (r *Registry) callLeased(ctx context.Context, c *call, e entry) (any, error) {
	slot := slotOf(c.args)
	if _, err := c.rack.Phone(slot); err != nil { // a slot without a phone has no holder to blame
		return nil, err
	}
	held, giveBack, err := r.leases.Borrow(slot, c.actor.Name, e.Timeout)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	c.fence = held
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-held.Done():
			cancel(held.Check())
		case <-ctx.Done():
		}
	}()
	result, err := e.run(ctx, c)
	if err != nil && wire.Is(context.Cause(ctx), wire.NotLeased) {
		err = context.Cause(ctx)
	}
	err = timedOut(ctx, e, c, err)
	cancel(nil)
	<-watching
	return result, err
}

var errTimeout = errors.New("the action's time is over")

// timedOut names the phone when the action's own bound ended it.
func timedOut(ctx context.Context, e entry, c *call, err error) error {
	if err == nil || context.Cause(ctx) != errTimeout {
		return err
	}
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		return r
	}
	return wire.Refuse(wire.PhoneTimeout, map[string]any{
		"slot": slotOf(c.args), "serial": c.serial(), "what": e.Name, "timeout_ms": e.Timeout.Milliseconds(),
	}).Because(err)
}

// serial is that of the phone in the slot that the arguments name; "" if it is not known.
func (c *call) serial() string {
	for _, p := range c.rack.Phones() {
		if slot := slotOf(c.args); slot != 0 && p.Slot == slot {
			return p.Serial
		}
	}
	return ""
}

// audit logs who asked for what, and never what was typed or sent.
func (r *Registry) audit(c *call, name string, took time.Duration, err error) {
	attrs := []any{"action", printable(name), "actor", c.actor.Name, "via", c.actor.Via, "took", took.Round(time.Millisecond)}
	if slot := slotOf(c.args); slot != 0 {
		attrs = append(attrs, "slot", slot)
	}
	if err == nil {
		level := slog.LevelInfo
		if r.byName[name].Role == Viewer { // looking leaves nothing to account for
			level = slog.LevelDebug
		}
		r.log.Log(context.Background(), level, "action done", attrs...)
		return
	}
	refusal := wire.From(err)
	attrs = append(attrs, "code", string(refusal.Code))
	if cause := errors.Unwrap(refusal); cause != nil {
		attrs = append(attrs, "err", cause)
	}
	r.log.Warn("action refused", attrs...)
}

// printable keeps a name that nobody defined from filling the log.
func printable(name string) string {
	if len(name) > 40 {
		name = name[:40] + "…"
	}
	return strings.ToValidUTF8(name, "?")
}

// slotted is implemented by arguments that name a slot.
type slotted interface{ slot() int }

func slotOf(args any) int {
	if s, ok := args.(slotted); ok {
		return s.slot()
	}
	return 0
}

// decode reads one JSON object strictly. No arguments at all are an empty object.
func decode(raw json.RawMessage, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("there is something after the arguments")
	}
	if err == nil {
		if v, ok := into.(interface{ validate() error }); ok {
			err = v.validate()
		}
	}
	if err != nil {
		return badRequest("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func badRequest(format string, args ...any) error {
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf(format, args...)})
}
