package android

import (
	"image"
	"time"

	"phonerack/usb/phonesim/screen"
)

// Display is what a Device uses of its screen. *screen.Engine implements it.
type Display interface {
	Tap(x, y int)
	// StartSwipe with hardly a movement is a tap, or a long press if it takes long enough. The finger
	// lifts after lasts.
	StartSwipe(x1, y1, x2, y2 int, d, lasts time.Duration)
	Touch(a screen.TouchAction, x, y int)
	Type(text string) error
	Commit(text string) error // as an input method does
	Key(code int)
	Shortcut(code int) // with CTRL
	SetTyping(t screen.Typing)

	Launch(pkg string) error
	Stop(pkg string)
	Clear(pkg string) error
	Install(p screen.Package) error
	Uninstall(pkg string, keepData bool) error
	Packages() []screen.Package
	Running() []string
	TakeGrants() []screen.Grant
	Focus() (pkg, activity string) // empty in a transition
	Keyboard() bool                // its keys are to be seen
	Typing() bool                  // a field wants it
	Idle() bool

	SetKeyguard(k screen.Keyguard)
	DismissKeyguard()
	Locked() bool
	Windows() []screen.Window // the topmost first

	Display() screen.Display
	SetSize(width, height int) error
	SetDensity(density int) error
	SetRotation(quarters int)
	SetScreenOn(on bool)
	ScreenOn() bool
	SetBattery(percent int, charging bool)
	SetAnimationScale(scale float64)

	Clipboard() string
	SetClipboard(text string) error

	Tree() *screen.Node    // nil while the display is off
	Trees() []*screen.Node // of all windows
	Render() *image.RGBA
}

var _ Display = (*screen.Engine)(nil)
