package mcptest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"phonerack/agent/mcp"
	"phonerack/agent/planner"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/template"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// Skills implements mcp.Skills. A skill of the subscription "X" is seen by the
// callers that Entitled gives X to.
type Skills struct {
	mu       sync.Mutex // guards what follows
	all      []*model.Skill
	entitled map[string][]string // subscription -> names of callers
	broken   map[string]string   // id -> why it cannot be used
}

var _ mcp.Skills = (*Skills)(nil)

// NewSkills returns skills that nobody may see yet.
func NewSkills(all ...*model.Skill) *Skills {
	slices.SortFunc(all, func(a, b *model.Skill) int { return strings.Compare(a.ID, b.ID) })
	return &Skills{all: all, entitled: map[string][]string{}, broken: map[string]string{}}
}

// All returns the skills, by id.
func (s *Skills) All() []*model.Skill { return slices.Clone(s.all) }

// Entitle lets exactly these callers see a subscription's skills.
func (s *Skills) Entitle(subscription string, callers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entitled[subscription] = callers
}

// Break makes a skill one that cannot be used.
func (s *Skills) Break(id, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[id] = why
}

// seen are the skills that the caller may see, by id.
func (s *Skills) seen(c mcp.Caller) []*model.Skill {
	var some []*model.Skill
	for _, one := range s.all {
		if slices.Contains(s.entitled[one.Subscription], c.Name) {
			some = append(some, one)
		}
	}
	return some
}

func (s *Skills) row(one *model.Skill) mcp.SkillRow {
	return mcp.SkillRow{
		ID: one.ID, Name: one.Name, Kind: one.Kind, Description: one.Description, Version: one.Version, Tags: one.Tags,
		Source: "catalog", Unavailable: s.broken[one.ID],
	}
}

// ListSkills implements mcp.Skills.
func (s *Skills) ListSkills(_ context.Context, c mcp.Caller, after string, limit int) (rows []mcp.SkillRow, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen(c) {
		if one.ID <= after {
			continue
		}
		if len(rows) == limit {
			return rows, true, nil
		}
		rows = append(rows, s.row(one))
	}
	return rows, false, nil
}

// SearchSkills implements mcp.Skills: all words have to be there.
func (s *Skills) SearchSkills(_ context.Context, c mcp.Caller, query string, limit int) ([]mcp.SkillRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []mcp.SkillRow
	for _, one := range s.seen(c) {
		text := strings.ToLower(one.ID + " " + one.Name + " " + one.Description + " " + strings.Join(one.Tags, " "))
		words := strings.Fields(strings.ToLower(query))
		if len(rows) < limit && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			rows = append(rows, s.row(one))
		}
	}
	return rows, nil
}

// GetSkill implements mcp.Skills.
func (s *Skills) GetSkill(_ context.Context, c mcp.Caller, id string) (mcp.Skill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen(c) {
		if one.ID == id {
			return mcp.Skill{Skill: one, Source: "catalog", Unavailable: s.broken[id]}, nil
		}
	}
	return mcp.Skill{}, wire.Refuse(wire.NotFound, map[string]any{"what": "skill", "id": id})
}

// ResolveSkill implements mcp.Skills with the tools of planners.
func (s *Skills) ResolveSkill(ctx context.Context, c mcp.Caller, id string, values json.RawMessage) ([]template.Call, error) {
	one, err := s.GetSkill(ctx, c, id)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse(one.Skill)
	if err != nil {
		return nil, err
	}
	return t.Resolve(values, func(name string) (template.Checker, bool) {
		for _, tool := range tools.Default().Tools() {
			if tool.Name == name {
				schema, err := planner.ParseSchema(tool.Schema)
				return schema, err == nil
			}
		}
		return nil, false
	})
}
