package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"phonerack/agent/skill/model"
)

// Source says where a tool comes from.
type Source string

// Sources of tools.
const (
	Builtin     Source = "builtin"      // of this rack
	AgentSkills Source = "agent_skills" // of an Agent Skills folder
	MCP         Source = "mcp"          // of an MCP server
	Custom      Source = "custom"       // described inline in a skill
)

// Capability says what using a tool may do.
type Capability struct {
	ReadOnly       bool `json:"read_only"`
	Writes         bool `json:"writes"`
	Checkpointable bool `json:"checkpointable"`
	SideEffects    bool `json:"side_effects"`
}

// Tool describes a tool that exists.
type Tool struct {
	Name           string            `json:"name"`
	Description    string            `json:"description,omitempty"`
	InputSchema    json.RawMessage   `json:"input_schema,omitempty"`
	OutputSchema   json.RawMessage   `json:"output_schema,omitempty"`
	Source         Source            `json:"source"`
	SourceMetadata map[string]string `json:"source_metadata,omitempty"` // for agent_skills: path, file, root, sha256
	Capability     Capability        `json:"capability"`
	Text           string            `json:"-"` // of an Agent Skill: the Markdown that it offers
}

// ErrToolExists tells that a table has a tool of that name.
var ErrToolExists = errors.New("there is a tool of that name already")

// maxTools bounds a table: a server of MCP may list as many as it likes.
const maxTools = 10_000

// Tools is a table of tools by name. It is safe for concurrent use; the zero value is empty.
type Tools struct {
	mu     sync.RWMutex // guards byName
	byName map[string]Tool
}

// Add takes in a tool, or none where an error is returned.
func (t *Tools) Add(tool Tool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := fits(tool, len(t.byName)); err != nil {
		return err
	}
	if _, twice := t.byName[tool.Name]; twice {
		return fmt.Errorf("add the tool %s: %w", tool.Name, ErrToolExists)
	}
	if t.byName == nil {
		t.byName = map[string]Tool{}
	}
	t.byName[tool.Name] = tool
	return nil
}

func fits(tool Tool, others int) error {
	switch {
	case tool.Name == "" || len(tool.Name) > model.MaxItemName:
		return fmt.Errorf("add a tool: its name has %d bytes, and 1 to %d are accepted", len(tool.Name), model.MaxItemName)
	case !slices.Contains([]Source{Builtin, AgentSkills, MCP, Custom}, tool.Source):
		return fmt.Errorf("add the tool %s: it has no source", tool.Name)
	case others >= maxTools:
		return fmt.Errorf("add the tool %s: there are %d already", tool.Name, others)
	}
	return nil
}

// Remove takes a tool out and reports whether it was there.
func (t *Tools) Remove(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.byName[name]
	delete(t.byName, name)
	return ok
}

// Get finds a tool.
func (t *Tools) Get(name string) (Tool, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tool, ok := t.byName[name]
	return tool, ok
}

// List returns the tools of a source by name, with "" those of all sources.
func (t *Tools) List(source Source) []Tool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := []Tool{}
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if tool := t.byName[name]; source == "" || tool.Source == source {
			all = append(all, tool)
		}
	}
	return all
}

// Replace puts tools in the place of all that the source has, at once: nobody
// sees a part of it. Names that other sources have are refused, and nothing changes.
func (t *Tools) Replace(source Source, tools []Tool) error {
	return t.change(source, func(rest map[string]Tool) error {
		for _, tool := range tools {
			if err := fits(tool, len(rest)); err != nil {
				return err
			}
			if _, twice := rest[tool.Name]; twice {
				return fmt.Errorf("add the tool %s: %w", tool.Name, ErrToolExists)
			}
			rest[tool.Name] = tool
		}
		return nil
	})
}

// change lets edit work on the table without the tools of a source, and keeps the
// result if there is no error.
func (t *Tools) change(source Source, edit func(rest map[string]Tool) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := make(map[string]Tool, len(t.byName))
	for name, tool := range t.byName {
		if tool.Source != source {
			rest[name] = tool
		}
	}
	if err := edit(rest); err != nil {
		return err
	}
	t.byName = rest
	return nil
}

// ofServer returns the tools that an MCP server is known to have, without the
// prefix, by name.
func (t *Tools) ofServer(server string) []string {
	prefix := mcpPrefix + server + "/"
	t.mu.RLock()
	defer t.mu.RUnlock()
	var names []string
	for name, tool := range t.byName {
		if short, ok := strings.CutPrefix(name, prefix); ok && tool.Source == MCP {
			names = append(names, short)
		}
	}
	slices.Sort(names)
	return names
}

// agentSkill tells whether an Agent Skill of that name was found.
func (t *Tools) agentSkill(name string) bool {
	tool, ok := t.Get(name)
	return ok && tool.Source == AgentSkills
}
