package template

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"phonerack/agent/planner"
	"phonerack/agent/skill/model"
)

// Unavailable says why a flow template cannot be used on this rack.
type Unavailable struct {
	Step   int // from 1
	Tool   string
	Reason string // why the arguments cannot fit; "" if the tool is not registered
}

// Error implements error.
func (e *Unavailable) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("skill unavailable: step %d calls tool %q, which is not registered", e.Step, e.Tool)
	}
	return fmt.Sprintf("skill unavailable: step %d calls tool %q with arguments that it does not take: %s", e.Step, e.Tool, e.Reason)
}

// Check holds the steps to the registered tools, and returns the first
// *Unavailable. It refuses arguments that no parameters, or a default or a choice
// of the skill's own, would make fit; what depends on values is Resolve's to see.
// A tool whose schema is no *planner.Schema is only looked up.
func (t *Template) Check(tools Tools) error {
	for i, st := range t.steps {
		checker, registered := tools(st.tool)
		if !registered {
			return &Unavailable{Step: i + 1, Tool: st.tool}
		}
		schema, ok := checker.(*planner.Schema)
		if !ok || schema == nil {
			continue
		}
		if reason := t.fits(st.args, schema, "$"); reason != "" {
			return &Unavailable{i + 1, st.tool, reason}
		}
	}
	return nil
}

// fits returns why a value never has what the schema wants, "" if it may.
func (t *Template) fits(v value, s *planner.Schema, path string) string {
	switch {
	case v.literal != nil:
		if err := s.Check(v.literal); err != nil {
			return below(path, err)
		}
		return ""
	case v.text != nil:
		return t.textFits(v, s, path)
	case v.list:
		if s.Type != "array" {
			return path + " must be of type " + s.Type + ", and is a list"
		}
		for i, item := range v.items {
			if s.Items == nil {
				break
			}
			if reason := t.fits(item, s.Items, fmt.Sprintf("%s[%d]", path, i)); reason != "" {
				return reason
			}
		}
		return ""
	}
	return t.objectFits(v, s, path)
}

// below puts a path before that of a schema's error.
func below(path string, err error) string {
	if e, ok := err.(*planner.SchemaError); ok {
		return path + e.Path[min(1, len(e.Path)):] + " " + e.Reason
	}
	return path + " " + err.Error()
}

func (t *Template) objectFits(v value, s *planner.Schema, path string) string {
	if s.Type != "object" {
		return path + " must be of type " + s.Type + ", and is an object"
	}
	for _, name := range s.Required {
		at := slices.Index(v.keys, name)
		if at < 0 {
			return path + "." + name + " is missing"
		}
		if param, whole := v.items[at].text.Whole(); whole && t.mayBeAbsent(param) {
			return path + "." + name + " is needed, and the parameter " + param + " may be absent"
		}
	}
	for i, name := range v.keys {
		inner, known := s.Properties[name]
		if !known && !s.AdditionalProperties {
			return path + "." + name + " is not an argument of this tool"
		}
		if known {
			if reason := t.fits(v.items[i], inner, path+"."+name); reason != "" {
				return reason
			}
		}
	}
	return ""
}

func (t *Template) parameter(name string) model.Parameter {
	i := slices.IndexFunc(t.parameters, func(p model.Parameter) bool { return p.Name == name })
	if i < 0 {
		return model.Parameter{}
	}
	return t.parameters[i]
}

func (t *Template) mayBeAbsent(name string) bool {
	p := t.parameter(name)
	return !p.Required && p.Default == nil
}

func (t *Template) textFits(v value, s *planner.Schema, path string) string {
	param, whole := v.text.Whole()
	if whole {
		return t.parameterFits(t.parameter(param), s, path)
	}
	if s.Type != "string" {
		return path + " must be of type " + s.Type + ", and is a text"
	}
	length := 0
	for _, part := range v.text {
		length += utf8.RuneCountInString(part.Literal)
	}
	if s.MaxLength != nil && length > *s.MaxLength {
		return fmt.Sprintf("%s must have at most %d characters, and has %d already", path, *s.MaxLength, length)
	}
	return ""
}

func (t *Template) parameterFits(p model.Parameter, s *planner.Schema, path string) string {
	want, have := s.Type, string(p.Type)
	number := func(t string) bool { return t == "integer" || t == "number" }
	if want != have && !(number(want) && number(have)) {
		return fmt.Sprintf("%s must be of type %s, and the parameter %s is of type %s", path, want, p.Name, have)
	}
	for _, choice := range p.Enum {
		if err := s.Check(choice); err != nil {
			return fmt.Sprintf("%s, which the parameter %s may choose as %.40s", below(path, err), p.Name, choice)
		}
	}
	if p.Default != nil {
		if err := s.Check(p.Default); err != nil {
			return fmt.Sprintf("%s, which the parameter %s has by default", below(path, err), p.Name)
		}
	}
	return ""
}
