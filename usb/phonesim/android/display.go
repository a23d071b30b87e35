package android

import (
	"image"
	"time"

	"phonerack/usb/phonesim/screen"
)

// Display is what a Device uses of its screen. *screen.Engine implements it.
type Display interface {
	Tap(x, y int)
	// Swipe with hardly a movement is a tap, or a long press if it takes long enough.
	Swipe(x1, y1, x2, y2 int, d time.Duration)
	Type(text string) error
	Key(code int)

	Launch(pkg string) error
	Stop(pkg string)
	Clear(pkg string) error
	Packages() []screen.Package
	Running() []string
	Focus() (pkg, activity string) // empty in a transition
	Keyboard() bool
	Idle() bool

	Display() screen.Display
	SetSize(width, height int) error
	SetDensity(density int) error
	SetRotation(quarters int)
	SetScreenOn(on bool)
	ScreenOn() bool
	SetBattery(percent int, charging bool)
	SetAnimationScale(scale float64)

	Tree() *screen.Node // nil while the display is off
	Render() *image.RGBA
}

var _ Display = (*screen.Engine)(nil)
