package screen

import (
	"embed"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"slices"
	"sync"
	"time"

	"phonerack/usb/phonesim/screen/internal/app"
	"phonerack/usb/phonesim/screen/internal/glyph"
	"phonerack/usb/phonesim/screen/internal/paint"
)

//go:embed apps
var embedded embed.FS

// shipped reads the apps that the binary holds, once.
var shipped = sync.OnceValues(func() (*app.Bundle, error) {
	base, err := fs.Sub(embedded, "apps")
	if err != nil {
		return nil, err
	}
	return app.Load(base, base)
})

// ErrUnknownPackage is returned for a package that is not installed.
var ErrUnknownPackage = errors.New("package is not installed")

// ErrNoCJKFont is returned where Chinese is to be shown and the machine has no font for it.
var ErrNoCJKFont = glyph.ErrNoCJKFont

// ErrNoGlyph is returned for text with a character that no font has.
var ErrNoGlyph = glyph.ErrNoGlyph

// Config of an Engine. The zero value is a phone of 1080 by 2400 pixels in English.
type Config struct {
	Width, Height int // pixels, in the natural orientation
	Density       int // dots per inch
	Language      string
	Seed          int64            // decides the order of shuffled lists
	Apps          fs.FS            // one folder a package; nil: the shipped apps
	Clock         func() time.Time // nil: time.Now
}

// transition is how long one window takes to replace another, at animation scale 1.
const transition = 300 * time.Millisecond

// Engine is one phone's display. All methods are safe for concurrent use.
type Engine struct {
	mu sync.Mutex // guards everything below

	clock    func() time.Time
	now      time.Time // the moment that the state has been caught up with
	language string
	seed     int64
	bundle   *app.Bundle
	removed  map[string]*app.App // by Uninstall

	display
	on             bool
	battery        int
	charging       bool
	animationScale float64
	clipboard      string
	page           page      // of the keyboard
	typing         Typing    // what becomes of typed keys
	arrivals       []arrival // in the order in which they fall due
	timers         []arrival // what is to happen at a time; in no order
	composition    string    // letters that the input method holds
	finger         *finger   // nil: none is on the display
	keyguard       Keyguard
	wrongPINs      int       // in a row
	barred         time.Time // until when no PIN is taken
	journal        []string
	grants         []Grant // not yet taken

	processes map[string]*process
	recent    []string // packages with a process, the last used first
	front     *process
	movingTo  time.Time // end of the running transition
	moveSign  int       // 1: forward, -1: back, 0: nothing slides
	pending   []*pending

	version uint64 // grows with each change of what is to be seen
	scene   *scene
	frame   frame
	text    *glyph.Typesetter
	cache   *paint.Cache
}

// New returns a phone that shows its home screen. It fails if an app is faulty, or if a text in the
// configured language needs a font that the machine lacks (ErrNoCJKFont).
func New(c Config) (*Engine, error) {
	if c.Width == 0 && c.Height == 0 {
		c.Width, c.Height = 1080, 2400
	}
	if c.Density == 0 {
		c.Density = 420
	}
	if c.Language == "" {
		c.Language = "en"
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	e := &Engine{
		clock: c.Clock, language: c.Language, seed: c.Seed,
		display: display{physical: image.Pt(c.Width, c.Height), physicalDensity: c.Density},
		on:      true, battery: 85, animationScale: 1,
		processes: make(map[string]*process), removed: make(map[string]*app.App),
		text: glyph.New(), cache: paint.NewCache(),
	}
	if err := validDisplay(c.Width, c.Height, c.Density); err != nil {
		return nil, err
	}
	if !slices.Contains(app.Languages, c.Language) {
		return nil, fmt.Errorf("language %q is not one of %v", c.Language, app.Languages)
	}
	var err error
	if c.Apps == nil {
		e.bundle, err = shipped()
	} else if base, subErr := fs.Sub(embedded, "apps"); subErr == nil {
		e.bundle, err = app.Load(c.Apps, base)
	}
	if err != nil {
		return nil, fmt.Errorf("load the apps: %w", err)
	}
	e.bundle = own(e.bundle)
	for _, name := range e.bundle.Names() {
		for where, s := range e.bundle.Apps[name].Strings(c.Language) {
			if err := e.text.Check(s); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, where, err)
			}
		}
	}
	e.now = e.clock()
	e.front = e.start(app.Launcher)
	return e, nil
}

// catchUp brings the state to the clock's time: steps whose delay is over run in the order in which they
// fell due. The caller holds the lock.
func (e *Engine) catchUp() {
	now := e.clock()
	if now.Before(e.now) {
		now = e.now
	}
	if now.Truncate(time.Minute) != e.now.Truncate(time.Minute) {
		e.version++ // the clock in the status bar
	}
	for range maxCatchUp {
		act, due := e.next()
		if act == nil || due.After(now) {
			break
		}
		e.now = due
		act()
	}
	e.now = now
}

// next is what the engine does next by itself, and when; nil is nothing.
func (e *Engine) next() (act func(), due time.Time) {
	for i, p := range e.pending {
		if act == nil || p.due.Before(due) {
			due = p.due
			act = func() {
				e.pending = slices.Delete(e.pending, i, i+1)
				e.resume(p)
			}
		}
	}
	if len(e.arrivals) > 0 && (act == nil || e.arrivals[0].due.Before(due)) {
		due = e.arrivals[0].due
		act = func() {
			what := e.arrivals[0].what
			e.arrivals = e.arrivals[1:]
			what()
		}
	}
	for i, t := range e.timers {
		if act == nil || t.due.Before(due) {
			due = t.due
			act = func() {
				e.timers = slices.Delete(e.timers, i, i+1)
				t.what()
			}
		}
	}
	if at, ok := e.fingerDue(); ok && (act == nil || at.Before(due)) {
		due, act = at, e.fingerActs
	}
	return act, due
}

// maxCatchUp bounds how many delays end in one go, should the clock jump while an app repeats itself.
const maxCatchUp = 10000

func (e *Engine) lock() {
	e.mu.Lock()
	e.catchUp()
}

// moving reports a transition.
func (e *Engine) moving() bool { return e.now.Before(e.movingTo) }

func (e *Engine) move(sign int) {
	e.compose("")
	e.version++
	e.movingTo = e.now.Add(time.Duration(float64(transition) * e.animationScale))
	e.moveSign = sign
}

// Focus returns the package and activity that have the focus; both are empty during a transition.
func (e *Engine) Focus() (pkg, activity string) {
	e.lock()
	defer e.mu.Unlock()
	if e.moving() {
		return "", ""
	}
	w := e.active()
	return w.owner(), w.screen.Activity
}

// Idle reports that nothing moves: no transition, no spinner (at animation scale 0 they stand still), no delay of the app in front except a quiet
// one. A phone whose display is off is idle.
func (e *Engine) Idle() bool {
	e.lock()
	defer e.mu.Unlock()
	if !e.on {
		return true
	}
	if e.moving() || e.current().spinners > 0 && e.animationScale > 0 {
		return false
	}
	return !slices.ContainsFunc(e.pending, func(p *pending) bool { return p.process == e.front && !p.quiet })
}

// Journal returns what the apps did so far, oldest first: "message sent to Ana: hello". It is written in
// English whatever the phone's language.
func (e *Engine) Journal() []string {
	e.lock()
	defer e.mu.Unlock()
	return slices.Clone(e.journal)
}

// Keyboard reports that the on-screen keyboard is shown.
func (e *Engine) Keyboard() bool {
	e.lock()
	defer e.mu.Unlock()
	return e.on && e.current().keyboard != nil
}
