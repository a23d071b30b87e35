package planner

import (
	"context"
	"encoding/json"
	"errors"

	"phonerack/sync/wire"
)

// Tool is what a planner is told about a tool. InputSchema is a JSON Schema of
// the subset that [ParseSchema] reads; its root is an object.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Request asks for the decision of one turn. TaskID and Attempt are both set,
// or both zero for a turn outside a task.
type Request struct {
	TaskID       string
	Attempt      int
	RequestID    string // unique; a repeated one is the same turn asked again
	SystemPrompt string
	UserPrompt   string // lines, as the package comment says
	Tools        []Tool // what may be called in this turn
	Screen       []byte // JPEG, or nil
}

// Decision is one tool call. StepIndex counts a task's decisions from 0 and is
// given by the planner that keeps the log; others leave it 0. Tokens is what the
// question and its answer cost, 0 if the planner does not count.
type Decision struct {
	StepIndex int             `json:"step_index"`
	Tool      string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"`
	Tokens    int             `json:"tokens,omitempty"`
}

// Planner decides turns. Decide blocks until it has a decision, has failed or
// ctx ends.
type Planner interface {
	Decide(ctx context.Context, req Request) (Decision, error)
}

// Validate checks in this order that d calls a tool, that the tool was offered,
// that its arguments are one JSON object, and that they fit the tool's schema.
// It returns a *wire.Refusal with NoToolCall, UnknownTool or BadArguments, or
// Internal if an offered schema is itself at fault.
func Validate(d Decision, offered []Tool) error {
	if d.Tool == "" {
		return wire.Refuse(wire.NoToolCall, map[string]any{"detail": "it named no tool"})
	}
	var tool *Tool
	known := make([]string, len(offered))
	for i := range offered {
		known[i] = offered[i].Name
		if offered[i].Name == d.Tool {
			tool = &offered[i]
		}
	}
	if tool == nil {
		return wire.Refuse(wire.UnknownTool, map[string]any{"tool": d.Tool, "known": known})
	}
	schema, err := ParseSchema(tool.InputSchema)
	if err != nil {
		return wire.Refuse(wire.Internal, nil).Because(err)
	}
	if err := schema.Check(d.Arguments); err != nil {
		args := map[string]any{"tool": d.Tool, "path": "$", "reason": err.Error()}
		if e, ok := errors.AsType[*SchemaError](err); ok {
			args["path"], args["reason"] = e.Path, e.Reason
		}
		return wire.Refuse(wire.BadArguments, args).Because(err)
	}
	return nil
}
