package registry

import (
	"encoding/json"
	"maps"
	"strings"

	"phonerack/agent/skill/model"
)

// Listing is what a skill comes down to, for people and programs.
type Listing struct {
	Tools   []Row             `json:"tools"`
	Summary CapabilitySummary `json:"summary"`
}

// Row is one tool of a listing.
type Row struct {
	Name           string            `json:"name"`
	Source         Source            `json:"source"`     // where the tool comes from; Unregistered if nobody knows
	FromSkill      *string           `json:"from_skill"` // the included skill that brings it; null for the skill itself
	Description    string            `json:"description,omitempty"`
	ReadOnly       bool              `json:"read_only"`
	Writes         bool              `json:"writes"`
	Checkpoint     bool              `json:"checkpoint"`
	SourceMetadata map[string]string `json:"source_metadata,omitempty"`
	Overrides      model.Overrides   `json:"overrides,omitempty"`
}

// Unregistered is the source of a reference to a tool that does not exist. It is
// none of spec 004's, which says nothing of such references.
const Unregistered Source = "unregistered"

// Describe flattens a skill and says of each tool where it comes from. Errors are
// those of [Resolver.Resolve].
func (r *Registry) Describe(name string, view Catalog) (Listing, error) {
	resolved, err := r.Resolve(name, view)
	if err != nil {
		return Listing{}, err
	}
	byPath := r.o.Tools.byPath()
	l := Listing{Tools: make([]Row, 0, len(resolved.Entries)), Summary: resolved.Summary()}
	for i := range resolved.Entries {
		e := &resolved.Entries[i]
		row := e.row(r.origin(e, byPath))
		if e.SourceSkill != name {
			row.FromSkill = &e.SourceSkill
		}
		l.Tools = append(l.Tools, row)
	}
	return l, nil
}

// DescribeAll lists the tools that exist, of all sources.
func (r *Registry) DescribeAll() []Row {
	rows := []Row{}
	for _, tool := range r.o.Tools.List("") {
		rows = append(rows, RowOf(tool))
	}
	return rows
}

// RowOf is the row of a tool by itself.
func RowOf(tool Tool) Row { return (&Entry{Name: tool.Name}).row(tool) }

// origin is the tool that an entry stands for, as far as it is known.
func (r *Registry) origin(e *Entry, byPath map[string]Tool) Tool {
	switch e.Type {
	case model.InlineToolItem:
		return Tool{Source: Custom, Description: e.Inline.Description, Capability: Capability{e.Inline.ReadOnly, e.Inline.Writes, e.Inline.Checkpointable, e.Inline.SideEffects}}
	case model.AgentSourceItem:
		if tool, ok := byPath[e.Agent.Path]; ok {
			return tool
		}
		return Tool{Source: AgentSkills, SourceMetadata: map[string]string{"path": e.Agent.Path}}
	}
	if tool, ok := r.o.Tools.Get(e.Name); ok {
		return tool
	}
	if e.Type == model.MCPSourceItem {
		server, _, _ := strings.Cut(strings.TrimPrefix(e.Name, mcpPrefix), "/")
		return Tool{Source: MCP, SourceMetadata: map[string]string{"server": server}}
	}
	return Tool{Source: Unregistered}
}

// row puts the entry's overrides over what the tool says of itself.
func (e *Entry) row(tool Tool) Row {
	c := e.over(tool.Capability)
	row := Row{
		Name: e.Name, Source: tool.Source, Description: tool.Description, ReadOnly: c.ReadOnly, Writes: c.Writes, Checkpoint: c.Checkpointable,
		SourceMetadata: maps.Clone(tool.SourceMetadata), Overrides: e.Overrides,
	}
	if raw, ok := e.Overrides["description"]; ok {
		_ = json.Unmarshal(raw, &row.Description) // a text, as registration has checked
	}
	return row
}
