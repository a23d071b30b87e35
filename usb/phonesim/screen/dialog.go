package screen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"phonerack/usb/phonesim/screen/internal/app"
)

// ErrUnknownDialog is returned for a dialog that the system has not, or for arguments that are not its own.
var ErrUnknownDialog = errors.New("the system has no such dialog")

// maxTimers bounds the dialogs that wait for their time.
const maxTimers = 100

// ShowDialog opens a dialog of the system over whatever is on the display, after a time of the clock: permission (label,
// package, permission), anr (label, package), update, rating (label, package), crash (label, package). See APPS.md. The error is
// ErrUnknownDialog.
func (e *Engine) ShowDialog(name string, args map[string]string, after time.Duration) error {
	e.lock()
	defer e.mu.Unlock()
	dialog := e.bundle.Apps[app.System].FindScreen(name, true)
	if dialog == nil || len(e.timers) >= maxTimers {
		return fmt.Errorf("show %s: %w", name, ErrUnknownDialog)
	}
	values := make(map[string]any, len(args))
	for k, v := range args {
		if !slices.Contains(dialog.Args, k) {
			return fmt.Errorf("show %s with %s: %w", name, k, ErrUnknownDialog)
		}
		if err := e.text.Check(v); err != nil {
			return fmt.Errorf("show %s: %w", name, err)
		}
		values[k] = v
	}
	show := func() { e.ask(name, values, new(budget)) }
	if after <= 0 {
		show()
		return nil
	}
	e.timers = append(e.timers, arrival{e.now.Add(after), show})
	return nil
}

// ask opens a dialog of the system.
func (e *Engine) ask(name string, args map[string]any, b *budget) {
	e.move(0)
	p := e.process(app.System)
	e.open(p, p.app.FindScreen(name, true), args, b)
}

// owner is the package that a window counts as: a dialog of the system may be another's.
func (w *window) owner() string {
	if w.screen.Package != "" {
		return w.screen.Package
	}
	return w.process.app.Package
}

// Grant is a permission that the user gave to an app in a dialog.
type Grant struct{ Package, Permission string }

// maxGrants bounds the grants that nobody has taken.
const maxGrants = 1000

// TakeGrants returns the permissions that were given since the last call, oldest first.
func (e *Engine) TakeGrants() []Grant {
	e.lock()
	defer e.mu.Unlock()
	g := e.grants
	e.grants = nil
	return g
}
