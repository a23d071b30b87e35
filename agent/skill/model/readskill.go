package model

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	idWords          = words{chosen: ValidID, form: "must have 1 to 63 of a-z, 0-9 and '-'"}
	nameWords        = words{max: 128}
	descriptionWords = words{max: MaxDescription, lines: true}
	versionWords     = words{max: MaxVersion}
	tagWords         = words{max: MaxTag}
	toolWords        = words{max: MaxItemName, chosen: ValidTool, form: "must name a tool by letters, digits and _-.:/"}
	timeWords        = words{chosen: timeForm.MatchString, form: "must be a time in UTC such as 2026-11-30T08:40:00Z"}
)

// timeForm is what times look like; which days there are is time.Parse's to say.
var timeForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,3})?Z$`)

// ParseSkill reads a catalog skill as the platform publishes it, as JSON. The
// result is valid as a whole.
func ParseSkill(raw []byte) (*Skill, error) {
	if len(raw) > MaxSkillBytes {
		return nil, tooLarge("skill", len(raw), MaxSkillBytes)
	}
	n, err := parseJSON(raw)
	return takeSkill("", n, err, false)
}

// ParseDraft reads a catalog skill that a person wrote: .yaml and .yml as YAML,
// .md as Markdown of knowledge below a front matter in YAML between lines of
// three dashes, anything else as JSON. A draft may lack what the platform adds:
// subscription_id and updated_at.
func ParseDraft(file string, raw []byte) (*Skill, error) {
	if len(raw) > MaxSkillBytes {
		return nil, tooLarge("skill", len(raw), MaxSkillBytes)
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml":
		n, err := parseYAML(raw)
		return takeSkill(file, n, err, true)
	case ".md":
		n, err := parseMarkdown(raw)
		return takeSkill(file, n, err, true)
	}
	n, err := parseJSON(raw)
	return takeSkill(file, n, err, true)
}

// Encode returns the canonical JSON of a valid skill. What it stands for is
// parsed back to an equal skill; Sum of it is the hash in a manifest.
func (s *Skill) Encode() ([]byte, error) {
	raw, err := compact(s)
	if err != nil {
		return nil, err
	}
	again, err := ParseSkill(raw)
	if err != nil {
		return nil, err
	}
	return compact(again) // with what s held in another form made canonical
}

// Validate tells what is wrong with a skill, nil if nothing is.
func (s *Skill) Validate() error {
	_, err := s.Encode()
	return err
}

func takeSkill(source string, n *node, err error, draft bool) (*Skill, error) {
	s := &Skill{}
	if err := read(source, n, err, func(r *reader, n *node) { r.skill(n, s, draft) }); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *reader) skill(n *node, s *Skill, draft bool) {
	o := r.object(n, "", "id", "name", "description", "kind", "version", "tags", "aliases", "subscription_id", "updated_at",
		"content", "parameters", "steps")
	s.ID = o.text("id", idWords)
	s.Name = o.text("name", nameWords)
	s.Description = o.text("description", descriptionWords)
	s.Kind = Kind(o.oneOf("kind", string(Knowledge), string(FlowTemplate)))
	s.Version = o.text("version", versionWords)
	s.Tags = o.texts("tags", MaxTags, tagWords)
	s.Aliases = o.texts("aliases", MaxTags, tagWords)
	if !draft || n.field("subscription_id") != nil {
		s.Subscription = o.text("subscription_id", idWords)
	}
	if !draft || n.field("updated_at") != nil {
		s.UpdatedAt = o.time("updated_at")
	}
	switch s.Kind {
	case Knowledge:
		o.refuse("belongs to a flow_template, and this is knowledge", "steps", "parameters")
		s.Content = o.text("content", words{lines: true})
		if len(s.Content) > MaxContentBytes {
			r.fail(o.need("content"), "content", "has %d bytes, at most %d are accepted", len(s.Content), MaxContentBytes)
		}
	case FlowTemplate:
		o.refuse("belongs to knowledge, and this is a flow_template", "content")
		o.list("parameters", 0, MaxParameters, func(n *node, path string) { s.Parameters = append(s.Parameters, r.parameter(n, path, s.Parameters)) })
		o.list("steps", 1, MaxSteps, func(n *node, path string) { s.Steps = append(s.Steps, r.step(n, path)) })
		if r.err == nil {
			r.placeholders(o, s)
		}
	}
}

func (o object) time(key string) time.Time {
	s := o.text(key, timeWords)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil && o.r.err == nil {
		o.r.fail(o.need(key), o.at(key), "is a day or time that does not exist: %s", quoted(s))
	}
	return t.UTC()
}

func (r *reader) parameter(n *node, path string, before []Parameter) Parameter {
	o := r.object(n, path, "name", "type", "required", "description", "default", "enum")
	p := Parameter{
		Name:     o.text("name", words{chosen: ValidParameter, form: "must have 1 to 64 letters, digits and '_', and not begin with a digit"}),
		Type:     ParameterType(o.oneOf("type", string(String), string(Integer), string(Number), string(Boolean), string(Array), string(Object))),
		Required: o.flag("required"),
	}
	p.Description = o.maybe("description", descriptionWords)
	if slices.ContainsFunc(before, func(b Parameter) bool { return b.Name == p.Name }) {
		r.fail(n, o.at("name"), "the parameter %q is there twice", p.Name)
	}
	if e := n.field("enum"); e != nil && (p.Type == Array || p.Type == Object) {
		r.fail(e, o.at("enum"), "is not for a parameter of type %s", p.Type)
	}
	if n.field("enum") != nil {
		o.list("enum", 1, MaxEnum, func(v *node, path string) {
			raw := r.value(v, path, MaxArgsBytes)
			r.accepted(v, path, Parameter{Name: p.Name, Type: p.Type}, raw)
			if slices.ContainsFunc(p.Enum, func(e json.RawMessage) bool { return sameScalar(e, raw) }) {
				r.fail(v, path, "%.60s is there twice", raw)
			}
			p.Enum = append(p.Enum, raw)
		})
	}
	if d := n.field("default"); d != nil {
		if p.Required {
			r.fail(d, o.at("default"), "a parameter that is required cannot have a default")
		}
		raw := r.value(d, o.at("default"), MaxArgsBytes)
		r.accepted(d, o.at("default"), p, raw)
		p.Default = raw
	}
	return p
}

func (r *reader) accepted(n *node, path string, p Parameter, raw json.RawMessage) {
	if r.err != nil {
		return
	}
	if err := p.Accepts(raw); err != nil {
		r.fail(n, path, "%s", err.Error())
	}
}

func (r *reader) step(n *node, path string) Step {
	o := r.object(n, path, "tool", "args_template")
	step := Step{Tool: o.text("tool", toolWords)}
	step.ArgsTemplate = o.anObject("args_template", MaxArgsBytes)
	if step.ArgsTemplate == nil {
		o.need("args_template")
	}
	return step
}
