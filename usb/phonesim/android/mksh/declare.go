package mksh

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare serves export, local, readonly and typeset written as such.
func (s *shell) declare(c *syntax.DeclClause) {
	args := []string{c.Variant.Value}
	for _, a := range c.Args {
		switch {
		case a.Index != nil || a.Array != nil:
			s.fail(1, "syntax error: unexpected '('")
			return
		case a.Name == nil || a.Naked:
			if a.Name != nil {
				args = append(args, a.Name.Value)
				continue
			}
			list, ok := s.fields([]*syntax.Word{a.Value})
			if !ok {
				return
			}
			args = append(args, list...)
		default:
			v, ok := s.literal(a.Value)
			if !ok {
				return
			}
			if a.Append {
				v = s.lookup(a.Name.Value).Str + v
			}
			args = append(args, a.Name.Value+"="+v)
		}
	}
	s.status = s.declareArgs(s.ctx, args)
}

func (s *shell) declareArgs(_ context.Context, args []string) int {
	export, readOnly := args[0] == "export", args[0] == "readonly"
	local := args[0] == "local" || args[0] == "typeset" || args[0] == "declare"
	rest := args[1:]
	for len(rest) > 0 && len(rest[0]) > 1 && (rest[0][0] == '-' || rest[0][0] == '+') {
		export = export || strings.Contains(rest[0], "x")
		readOnly = readOnly || strings.Contains(rest[0], "r")
		rest = rest[1:]
	}
	if len(rest) == 0 {
		s.listVariables(export)
		return 0
	}
	for _, a := range rest {
		n, v, assigned := strings.Cut(a, "=")
		if !syntax.ValidName(n) {
			s.say("%s: is not an identifier", n)
			return 1
		}
		if local && s.inFunc > 0 && len(s.locals) > 0 {
			frame := s.locals[len(s.locals)-1]
			if _, seen := frame[n]; !seen {
				frame[n] = s.snapshot(n)
			}
		}
		if assigned {
			if err := s.set(n, v); err != nil {
				s.say("%v", err)
				return 1
			}
		}
		old := s.vars[n]
		old.exported = old.exported || export
		old.readOnly = old.readOnly || readOnly
		s.vars[n] = old
	}
	return 0
}

func (s *shell) listVariables(exported bool) {
	var names []string
	for n, v := range s.vars {
		if v.exported || !exported {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(s.stdout(), "%s=%s\n", n, s.vars[n].value)
	}
}
