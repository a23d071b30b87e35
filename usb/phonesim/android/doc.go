// Package android is the small Android behind a simulated phone's debugging daemon:
// a shell, its commands, files, properties and settings.
//
// A Device is made by New and lives until it is forgotten; it starts no goroutine of
// its own. It has the methods that usb/phonesim asks of a System: Run executes what
// "adb shell" sends, Property answers the banner, Stat, ReadDir, OpenFile and CreateFile
// serve sync. Any number of them may run at once.
//
// What the commands print, where (standard output or error) and with which exit status
// follows Android 7 to 12, 14 or 15, habits included: a dump that fails says so on standard
// error, exits with 0 and leaves the old file; text that the virtual keyboard cannot type
// ends in a NullPointerException; "cmd clipboard" succeeds and does nothing. The display
// and its apps are an engine behind the interface Display. What is broken is said by
// Faults, whose zero value is a healthy phone.
//
// Nothing of the machine that runs the simulation can be seen or changed from inside
// (see mksh and memfs), and each Run ends with its context.
package android
