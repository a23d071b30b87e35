package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/planner"
	"phonerack/agent/skill/template"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// tool is one tool as clients see it.
type tool struct {
	name, title, description string
	input                    json.RawMessage // in the subset of planner.ParseSchema
	output                   json.RawMessage // JSON Schema
	hints                    tools.Annotations
	run                      func(ctx context.Context, c Caller, args json.RawMessage) (answer, error)
}

// answer is what a tool brought.
type answer struct {
	object  any    // that fits the output schema
	image   []byte // JPEG, or nil
	literal bool   // the object's texts are the caller's own: show what is invisible in them, and drop nothing
}

// add registers tools. Their schemas are this package's own, and a test holds
// them to what is promised.
func (s *Server) add(all ...tool) {
	for _, t := range all {
		schema, err := planner.ParseSchema(t.input)
		if err != nil {
			panic(fmt.Sprintf("mcp: tool %s: %v", t.name, err))
		}
		destructive, openWorld := t.hints.Destructive, t.hints.OpenWorld
		s.sdk.AddTool(&mcp.Tool{
			Name: t.name, Title: t.title, Description: t.description, InputSchema: t.input, OutputSchema: t.output,
			Annotations: &mcp.ToolAnnotations{
				Title: t.title, ReadOnlyHint: t.hints.ReadOnly, IdempotentHint: t.hints.Idempotent,
				DestructiveHint: &destructive, OpenWorldHint: &openWorld,
			},
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.call(ctx, t, schema, req.Params.Arguments)
		})
	}
}

// call checks the arguments, runs the tool, and makes a result of what comes.
func (s *Server) call(ctx context.Context, t tool, schema *planner.Schema, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 || string(args) == "null" { // which is what some clients make of none
		args = json.RawMessage("{}")
	}
	caller := callerOf(ctx)
	if err := schema.Check(args); err != nil {
		return failed(badArguments(t.name, err)), nil
	}
	a, err := t.run(ctx, caller, args)
	if err != nil {
		refusal := wire.From(err)
		if refusal.Code == wire.Internal && words(err) == "" {
			s.log.Error("a call of MCP failed", "tool", t.name, "caller", caller.Name, "err", err)
		}
		return failed(err), nil
	}
	structured, err := encode(a)
	if err != nil {
		return nil, err
	}
	result := &mcp.CallToolResult{StructuredContent: structured, Content: []mcp.Content{&mcp.TextContent{Text: string(structured)}}}
	if a.image != nil {
		result.Content = append(result.Content, &mcp.ImageContent{Data: a.image, MIMEType: "image/jpeg"})
	}
	return result, nil
}

func badArguments(tool string, err error) error {
	args := map[string]any{"tool": tool, "path": "$", "reason": err.Error()}
	if e, ok := errors.AsType[*planner.SchemaError](err); ok {
		args["path"], args["reason"] = e.Path, e.Reason
	}
	return wire.Refuse(wire.BadArguments, args).Because(err)
}

// failed is the result of a call that came to nothing: a sentence for the reader,
// and the refusal for programs.
func failed(err error) *mcp.CallToolResult {
	refusal := wire.From(err)
	sentence := refusal.Error()
	if w := words(err); w != "" {
		refusal, sentence = wire.Refuse(wire.BadRequest, map[string]any{"reason": w}), w
	}
	raw, err := compact(map[string]any{"error": refusal})
	if err != nil {
		raw = []byte(`{"error":{"code":"internal","args":{},"retryable":false,"retry_after_ms":0}}`)
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{
		&mcp.TextContent{Text: string(visible([]byte(sentence), false))},
		&mcp.TextContent{Text: string(visible(raw, false))},
	}}
}

// words are those of an error about a skill or its parameters, which are said as
// they are; "" for any other.
func words(err error) string {
	_, parameters := errors.AsType[*template.ParameterError](err)
	_, unavailable := errors.AsType[*template.Unavailable](err)
	_, misfit := errors.AsType[misfit](err)
	if parameters || unavailable || misfit || errors.Is(err, template.ErrKnowledge) {
		return err.Error()
	}
	return ""
}

// misfit is an error that says what is wrong with given parameters.
type misfit struct{ error }

// decode reads arguments that have passed their schema.
func decode[T any](args json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(args, &v); err != nil {
		return v, wire.Refuse(wire.Internal, nil).Because(fmt.Errorf("arguments pass their schema but cannot be read: %w", err))
	}
	return v, nil
}
