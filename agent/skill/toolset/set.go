package toolset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"phonerack/agent/skill"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/sync/wire"
)

// Bounds of the skills of a task. A request to the planner's proxy has 256 KiB in
// all (wire.MaxJSON), and the screen needs its part of them.
const (
	MaxSkills  = 32
	MaxTools   = 128      // that are offered together
	MaxText    = 80 << 10 // bytes of what the skills say, as it is written in a request
	MaxSchemas = 48 << 10 // bytes of the descriptions and schemas of MCP tools
)

// Catalog is what the task's caller may see of the catalog; *skill.View is one.
type Catalog interface {
	registry.Catalog
	Get(id string) (s *model.Skill, unavailable error, err error)
	Sees(id string) bool
}

var _ Catalog = (*skill.View)(nil)

// Options of Assemble. Registry is needed.
type Options struct {
	Registry *registry.Registry
	Catalog  Catalog // nil while no subscription is kept here
	// Permitted tells whether the task may use a tool of the rack; nil permits all.
	Permitted func(tool string) bool
}

// Set is what the skills of a task come down to.
type Set struct {
	Skills []string // each once, in the order in which the task names them
	// Narrowed tells whether the skills say which tools may be called: then only
	// Tools may, besides those that end a task or ask its people. Skills that are
	// nothing but text leave it at the tools that the rack has.
	Narrowed bool
	Tools    []registry.Use // permitted ones, each once
	LeftOut  []string       // tools that nothing here executes, with the reason
	Text     string         // for the system prompt

	catalog Catalog
	ids     []string // of the catalog skills in it
}

// assembly is the state of Assemble.
type assembly struct {
	o    Options
	set  *Set
	page page
	last *registry.Kit // that brought tools
}

// Assemble resolves the skills that a task names, for the caller whose view of the
// catalog is given. Errors are refusals: SkillUnknown and SkillUnusable.
func Assemble(o Options, names []string) (*Set, error) {
	a := &assembly{o: o, set: &Set{catalog: o.Catalog}}
	for _, name := range names {
		if slices.Contains(a.set.Skills, name) {
			continue
		}
		if len(a.set.Skills) == MaxSkills {
			return nil, unusable(name, fmt.Sprintf("a task takes %d skills", MaxSkills))
		}
		a.set.Skills = append(a.set.Skills, name)
		if err := a.add(name); err != nil {
			return nil, err
		}
	}
	if err := a.bound(); err != nil {
		return nil, err
	}
	a.set.Text = a.page.String()
	return a.set, nil
}

func unusable(name, reason string) *wire.Refusal {
	return wire.Refuse(wire.SkillUnusable, map[string]any{"skill": named(name), "reason": reason})
}

func named(name string) string { return fmt.Sprintf("%.255s", name) }

// add takes in one skill.
func (a *assembly) add(name string) error {
	var view registry.Catalog
	if a.o.Catalog != nil {
		view = a.o.Catalog
	}
	kit, err := a.o.Registry.Kit(name, view)
	if err != nil {
		return a.whyNot(name, err)
	}
	if kit.Useless() {
		reason := "it brings neither a tool nor a text"
		if len(kit.LeftOut) > 0 {
			reason = kit.LeftOut[0].Error()
		}
		return unusable(name, reason)
	}
	for _, e := range kit.LeftOut {
		a.set.LeftOut = append(a.set.LeftOut, e.Error())
	}
	if kit.Narrows() {
		a.set.Narrowed, a.last = true, kit
	}
	for _, u := range kit.Tools {
		a.use(u)
	}
	return a.texts(name, kit)
}

// use takes in a tool: it keeps its place, and takes all else from its last occurrence.
func (a *assembly) use(u registry.Use) {
	if u.Source == registry.Builtin && a.o.Permitted != nil && !a.o.Permitted(u.Name) {
		return
	}
	if i := slices.IndexFunc(a.set.Tools, func(have registry.Use) bool { return have.Name == u.Name }); i >= 0 {
		a.set.Tools[i] = u
		return
	}
	a.set.Tools = append(a.set.Tools, u)
}

// texts takes in what a skill says.
func (a *assembly) texts(name string, kit *registry.Kit) error {
	for _, id := range kit.CatalogSkills {
		if slices.Contains(a.set.ids, id) {
			continue
		}
		s, unavailable, err := a.o.Catalog.Get(id)
		switch {
		case err != nil:
			return a.gone(name, id, err)
		case unavailable != nil:
			return unusable(name, unfit(unavailable))
		}
		a.set.ids = append(a.set.ids, id)
		a.page.catalogSkill(s)
	}
	for _, t := range kit.Texts {
		a.page.agentSkill(t)
	}
	return nil
}

// gone says why a skill that was there a moment ago cannot be had.
func (a *assembly) gone(name, id string, err error) error {
	if errors.Is(err, skill.ErrUnreadable) {
		return unusable(name, "the skill "+id+" cannot be read from this rack's database").After(time.Minute).Because(err)
	}
	return wire.Refuse(wire.SkillUnknown, map[string]any{"skill": named(name)})
}

// unfit is the reason of a flow template that does not fit the tools.
func unfit(err error) string { return strings.TrimPrefix(err.Error(), "skill unavailable: ") }

// whyNot says why a skill does not resolve. Of a skill of the catalog that the
// caller may see, the reason is told.
func (a *assembly) whyNot(name string, err error) error {
	missing, include := errors.AsType[*registry.MissingIncludeError](err)
	asked := name
	if include {
		asked = missing.Include
	}
	if id, ok := model.CatalogID(asked); ok && a.o.Catalog != nil {
		_, unavailable, getErr := a.o.Catalog.Get(id)
		switch {
		case errors.Is(getErr, skill.ErrUnreadable):
			return a.gone(name, id, getErr)
		case unavailable != nil && include:
			return unusable(name, fmt.Sprintf("of the skill %s that it includes, %s", asked, unfit(unavailable)))
		case unavailable != nil:
			return unusable(name, unfit(unavailable))
		}
	}
	if errors.Is(err, registry.ErrUnknown) {
		return wire.Refuse(wire.SkillUnknown, map[string]any{"skill": named(name)})
	}
	return unusable(name, err.Error())
}

// bound refuses what does not fit into a request. Nothing is cut: a text that was
// cut may say the opposite.
func (a *assembly) bound() error {
	all := strings.Join(a.set.Skills, ", ")
	if a.set.Narrowed && len(a.set.Tools) == 0 {
		return unusable(a.last.Skill, "the task has no permission for any of its tools")
	}
	if n := len(a.set.Tools); n > MaxTools {
		return unusable(all, fmt.Sprintf("together they bring %d tools, and a task takes %d", n, MaxTools))
	}
	schemas := 0
	for _, u := range a.set.Tools {
		if u.Source == registry.MCP {
			schemas += len(u.Name) + len(u.Description) + len(u.InputSchema)
		}
	}
	if schemas > MaxSchemas {
		return unusable(all, fmt.Sprintf("the schemas of their MCP tools have %d bytes, and a task takes %d", schemas, MaxSchemas))
	}
	if n := a.page.written(); n > MaxText {
		return unusable(all, fmt.Sprintf("their texts have %d bytes, and a task takes %d; nothing is cut", n, MaxText))
	}
	return nil
}

// Check says why the attempt may not go on with its skills: one of them was
// withdrawn. It reads nothing from disk. A nil set has no skills.
func (s *Set) Check() error {
	if s == nil {
		return nil
	}
	for _, id := range s.ids {
		if !s.catalog.Sees(id) {
			return wire.Refuse(wire.SkillWithdrawn, map[string]any{"skill": model.CatalogName(id)})
		}
	}
	return nil
}
