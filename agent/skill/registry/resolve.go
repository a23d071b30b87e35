package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"phonerack/agent/skill/model"
)

// Prefixes of names that resolving makes.
const (
	mcpPrefix   = "mcp:"
	agentPrefix = "agent_skill:"
	anonymous   = "_anon_"
)

// maxResolved bounds the tools of one skill.
const maxResolved = 20_000

// Catalog is what one caller may see of the catalog. Whoever implements it asks
// for the caller's rights at each call.
type Catalog interface {
	// Skill finds a skill by its id. A skill that the caller may not see, or that
	// cannot be used now, is not found.
	Skill(id string) (*model.Skill, bool)
}

// Resolver flattens skills into lists of tools.
//
// Includes come first, from left to right, each with its own includes before it;
// then the skill's tool references, its inline tools as SKILL/_anon_INDEX, the
// tools of its MCP servers as mcp:SERVER/TOOL, and its Agent Skills as
// agent_skill:PATH, each in the order of the items. A tool that occurs again
// keeps the place of its first occurrence and takes all else from the last.
//
// Overrides merge field by field, later ones over earlier ones: those of the skill
// for its tool references by name, those of a reference itself, then those of
// each include on the way, the outermost last.
//
// A skill may be reached by several ways; only its way back to itself is an
// error. Each skill is walked through twice however many ways there are, so that
// the time is linear in the skills, their items and the includes that are reached.
type Resolver struct {
	// Skill finds a skill of the registry.
	Skill func(name string) (*model.RegistrySkill, bool)
	// Catalog finds what catalog/<id> stands for; nil has no skills.
	Catalog Catalog
	// ServerTools names the tools that an MCP server is known to have; nil knows none.
	// It is asked for servers whose tools the skill does not name.
	ServerTools func(server string) []string
	// AgentSkill tells whether there is an Agent Skill agent_skills/<name>, which may
	// be named like a skill; nil knows none.
	AgentSkill func(name string) bool
}

// Entry is one tool of a resolved skill.
type Entry struct {
	Name        string          `json:"name"`
	SourceSkill string          `json:"source_skill"` // whose item it is
	IsInline    bool            `json:"is_inline"`
	Type        model.ItemType  `json:"type"`
	Overrides   model.Overrides `json:"overrides,omitempty"` // of all levels, merged

	Inline *model.InlineTool  `json:"inline,omitempty"` // of an inline tool
	Server *model.MCPSource   `json:"-"`                // of an MCP tool: may hold secrets
	Agent  *model.AgentSource `json:"agent,omitempty"`  // of an Agent Skill
}

// Resolved is what a skill comes down to.
type Resolved struct {
	Skill   string
	Entries []Entry
	// CatalogSkills are the ids of the catalog skills on the way, each once, in the
	// order in which they are reached: their texts may matter where they bring no tool.
	CatalogSkills []string

	root *definition
}

// definition is a skill of either kind, in the order in which it is resolved.
type definition struct {
	name      string
	includes  []*model.Include
	own       []Entry // without the overrides of includes
	overrides []overridden
	catalogID string
	servers   int
	agents    int
}

// overridden are overrides with the path element that they lead to; "" for the skill itself.
type overridden struct {
	to     string
	fields model.Overrides
}

// Resolve flattens a skill, also one of the catalog as catalog/<id>. Errors are
// ErrUnknown, a *MissingIncludeError, a *CycleError, an *OverrideError or a *TooManyToolsError.
func (r *Resolver) Resolve(name string) (*Resolved, error) {
	w, root, err := r.survey(name, 1)
	if err != nil {
		return nil, err
	}
	if len(w.faults) > 0 {
		return nil, w.faults[0]
	}
	entries, err := w.flatten(root)
	if err != nil {
		return nil, err
	}
	return &Resolved{Skill: name, Entries: entries, CatalogSkills: w.catalog, root: root}, nil
}

// faults lists what is wrong on all ways from a skill, at most limit things.
func (r *Resolver) faults(name string, limit int) []error {
	w, root, err := r.survey(name, limit)
	if err != nil {
		return []error{err}
	}
	if len(w.faults) == 0 {
		if _, err := w.flatten(root); err != nil {
			return []error{err}
		}
	}
	return w.faults
}

// walk is one resolution.
type walk struct {
	r      *Resolver
	limit  int
	known  map[string]*definition // what was reached; nil for a name that is not there
	order  []*definition          // those whose includes have all been walked, in the order of first occurrences
	state  map[string]state
	path   []string // from the root to where the walk is
	faults []error

	catalog []string
}

type state int

const (
	open state = iota + 1 // on the path
	done
)

// survey reaches every skill once, in the order of first occurrences, and notes faults.
func (r *Resolver) survey(name string, limit int) (*walk, *definition, error) {
	w := &walk{r: r, limit: limit, known: map[string]*definition{}, state: map[string]state{}}
	root := w.definition(name)
	if root == nil {
		return nil, nil, fmt.Errorf("%w: %.255q", ErrUnknown, name)
	}
	w.visit(root)
	return w, root, nil
}

func (w *walk) full() bool { return len(w.faults) >= w.limit }

// visit is recursive; a registry bounds how deep.
func (w *walk) visit(d *definition) {
	w.state[d.name] = open
	w.path = append(w.path, d.name)
	for _, o := range d.overrides {
		w.checkOverrides(d, o)
	}
	for _, inc := range d.includes {
		if w.full() {
			break
		}
		next := w.definition(inc.Name)
		switch {
		case next == nil:
			w.faults = append(w.faults, &MissingIncludeError{inc.Name, w.pathTo(inc.Name)})
		case w.state[inc.Name] == open:
			i := slices.Index(w.path, inc.Name)
			w.faults = append(w.faults, &CycleError{append(slices.Clone(w.path[i:]), inc.Name)})
		case w.state[inc.Name] == 0:
			w.visit(next)
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.state[d.name] = done
	w.order = append(w.order, d)
	if d.catalogID != "" {
		w.catalog = append(w.catalog, d.catalogID)
	}
}

func (w *walk) pathTo(name string) []string { return append(slices.Clone(w.path), name) }

// checkOverrides refuses fields that are what an entry is, also where the value
// would change nothing.
func (w *walk) checkOverrides(d *definition, o overridden) {
	var fields []string
	for field := range o.fields {
		if slices.Contains(model.NonOverridable, field) {
			fields = append(fields, field)
		}
	}
	if len(fields) == 0 || w.full() {
		return
	}
	slices.Sort(fields)
	path := slices.Clone(w.path)
	if o.to != "" {
		path = w.pathTo(o.to)
	}
	w.faults = append(w.faults, &OverrideError{Skill: d.name, Fields: fields, Path: path})
}

// flatten puts the tools together. Places are those of first occurrences, which is
// the order of the survey. All else is of last occurrences: these are the first
// ones when everything is walked backwards, so that a skill's first visit of that
// walk is the one that counts, together with the overrides of the includes that
// lead to it.
func (w *walk) flatten(root *definition) ([]Entry, error) {
	at := map[string]int{}
	var entries []Entry
	for _, d := range w.order {
		for i := range d.own {
			name := d.own[i].Name
			if _, again := at[name]; again {
				continue
			}
			if len(entries) == maxResolved {
				return nil, &TooManyToolsError{maxResolved}
			}
			at[name] = len(entries)
			entries = append(entries, Entry{})
		}
	}
	visited := map[string]bool{}
	var backwards func(d *definition, outer model.Overrides)
	backwards = func(d *definition, outer model.Overrides) {
		visited[d.name] = true
		for i := len(d.own) - 1; i >= 0; i-- {
			if e := &entries[at[d.own[i].Name]]; e.Name == "" {
				*e = d.own[i]
				e.Overrides = merge(e.Overrides, outer)
			}
		}
		for i := len(d.includes) - 1; i >= 0; i-- {
			if inc := d.includes[i]; !visited[inc.Name] {
				backwards(w.known[inc.Name], merge(inc.Overrides, outer))
			}
		}
	}
	backwards(root, nil)
	return entries, nil
}

// merge puts the fields of top over those of base. Neither is changed.
func merge(base, top model.Overrides) model.Overrides {
	switch {
	case len(top) == 0 && len(base) == 0:
		return nil
	case len(top) == 0:
		return base
	case len(base) == 0:
		return top
	}
	m := maps.Clone(base)
	maps.Copy(m, top)
	return m
}

// flag reads an override that is true or false; present tells whether it is one.
func flag(o model.Overrides, field string) (value, present bool) {
	raw, ok := o[field]
	return value, ok && json.Unmarshal(raw, &value) == nil && string(raw) != "null"
}
