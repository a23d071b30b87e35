package model

import "encoding/json"

// RegistrySkill is a named collection of tools, as spec 004 has it.
type RegistrySkill struct {
	Name        string               `json:"name"` // namespace/short_name
	Description string               `json:"description"`
	Version     string               `json:"version,omitempty"`
	Items       []Item               `json:"items"`               // their order is kept
	Overrides   map[string]Overrides `json:"overrides,omitempty"` // by the name of a tool_ref
}

// ItemType is the discriminator of an item, as spec 004's column has it.
type ItemType string

// Types of items.
const (
	ToolRefItem     ItemType = "tool_ref"
	IncludeItem     ItemType = "include"
	InlineToolItem  ItemType = "inline_tool"
	MCPSourceItem   ItemType = "mcp_source"
	AgentSourceItem ItemType = "agent_source"
)

// Item is one component of a registry skill: exactly one of the fields is set.
// As JSON it is that field's object with its "type" first.
type Item struct {
	ToolRef     *ToolRef
	Include     *Include
	InlineTool  *InlineTool
	MCPSource   *MCPSource
	AgentSource *AgentSource
}

// ToolRef names a tool.
type ToolRef struct {
	Name      string    `json:"name"`
	Overrides Overrides `json:"overrides,omitempty"`
}

// Include takes in another skill: of the registry, or "catalog/<id>".
type Include struct {
	Name      string    `json:"name"`
	Overrides Overrides `json:"overrides,omitempty"` // for every tool that the included skill brings
}

// InlineTool is an anonymous tool. A rack has no executor for it; it is described
// so that a skill from elsewhere keeps all that it says.
type InlineTool struct {
	Description    string          `json:"description"`
	Source         string          `json:"source"`                  // "custom", nothing else
	InputSchema    json.RawMessage `json:"input_schema,omitempty"`  // canonical; nil stands for {"type":"object"}
	OutputSchema   json.RawMessage `json:"output_schema,omitempty"` // canonical
	ReadOnly       bool            `json:"read_only,omitempty"`
	Writes         bool            `json:"writes,omitempty"`
	Checkpointable bool            `json:"checkpointable,omitempty"`
	SideEffects    bool            `json:"side_effects,omitempty"`
}

// SourceCustom is the one source of an inline tool.
const SourceCustom = "custom"

// MCPSource is a server whose tools belong to the skill.
type MCPSource struct {
	Name       string            `json:"name"`      // of the server
	Transport  Transport         `json:"transport"` // stdio or streamable-http or sse
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	ToolFilter *ToolFilter       `json:"tool_filter,omitempty"` // nil takes all that the server has
}

// Transport is how an MCP server is reached.
type Transport string

// Transports of MCP.
const (
	Stdio          Transport = "stdio"
	SSE            Transport = "sse"
	StreamableHTTP Transport = "streamable-http"
)

// ToolFilter picks tools of a server by name. Exclude wins over Include.
type ToolFilter struct {
	Include []string `json:"include,omitempty"` // empty: all
	Exclude []string `json:"exclude,omitempty"`
}

// AgentSource is a folder of the Agent Skills standard.
type AgentSource struct {
	Path string `json:"path"`
}

// Overrides are what a skill says differently about a tool, as canonical JSON by
// field. Which fields may be overridden is the resolver's to say: spec 004 wants
// [NonOverridable] refused when a skill is resolved, with the path of includes.
type Overrides map[string]json.RawMessage

// NonOverridable are the fields that no override may touch.
var NonOverridable = []string{"name", "source_skill", "is_inline"}

// Type returns the discriminator; "" for an item with nothing in it.
func (it Item) Type() ItemType {
	switch {
	case it.ToolRef != nil:
		return ToolRefItem
	case it.Include != nil:
		return IncludeItem
	case it.InlineTool != nil:
		return InlineToolItem
	case it.MCPSource != nil:
		return MCPSourceItem
	case it.AgentSource != nil:
		return AgentSourceItem
	}
	return ""
}

// Name returns what spec 004's column item_name holds: the tool, the included
// skill, the server or the folder; "" for an inline tool, which has none.
func (it Item) Name() string {
	switch it.Type() {
	case ToolRefItem:
		return it.ToolRef.Name
	case IncludeItem:
		return it.Include.Name
	case MCPSourceItem:
		return it.MCPSource.Name
	case AgentSourceItem:
		return it.AgentSource.Path
	}
	return ""
}
