package firmware

import (
	"time"

	"phonerack/agent/skill/registry"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/firmware/skills"
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

// Skills implements action.Rack.
func (r *Rack) Skills() (action.Skills, error) {
	if r.skills == nil {
		return nil, wire.Refuse(wire.SkillsDisabled, nil)
	}
	return r.skills, nil
}
