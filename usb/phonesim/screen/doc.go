// Package screen is the display of a simulated Android phone: apps as data, an engine that runs them, and
// the pixels a person would see.
//
// An Engine is made by New and lives until it is forgotten: it has no goroutine and no file. Input (Tap,
// Swipe, Type, Key) and commands (Launch, Stop) change its state at once; what takes time (transitions,
// delays of an app, spinners) is caught up with from the injected clock whenever the engine is looked at.
// Tree gives what accessibility would report of the active window, Render what a camera would see.
//
// An Engine knows nothing of ADB or shells and reads no environment but the name of the Chinese font. The
// format of apps is described in APPS.md.
package screen
