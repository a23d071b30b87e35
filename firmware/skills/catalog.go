package skills

import (
	"context"
	"encoding/json"

	"phonerack/agent/planner"
	"phonerack/agent/skill"
	"phonerack/agent/skill/registry"
	"phonerack/agent/skill/template"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

// Source is the rack's copy of a subscription; *catalog.Catalog is one.
type Source interface {
	skill.Source
	Status() catalog.Status
}

// Follow takes a copy of a subscription in, before anything is asked.
func (s *Skills) Follow(source Source) {
	s.source = source
	s.view = skill.New(skill.Options{Source: source, Tools: s.tool, Logger: s.o.Logger})
}

// CatalogChanged makes ready for a copy that is new.
func (s *Skills) CatalogChanged() {
	if s.view != nil {
		s.view.Changed()
	}
}

// For is what a caller may see of the catalog: nothing while no subscription is
// kept here.
func (s *Skills) For(c skill.Caller) registry.Catalog {
	if s.view == nil {
		return nil
	}
	return s.view.For(c)
}

// Catalog implements action.Skills.
func (s *Skills) Catalog() (catalog.Status, error) {
	if s.source == nil {
		return catalog.Status{}, wire.Refuse(wire.NotConfigured, map[string]any{"what": "source of a catalog of skills", "key": "cloud.identity (a bundle with keys for skills) or skills.platform.url"})
	}
	return s.source.Status(), nil
}

// refresh looks at the Agent Skills folders, and has the flow templates checked
// with the tools that there are then.
func (s *Skills) refresh(ctx context.Context) (registry.Discovery, error) {
	d, err := s.registry.RefreshAgentSkills(ctx, s.o.Discover)
	if err == nil {
		s.toolsChanged()
	}
	return d, err
}

// toolsChanged has the flow templates checked with the tools that there are now.
func (s *Skills) toolsChanged() {
	if s.view != nil {
		s.view.ToolsChanged()
	}
	if s.o.Changed != nil {
		s.o.Changed()
	}
}

// tool is a registered tool with what its arguments are held to.
func (s *Skills) tool(name string) (template.Checker, bool) {
	t, registered := s.known.Get(name)
	if !registered {
		return nil, false
	}
	if schema, err := planner.ParseSchema(t.InputSchema); err == nil {
		return schema, true
	}
	return anything{}, true // its schema says more than can be checked here; whoever executes it does
}

type anything struct{}

func (anything) Check(json.RawMessage) error { return nil }
