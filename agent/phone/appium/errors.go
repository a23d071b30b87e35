package appium

import "errors"

// Errors that callers decide on, wrapped with what was being done. Errors of a
// write also wrap those of agent/phone (ErrUnknownOutcome, ErrRejected,
// ErrDeviceSetup, ErrPartlyTyped, ErrCannotType) or are the fence's own.
var (
	// ErrNotSupported means that the phone's Android is older than the apps need.
	ErrNotSupported = errors.New("this Android is too old for the helper apps")

	// ErrBadFile means that an app's file is missing or is not the pinned one.
	ErrBadFile = errors.New("not the pinned file")

	// ErrNotInstalled means that an app that is needed is not on the phone.
	ErrNotInstalled = errors.New("the helper apps are not installed")

	// ErrInstallBlocked means that the phone forbids installing over USB.
	ErrInstallBlocked = errors.New("the phone forbids installing over USB")

	// ErrNotRunning means that the server was not started, or was given up.
	ErrNotRunning = errors.New("the UiAutomator2 server is not running")

	// ErrServer means that the server crashed, hung, or answered nonsense.
	ErrServer = errors.New("the UiAutomator2 server does not work")

	// ErrUiAutomationTaken means that another program on the phone reads the screen
	// through UiAutomation, which serves one at a time.
	ErrUiAutomationTaken = errors.New("another program holds the phone's UiAutomation")

	// ErrPortTaken means that something else listens where the server would.
	ErrPortTaken = errors.New("something else listens on the server's port")

	// ErrStale means that the server answered with an old tree.
	ErrStale = errors.New("the UiAutomator2 server shows an old screen")

	// ErrGaveUp means that a restart did not help and the server was ended. Read the
	// screen in the phone's own way until somebody starts it again.
	ErrGaveUp = errors.New("the UiAutomator2 server was given up")

	// ErrStillThere means that the server was ended but something of it is left, or
	// that this could not be found out.
	ErrStillThere = errors.New("the UiAutomator2 server may still be there")

	// ErrKeyboardLeft means that the phone was left with the helper's input method.
	// Recover puts the earlier one back.
	ErrKeyboardLeft = errors.New("the phone was left with the helper's keyboard")
)
