// Package appium drives two apps of the Appium project on a phone: the
// UiAutomator2 server, which reads the element tree in a fraction of the time
// that the phone's own dumper takes, and Appium Settings, whose input method
// types any Unicode text and whose receiver reads the clipboard. Both are
// opt-in: nothing here runs unless a person asked for it, and the phone works
// without them.
//
// A [Helper] belongs to one ADB connection. [Helper.Install] puts the apps on the
// phone, [Helper.Start] runs the server, [Helper.Stop] ends it, [Helper.Remove]
// takes the apps off again. [Helper.Recover] puts right what an earlier program
// left behind; call it once after connecting. While the server runs no other
// program can read the element tree, the phone's own dumper included; Stop
// returns when it can again.
//
// What changes the phone asks a fence immediately before each single command,
// and is never repeated. [Helper.Start] brings the fence that the Helper's own
// methods ask; [Helper.Under] gives the same methods under another one. Two
// things need no fence: reading, and ending the server, which changes nothing
// but this package's own process.
//
// # Trees that are never stale
//
// The server clears the accessibility cache of its process before each tree
// (UiAutomation.clearCache from Android 14 on, setServiceInfo before) unless its
// setting deferAccessibilityCacheReset is on. Start switches that off and reads
// it back. It is not taken on trust that clearing works on every phone: a tree
// that is equal to the one before although something was done since
// ([Helper.Acted], or typing) is proved by a fresh server, whose cache is empty
// by construction. A server that had told something else is given up with
// [ErrStale]. A server that has been seen to change its answer by itself is
// doubted only after three acts without a change, unless it has been contradicted
// lately. [Helper.Doubt] has the next tree proved in any case.
//
// # Sources
//
// The interfaces are those of appium-uiautomator2-server 10.6.6 and
// io.appium.settings 8.0.10, read from their public sources (github.com/appium,
// Apache-2.0). docs/helpers.md has what was looked up and what has not been run on
// a real phone.
package appium
