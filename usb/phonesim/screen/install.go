package screen

import (
	"fmt"
	"maps"
	"slices"

	"phonerack/usb/phonesim/screen/internal/app"
)

// Install adds an app, or replaces one by another version; its data stays. If the engine has no description
// of its screens, it shows an empty one. Without an Activity it has no icon and cannot be launched.
func (e *Engine) Install(p Package) error {
	e.lock()
	defer e.mu.Unlock()
	if p.Name == app.Launcher || system(p.Name) {
		return fmt.Errorf("install %s: it is part of the system", p.Name)
	}
	known := e.bundle.Apps[p.Name]
	if known == nil {
		known = e.removed[p.Name]
	}
	var err error
	if known == nil || known.Blank() {
		if p.Label == "" || e.text.Check(p.Label) != nil {
			p.Label = p.Name
		}
		if known, err = e.bundle.NewBlank(p.Name, p.Activity, p.Version, p.Label); err != nil {
			return fmt.Errorf("install %s: %w", p.Name, err)
		}
	} else {
		known = known.With(p.Version)
	}
	e.stop(p.Name)
	e.bundle.Apps[p.Name] = known
	delete(e.removed, p.Name)
	if q := e.processes[p.Name]; q != nil {
		q.app = known
	}
	e.version++
	return nil
}

// Uninstall takes an app away, with its data unless keep is set. The error is ErrUnknownPackage, also for the system
// and the launcher.
func (e *Engine) Uninstall(pkg string, keep bool) error {
	e.lock()
	defer e.mu.Unlock()
	a := e.bundle.Apps[pkg]
	if a == nil || pkg == app.Launcher || system(pkg) {
		return fmt.Errorf("uninstall %s: %w", pkg, ErrUnknownPackage)
	}
	e.stop(pkg)
	delete(e.bundle.Apps, pkg)
	e.removed[pkg] = a
	e.recent = slices.DeleteFunc(e.recent, func(s string) bool { return s == pkg })
	if !keep {
		delete(e.processes, pkg)
	}
	e.version++
	return nil
}

// own makes the set of apps the engine's alone: others may share what it was loaded from.
func own(b *app.Bundle) *app.Bundle { return &app.Bundle{Apps: maps.Clone(b.Apps)} }
