package registry

import (
	"errors"
	"fmt"

	"phonerack/agent/skill/model"
)

// Plan names the skills that a task wants to use.
type Plan struct {
	Skills []string `json:"skills"`
}

// maxFaults bounds what is told of one skill of a plan.
const maxFaults = 20

// ValidatePlan says why a plan cannot be satisfied, one sentence for each fault;
// none if it can. A skill that is named twice is checked once.
func (r *Registry) ValidatePlan(p Plan, view Catalog) []string {
	return r.resolver(view, nil).ValidatePlan(p, r.o.Tools)
}

// ValidatePlan is as [Registry.ValidatePlan]. Without a table of tools their
// references are not checked.
func (r *Resolver) ValidatePlan(p Plan, tools *Tools) []string {
	sentences := []string{}
	seen := map[string]bool{}
	for _, name := range p.Skills {
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, err := range r.planFaults(name, tools) {
			sentences = append(sentences, sentence(name, err))
		}
	}
	return sentences
}

func (r *Resolver) planFaults(name string, tools *Tools) []error {
	if faults := r.faults(name, maxFaults); len(faults) > 0 || tools == nil {
		return faults
	}
	resolved, err := r.Resolve(name)
	if err != nil {
		return []error{err}
	}
	var faults []error
	for _, e := range resolved.Entries {
		if e.Type != model.ToolRefItem || len(faults) == maxFaults {
			continue
		}
		if _, ok := tools.Get(e.Name); !ok {
			faults = append(faults, &UnknownToolError{Tool: e.Name, Skill: e.SourceSkill})
		}
	}
	if len(faults) == 0 {
		if kit := resolved.Kit(tools); kit.Useless() {
			faults = kit.faults()
		}
	}
	return faults
}

// NotExecutable names the tools of a plan that nothing on this rack executes,
// in a sentence each: tasks do without them. It says nothing of skills that
// [Registry.ValidatePlan] refuses.
func (r *Registry) NotExecutable(p Plan, view Catalog) []string {
	sentences := []string{}
	seen := map[string]bool{}
	resolver := r.resolver(view, nil)
	for _, name := range p.Skills {
		if seen[name] || len(resolver.planFaults(name, r.o.Tools)) > 0 {
			continue
		}
		seen[name] = true
		resolved, err := resolver.Resolve(name)
		if err != nil {
			continue // it was changed a moment ago
		}
		for _, e := range resolved.Kit(r.o.Tools).LeftOut {
			if len(sentences) == maxFaults*len(p.Skills) {
				return sentences
			}
			sentences = append(sentences, sentence(name, e))
		}
	}
	return sentences
}

// sentence gives a fault the words of spec 004.
func sentence(name string, err error) string {
	if errors.Is(err, ErrUnknown) {
		return fmt.Sprintf("Skill '%.255s' referenced in plan is not registered", name)
	}
	if _, ok := errors.AsType[*OverrideError](err); ok {
		return err.Error() // which names the skill
	}
	return fmt.Sprintf("Skill '%.255s': %v", name, err)
}

// NotExecutableError tells that nothing on this rack executes a tool of a skill.
type NotExecutableError struct {
	Tool   string // "" for a skill that brings neither a tool nor a text
	Skill  string // whose item it is
	Reason string
}

func (e *NotExecutableError) Error() string {
	if e.Tool == "" {
		return "not executable on this rack: " + e.Reason
	}
	return fmt.Sprintf("Tool '%s' of skill '%s' is not executable on this rack: %s", e.Tool, e.Skill, e.Reason)
}

// UnknownToolError tells that a skill refers to a tool that does not exist.
type UnknownToolError struct {
	Tool  string
	Skill string // whose reference it is
}

func (e *UnknownToolError) Error() string {
	return fmt.Sprintf("Tool '%s' of skill '%s' is not registered", e.Tool, e.Skill)
}
