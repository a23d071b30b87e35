package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/sync/catalog"
)

// Skills are the skills of a rack, as a person sees them.
type Skills interface {
	// List returns at most limit skills of a namespace, by name, whose names come after the given one; with "" those of
	// all namespaces.
	List(namespace, after string, limit int) SkillList
	// Search returns the skills that a query finds, the best of each source in turns.
	Search(query string, limit int) []SkillRow
	Show(name string) (SkillDetail, error)
	// Add registers a skill that is written in YAML; Update puts it in the place of one of its name.
	Add(yaml SkillYAML) (SkillDetail, error)
	Update(yaml SkillYAML) (SkillDetail, error)
	Remove(name string) (SkillRemoved, error)
	// Tools lists the tools of a skill, Known those that exist.
	Tools(name string) (registry.Listing, error)
	Known() []registry.Row
	// Refresh looks at the Agent Skills folders again.
	Refresh(ctx context.Context) (SkillRefresh, error)
	// Validate says why a plan cannot be satisfied, NotExecutable which tools of its skills tasks do without, Check why a
	// skill would not be registered.
	Validate(plan registry.Plan) []string
	NotExecutable(plan registry.Plan) []string
	Check(yaml SkillYAML) []string
	// Catalog tells how the copy of the subscription does, or the refusal that there is none.
	Catalog() (catalog.Status, error)
}

// SkillSource says where a skill comes from.
type SkillSource string

// Sources of skills.
const (
	FromRegistry    SkillSource = "registry"     // registered on this rack
	FromCatalog     SkillSource = "catalog"      // of the subscription; named catalog/<id>
	FromAgentSkills SkillSource = "agent_skills" // of a folder; named agent_skills/<name>
)

// Collection is the kind of a registry skill; those of the others are model's.
const Collection model.Kind = "collection"

// SkillRow is a skill in a list.
type SkillRow struct {
	Name         string      `json:"name"` // namespace/short_name
	Source       SkillSource `json:"source"`
	Kind         model.Kind  `json:"kind"`
	Title        string      `json:"title,omitempty"` // what a skill of the catalog is called
	Description  string      `json:"description"`
	Version      string      `json:"version,omitempty"`
	Subscription string      `json:"subscription_id,omitempty"`
	Tags         []string    `json:"tags,omitempty"`
	Items        int         `json:"items"` // of a registry skill
	UpdatedAt    time.Time   `json:"updated_at,omitzero"`
	Stale        bool        `json:"stale,omitempty"`       // it is of a catalog that has not been renewed in time
	Unavailable  string      `json:"unavailable,omitempty"` // why it cannot be used with the tools that there are
}

// SkillDetail is a skill with all that it says, but for secrets: values of environment variables and of headers, and user
// and query of an address, are replaced by [Hidden].
type SkillDetail struct {
	model.RegistrySkill             // of a skill from elsewhere: name, description and version
	Source              SkillSource `json:"source"`
	Kind                model.Kind  `json:"kind"`
	Namespace           string      `json:"namespace"`
	ShortName           string      `json:"short_name"`
	CreatedAt           time.Time   `json:"created_at,omitzero"`
	UpdatedAt           time.Time   `json:"updated_at,omitzero"`

	Title        string            `json:"title,omitempty"`
	Subscription string            `json:"subscription_id,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Aliases      []string          `json:"aliases,omitempty"`
	Content      string            `json:"content,omitempty"` // of knowledge
	Parameters   []model.Parameter `json:"parameters,omitempty"`
	Steps        []model.Step      `json:"steps,omitempty"`
	Path         string            `json:"path,omitempty"` // of an Agent Skill's folder
	Stale        bool              `json:"stale,omitempty"`
	Unavailable  string            `json:"unavailable,omitempty"`
}

// Hidden stands for a value that is not shown.
const Hidden = "(hidden)"

// SkillRemoved tells what a removal left behind.
type SkillRemoved struct {
	Name string `json:"name"`
	// Includers are the skills that include the removed one, and can no longer be used.
	Includers []string `json:"includers"`
}

// SkillRefresh is what a look at the Agent Skills folders found.
type SkillRefresh struct {
	Discovered []registry.Row      `json:"discovered"`
	Conflicts  []registry.Conflict `json:"conflicts"`
	Skipped    []folder.Skip       `json:"skipped"`
	Findings   []registry.Finding  `json:"findings"`
}

// SkillListArgs are the arguments of skill_list.
type SkillListArgs struct {
	Namespace string `json:"namespace,omitempty" doc:"only skills of this namespace"`
	After     string `json:"after,omitempty" doc:"only skills behind this name: the next of an earlier answer"`
	Limit     int    `json:"limit,omitempty" doc:"at most so many, 1 to 50; 50 if not given"`
}

func (a *SkillListArgs) validate() error { return pageSize(a.Limit) }

func pageSize(limit int) error {
	if limit < 0 || limit > model.MaxPage {
		return fmt.Errorf("limit must be from 1 to %d", model.MaxPage)
	}
	return nil
}

// SkillList is the result of skill_list and skill_search.
type SkillList struct {
	Skills  []SkillRow    `json:"skills"`
	Next    string        `json:"next,omitempty"`    // for After, if there are more
	Summary *SkillSummary `json:"summary,omitempty"` // of the whole list, not of this part; nil for a search
}

// SkillSummary counts the skills of a list.
type SkillSummary struct {
	Total       int       `json:"total"`
	Registry    int       `json:"registry"`
	Catalog     int       `json:"catalog"`
	AgentSkills int       `json:"agent_skills"`
	Unavailable int       `json:"unavailable"`
	StaleSince  time.Time `json:"stale_since,omitzero"` // when the catalog became out of date; zero while it is not
}

// SkillSearchArgs are the arguments of skill_search.
type SkillSearchArgs struct {
	Query string `json:"query" doc:"words in any language"`
	Limit int    `json:"limit,omitempty" doc:"at most so many, 1 to 50; 10 if not given"`
}

func (a *SkillSearchArgs) validate() error { return pageSize(a.Limit) }

const defaultHits = 10

// SkillArgs name a skill.
type SkillArgs struct {
	Name string `json:"name" doc:"namespace/short_name, catalog/<id> or agent_skills/<name>"`
}

// SkillToolsArgs are the arguments of skill_tools.
type SkillToolsArgs struct {
	Name string `json:"name,omitempty" doc:"namespace/short_name; every tool that exists if not given"`
}

// SkillYAML is a skill as a person wrote it.
type SkillYAML struct {
	File string `json:"file,omitempty" doc:"name of the file, for messages"`
	YAML string `json:"yaml" doc:"the skill"`
}

func (a *SkillYAML) validate() error {
	if len(a.YAML) > model.MaxYAMLBytes || len(a.File) > 255 {
		return fmt.Errorf("a skill has at most %d bytes of YAML, and the name of its file 255", model.MaxYAMLBytes)
	}
	return nil
}

// SkillValidateArgs are the arguments of skill_validate.
type SkillValidateArgs struct {
	Skills []string `json:"skills,omitempty" doc:"the skills that a plan names"`
	File   string   `json:"file,omitempty" doc:"name of the file, for messages"`
	YAML   string   `json:"yaml,omitempty" doc:"a skill that is to be registered"`
}

func (a *SkillValidateArgs) validate() error {
	if (len(a.Skills) == 0) == (a.YAML == "") {
		return errors.New("either skills or yaml must be given")
	}
	if len(a.Skills) > model.MaxItems {
		return fmt.Errorf("a plan names at most %d skills", model.MaxItems)
	}
	return (&SkillYAML{a.File, a.YAML}).validate()
}

// SkillValidation is the result of skill_validate.
type SkillValidation struct {
	Valid         bool     `json:"valid"`
	Errors        []string `json:"errors"`
	NotExecutable []string `json:"not_executable,omitempty"` // tools that nothing on this rack executes: tasks do without them
}

// scanTimeout bounds a look at folders that may lie on a slow disk.
const scanTimeout = time.Minute

func skillActions() []entry {
	look := Definition{Role: Viewer, Idempotent: true, Timeout: quick}
	act := Definition{Role: Operator, Timeout: quick}
	named := func(d Definition, name, summary string) Definition {
		d.Name, d.Summary = name, summary
		return d
	}
	refresh := named(act, "skill_refresh", "look at the Agent Skills folders again")
	refresh.Idempotent, refresh.Timeout = true, scanTimeout
	return []entry{
		define(named(look, "skill_list", "list skills by name: registered ones, those of the catalog, Agent Skills"), skillList),
		define(named(look, "skill_search", "find skills by words"), skillSearch),
		define(named(look, "skill_show", "show a skill"), withSkills(func(s Skills, a *SkillArgs) (any, error) { return s.Show(a.Name) })),
		define(named(act, "skill_add", "register a skill"), withSkills(func(s Skills, a *SkillYAML) (any, error) { return s.Add(*a) })),
		define(named(act, "skill_update", "replace a registered skill"), withSkills(func(s Skills, a *SkillYAML) (any, error) { return s.Update(*a) })),
		define(named(act, "skill_remove", "remove a registered skill"), withSkills(func(s Skills, a *SkillArgs) (any, error) { return s.Remove(a.Name) })),
		define(named(look, "skill_tools", "list the tools of a skill, or all that exist"), skillTools),
		define(named(look, "skill_validate", "check the skills of a plan, or a skill before it is registered"), skillValidate),
		define(refresh, skillRefresh),
		define(named(look, "skill_catalog", "show how the catalog of skills is kept up to date"), withSkills(func(s Skills, _ *struct{}) (any, error) { return s.Catalog() })),
	}
}

// withSkills gives a function the rack's skills, if it has any.
func withSkills[A any](run func(s Skills, a *A) (any, error)) func(context.Context, *call, *A) (any, error) {
	return func(_ context.Context, c *call, a *A) (any, error) {
		s, err := c.rack.Skills()
		if err != nil {
			return nil, err
		}
		return run(s, a)
	}
}

var skillList = withSkills(func(s Skills, a *SkillListArgs) (any, error) {
	return s.List(a.Namespace, a.After, cmp.Or(a.Limit, model.MaxPage)), nil
})

var skillSearch = withSkills(func(s Skills, a *SkillSearchArgs) (any, error) {
	return SkillList{Skills: s.Search(a.Query, cmp.Or(a.Limit, defaultHits))}, nil
})

var skillTools = withSkills(func(s Skills, a *SkillToolsArgs) (any, error) {
	if a.Name == "" {
		known := s.Known()
		return registry.Listing{Tools: known, Summary: registry.CapabilitySummary{TotalTools: len(known)}}, nil
	}
	return s.Tools(a.Name)
})

var skillValidate = withSkills(func(s Skills, a *SkillValidateArgs) (any, error) {
	v := SkillValidation{}
	if a.YAML != "" {
		v.Errors = s.Check(SkillYAML{a.File, a.YAML})
	} else {
		v.Errors = s.Validate(registry.Plan{Skills: a.Skills})
		v.NotExecutable = s.NotExecutable(registry.Plan{Skills: a.Skills})
	}
	v.Valid = len(v.Errors) == 0
	return v, nil
})

func skillRefresh(ctx context.Context, c *call, _ *struct{}) (any, error) {
	s, err := c.rack.Skills()
	if err != nil {
		return nil, err
	}
	return s.Refresh(ctx)
}
