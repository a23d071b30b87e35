package screen

import (
	"fmt"
	"slices"

	"phonerack/usb/phonesim/screen/internal/app"
)

// Package is an installed app.
type Package struct {
	Name     string
	Label    string // in the phone's language
	Activity string // that Launch starts, ".MainActivity"; empty: none
	Version  string
	System   bool // came with the phone and has no icon

	Permissions []string // that it requests
}

// process is an app that runs or has run: its state outlives Stop, its windows don't.
type process struct {
	app     *app.App
	state   app.State
	windows []*window // screens and dialogs, the topmost last; empty: stopped

	starting bool // its first screen is being opened: it can neither stop nor crash
}

// window is a screen or dialog that is open.
type window struct {
	process *process
	screen  *app.Screen
	vars    map[string]any
	scroll  map[string]int // by view key, in pixels from the top, or from the end of a list that keeps to its bottom
	focus   string         // key of the view that has the input focus
	cursor  int            // in the focused edit, in characters
	marked  int            // how many characters before the cursor are selected
	typing  bool           // the keyboard is wanted
}

// maxWindows bounds how deep an app's screens stack.
const maxWindows = 32

// Packages returns what is installed, by name.
func (e *Engine) Packages() []Package {
	e.lock()
	defer e.mu.Unlock()
	var out []Package
	for _, name := range e.bundle.Names() {
		a := e.bundle.Apps[name]
		scope := app.NewScope(a, e.language, nil) // a name is no matter of what the app holds
		p := Package{Name: name, Label: a.Label.Eval(scope), Activity: a.Activity, Version: a.Version, System: a.Hidden && !a.User && !a.Blank(), Permissions: a.Requests}
		if system(name) || a.Blank() && a.Hidden {
			p.Activity = ""
		}
		out = append(out, p)
	}
	return out
}

// system tells the packages whose windows the phone itself opens.
func system(pkg string) bool { return pkg == app.System || pkg == app.SystemUI }

// Running returns the packages that have a window, the last used first.
func (e *Engine) Running() []string {
	e.lock()
	defer e.mu.Unlock()
	return e.running()
}

func (e *Engine) running() []string {
	return slices.DeleteFunc(slices.Clone(e.recent), func(name string) bool { p := e.processes[name]; return p == nil || len(p.windows) == 0 })
}

// Launch brings an app to the front, starting it if it does not run. The error is ErrUnknownPackage.
func (e *Engine) Launch(pkg string) error {
	e.lock()
	defer e.mu.Unlock()
	return e.launch(pkg)
}

func (e *Engine) launch(pkg string) error {
	if a := e.bundle.Apps[pkg]; a == nil || system(pkg) || a.Blank() && a.Hidden {
		return fmt.Errorf("launch %s: %w", pkg, ErrUnknownPackage)
	}
	if e.front.app.Package == pkg {
		return nil
	}
	e.show(pkg, 1)
	return nil
}

func (e *Engine) show(pkg string, sign int) {
	e.move(sign)
	e.front = e.start(pkg)
}

// start returns the app's process with its first screen open at least.
func (e *Engine) start(pkg string) *process {
	p := e.process(pkg)
	e.recent = append([]string{pkg}, slices.DeleteFunc(e.recent, func(s string) bool { return s == pkg })...)
	if len(p.windows) == 0 {
		p.starting = true
		e.open(p, p.app.FindScreen(p.app.Start, false), nil, new(budget))
		p.starting = false
	}
	return p
}

func (e *Engine) process(pkg string) *process {
	p := e.processes[pkg]
	if p == nil {
		a := e.bundle.Apps[pkg]
		p = &process{app: a, state: a.NewState(e.seed)}
		e.processes[pkg] = p
	}
	return p
}

// Stop ends an app: its windows close, what it waited for never happens, its data stays.
func (e *Engine) Stop(pkg string) {
	e.lock()
	defer e.mu.Unlock()
	e.stop(pkg)
}

func (e *Engine) stop(pkg string) {
	p := e.processes[pkg]
	if p == nil || p.starting || pkg == app.SystemUI {
		return
	}
	p.windows = nil
	e.pending = slices.DeleteFunc(e.pending, func(q *pending) bool { return q.process == p })
	e.version++
	if e.front == p {
		e.show(app.Launcher, -1)
	}
}

// Clear ends an app and resets its data, as `pm clear` does. The error is ErrUnknownPackage.
func (e *Engine) Clear(pkg string) error {
	e.lock()
	defer e.mu.Unlock()
	if e.bundle.Apps[pkg] == nil {
		return fmt.Errorf("clear %s: %w", pkg, ErrUnknownPackage)
	}
	if e.processes[pkg] != nil {
		e.processes[pkg].state = e.bundle.Apps[pkg].NewState(e.seed)
	}
	e.stop(pkg)
	return nil
}

// Crash ends an app as an uncaught exception would: the home screen returns under the system's dialog
// "… keeps stopping". The error is ErrUnknownPackage; an app that does not run cannot crash, which is no error.
func (e *Engine) Crash(pkg string) error {
	e.lock()
	defer e.mu.Unlock()
	if e.bundle.Apps[pkg] == nil || system(pkg) {
		return fmt.Errorf("crash %s: %w", pkg, ErrUnknownPackage)
	}
	if p := e.processes[pkg]; p != nil && len(p.windows) > 0 {
		e.crash(p)
	}
	return nil
}

func (e *Engine) crash(p *process) {
	if p.starting || system(p.app.Package) {
		return
	}
	e.journal = append(e.journal, p.app.Package+" crashed")
	e.stop(p.app.Package)
	dialog := e.bundle.Apps[app.System].FindScreen("crash", true)
	if dialog == nil {
		return
	}
	scope := app.NewScope(p.app, e.language, p.state)
	e.open(e.process(app.System), dialog, map[string]any{"label": p.app.Label.Eval(scope), "package": p.app.Package}, new(budget))
}

// open pushes a window and runs its enter steps; done is the budget of the event that led here.
func (e *Engine) open(p *process, s *app.Screen, args map[string]any, b *budget) {
	if s == nil || len(p.windows) >= maxWindows {
		return
	}
	w := &window{process: p, screen: s, vars: make(map[string]any), scroll: make(map[string]int)}
	for k, v := range s.Variables {
		w.vars[k] = v.V
	}
	for _, k := range s.Args {
		w.vars[k] = ""
		if v, ok := args[k]; ok {
			w.vars[k] = v
		}
	}
	p.windows = append(p.windows, w)
	e.version++
	e.run(w, e.scope(w), s.Enter, b)
	if s.Focus != "" && !w.typing {
		e.focusID(w, s.Focus)
	}
}

// active is the window that has the input: the lock screen's or the system's topmost, else the front app's.
func (e *Engine) active() *window {
	if e.isLocked() {
		p := e.processes[app.SystemUI]
		return p.windows[len(p.windows)-1]
	}
	if sys := e.processes[app.System]; sys != nil && len(sys.windows) > 0 {
		return sys.windows[len(sys.windows)-1]
	}
	return e.front.windows[len(e.front.windows)-1]
}

// close removes a window, the dialogs and screens above it, and what the app still waited for on their behalf.
func (e *Engine) close(w *window) {
	p := w.process
	if i := slices.Index(p.windows, w); i >= 0 {
		p.windows = p.windows[:i:i]
	}
	e.pending = slices.DeleteFunc(e.pending, func(q *pending) bool {
		return q.process == p && !slices.Contains(p.windows, q.window)
	})
	e.version++
}

// back does what the key does when no keyboard is in the way.
func (e *Engine) back(w *window) {
	p := w.process
	switch {
	case w.screen.Dialog:
		if w.screen.Cancelable == nil || *w.screen.Cancelable {
			e.close(w)
			e.move(0)
		}
	case w != p.windows[0]:
		e.close(w)
		e.move(-1)
	case p.app.Package == app.SystemUI: // the lock screen stays
	case p.app.Package != app.Launcher:
		e.home() // the app stays as it is, behind the home screen
	}
}

func (e *Engine) home() {
	if p := e.processes[app.Launcher]; len(p.windows) > 1 {
		p.windows = p.windows[:1]
		e.move(-1)
	}
	if e.front.app.Package != app.Launcher {
		e.show(app.Launcher, -1)
	}
}

// scope resolves the names that a window's expressions may use.
func (e *Engine) scope(w *window) *app.Scope {
	phone := map[string]any{"phone": &app.Item{Fields: e.phone()}}
	return app.NewScope(w.process.app, e.language, phone).With(w.process.state).With(w.vars)
}

// phone is what every app may know of the phone.
func (e *Engine) phone() map[string]any {
	s := e.size()
	return map[string]any{
		"time": e.now.Format("15:04"), "date": e.now.Format("2006-01-02"),
		"battery": float64(e.battery), "charging": e.charging, "language": e.language, "seed": float64(e.seed & 0xffff), "lockout": e.lockedOut(),
		"width": float64(s.X), "height": float64(s.Y), "density": float64(e.density()),
		"apps": e.apps(e.bundle.Names()), "tasks": e.apps(e.running()),
	}
}

// apps lists packages that a user can open.
func (e *Engine) apps(names []string) *app.List {
	out := new(app.List)
	for _, name := range names {
		a := e.bundle.Apps[name]
		if !a.Hidden {
			label := a.Label.Eval(app.NewScope(a, e.language, nil))
			out.Items = append(out.Items, &app.Item{Fields: map[string]any{"package": name, "label": label, "icon": name + "/" + a.Icon}})
		}
	}
	return out
}
