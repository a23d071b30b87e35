package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"phonerack/agent/skill"
	"phonerack/agent/skill/registry"
	"phonerack/agent/skill/toolset"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

// toolset says what the skills of a task come down to at this moment, or refuses the task; nil without skills.
func (r *Rack) toolset(names, permissions []string, task string, slot int) (*toolset.Set, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if r.skills == nil {
		return nil, wire.Refuse(wire.SkillsDisabled, nil)
	}
	set, err := r.skills.ForTask(skill.Caller{Task: task, Slot: slot}, names, permissions)
	if err != nil {
		return nil, err
	}
	for _, out := range set.LeftOut {
		r.log.Info("a task does without a tool of its skills", "slot", slot, "cloud_task", task, "reason", out)
	}
	return set, nil
}

// tools are what the task's planner may call: those that its skills bound it to, or all that the rack has.
func (t *task) tools() *tools.Registry {
	all := tools.Default()
	if t.skills == nil || !t.skills.Narrowed {
		return all
	}
	may, words := tools.Control(), map[string]string{}
	var more []tools.Tool
	for _, u := range t.skills.Tools {
		if u.Source != registry.MCP {
			may = append(may, u.Name)
			words[u.Name] = u.Described
			continue
		}
		if t.talks == nil {
			t.talks = t.rack.skills.Talk(t.log)
		}
		more = append(more, tools.Elsewhere(u.Name, described(u), u.InputSchema, t.calls(u.Tool)))
	}
	return all.Where(func(tool tools.Tool) bool { return slices.Contains(may, tool.Name) }).Described(words).With(more...)
}

// described is what a planner is told of a tool of an MCP server: the skill's words, or the server's, as what they are.
func described(u registry.Use) string {
	if u.Described != "" {
		return u.Described
	}
	says, err := json.Marshal(u.Description)
	if err != nil {
		says = []byte(`""`)
	}
	return fmt.Sprintf("A tool of the MCP server %s, which says of it: %s", u.SourceMetadata[registry.MetaServer], says)
}

// calls lets a planner call a tool of an MCP server, under the task's lease. What the server does with it is not known
// here: for the cloud it counts as something written, so that nobody does it again by himself.
func (t *task) calls(tool registry.Tool) tools.Call {
	return func(ctx context.Context, args json.RawMessage) (tools.Answer, error) {
		if err := t.lease.Check(); err != nil {
			return tools.Answer{}, err
		}
		if t.granted != nil {
			if err := t.granted.Wrote(); err != nil {
				return tools.Answer{}, fullOr(err)
			}
		}
		return t.talks.Call(ctx, tool, args)
	}
}
