package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"phonerack/agent/skill/model"
)

// maxParametersBytes bounds the parameters as they are given.
const maxParametersBytes = 64 << 10

// Checker holds arguments to a tool's schema; *planner.Schema is one.
type Checker interface {
	Check(arguments json.RawMessage) error
}

// Tools tells which tools are registered, and the schema of each.
type Tools func(name string) (Checker, bool)

// ParameterError says all that is wrong with given parameters.
type ParameterError struct {
	Missing []string // required and not given, in the order of the skill
	Unknown []string // given and not known, sorted
	Wrong   []Wrong  // in the order of the skill
}

// Wrong is a parameter with a value that is not for it.
type Wrong struct{ Name, Reason string }

// Error implements error.
func (e *ParameterError) Error() string {
	var all []string
	if len(e.Missing) > 0 {
		all = append(all, "missing: "+strings.Join(e.Missing, ", "))
	}
	if len(e.Unknown) > 0 {
		all = append(all, "unknown: "+strings.Join(e.Unknown, ", "))
	}
	for _, w := range e.Wrong {
		all = append(all, w.Name+" "+w.Reason)
	}
	return "the parameters do not fit: " + strings.Join(all, "; ")
}

// Resolve makes the calls of given parameters, an object by name. Defaults
// are put in first; then each value is checked, each step filled in, and its
// arguments held to the tool's schema. The error is a *ParameterError, an
// *Unavailable, or says which step does not fit.
func (t *Template) Resolve(parameters json.RawMessage, tools Tools) ([]Call, error) {
	given, err := t.given(parameters)
	if err != nil {
		return nil, err
	}
	calls := make([]Call, 0, len(t.steps))
	for i, st := range t.steps {
		checker, registered := tools(st.tool)
		if !registered {
			return nil, &Unavailable{Step: i + 1, Tool: st.tool}
		}
		var b bytes.Buffer
		st.args.write(&b, given)
		if b.Len() > model.MaxArgsBytes {
			return nil, fmt.Errorf("step %d (%s): the arguments have %d bytes, at most %d are accepted", i+1, st.tool, b.Len(), model.MaxArgsBytes)
		}
		args, err := model.Canonical(b.Bytes()) // bounds the depth, which values add to
		if err != nil {
			return nil, fmt.Errorf("step %d (%s): %w", i+1, st.tool, err)
		}
		if err := checker.Check(args); err != nil {
			return nil, fmt.Errorf("step %d (%s): %w", i+1, st.tool, err)
		}
		calls = append(calls, Call{st.tool, args})
	}
	return calls, nil
}

// given reads and checks the parameters, with defaults for those that are absent.
func (t *Template) given(parameters json.RawMessage) (map[string]json.RawMessage, error) {
	if len(parameters) > maxParametersBytes {
		return nil, fmt.Errorf("the parameters have %d bytes, at most %d are accepted", len(parameters), maxParametersBytes)
	}
	if len(bytes.TrimSpace(parameters)) == 0 {
		parameters = json.RawMessage("{}")
	}
	given, err := model.Fields(parameters)
	if err != nil {
		return nil, fmt.Errorf("the parameters: %w", err)
	}
	wrong := &ParameterError{}
	known := map[string]bool{}
	for _, p := range t.parameters {
		known[p.Name] = true
		raw, there := given[p.Name]
		switch {
		case there:
			if err := p.Accepts(raw); err != nil {
				wrong.Wrong = append(wrong.Wrong, Wrong{p.Name, err.Error()})
			}
		case p.Default != nil:
			given[p.Name] = p.Default
		case p.Required:
			wrong.Missing = append(wrong.Missing, p.Name)
		}
	}
	for name := range given {
		if !known[name] {
			wrong.Unknown = append(wrong.Unknown, fmt.Sprintf("%.64q", name))
		}
	}
	slices.Sort(wrong.Unknown)
	if more := len(wrong.Unknown) - 16; more > 0 {
		wrong.Unknown = append(wrong.Unknown[:16], fmt.Sprintf("%d more", more))
	}
	if len(wrong.Missing)+len(wrong.Unknown)+len(wrong.Wrong) > 0 {
		return nil, wrong
	}
	return given, nil
}
