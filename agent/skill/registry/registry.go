package registry

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/model"
)

// MaxSkills is how many skills a registry takes.
const MaxSkills = 5000

// Options of a registry. Bucket and Tools are needed.
type Options struct {
	Bucket Bucket
	Tools  *Tools // that exist; references to others are faults of a plan
	Now    func() time.Time
	Logger *slog.Logger
}

// Skill is a registered skill: the definition and what the registry adds.
type Skill struct {
	model.RegistrySkill
	Namespace string    `json:"namespace"`
	ShortName string    `json:"short_name"`
	CreatedAt time.Time `json:"created_at"` // UTC, microseconds
	UpdatedAt time.Time `json:"updated_at"`
}

// Registry keeps skills. It is safe for concurrent use. What a method returns
// after a change is on disk.
type Registry struct {
	o Options

	changing sync.Mutex        // held while a change goes to disk, so that changes are checked against each other
	mu       sync.RWMutex      // guards skills and aside
	skills   map[string]*Skill // replaced, never changed, so that a reader's copy stays whole
	aside    map[string]bool   // skills that rows were set aside of: their records could not be read

	discovery discovery
}

// Open reads the skills of a bucket. Records that cannot be read are set aside there, which is logged; SetAside names them.
func Open(o Options) (*Registry, error) {
	if o.Bucket == nil || o.Tools == nil {
		return nil, errors.New("open the registry of skills: bucket and tools are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{o: o}
	var damaged map[string]error
	err := o.Bucket.Update(func(b *bolt.Bucket) (err error) {
		for _, name := range [][]byte{bucketSkills, bucketItems, bucketAside} {
			if _, err := b.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		r.skills, damaged, err = loadSkills(b)
		r.aside = asideNames(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the registry of skills: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(damaged)) {
		o.Logger.Error("the record of a skill cannot be read and is set aside; register the skill anew, or remove it", "skill", fmt.Sprintf("%.255q", name), "err", damaged[name])
	}
	return r, nil
}

// SetAside names the skills whose records could not be read, by this process or an earlier one, and which nobody has registered anew or
// removed since.
func (r *Registry) SetAside() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.aside)) {
		if r.skills[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// Add registers a skill. What it includes must be there, for the caller whose
// view of the catalog is given. Errors are a *model.Error, ErrReserved,
// ErrFull, a *DuplicateSkillError, those of [Resolver.Resolve], or the database's.
func (r *Registry) Add(s *model.RegistrySkill, view Catalog) (*Skill, error) {
	return r.put(s, view, false)
}

// Update replaces a skill of the same name; its creation time stays. Errors are
// as those of Add, with ErrUnknown and ErrCatalog.
func (r *Registry) Update(s *model.RegistrySkill, view Catalog) (*Skill, error) {
	return r.put(s, view, true)
}

// Check says why a skill would be registered neither anew nor in place of another;
// nil if it would.
func (r *Registry) Check(s *model.RegistrySkill, view Catalog) error {
	next, err := check(s, false)
	if err != nil {
		return err
	}
	_, err = r.resolver(view, next).Resolve(next.Name)
	return err
}

func (r *Registry) put(s *model.RegistrySkill, view Catalog, there bool) (*Skill, error) {
	next, err := check(s, there)
	if err != nil {
		return nil, err
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	old := r.skills[next.Name] // only changes write, and there is one at a time
	switch {
	case there && old == nil:
		return nil, fmt.Errorf("update %s: %w", next.Name, ErrUnknown)
	case !there && old != nil:
		return nil, &DuplicateSkillError{next.Name}
	case !there && len(r.skills) >= MaxSkills:
		return nil, fmt.Errorf("add %s: %w", next.Name, ErrFull)
	}
	if _, err := r.resolver(view, next).Resolve(next.Name); err != nil {
		return nil, fmt.Errorf("register the skill %s: %w", next.Name, err)
	}
	next.UpdatedAt = r.o.Now().UTC().Truncate(time.Microsecond)
	next.CreatedAt = next.UpdatedAt
	if old != nil {
		next.CreatedAt = old.CreatedAt
	}
	if err := r.o.Bucket.Update(func(b *bolt.Bucket) error { return storeSkill(b, next) }); err != nil {
		return nil, fmt.Errorf("store the skill %s: %w", next.Name, err)
	}
	r.replace(func(all map[string]*Skill) { all[next.Name] = next })
	return next, nil
}

// check takes a skill as it will be read back: the canonical form, in a copy.
func check(s *model.RegistrySkill, there bool) (*Skill, error) {
	namespace, short, err := model.SplitName(s.Name)
	switch {
	case err != nil:
		return nil, &model.Error{Path: "name", Reason: err.Error()}
	case there && namespace == model.CatalogNamespace:
		return nil, fmt.Errorf("update %s: %w", s.Name, ErrCatalog)
	case model.Reserved(namespace):
		return nil, fmt.Errorf("the skill %s: %w", s.Name, ErrReserved)
	case strings.HasPrefix(short, anonymous):
		return nil, &model.Error{Path: "name", Reason: "names that begin with " + anonymous + " after the slash are those of inline tools"}
	}
	for i, it := range s.Items {
		if it.ToolRef != nil && strings.Contains(it.ToolRef.Name, "/"+anonymous) {
			return nil, &model.Error{Path: fmt.Sprintf("items[%d].name", i), Reason: "an inline tool belongs to the skill that describes it, and cannot be referred to"}
		}
	}
	if s.Items == nil {
		whole := *s
		whole.Items = []model.Item{}
		s = &whole
	}
	raw, err := s.Encode()
	if err != nil {
		return nil, err
	}
	again, err := model.ParseRegistryJSON(raw)
	if err != nil {
		return nil, err
	}
	return &Skill{RegistrySkill: *again, Namespace: namespace, ShortName: short}, nil
}

// Get finds a skill. The error is ErrUnknown. Nobody may change what is returned.
func (r *Registry) Get(name string) (*Skill, error) {
	if s := r.snapshot()[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %.255q", ErrUnknown, name)
}

// List returns the skills of a namespace by name, with "" those of all namespaces.
func (r *Registry) List(namespace string) []*Skill {
	all := r.snapshot()
	list := []*Skill{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s := all[name]; namespace == "" || s.Namespace == namespace {
			list = append(list, s)
		}
	}
	return list
}

// Remove takes a skill out, with its items, and names the skills that include it:
// they no longer resolve. One that was set aside is forgotten. Errors are ErrUnknown, ErrCatalog, ErrReserved or the database's.
func (r *Registry) Remove(name string) (includers []string, err error) {
	if strings.HasPrefix(name, model.CatalogNamespace+"/") {
		return nil, fmt.Errorf("remove %.255s: %w", name, ErrCatalog)
	}
	if strings.HasPrefix(name, model.AgentSkillsNamespace+"/") {
		return nil, fmt.Errorf("remove %.255s: %w", name, ErrReserved)
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	if r.skills[name] == nil && !slices.Contains(r.SetAside(), name) {
		return nil, fmt.Errorf("%w: %.255q", ErrUnknown, name)
	}
	err = r.o.Bucket.Update(func(b *bolt.Bucket) error { return errors.Join(dropSkill(b, name), forgetAside(b, name)) })
	if err != nil {
		return nil, fmt.Errorf("remove the skill %s: %w", name, err)
	}
	r.replace(func(all map[string]*Skill) { delete(all, name) })
	r.mu.Lock()
	delete(r.aside, name)
	r.mu.Unlock()
	for _, s := range r.List("") {
		if slices.ContainsFunc(s.Items, func(it model.Item) bool { return it.Include != nil && it.Include.Name == name }) {
			includers = append(includers, s.Name)
		}
	}
	return includers, nil
}

func (r *Registry) snapshot() map[string]*Skill {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.skills
}

// replace makes the next map from the present one.
func (r *Registry) replace(edit func(all map[string]*Skill)) {
	next := maps.Clone(r.skills)
	edit(next)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skills = next
}

// resolver looks at the skills as they are now; instead, if there is one, stands
// for the skill of its name.
func (r *Registry) resolver(view Catalog, instead *Skill) *Resolver {
	all := r.snapshot()
	return &Resolver{
		Skill: func(name string) (*model.RegistrySkill, bool) {
			if instead != nil && name == instead.Name {
				return &instead.RegistrySkill, true
			}
			s := all[name]
			if s == nil {
				return nil, false
			}
			return &s.RegistrySkill, true
		},
		Catalog:     view,
		ServerTools: r.o.Tools.ofServer,
		AgentSkill:  r.o.Tools.agentSkill,
	}
}

// Kit says what of a skill this rack can use, for the caller with this view of the
// catalog. Errors are those of [Resolver.Resolve].
func (r *Registry) Kit(name string, view Catalog) (*Kit, error) {
	resolved, err := r.Resolve(name, view)
	if err != nil {
		return nil, err
	}
	return resolved.Kit(r.o.Tools), nil
}

// Resolve flattens a skill as the caller with this view of the catalog has it.
// Errors are those of [Resolver.Resolve].
func (r *Registry) Resolve(name string, view Catalog) (*Resolved, error) {
	return r.resolver(view, nil).Resolve(name)
}

// Tools returns the resolved tools of a skill and what they may do.
func (r *Registry) Tools(name string, view Catalog) ([]Entry, CapabilitySummary, error) {
	resolved, err := r.Resolve(name, view)
	if err != nil {
		return nil, CapabilitySummary{}, err
	}
	return resolved.Entries, resolved.Summary(), nil
}
