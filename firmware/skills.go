package firmware

import (
	"time"

	"phonerack/agent/skill/registry"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/firmware/skills"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

// skillsBucket is that of the registry of skills.
const skillsBucket = "skills"

// openSkills reads the registry, unless the configuration says that the rack has no skills.
func (r *Rack) openSkills() error {
	c := r.config.Skills
	if !c.Enabled {
		return nil
	}
	bucket, err := r.store.Bucket(skillsBucket)
	if err != nil {
		return err
	}
	r.skills, err = skills.Open(skills.Options{
		Bucket: bucket, Tools: tools.Default().Tools(),
		Discover: registry.DiscoverOptions{Paths: c.Paths, Mode: c.AgentSkillsMode, Strategy: c.AgentSkillsConflicts},
		Every:    time.Duration(c.PollInterval), Logger: r.log,
	})
	return err
}

// openCatalog opens the rack's copy of its subscription and joins it with the skills.
func (r *Rack) openCatalog() error {
	if r.skills == nil {
		return nil
	}
	keys, err := r.config.Bundle.ManifestKeys()
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		r.log.Warn("the identity has no keys for the catalog of skills: without a new one (rackcloud host issue) there are only this rack's own")
		return nil
	}
	bucket, err := r.store.Bucket(catalogBucket)
	if err != nil {
		return err
	}
	l := r.cloud.link
	r.cloud.catalog, err = catalog.Open(catalog.Options{
		Platform: catalog.Over(l), Bucket: bucket, Tenant: r.config.Bundle.Tenant, Rack: r.config.Bundle.Rack, Keys: keys,
		Every: time.Duration(r.config.Skills.PollInterval), Now: l.Now, Ready: l.WaitOnline, OnChange: r.catalogChanged, Logger: r.log,
	})
	if err != nil {
		return err
	}
	l.Handle(wire.TypeSkillChanged, r.cloud.catalog.OnChanged)
	r.skills.Follow(r.cloud.catalog)
	return nil
}

// catalogChanged lets the skills look at the copy, and the fleet ask for tasks that need what is new in it.
func (r *Rack) catalogChanged() {
	r.skills.CatalogChanged()
	r.slotsChanged()
}

// Skills implements action.Rack.
func (r *Rack) Skills() (action.Skills, error) {
	if r.skills == nil {
		return nil, wire.Refuse(wire.SkillsDisabled, nil)
	}
	return r.skills, nil
}
