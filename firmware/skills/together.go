package skills

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"phonerack/agent/skill"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/agent/skill/search"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

// person is what a person at this rack may see of the catalog; nil while no
// subscription is kept here.
func (s *Skills) person() *skill.View {
	if s.view == nil {
		return nil
	}
	return s.view.For(skill.Caller{Agent: skill.ForPersons})
}

func wanted(namespace, of string) bool { return namespace == "" || namespace == of }

// behind turns a place in the list of all names into one among the ids of a
// namespace; false if all of them come before it.
func behind(after, namespace string) (id string, some bool) {
	prefix := namespace + "/"
	id, within := strings.CutPrefix(after, prefix)
	if within {
		return id, true
	}
	return "", after < prefix
}

// List implements action.Skills.
func (s *Skills) List(namespace, after string, limit int) action.SkillList {
	list := action.SkillList{Skills: []action.SkillRow{}, Summary: &action.SkillSummary{}}
	more := false
	for _, k := range s.registry.List(namespace) {
		if list.Summary.Registry++; k.Name > after {
			list.Skills = append(list.Skills, registered(k))
		}
	}
	if v := s.person(); v != nil && wanted(namespace, model.CatalogNamespace) {
		list.Summary.Catalog, list.Summary.Unavailable = v.Count()
		list.Summary.StaleSince = s.source.Status().StaleSince
		if id, some := behind(after, model.CatalogNamespace); some {
			var found []skill.Row
			found, more = v.List(id, limit)
			for _, r := range found {
				list.Skills = append(list.Skills, ofCatalog(r, !list.Summary.StaleSince.IsZero()))
			}
		}
	}
	if wanted(namespace, model.AgentSkillsNamespace) {
		for _, t := range s.known.List(registry.AgentSkills) {
			if list.Summary.AgentSkills++; t.Name > after {
				list.Skills = append(list.Skills, ofFolder(t))
			}
		}
	}
	list.Summary.Total = list.Summary.Registry + list.Summary.Catalog + list.Summary.AgentSkills
	slices.SortFunc(list.Skills, func(a, b action.SkillRow) int { return cmp.Compare(a.Name, b.Name) })
	if more || len(list.Skills) > limit {
		list.Skills = list.Skills[:min(limit, len(list.Skills))]
		list.Next = list.Skills[len(list.Skills)-1].Name
	}
	return list
}

func registered(s *registry.Skill) action.SkillRow {
	return action.SkillRow{
		Name: s.Name, Source: action.FromRegistry, Kind: action.Collection,
		Description: s.Description, Version: s.Version, Items: len(s.Items), UpdatedAt: s.UpdatedAt,
	}
}

func ofCatalog(r skill.Row, stale bool) action.SkillRow {
	return action.SkillRow{
		Name: model.CatalogName(r.ID), Source: action.FromCatalog, Kind: r.Kind, Title: r.Name, Description: r.Description, Version: r.Version,
		Subscription: r.Subscription, Tags: r.Tags, UpdatedAt: r.UpdatedAt, Stale: stale, Unavailable: r.Unavailable,
	}
}

func ofFolder(t registry.Tool) action.SkillRow {
	return action.SkillRow{Name: t.Name, Source: action.FromAgentSkills, Kind: model.Knowledge, Description: t.Description}
}

// Search implements action.Skills. The indexes of the registry and of the folders
// are made anew each time: people ask seldom, and a hundred skills take 2 ms.
func (s *Skills) Search(query string, limit int) []action.SkillRow {
	var own, folders, catalog []action.SkillRow
	var docs []search.Document
	byName := map[string]*registry.Skill{}
	for _, k := range s.registry.List("") {
		byName[k.Name] = k
		docs = append(docs, search.Document{ID: k.Name, Name: k.ShortName, Description: k.Description})
	}
	for _, hit := range search.New(docs).Search(query, nil, 0, limit) {
		own = append(own, registered(byName[hit.ID]))
	}
	for _, t := range s.foldersFor(query, limit) {
		folders = append(folders, ofFolder(t))
	}
	if v := s.person(); v != nil {
		stale := !s.source.Status().StaleSince.IsZero()
		for _, r := range v.Search(query, limit) {
			catalog = append(catalog, ofCatalog(r, stale))
		}
	}
	return inTurns(limit, own, catalog, folders)
}

// foldersFor finds Agent Skills, the best first.
func (s *Skills) foldersFor(query string, limit int) (found []registry.Tool) {
	byID := map[string]registry.Tool{}
	var docs []search.Document
	for _, t := range s.known.List(registry.AgentSkills) {
		byID[t.Name] = t
		docs = append(docs, search.Document{ID: t.Name, Name: shortName(t), Description: t.Description})
	}
	for _, hit := range search.New(docs).Search(query, nil, 0, limit) {
		found = append(found, byID[hit.ID])
	}
	return found
}

// inTurns merges what several indexes have found: their scores cannot be compared,
// so that the best of each come first.
func inTurns[T any](limit int, found ...[]T) []T {
	all, longest := []T{}, 0
	for _, f := range found {
		longest = max(longest, len(f))
	}
	for i := range longest {
		for _, f := range found {
			if i < len(f) {
				all = append(all, f[i])
			}
		}
	}
	return all[:min(limit, len(all))]
}

// Show implements action.Skills.
func (s *Skills) Show(name string) (action.SkillDetail, error) {
	if t, ok := s.folder(name); ok {
		return action.SkillDetail{
			RegistrySkill: model.RegistrySkill{Name: t.Name, Description: t.Description, Items: []model.Item{}},
			Source:        action.FromAgentSkills, Kind: model.Knowledge, Namespace: model.AgentSkillsNamespace, ShortName: shortName(t),
			Content: t.Text, Path: t.SourceMetadata["path"],
		}, nil
	}
	id, ok := model.CatalogID(name)
	v := s.person()
	if !ok || v == nil {
		k, err := s.registry.Get(name)
		if err != nil {
			return action.SkillDetail{}, refused(name, err)
		}
		return detail(k), nil
	}
	k, unavailable, err := v.Get(id)
	if err != nil {
		return action.SkillDetail{}, told(name, err)
	}
	d := action.SkillDetail{
		RegistrySkill: model.RegistrySkill{Name: name, Description: k.Description, Version: k.Version, Items: []model.Item{}},
		Source:        action.FromCatalog, Kind: k.Kind, Namespace: model.CatalogNamespace, ShortName: id, UpdatedAt: k.UpdatedAt,
		Title: k.Name, Subscription: k.Subscription, Tags: k.Tags, Aliases: k.Aliases, Content: k.Content, Parameters: k.Parameters, Steps: k.Steps,
		Stale: !s.source.Status().StaleSince.IsZero(),
	}
	if unavailable != nil {
		d.Unavailable = unavailable.Error()
	}
	return d, nil
}

// folder finds an Agent Skill.
func (s *Skills) folder(name string) (registry.Tool, bool) {
	t, ok := s.known.Get(name)
	return t, ok && t.Source == registry.AgentSkills
}

// Tools implements action.Skills. An Agent Skill is the one tool that it became.
func (s *Skills) Tools(name string) (registry.Listing, error) {
	if t, ok := s.folder(name); ok {
		return registry.Listing{Tools: []registry.Row{registry.RowOf(t)}, Summary: registry.CapabilitySummary{TotalTools: 1, AgentSkillSources: 1}}, nil
	}
	if err := s.unusable(name); err != nil {
		return registry.Listing{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
	}
	l, err := s.registry.Describe(name, s.catalog())
	return l, refused(name, err)
}

// unusable says why a skill of the catalog that a person may see cannot be used:
// for the registry it is not there at all.
func (s *Skills) unusable(name string) error {
	id, ok := model.CatalogID(name)
	v := s.person()
	if !ok || v == nil {
		return nil
	}
	_, unavailable, err := v.Get(id)
	if err != nil && !errors.Is(err, skill.ErrUnknown) {
		return err
	}
	return unavailable
}

// Validate implements action.Skills.
func (s *Skills) Validate(p registry.Plan) []string {
	faults := []string{}
	seen := map[string]bool{}
	for _, name := range p.Skills {
		if _, ok := s.folder(name); ok || seen[name] {
			continue
		}
		seen[name] = true
		if err := s.unusable(name); err != nil {
			faults = append(faults, fmt.Sprintf("Skill '%s': %v", name, err))
			continue
		}
		faults = append(faults, s.registry.ValidatePlan(registry.Plan{Skills: []string{name}}, s.catalog())...)
	}
	return faults
}
