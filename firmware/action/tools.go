package action

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/tools"
)

// toolPrefix begins the names of the actions that are tools of package tools.
const toolPrefix = "tool_"

// ToolAction is the name of the action that executes a tool.
func ToolAction(tool string) string { return toolPrefix + tool }

// ToolArgs are the arguments of each action that is a tool.
type ToolArgs struct {
	SlotArgs
	Arguments json.RawMessage `json:"arguments,omitempty"` // as the tool's schema says
}

// ToolOutcome is the result of each action that is a tool.
type ToolOutcome struct {
	Wrote       bool         `json:"wrote"`                 // something was sent to the phone
	Text        string       `json:"text,omitempty"`        // the verdict on a field: "verified" or "unverified"
	Result      string       `json:"result,omitempty"`      // what a reading tool brought
	Observation *Observation `json:"observation,omitempty"` // the tool's own newest look, if it wrote nothing since
}

const (
	// toolTimeout is longer than any bound that a tool has of its own, scroll_to's 90 s and its last looks.
	toolTimeout = 3 * time.Minute
	// talkTimeout bounds a conversation with an MCP client, which begins a new one when it ends.
	talkTimeout = 24 * time.Hour
)

// toolActions are the tools of planners for those who are no task: each with its own schema, its role, and a lease if it
// may write.
func toolActions() []entry {
	all := []entry{define(Definition{
		Name: "mcp", Summary: "speak the Model Context Protocol, a message a line", Role: Operator, Streams: Terminal, Timeout: talkTimeout,
	}, speakMCP)}
	for _, t := range tools.WithoutTask().Tools() {
		d := Definition{
			Name: ToolAction(t.Name), Summary: "call the tool " + t.Name + " as a planner does",
			Role: Viewer, Idempotent: t.Annotations.Idempotent, Timeout: toolTimeout,
		}
		if t.Role == tools.Operator {
			d.Role, d.NeedsLease = Operator, true
		}
		e := define(d, func(ctx context.Context, c *call, args *ToolArgs) (any, error) {
			p, err := c.rack.Phone(args.Slot)
			if err != nil {
				return nil, err
			}
			given := args.Arguments
			if given == nil {
				given = json.RawMessage("{}")
			}
			return p.Tool(ctx, c.fence, c.actor.Name, planner.Decision{Tool: t.Name, Arguments: given})
		})
		e.Schema = toolSchema(t)
		all = append(all, e)
	}
	return all
}

func toolSchema(t tools.Tool) json.RawMessage {
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"slot"}, "additionalProperties": false,
		"properties": map[string]any{"slot": map[string]any{"type": "integer", "description": "number of the slot"}, "arguments": t.Schema},
	})
	if err != nil {
		panic(fmt.Sprintf("action: schema of %s: %v", t.Name, err)) // the schemas are ours
	}
	return schema
}

func speakMCP(ctx context.Context, c *call, _ *struct{}) (any, error) {
	return Done{}, c.rack.SpeakMCP(ctx, c.actor, c.pipes.In, c.pipes.Out)
}
