package registry

import (
	"encoding/json"

	"phonerack/agent/skill/model"
)

// Kit is what a skill comes down to on this rack: the tools that something
// executes, the Agent Skills whose texts it offers, and what is left out.
type Kit struct {
	Skill   string
	Tools   []Use  // of the rack and of MCP servers, in the order of the entries
	Texts   []Tool // Agent Skills, likewise
	LeftOut []*NotExecutableError

	// CatalogSkills are those of the catalog that were reached, see [Resolved].
	CatalogSkills []string
}

// Use is a tool as a skill uses it.
type Use struct {
	Tool
	Described string // what the skill says of it in place of its description; "" if nothing
}

// Narrows tells whether the skill says which tools may be called. One that brings
// texts only does not.
func (k *Kit) Narrows() bool { return len(k.Tools)+len(k.LeftOut) > 0 }

// Useless tells whether there is nothing in the skill that this rack can use: its
// tools are all left out, or there are none and no text.
func (k *Kit) Useless() bool {
	if k.Narrows() {
		return len(k.Tools) == 0
	}
	return len(k.Texts)+len(k.CatalogSkills) == 0
}

// faults says why a useless kit is.
func (k *Kit) faults() []error {
	if len(k.LeftOut) == 0 {
		return []error{&NotExecutableError{Skill: k.Skill, Reason: "it brings neither a tool nor a text"}}
	}
	var all []error
	for _, e := range k.LeftOut[:min(len(k.LeftOut), maxFaults)] {
		all = append(all, e)
	}
	return all
}

// Kit sorts the entries by who executes them. The table has, of MCP servers, only
// those that this rack may use.
func (r *Resolved) Kit(tools *Tools) *Kit {
	k := &Kit{Skill: r.Skill, CatalogSkills: r.CatalogSkills}
	byPath := tools.byPath()
	for i := range r.Entries {
		e := &r.Entries[i]
		tool, reason := executor(e, tools, byPath)
		switch {
		case reason != "":
			k.LeftOut = append(k.LeftOut, &NotExecutableError{Tool: e.Name, Skill: e.SourceSkill, Reason: reason})
		case tool.Source == AgentSkills:
			k.Texts = append(k.Texts, tool)
		default:
			use := Use{Tool: tool}
			if raw, ok := e.Overrides["description"]; ok {
				_ = json.Unmarshal(raw, &use.Described) // a text, as registration has checked
			}
			k.Tools = append(k.Tools, use)
		}
	}
	return k
}

// executor finds the tool that stands behind an entry, or says why there is none.
func executor(e *Entry, tools *Tools, byPath map[string]Tool) (tool Tool, reason string) {
	switch e.Type {
	case model.InlineToolItem:
		return Tool{}, "inline tools describe what only their author has"
	case model.AgentSourceItem:
		tool, ok := byPath[e.Agent.Path]
		if !ok {
			return Tool{}, "no Agent Skill was found in that folder; it has to lie in one of skills.agent_skills_paths"
		}
		return tool, ""
	}
	tool, ok := tools.Get(e.Name)
	switch {
	case !ok && e.Type == model.MCPSourceItem:
		return Tool{}, "the configuration allows no MCP server of that name, or the server does not answer, or has no such tool"
	case !ok:
		return Tool{}, "it is not registered"
	case tool.Source == Custom:
		return Tool{}, "nothing here does what it describes"
	case e.Type == model.MCPSourceItem:
		return tool, otherServer(e.Server, tool)
	}
	return tool, ""
}

// Keys of Tool.SourceMetadata for a tool of an MCP server.
const (
	MetaServer    = "server"
	MetaTransport = "transport"
	MetaURL       = "url" // of a server over HTTP
	MetaTool      = "tool"
)

// otherServer says why the server that a skill means is not the one of that name
// that this rack may use; "" if it is. What program a server is, is the rack's to
// say: a skill's command is never started.
func otherServer(s *model.MCPSource, tool Tool) string {
	switch {
	case string(s.Transport) != tool.SourceMetadata[MetaTransport]:
		return "the MCP server of that name in the configuration is reached by " + tool.SourceMetadata[MetaTransport]
	case s.URL != tool.SourceMetadata[MetaURL]:
		return "the MCP server of that name in the configuration has another address"
	}
	return ""
}

// byPath are the Agent Skills by their folders.
func (t *Tools) byPath() map[string]Tool {
	all := map[string]Tool{}
	for _, tool := range t.List(AgentSkills) {
		all[tool.SourceMetadata["path"]] = tool
	}
	return all
}
