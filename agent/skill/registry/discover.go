package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/model"
)

// Strategy says what becomes of an Agent Skill whose name a tool has already.
type Strategy string

// Strategies.
const (
	SkipConflicts   Strategy = "skip"    // the tool stays, with a warning; the default
	RefuseConflicts Strategy = "error"   // nothing is registered
	ReplaceTools    Strategy = "replace" // the tool goes, for good
)

// Conflict is an Agent Skill whose name a tool had.
type Conflict struct {
	Name     string       `json:"name"` // agent_skills/<name>
	Path     string       `json:"path"` // of the skill's folder
	With     Source       `json:"with"` // the tool's
	WithPath string       `json:"with_path,omitempty"`
	Strategy Strategy     `json:"strategy"`
	Tool     Tool         `json:"-"` // that was there
	Skill    folder.Found `json:"-"`
}

func (c Conflict) Error() string {
	if c.WithPath != "" {
		return fmt.Sprintf("the Agent Skill %s in %s has the name of the one in %s", c.Name, c.Path, c.WithPath)
	}
	return fmt.Sprintf("the Agent Skill %s in %s has the name of a tool of the source %s", c.Name, c.Path, c.With)
}

// ErrConflicts means that Agent Skills have names that are taken; the conflicts
// are joined to it.
var ErrConflicts = errors.New("names of Agent Skills are taken")

// Discovery is what discovering found and did.
type Discovery struct {
	Discovered []Tool        `json:"discovered"` // registered, by the order of paths and folders
	Conflicts  []Conflict    `json:"conflicts"`
	Skipped    []folder.Skip `json:"skipped"`
	Findings   []Finding     `json:"findings"` // of those that were registered
}

// Finding is something about a registered skill's file that a person should know.
type Finding struct {
	Path string `json:"path"`
	folder.Finding
}

// DiscoverOptions say where and how Agent Skills are looked for.
type DiscoverOptions struct {
	Paths    folder.Paths
	Mode     folder.Mode
	Strategy Strategy // "" is SkipConflicts
}

// discovery is the state of a registry's discovering.
type discovery struct {
	mu   sync.Mutex // held while a scan runs, so that two do not mix
	said []any      // what the last one was logged for: the same is not logged at each interval
}

// Discover scans the paths and registers each Agent Skill as the tool
// agent_skills/<name>, besides those that are registered already.
func (r *Registry) Discover(ctx context.Context, o DiscoverOptions) (Discovery, error) {
	return r.discover(ctx, o, false)
}

// RefreshAgentSkills scans the paths again: the Agent Skills that were registered
// go, and those that are found come, in one step. If the strategy is
// RefuseConflicts and there are some, or ctx ends, all stays as it was.
func (r *Registry) RefreshAgentSkills(ctx context.Context, o DiscoverOptions) (Discovery, error) {
	return r.discover(ctx, o, true)
}

func (r *Registry) discover(ctx context.Context, o DiscoverOptions, anew bool) (Discovery, error) {
	switch o.Strategy {
	case "":
		o.Strategy = SkipConflicts
	case SkipConflicts, RefuseConflicts, ReplaceTools:
	default:
		return Discovery{}, fmt.Errorf("%.40q is no strategy for conflicts: use skip, error or replace", o.Strategy)
	}
	r.discovery.mu.Lock()
	defer r.discovery.mu.Unlock()
	scanned, err := folder.Scan(ctx, folder.Options{Paths: o.Paths, Mode: o.Mode})
	if err != nil {
		return Discovery{}, fmt.Errorf("look for Agent Skills: %w", err)
	}
	d := Discovery{Discovered: []Tool{}, Conflicts: []Conflict{}, Skipped: scanned.Skipped, Findings: []Finding{}}
	away := Source("") // no tool has it
	if anew {
		away = AgentSkills
	}
	if err := r.o.Tools.change(away, func(rest map[string]Tool) error { return d.register(rest, scanned.Skills, o.Strategy) }); err != nil {
		return Discovery{Discovered: []Tool{}, Conflicts: d.Conflicts, Skipped: d.Skipped}, err
	}
	r.tell(d)
	return d, nil
}

// tell logs what is not registered, unless the last scan found the same.
func (r *Registry) tell(d Discovery) {
	var found []any
	fresh := func(what any) bool {
		found = append(found, what)
		return !slices.Contains(r.discovery.said, what)
	}
	for _, c := range d.Conflicts {
		if !fresh([4]string{c.Name, c.Path, string(c.With), c.WithPath}) {
			continue
		}
		r.o.Logger.Warn("name of an Agent Skill is taken", "name", c.Name, "path", c.Path, "with", c.With, "with_path", c.WithPath, "strategy", c.Strategy)
	}
	for _, s := range d.Skipped {
		if fresh([2]string{s.Path, s.Finding.Error()}) {
			r.o.Logger.Warn("Agent Skill left out", "path", s.Path, "code", s.Code, "reason", s.Finding.Error())
		}
	}
	r.discovery.said = found
}

// register puts skills among tools.
func (d *Discovery) register(tools map[string]Tool, skills []folder.Found, strategy Strategy) error {
	mine := map[string]int{} // where a name is in Discovered
	for _, s := range skills {
		tool := toolOf(s)
		if old, taken := tools[tool.Name]; taken {
			d.Conflicts = append(d.Conflicts, Conflict{
				Name: tool.Name, Path: s.Origin.Path, With: old.Source, WithPath: old.SourceMetadata["path"], Strategy: strategy, Tool: old, Skill: s,
			})
			if strategy != ReplaceTools {
				continue
			}
		} else if err := fits(tool, len(tools)); err != nil {
			d.Skipped = append(d.Skipped, folder.Skip{Path: s.Origin.Path, Finding: folder.Finding{Code: folder.TooMany, Detail: err.Error()}})
			continue
		}
		tools[tool.Name] = tool
		if i, again := mine[tool.Name]; again {
			d.Discovered[i] = tool
		} else {
			mine[tool.Name] = len(d.Discovered)
			d.Discovered = append(d.Discovered, tool)
		}
		for _, f := range s.Findings {
			d.Findings = append(d.Findings, Finding{s.Origin.Path, f})
		}
	}
	if strategy == RefuseConflicts && len(d.Conflicts) > 0 {
		errs := []error{ErrConflicts}
		for _, c := range d.Conflicts {
			errs = append(errs, c)
		}
		return errors.Join(errs...)
	}
	return nil
}

func toolOf(s folder.Found) Tool {
	return Tool{
		Name: model.AgentSkillsNamespace + "/" + s.Name, Description: s.Description, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema,
		Source: AgentSkills, Capability: Capability{ReadOnly: true}, // it is a text that is read
		SourceMetadata: map[string]string{"path": s.Origin.Path, "file": s.Origin.File, "root": s.Origin.Root, "sha256": s.Origin.SHA256},
		Text:           s.Body,
	}
}
