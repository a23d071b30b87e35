package screen

import (
	"slices"
	"strconv"
	"time"

	"phonerack/usb/phonesim/screen/internal/app"
)

// pending is the rest of some steps, waiting for its time.
type pending struct {
	due     time.Time
	process *process
	window  *window
	scope   *app.Scope
	steps   []*app.Step
	quiet   bool
	tapped  string // key of the view whose single tap this is
}

// budget bounds the steps that one event may run, so that an app cannot chase its own tail.
type budget struct{ done int }

const maxSteps = 1000

// maxListItems bounds a list that an app adds to.
const maxListItems = 1000

func (e *Engine) resume(p *pending) {
	e.run(p.window, p.scope, p.steps, new(budget))
}

// run does the steps of a window one after another, up to a delay, which leaves the rest to catchUp.
func (e *Engine) run(w *window, scope *app.Scope, steps []*app.Step, b *budget) {
	e.version++
	for len(steps) > 0 {
		s := steps[0]
		steps = steps[1:]
		if b.done++; b.done > maxSteps {
			return
		}
		switch {
		case s.Delay.Duration > 0:
			e.pending = append(e.pending, &pending{due: e.now.Add(s.Delay.Duration), process: w.process, window: w, scope: scope, steps: steps, quiet: s.Quiet})
			return
		case !s.If.Empty():
			branch := s.Else
			if s.If.True(scope, false) {
				branch = s.Then
			}
			steps = append(slices.Clone(branch), steps...)
		case s.Crash:
			e.crash(w.process)
			return
		default:
			e.step(w, scope, s, b)
		}
	}
}

// step does what concerns data or other apps.
func (e *Engine) step(w *window, scope *app.Scope, s *app.Step, b *budget) {
	switch {
	case len(s.Assignments) > 0:
		values := make([]any, len(s.Assignments))
		for i := range s.Assignments {
			values[i] = s.Assignments[i].Value.Eval(scope)
		}
		for i := range s.Assignments {
			s.Assignments[i].Target.Assign(scope, values[i])
		}
	case s.Add != nil:
		add(scope, s.Add)
	case s.Remove != nil:
		if l, _ := s.Remove.From.Eval(scope).(*app.List); l != nil {
			gone := app.Filter(l, &s.Remove.Where, scope, "item")
			l.Items = slices.DeleteFunc(slices.Clone(l.Items), func(it *app.Item) bool { return slices.Contains(gone, it) })
		}
	case !s.Journal.Empty():
		e.journal = append(e.journal, s.Journal.Eval(scope))
	case !s.Launch.Empty():
		// A package that is not installed leaves the home screen as it is.
		_ = e.launch(app.String(s.Launch.Eval(scope), e.language))
	case !s.Unlock.Empty():
		if w.process.app.Package == app.SystemUI {
			e.tryPIN(app.String(s.Unlock.Eval(scope), e.language))
		}
	case s.Grant != nil:
		if g := (Grant{app.String(s.Grant.To.Eval(scope), "en"), app.String(s.Grant.Permission.Eval(scope), "en")}); len(e.grants) < maxGrants {
			e.grants = append(e.grants, g)
		}
	case s.Ask != "":
		args := make(map[string]any, len(s.With))
		for k, x := range s.With {
			args[k] = x.Eval(scope)
		}
		e.ask(s.Ask, args, b)
	case !s.Stop.Empty():
		e.stop(app.String(s.Stop.Eval(scope), e.language))
	default:
		e.windowStep(w, scope, s, b)
	}
}

// windowStep does what concerns the app's windows. If an earlier step closed the window, the one below
// takes its place.
func (e *Engine) windowStep(w *window, scope *app.Scope, s *app.Step, b *budget) {
	p := w.process
	if len(p.windows) == 0 {
		return
	}
	if !slices.Contains(p.windows, w) {
		w = p.windows[len(p.windows)-1]
	}
	switch {
	case s.Go != "" || s.Open != "" || s.Replace != "":
		e.openStep(w, scope, s, b)
	case s.Back:
		e.back(w)
	case s.Dismiss:
		if w.screen.Dialog {
			e.close(w)
			e.move(0)
		}
	case s.Home:
		if len(p.windows) > 1 {
			e.close(p.windows[1])
			e.move(-1)
		}
	case s.Focus != "":
		e.focusID(w, s.Focus)
	case s.Hide:
		e.hideKeyboard(w)
	case s.ScrollEnd != "":
		e.scrollEnd(w, s.ScrollEnd)
	}
}

func (e *Engine) openStep(w *window, scope *app.Scope, s *app.Step, b *budget) {
	args := make(map[string]any, len(s.With))
	for k, x := range s.With {
		args[k] = x.Eval(scope)
	}
	p := w.process
	if s.Open != "" {
		e.move(0)
		e.open(p, p.app.FindScreen(s.Open, true), args, b)
		return
	}
	e.move(1)
	w.typing = false
	if s.Replace != "" {
		e.close(w)
	}
	e.open(p, p.app.FindScreen(s.Go+s.Replace, false), args, b)
}

func add(scope *app.Scope, a *app.Add) {
	l, _ := a.To.Eval(scope).(*app.List)
	if l == nil {
		return
	}
	fields := make(map[string]any, len(a.Item))
	for k, x := range a.Item {
		fields[k] = x.Eval(scope)
	}
	lang := scope.Language()
	if a.Key != "" {
		for _, it := range l.Items {
			if app.String(it.Get(a.Key), lang) == app.String(fields[a.Key], lang) {
				if a.Bump != "" {
					it.Fields[a.Bump] = toNumber(it.Get(a.Bump)) + toNumber(fields[a.Bump])
				}
				return
			}
		}
	}
	if len(l.Items) < maxListItems {
		l.Items = append(slices.Clip(l.Items), &app.Item{Fields: fields})
	}
}

func toNumber(v any) float64 {
	f, ok := v.(float64)
	if !ok {
		f, _ = strconv.ParseFloat(app.String(v, "en"), 64)
	}
	return f
}
