package mcp_test

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"phonerack/agent/mcp"
)

// addFixtures gives the server the tools that the conformance suite calls for what
// this server does: texts, pictures, errors, schemas, lists that change. The suite
// says how each behaves (its README, and the scenarios' own descriptions). There are none for what it does not do.
func addFixtures(server *mcp.Server, skills mcp.Skills) {
	says := func(content sdk.Content) sdk.ToolHandler {
		return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{content}}, nil
		}
	}
	nothing := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	for name, handler := range map[string]sdk.ToolHandler{
		"test_simple_text":           says(&sdk.TextContent{Text: "a text"}),
		"test_image_content":         says(&sdk.ImageContent{Data: []byte{0xff, 0xd8, 0xff, 0xd9}, MIMEType: "image/jpeg"}),
		"test_streaming_elicitation": says(&sdk.TextContent{Text: "no question was asked on the way"}),
		"test_logging_tool": func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			//lint:ignore SA1019 that nothing is logged unasked is what the suite looks for
			err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "unasked"})
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, err
		},
		"test_error_handling": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "it failed as it should"}}}, nil
		},
		"test_missing_capability": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "sampling is needed", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
		},
		"test_trigger_tool_change": func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			server.SetSkills(nil)
			server.SetSkills(skills)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "changed"}}}, nil
		},
	} {
		mcp.SDK(server).AddTool(&sdk.Tool{Name: name, Description: "for the conformance suite", InputSchema: nothing}, handler)
	}
	mcp.SDK(server).AddTool(&sdk.Tool{
		Name: "json_schema_2020_12_tool", Description: "for the conformance suite",
		InputSchema: json.RawMessage(`{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
			"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
			"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
			"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
			"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
			"then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}`),
	}, says(&sdk.TextContent{Text: "a schema"}))
}
