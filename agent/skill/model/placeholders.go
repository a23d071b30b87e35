package model

import (
	"fmt"
	"strings"

	"phonerack/agent/skill/model/placeholder"
)

// placeholders refuses steps that could not be resolved whatever is given:
// placeholders that are malformed or not declared, a list or object within a
// longer text, and an optional parameter without default where nothing can be
// left out. A parameter that no step uses is refused too, and so is an escaped
// {{name}} of a parameter, which would silently stay as it is.
func (r *reader) placeholders(o object, s *Skill) {
	c := &templateCheck{r: r, skill: s, used: map[string]bool{}}
	for i, n := range o.need("steps").items {
		c.value(n.field("args_template"), fmt.Sprintf("steps[%d].args_template", i), false)
	}
	for i, p := range s.Parameters {
		if !c.used[p.Name] {
			r.fail(o.need("parameters").items[i], fmt.Sprintf("parameters[%d].name", i), "no step uses the parameter %q", p.Name)
		}
	}
}

type templateCheck struct {
	r     *reader
	skill *Skill
	used  map[string]bool
}

// value walks over one value. removable says that it is a field of an object,
// which can be left out when a parameter is not given.
func (c *templateCheck) value(n *node, path string, removable bool) {
	switch n.shape {
	case listShape:
		for i, item := range n.items {
			c.value(item, fmt.Sprintf("%s[%d]", path, i), false)
		}
	case objectShape:
		for i, item := range n.items {
			if strings.ContainsAny(n.keys[i], "{}") {
				c.r.fail(item, path, "the key %s has braces, and placeholders are for values only", quoted(n.keys[i]))
			}
			c.value(item, join(path, n.keys[i]), true)
		}
	case textShape:
		c.text(n, path, removable)
	}
}

func (c *templateCheck) text(n *node, path string, removable bool) {
	text, err := placeholder.Parse(n.text)
	if err != nil {
		c.r.fail(n, path, "%s", err.Error())
		return
	}
	_, whole := text.Whole()
	for _, part := range text {
		if part.Param == "" {
			c.literal(n, path, part.Literal)
			continue
		}
		p, declared := c.skill.Parameter(part.Param)
		c.used[part.Param] = true
		switch {
		case !declared:
			c.r.fail(n, path, "the placeholder {%s} is no parameter of the skill", part.Param)
		case !whole && (p.Type == Array || p.Type == Object):
			c.r.fail(n, path, "the parameter %q is of type %s and cannot be part of a longer text", p.Name, p.Type)
		case !p.Required && p.Default == nil && (!whole || !removable):
			c.r.fail(n, path, "the parameter %q may be absent, and nothing can be left out here: make it required or give it a default", p.Name)
		}
	}
}

// literal refuses {{name}}, which a person means as a placeholder.
func (c *templateCheck) literal(n *node, path, literal string) {
	for _, p := range c.skill.Parameters {
		if strings.Contains(literal, "{"+p.Name+"}") {
			c.r.fail(n, path, "{{%s}} stands for a text with braces; write {%s} for the parameter", p.Name, p.Name)
		}
	}
}
