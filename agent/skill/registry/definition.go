package registry

import (
	"fmt"
	"slices"
	"strings"

	"phonerack/agent/skill/model"
)

// definition finds a skill, once in a walk; nil if there is none.
func (w *walk) definition(name string) *definition {
	d, asked := w.known[name]
	if asked {
		return d
	}
	if id, ok := model.CatalogID(name); ok {
		d = w.fromCatalog(name, id)
	} else if s, ok := w.r.Skill(name); ok {
		d = w.r.define(s)
	} else if w.r.AgentSkill != nil && strings.HasPrefix(name, model.AgentSkillsNamespace+"/") && w.r.AgentSkill(name) {
		d = &definition{name: name, own: []Entry{{Name: name, SourceSkill: name, Type: model.ToolRefItem}}}
	}
	w.known[name] = d
	return d
}

// fromCatalog makes a skill of the tools that a flow template calls. Knowledge has none.
func (w *walk) fromCatalog(name, id string) *definition {
	if w.r.Catalog == nil {
		return nil
	}
	s, ok := w.r.Catalog.Skill(id)
	if !ok || s == nil {
		return nil
	}
	d := &definition{name: name, catalogID: id}
	for _, tool := range s.Tools() {
		d.own = append(d.own, Entry{Name: tool, SourceSkill: name, Type: model.ToolRefItem})
	}
	return d
}

// define sorts a skill's items by what they are.
func (r *Resolver) define(s *model.RegistrySkill) *definition {
	d := &definition{name: s.Name}
	for _, tool := range slices.Sorted(keys(s.Overrides)) {
		d.overrides = append(d.overrides, overridden{fields: s.Overrides[tool]})
	}
	var inline, servers, agents []Entry
	for _, it := range s.Items {
		switch it.Type() {
		case model.IncludeItem:
			d.includes = append(d.includes, it.Include)
			d.overrides = append(d.overrides, overridden{to: it.Include.Name, fields: it.Include.Overrides})
		case model.ToolRefItem:
			d.overrides = append(d.overrides, overridden{fields: it.ToolRef.Overrides})
			d.own = append(d.own, Entry{
				Name: it.ToolRef.Name, SourceSkill: s.Name, Type: model.ToolRefItem,
				Overrides: merge(s.Overrides[it.ToolRef.Name], it.ToolRef.Overrides),
			})
		case model.InlineToolItem:
			name := fmt.Sprintf("%s/%s%d", s.Name, anonymous, len(inline))
			inline = append(inline, Entry{Name: name, SourceSkill: s.Name, IsInline: true, Type: model.InlineToolItem, Inline: it.InlineTool})
		case model.MCPSourceItem:
			d.servers++
			for _, tool := range r.serverTools(it.MCPSource) {
				servers = append(servers, Entry{Name: mcpPrefix + it.MCPSource.Name + "/" + tool, SourceSkill: s.Name, Type: model.MCPSourceItem, Server: it.MCPSource})
			}
		case model.AgentSourceItem:
			d.agents++
			agents = append(agents, Entry{Name: agentPrefix + it.AgentSource.Path, SourceSkill: s.Name, Type: model.AgentSourceItem, Agent: it.AgentSource})
		}
	}
	d.own = slices.Concat(d.own, inline, servers, agents)
	return d
}

// serverTools are the tools that a skill takes from a server: those that its
// filter names, in that order, else those that the server is known to have.
func (r *Resolver) serverTools(s *model.MCPSource) []string {
	var names []string
	switch {
	case s.ToolFilter != nil && len(s.ToolFilter.Include) > 0:
		names = slices.Clone(s.ToolFilter.Include)
	case r.ServerTools != nil:
		names = r.ServerTools(s.Name)
	}
	if s.ToolFilter != nil {
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(s.ToolFilter.Exclude, n) })
	}
	return names
}
