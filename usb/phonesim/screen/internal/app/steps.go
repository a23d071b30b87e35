package app

import (
	"errors"
	"fmt"
	"slices"
)

func (c *checker) steps(steps []*Step) error {
	if c.depth++; c.depth > maxDepth {
		return errors.New("nested too deeply")
	}
	defer func() { c.depth-- }()
	for i, s := range steps {
		if s == nil {
			return fmt.Errorf("step %d is empty", i)
		}
		if err := c.step(s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (c *checker) step(s *Step) error {
	verbs := 0
	for _, set := range []bool{
		s.Go != "", s.Replace != "", s.Open != "", s.Back, s.Home, s.Dismiss, len(s.Set) > 0, s.Add != nil, s.Remove != nil,
		s.Delay.Duration > 0, !s.Journal.Empty(), !s.Launch.Empty(), !s.Stop.Empty(), s.Crash, s.Focus != "", s.Hide, !s.If.Empty(), s.ScrollEnd != "", !s.Unlock.Empty(), s.Ask != "", s.Grant != nil,
	} {
		if set {
			verbs++
		}
	}
	if verbs != 1 {
		return fmt.Errorf("a step does exactly one thing, this one %d", verbs)
	}
	exprs := []*Expr{&s.Launch, &s.Stop, &s.If, &s.Unlock}
	if s.Grant != nil {
		if exprs = append(exprs, &s.Grant.To, &s.Grant.Permission); s.Grant.To.Empty() || s.Grant.Permission.Empty() {
			return errors.New("grant needs to and permission")
		}
	}
	for _, e := range exprs {
		if err := c.expr(e); err != nil {
			return err
		}
	}
	if err := c.template(&s.Journal); err != nil {
		return err
	}
	if s.Quiet && s.Delay.Duration == 0 {
		return errors.New("quiet belongs to delay")
	}
	if s.If.Empty() && (len(s.Then) > 0 || len(s.Else) > 0) {
		return errors.New("then and else belong to if")
	}
	if err := errors.Join(c.opens(s), c.assigns(s), c.lists(s)); err != nil {
		return err
	}
	return errors.Join(c.steps(s.Then), c.steps(s.Else))
}

// opens checks the target of go, replace and open and that it is given exactly its arguments.
func (c *checker) opens(s *Step) error {
	var target *Screen
	switch {
	case s.Open != "":
		if target = c.app.FindScreen(s.Open, true); target == nil {
			return fmt.Errorf("open: unknown dialog %q", s.Open)
		}
	case s.Go != "" || s.Replace != "":
		if target = c.app.FindScreen(s.Go+s.Replace, false); target == nil {
			return fmt.Errorf("go: unknown screen %q", s.Go+s.Replace)
		}
	case s.Ask != "":
		system := c.app
		if system.system != nil {
			system = system.system
		}
		if target = system.FindScreen(s.Ask, true); target == nil {
			return fmt.Errorf("ask: the system has no dialog %q", s.Ask)
		}
	case len(s.With) > 0:
		return errors.New("with belongs to go, replace, open and ask")
	default:
		return nil
	}
	for k, e := range sorted(s.With) {
		if !slices.Contains(target.Args, k) {
			return fmt.Errorf("%s has no argument %q", target.Name, k)
		}
		if err := c.expr(&e); err != nil {
			return fmt.Errorf("with %s: %w", k, err)
		}
		s.With[k] = e
	}
	for _, k := range target.Args {
		if _, ok := s.With[k]; !ok {
			return fmt.Errorf("%s needs the argument %q", target.Name, k)
		}
	}
	return nil
}

func (c *checker) assigns(s *Step) error {
	s.Assignments = nil
	for k, e := range sorted(s.Set) {
		target := Expr{src: k}
		if err := c.expr(&target); err != nil {
			return fmt.Errorf("set: %w", err)
		}
		if !target.assignable() {
			return fmt.Errorf("set: %q is not a variable or field", k)
		}
		if err := c.expr(&e); err != nil {
			return fmt.Errorf("set %s: %w", k, err)
		}
		s.Assignments = append(s.Assignments, Assignment{target, e})
	}
	return nil
}

func (c *checker) lists(s *Step) error {
	if s.Remove != nil {
		if s.Remove.From.Empty() {
			return errors.New("remove needs from")
		}
		if err := c.expr(&s.Remove.From); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
		saved := c.names
		c.names = append(slices.Clip(c.names), "item")
		defer func() { c.names = saved }()
		if err := c.expr(&s.Remove.Where); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	if s.Add == nil {
		return nil
	}
	if s.Add.To.Empty() || len(s.Add.Item) == 0 {
		return errors.New("add needs to and item")
	}
	if err := c.expr(&s.Add.To); err != nil {
		return fmt.Errorf("add: %w", err)
	}
	for k, e := range sorted(s.Add.Item) {
		if err := c.expr(&e); err != nil {
			return fmt.Errorf("add %s: %w", k, err)
		}
		s.Add.Item[k] = e
	}
	for _, k := range []string{s.Add.Key, s.Add.Bump} {
		if _, ok := s.Add.Item[k]; k != "" && !ok {
			return fmt.Errorf("add: the item has no field %q", k)
		}
	}
	return nil
}
