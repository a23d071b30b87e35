package model

import (
	"encoding/json"
	"time"
)

// Kind says what a catalog skill holds.
type Kind string

// Kinds of spec 000, decision D1.
const (
	Knowledge    Kind = "knowledge"
	FlowTemplate Kind = "flow_template"
)

// Skill is one skill of a catalog. Content belongs to knowledge alone, Steps and
// Parameters to a flow template.
type Skill struct {
	ID           string      `json:"id"` // [a-z0-9-]{1,63}
	Name         string      `json:"name"`
	Description  string      `json:"description"`
	Kind         Kind        `json:"kind"`
	Version      string      `json:"version"` // opaque: compared for equality only
	Tags         []string    `json:"tags,omitempty"`
	Aliases      []string    `json:"aliases,omitempty"`         // other names that people search by
	Subscription string      `json:"subscription_id,omitempty"` // the one source of the skill
	UpdatedAt    time.Time   `json:"updated_at,omitzero"`       // UTC, milliseconds
	Content      string      `json:"content,omitempty"`         // Markdown
	Parameters   []Parameter `json:"parameters,omitempty"`
	Steps        []Step      `json:"steps,omitempty"`
}

// Step is one call of a flow template. ArgsTemplate is a JSON object, canonical;
// strings in it may hold placeholders, see package placeholder.
type Step struct {
	Tool         string          `json:"tool"`
	ArgsTemplate json.RawMessage `json:"args_template"`
}

// ParameterType is the type of a parameter's value, in JSON Schema's words.
type ParameterType string

// Types of parameters.
const (
	String  ParameterType = "string"
	Integer ParameterType = "integer"
	Number  ParameterType = "number"
	Boolean ParameterType = "boolean"
	Array   ParameterType = "array"
	Object  ParameterType = "object"
)

// Parameter is something that a flow template wants to know.
type Parameter struct {
	Name        string            `json:"name"` // [A-Za-z_][A-Za-z0-9_]{0,63}
	Type        ParameterType     `json:"type"`
	Required    bool              `json:"required,omitempty"`
	Description string            `json:"description,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"` // canonical JSON; nil if there is none
	Enum        []json.RawMessage `json:"enum,omitempty"`    // canonical JSON
}

// Tools returns the distinct tools that the skill's steps call, in order of
// their first call; none for knowledge.
func (s *Skill) Tools() []string {
	var names []string
	seen := map[string]bool{}
	for _, step := range s.Steps {
		if !seen[step.Tool] {
			seen[step.Tool] = true
			names = append(names, step.Tool)
		}
	}
	return names
}

// Parameter finds a parameter by name.
func (s *Skill) Parameter(name string) (Parameter, bool) {
	for _, p := range s.Parameters {
		if p.Name == name {
			return p, true
		}
	}
	return Parameter{}, false
}
