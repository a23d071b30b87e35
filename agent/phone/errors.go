package phone

import (
	"errors"

	"phonerack/agent/frame"
)

// Reading fails with one of these, wrapped with what was being read.
var (
	// ErrNotIdle means that the screen kept changing, for example under an endless
	// animation or a video, so that no element tree could be taken.
	ErrNotIdle = errors.New("the screen does not come to rest")

	// ErrNoRoot means that no window was in front when the tree was taken.
	ErrNoRoot = errors.New("no window is in front")

	// ErrNoDump means that the dumper neither succeeded nor said why.
	ErrNoDump = errors.New("the element tree was not written")

	// ErrTaken means that another program reads the screen: a phone lets one at a
	// time do so.
	ErrTaken = errors.New("another program reads the screen")

	// ErrTruncated means that an answer ended before its end.
	ErrTruncated = frame.ErrTruncated

	// ErrTooLarge means that an answer is larger than its bound.
	ErrTooLarge = frame.ErrTooLarge

	// ErrMalformed means that an answer has not the form it should have.
	ErrMalformed = frame.ErrMalformed

	// ErrInTransition means that one app was giving way to another, or the display
	// was turning, for as long as was waited.
	ErrInTransition = errors.New("the screen is changing")

	// ErrNoScreenshot means that every known way to take a screenshot failed.
	ErrNoScreenshot = errors.New("the phone gives no screenshot")
)

// Writing fails with one of these, wrapped with what was being done, or with
// the error of the fence. Only ErrUnknownOutcome leaves open whether the write
// happened; after ErrPartlyTyped a part of the text is in the field.
var (
	// ErrUnknownOutcome means that the phone did not answer in time: the write may
	// have happened. Look at the screen before doing anything else.
	ErrUnknownOutcome = errors.New("it may or may not have happened")

	// ErrDeviceSetup means that the phone's settings forbid input over USB. On some
	// makes "USB debugging (Security settings)" has to be switched on.
	ErrDeviceSetup = errors.New(`the phone forbids input over USB: switch on "USB debugging (Security settings)" and restart it`)

	// ErrCannotType means that the text has no way into this phone.
	ErrCannotType = errors.New("cannot type this text on this phone")

	// ErrPartlyTyped means that typing stopped in the middle of the text.
	ErrPartlyTyped = errors.New("only a part of the text was typed")

	// ErrOffScreen means that a coordinate lies outside the display.
	ErrOffScreen = errors.New("outside the display")

	// ErrBadArgument means that an argument is outside its range or form.
	ErrBadArgument = errors.New("bad argument")

	// ErrLocked means that the phone asks for a PIN, a pattern or a password.
	ErrLocked = errors.New("the phone is locked")

	// ErrNoClipboard means that the clipboard has no way in or out.
	ErrNoClipboard = errors.New("the clipboard cannot be used")

	// ErrNotInstalled means that the phone did not take an app.
	ErrNotInstalled = errors.New("the app was not installed")

	// ErrAppMissing means that no installed app of that name can be started.
	ErrAppMissing = errors.New("no such app to start")

	// ErrNoFence means that Controls were made without a lease.
	ErrNoFence = errors.New("a write needs a lease")

	// ErrRejected means that the phone answered a write with a complaint.
	ErrRejected = errors.New("the phone rejected it")
)
