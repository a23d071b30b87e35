package screen

import (
	"fmt"
	"image"
	"math"
)

// display holds what the window manager knows.
type display struct {
	physical        image.Point // natural orientation
	physicalDensity int
	override        image.Point // zero: none
	overrideDensity int
	rotation        int // quarter turns, 0 to 3
}

// Display describes the screen as the window manager does.
type Display struct {
	Width, Height    int         // of the picture as it is now: overridden and rotated
	Density          int         // in force
	Rotation         int         // quarter turns from the natural orientation, 0 to 3
	Physical         image.Point // natural orientation
	PhysicalDensity  int
	Override         image.Point // zero: none
	OverrideDensity  int         // zero: none
	On               bool
	AnimationScale   float64
	Battery          int // percent
	Charging         bool
	KeyboardTop      int // y of the keyboard's upper edge, Height if it is hidden
	StatusBarBottom  int // y of the status bar's lower edge
	NavigationBarTop int // y of the upper edge of the bar at the bottom
}

// Limits of a display, in pixels and dots per inch. They bound memory and keep a layout possible.
const (
	minSide, maxSide       = 160, 8192
	minDensity, maxDensity = 72, 1200
)

func validDisplay(w, h, density int) error {
	if w < minSide || w > maxSide || h < minSide || h > maxSide {
		return fmt.Errorf("size %dx%d: each side must be %d to %d", w, h, minSide, maxSide)
	}
	if density < minDensity || density > maxDensity {
		return fmt.Errorf("density %d must be %d to %d", density, minDensity, maxDensity)
	}
	return nil
}

func (d *display) size() image.Point {
	s := d.physical
	if d.override != (image.Point{}) {
		s = d.override
	}
	if d.rotation%2 == 1 {
		s.X, s.Y = s.Y, s.X
	}
	return s
}

func (d *display) density() int {
	if d.overrideDensity != 0 {
		return d.overrideDensity
	}
	return d.physicalDensity
}

// px converts dp to pixels.
func (d *display) px(dp float64) int {
	return int(math.Round(dp * float64(d.density()) / 160))
}

// Heights of the system's bars, in dp.
const (
	statusBarDP     = 28
	navigationBarDP = 20
)

// Display returns the screen's geometry and what else the window manager knows of it.
func (e *Engine) Display() Display {
	e.lock()
	defer e.mu.Unlock()
	s := e.size()
	d := Display{
		Width: s.X, Height: s.Y, Density: e.density(), Rotation: e.rotation,
		Physical: e.physical, PhysicalDensity: e.physicalDensity, Override: e.override, OverrideDensity: e.overrideDensity,
		On: e.on, AnimationScale: e.animationScale, Battery: e.battery, Charging: e.charging,
		KeyboardTop: s.Y, StatusBarBottom: e.px(statusBarDP), NavigationBarTop: s.Y - e.px(navigationBarDP),
	}
	if kb := e.current().keyboard; kb != nil {
		d.KeyboardTop = kb.rect.Min.Y
	}
	return d
}

// SetSize overrides the size (natural orientation, like `wm size`); zeros take the override back.
func (e *Engine) SetSize(width, height int) error {
	e.lock()
	defer e.mu.Unlock()
	if width != 0 || height != 0 {
		if err := validDisplay(width, height, e.density()); err != nil {
			return err
		}
	}
	e.override = image.Pt(width, height)
	e.move(0)
	return nil
}

// SetDensity overrides the density (like `wm density`); zero takes the override back.
func (e *Engine) SetDensity(density int) error {
	e.lock()
	defer e.mu.Unlock()
	if density != 0 {
		if err := validDisplay(e.physical.X, e.physical.Y, density); err != nil {
			return err
		}
	}
	e.overrideDensity = density
	e.move(0)
	return nil
}

// Rotation returns the quarter turns from the natural orientation, 0 to 3.
func (e *Engine) Rotation() int {
	e.lock()
	defer e.mu.Unlock()
	return e.rotation
}

// SetRotation turns the display; 1 and 3 are landscape on a phone.
func (e *Engine) SetRotation(quarters int) {
	e.lock()
	defer e.mu.Unlock()
	if quarters &= 3; quarters != e.rotation {
		e.rotation = quarters
		e.move(0)
	}
}

// SetScreenOn wakes the display or puts it to sleep.
func (e *Engine) SetScreenOn(on bool) {
	e.lock()
	defer e.mu.Unlock()
	e.setOn(on)
}

func (e *Engine) setOn(on bool) {
	if on != e.on {
		e.on, e.finger = on, nil
		if !on {
			e.lockUp()
		}
		e.version++
	}
}

// ScreenOn reports whether the display is lit.
func (e *Engine) ScreenOn() bool {
	e.lock()
	defer e.mu.Unlock()
	return e.on
}

// SetBattery sets the level that the status bar shows, in percent.
func (e *Engine) SetBattery(percent int, charging bool) {
	e.lock()
	defer e.mu.Unlock()
	e.battery, e.charging = min(max(percent, 0), 100), charging
	e.version++
}

// SetAnimationScale sets how long transitions take; 0 switches them off.
func (e *Engine) SetAnimationScale(scale float64) {
	e.lock()
	defer e.mu.Unlock()
	if scale >= 0 && scale <= 10 {
		e.animationScale = scale
	}
}

// SetClipboard puts text where the key PASTE takes it from. The error is Commit's.
func (e *Engine) SetClipboard(text string) error {
	e.lock()
	defer e.mu.Unlock()
	if err := e.readFonts(text); err != nil {
		return err
	}
	e.clipboard = text
	return nil
}

// Clipboard returns the text last put there.
func (e *Engine) Clipboard() string {
	e.lock()
	defer e.mu.Unlock()
	return e.clipboard
}
