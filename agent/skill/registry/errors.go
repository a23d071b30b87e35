package registry

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of a registry.
var (
	// ErrUnknown means that there is no such skill.
	ErrUnknown = errors.New("the skill is not registered")
	// ErrReserved means that the namespace is not for skills that are registered here.
	ErrReserved = errors.New("the namespace is reserved: its skills come from elsewhere")
	// ErrCatalog means that a skill of the catalog was to be changed.
	ErrCatalog = errors.New("skills of the catalog cannot be changed here: they come from a subscription")
	// ErrFull means that the registry holds as many skills as it takes.
	ErrFull = errors.New("the registry is full")
)

// DuplicateSkillError tells that a skill of the name is registered already.
type DuplicateSkillError struct{ Name string }

func (e *DuplicateSkillError) Error() string {
	return fmt.Sprintf("Skill '%s' is already registered", e.Name)
}

// MissingIncludeError tells that a skill includes one that is not there, or that
// the caller may not see.
type MissingIncludeError struct {
	Include string
	Path    []string // from the resolved skill to Include
}

func (e *MissingIncludeError) Error() string {
	return fmt.Sprintf("Included skill '%s' not found (include path: %s)", e.Include, arrows(e.Path))
}

// CycleError tells that a skill includes itself.
type CycleError struct {
	Path []string // closed: the first is the last
}

func (e *CycleError) Error() string {
	return "Cycle detected in skill includes: " + arrows(e.Path)
}

// OverrideError tells that a skill overrides what cannot be overridden.
type OverrideError struct {
	Skill  string // that has the overrides
	Fields []string
	Path   []string // from the resolved skill to the one whose tools are overridden
}

func (e *OverrideError) Error() string {
	return fmt.Sprintf("Non-overridable field(s) %s in overrides from skill '%s' (include path: %s)", strings.Join(e.Fields, ", "), e.Skill, arrows(e.Path))
}

// TooManyToolsError tells that a skill comes down to more tools than are handled.
type TooManyToolsError struct{ Limit int }

func (e *TooManyToolsError) Error() string {
	return fmt.Sprintf("More than %d tools", e.Limit)
}

func arrows(path []string) string { return strings.Join(path, " -> ") }
