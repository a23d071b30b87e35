package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"phonerack/agent/mcp"
	"phonerack/agent/skill"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/agent/skill/template"
	"phonerack/sync/wire"
)

// fromCatalog is the source of a catalog skill, as clients are told it.
const fromCatalog = "catalog"

// ForMCP gives the skills as MCP clients have them: those of the catalog that the
// client is entitled to, and the Agent Skills of this rack, which are everybody's.
func (s *Skills) ForMCP() mcp.Skills { return offered{s} }

type offered struct{ s *Skills }

// view is what a client may see of the catalog; nil while no subscription is kept here.
func (o offered) view(c mcp.Caller) *skill.View {
	if o.s.view == nil {
		return nil
	}
	who := skill.Caller{Agent: skill.ForMCP}
	if c.Via == mcp.ViaHTTP { // a name on a stream is a person's, and no token's
		who.Token = c.Name
	}
	return o.s.view.For(who)
}

// ListSkills implements mcp.Skills.
func (o offered) ListSkills(_ context.Context, c mcp.Caller, after string, limit int) (rows []mcp.SkillRow, more bool, err error) {
	if v := o.view(c); v != nil {
		var found []skill.Row
		found, more = v.List(after, limit)
		for _, r := range found {
			rows = append(rows, catalogRow(r))
		}
	}
	for _, t := range o.s.known.List(registry.AgentSkills) {
		if t.Name > after {
			rows = append(rows, folderRow(t))
		}
	}
	slices.SortFunc(rows, func(a, b mcp.SkillRow) int { return cmp.Compare(a.ID, b.ID) })
	if len(rows) > limit {
		rows, more = rows[:limit], true
	}
	return rows, more, nil
}

func catalogRow(r skill.Row) mcp.SkillRow {
	return mcp.SkillRow{
		ID: r.ID, Name: r.Name, Kind: r.Kind, Description: r.Description, Version: r.Version, Tags: r.Tags, Source: fromCatalog, Unavailable: r.Unavailable,
	}
}

func folderRow(t registry.Tool) mcp.SkillRow {
	return mcp.SkillRow{ID: t.Name, Name: shortName(t), Kind: model.Knowledge, Description: t.Description, Source: string(registry.AgentSkills)}
}

func shortName(t registry.Tool) string {
	return strings.TrimPrefix(t.Name, model.AgentSkillsNamespace+"/")
}

// SearchSkills implements mcp.Skills.
func (o offered) SearchSkills(_ context.Context, c mcp.Caller, query string, limit int) ([]mcp.SkillRow, error) {
	var first, second []mcp.SkillRow
	if v := o.view(c); v != nil {
		for _, r := range v.Search(query, limit) {
			first = append(first, catalogRow(r))
		}
	}
	for _, t := range o.s.foldersFor(query, limit) {
		second = append(second, folderRow(t))
	}
	return inTurns(limit, first, second), nil
}

// GetSkill implements mcp.Skills.
func (o offered) GetSkill(_ context.Context, c mcp.Caller, id string) (mcp.Skill, error) {
	if t, ok := o.s.folder(id); ok {
		return mcp.Skill{
			Skill:  &model.Skill{ID: t.Name, Name: shortName(t), Description: t.Description, Kind: model.Knowledge, Content: t.Text},
			Source: string(registry.AgentSkills),
		}, nil
	}
	v := o.view(c)
	if v == nil {
		return mcp.Skill{}, unknown(id)
	}
	s, unavailable, err := v.Get(id)
	if err != nil {
		return mcp.Skill{}, told(id, err)
	}
	got := mcp.Skill{Skill: s, Source: fromCatalog}
	if unavailable != nil {
		got.Unavailable = unavailable.Error()
	}
	return got, nil
}

// ResolveSkill implements mcp.Skills.
func (o offered) ResolveSkill(_ context.Context, c mcp.Caller, id string, values json.RawMessage) ([]template.Call, error) {
	if _, ok := o.s.folder(id); ok {
		return nil, template.ErrKnowledge
	}
	v := o.view(c)
	if v == nil {
		return nil, unknown(id)
	}
	calls, err := v.Resolve(id, values)
	return calls, told(id, err)
}

// told turns an error of a view into what a client may hear.
func told(id string, err error) error {
	switch {
	case errors.Is(err, skill.ErrUnknown):
		return unknown(id)
	case errors.Is(err, skill.ErrUnreadable):
		return wire.Refuse(wire.Internal, nil).Because(err)
	}
	return err
}

func unknown(id string) error {
	return wire.Refuse(wire.NotFound, map[string]any{"what": "skill", "id": fmt.Sprintf("%.255s", id)})
}
