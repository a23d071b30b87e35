// Package adbtest holds the other end of package adb for tests.
//
// [NewCable] makes a pair of fake bulk endpoints that is as unforgiving as real
// ones: a transfer ends with a short packet or a full buffer, a buffer smaller
// than a packet loses it, a missing or superfluous zero-length packet breaks
// the phone. [Dial] and [DialUSB] run a scripted [Peer], for tests that read as
// dialogues. [Phone] is a small adbd whose services are Go functions.
package adbtest
