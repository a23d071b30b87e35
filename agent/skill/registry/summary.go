package registry

import (
	"iter"
	"maps"
)

// CapabilitySummary adds up what the tools of a skill may do. Only inline tools
// say so themselves, and only they are counted by it; sources are counted on the
// resolved skill itself, not on those that it includes.
type CapabilitySummary struct {
	TotalTools          int  `json:"total_tools"`
	ReadOnlyTools       int  `json:"read_only_tools"`
	WriteTools          int  `json:"write_tools"`
	CheckpointableTools int  `json:"checkpointable_tools"`
	HasSideEffects      bool `json:"has_side_effects"`
	MCPSources          int  `json:"mcp_sources"`
	AgentSkillSources   int  `json:"agent_skill_sources"`
}

// Summary adds up a resolved skill.
func (r *Resolved) Summary() CapabilitySummary {
	s := CapabilitySummary{TotalTools: len(r.Entries)}
	if r.root != nil {
		s.MCPSources, s.AgentSkillSources = r.root.servers, r.root.agents
	}
	for i := range r.Entries {
		if !r.Entries[i].IsInline {
			continue
		}
		c := r.Entries[i].Capability()
		s.ReadOnlyTools += one(c.ReadOnly)
		s.WriteTools += one(c.Writes)
		s.CheckpointableTools += one(c.Checkpointable)
		s.HasSideEffects = s.HasSideEffects || c.SideEffects
	}
	return s
}

// Capability is what an inline tool says of itself, as overridden; for other
// tools it is what overrides say.
func (e *Entry) Capability() Capability {
	var c Capability
	if e.Inline != nil {
		c = Capability{e.Inline.ReadOnly, e.Inline.Writes, e.Inline.Checkpointable, e.Inline.SideEffects}
	}
	return e.over(c)
}

// over puts the entry's overrides over a capability.
func (e *Entry) over(c Capability) Capability {
	for field, to := range map[string]*bool{
		"read_only": &c.ReadOnly, "writes": &c.Writes, "checkpointable": &c.Checkpointable, "side_effects": &c.SideEffects,
	} {
		if v, ok := flag(e.Overrides, field); ok {
			*to = v
		}
	}
	return c
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
