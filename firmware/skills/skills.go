package skills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"phonerack/agent/mcp/client"
	"phonerack/agent/skill"
	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

// Options of a rack's skills. Bucket is needed.
type Options struct {
	Bucket   registry.Bucket
	Tools    []tools.Tool // of this rack
	Discover registry.DiscoverOptions
	Servers  []client.Server // of MCP, that skills may use
	Every    time.Duration   // between two looks at folders and servers; 0 is one look only
	Version  string          // of this program, as servers are told it
	Changed  func()          // told when there are other tools; may be nil
	Now      func() time.Time
	Logger   *slog.Logger
}

// Skills are the skills of a rack. It is safe for concurrent use.
type Skills struct {
	o        Options
	known    *registry.Tools
	registry *registry.Registry
	view     *skill.Catalog // nil while no subscription is kept here
	source   Source         // likewise
	servers  *servers
}

// Open reads the registered skills.
func Open(o Options) (*Skills, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Skills{o: o, known: &registry.Tools{}}
	s.servers = &servers{s: s, tools: map[string][]registry.Tool{}, told: map[string]string{}}
	for _, t := range o.Tools {
		if err := s.known.Add(own(t)); err != nil {
			return nil, err
		}
	}
	var err error
	s.registry, err = registry.Open(registry.Options{Bucket: o.Bucket, Tools: s.known, Now: o.Now, Logger: o.Logger})
	return s, err
}

// own describes a tool of this rack as registries know tools.
func own(t tools.Tool) registry.Tool {
	return registry.Tool{
		Name: t.Name, Description: t.Description, InputSchema: t.Schema, Source: registry.Builtin,
		Capability: registry.Capability{
			ReadOnly: t.Annotations.ReadOnly, Writes: !t.Annotations.ReadOnly, SideEffects: t.Annotations.Destructive || t.Annotations.OpenWorld,
		},
	}
}

// Registry is the registry itself.
func (s *Skills) Registry() *registry.Registry { return s.registry }

// Run looks at folders and servers now and then, until ctx ends.
func (s *Skills) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, server := range s.o.Servers {
		watching.Go(func() { s.servers.watch(ctx, server) })
	}
	var again <-chan time.Time
	if s.o.Every > 0 {
		ticker := time.NewTicker(s.o.Every)
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		if _, err := s.refresh(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Error("the Agent Skills folders were not taken", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		}
	}
}

// catalog is what a person at this rack may see of the catalog.
func (s *Skills) catalog() registry.Catalog { return s.For(skill.Caller{Agent: skill.ForPersons}) }

func detail(s *registry.Skill) action.SkillDetail {
	d := action.SkillDetail{
		RegistrySkill: s.RegistrySkill, Source: action.FromRegistry, Kind: action.Collection,
		Namespace: s.Namespace, ShortName: s.ShortName, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	d.Items = make([]model.Item, len(s.Items))
	for i, it := range s.Items {
		if it.MCPSource != nil {
			it.MCPSource = withoutSecrets(*it.MCPSource)
		}
		d.Items[i] = it
	}
	return d
}

func withoutSecrets(m model.MCPSource) *model.MCPSource {
	m.Env, m.Headers = hidden(m.Env), hidden(m.Headers)
	if u, err := url.Parse(m.URL); err == nil && (u.User != nil || u.RawQuery != "") {
		if u.User != nil {
			u.User = url.User(action.Hidden)
		}
		if u.RawQuery != "" {
			u.RawQuery = action.Hidden
		}
		m.URL = u.String()
	}
	return &m
}

func hidden(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	out := make(map[string]string, len(values))
	for name := range values {
		out[name] = action.Hidden
	}
	return out
}

// Add implements action.Skills.
func (s *Skills) Add(y action.SkillYAML) (action.SkillDetail, error) {
	return s.put(y, s.registry.Add)
}

// Update implements action.Skills.
func (s *Skills) Update(y action.SkillYAML) (action.SkillDetail, error) {
	return s.put(y, s.registry.Update)
}

func (s *Skills) put(y action.SkillYAML, to func(*model.RegistrySkill, registry.Catalog) (*registry.Skill, error)) (action.SkillDetail, error) {
	parsed, err := parse(y)
	if err != nil {
		return action.SkillDetail{}, refused("", err)
	}
	skill, err := to(parsed, s.catalog())
	if err != nil {
		return action.SkillDetail{}, refused(parsed.Name, err)
	}
	for _, m := range skill.Smuggled() {
		s.o.Logger.Warn("a skill has characters that cannot be seen", "skill", skill.Name, "where", m.String())
	}
	return detail(skill), nil
}

func parse(y action.SkillYAML) (*model.RegistrySkill, error) {
	return model.ParseRegistryYAML(cmp.Or(y.File, "the skill"), []byte(y.YAML))
}

// Remove implements action.Skills.
func (s *Skills) Remove(name string) (action.SkillRemoved, error) {
	includers, err := s.registry.Remove(name)
	if err != nil {
		return action.SkillRemoved{}, refused(name, err)
	}
	if includers == nil {
		includers = []string{}
	}
	return action.SkillRemoved{Name: name, Includers: includers}, nil
}

// Known implements action.Skills.
func (s *Skills) Known() []registry.Row { return s.registry.DescribeAll() }

// Refresh implements action.Skills.
func (s *Skills) Refresh(ctx context.Context) (action.SkillRefresh, error) {
	s.servers.lookAll(ctx)
	d, err := s.refresh(ctx)
	if err != nil {
		return action.SkillRefresh{}, refused("", err)
	}
	r := action.SkillRefresh{Discovered: []registry.Row{}, Conflicts: d.Conflicts, Skipped: d.Skipped, Findings: d.Findings}
	if r.Skipped == nil {
		r.Skipped = []folder.Skip{}
	}
	for _, t := range d.Discovered {
		r.Discovered = append(r.Discovered, registry.RowOf(t))
	}
	return r, nil
}

// NotExecutable implements action.Skills.
func (s *Skills) NotExecutable(p registry.Plan) []string {
	return s.registry.NotExecutable(p, s.catalog())
}

// Check implements action.Skills.
func (s *Skills) Check(y action.SkillYAML) []string {
	parsed, err := parse(y)
	if err == nil {
		err = s.registry.Check(parsed, s.catalog())
	}
	if err != nil {
		return []string{err.Error()}
	}
	faults := []string{}
	for _, m := range parsed.Smuggled() {
		faults = append(faults, "it has characters that cannot be seen in "+m.String())
	}
	return faults
}

// refused turns an error of the registry into a refusal. name is the skill that was asked for.
func refused(name string, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, registry.ErrUnknown):
		return wire.Refuse(wire.NotFound, map[string]any{"what": "skill", "id": fmt.Sprintf("%.255s", name)})
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isOne[*registry.DuplicateSkillError](err):
		return wire.Refuse(wire.Conflict, map[string]any{"reason": err.Error()})
	case errors.Is(err, registry.ErrConflicts), errors.Is(err, registry.ErrCatalog), errors.Is(err, registry.ErrReserved), errors.Is(err, registry.ErrFull), isOne[*model.Error](err),
		isOne[*registry.CycleError](err), isOne[*registry.MissingIncludeError](err), isOne[*registry.OverrideError](err), isOne[*registry.TooManyToolsError](err):
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
	return wire.Refuse(wire.Internal, nil).Because(err)
}

func isOne[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
