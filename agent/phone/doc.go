// Package phone offers an Android phone as capabilities: read the element tree,
// take a screenshot, ask what is in front and how the phone is, touch, type,
// press keys, start, stop, install and remove apps, put the phone back in order.
// It speaks to the phone through ADB services only; nothing is installed on the
// phone. Helper apps, if there are any, come in through [Options].
//
// [Attach] probes the phone once and returns a [Phone] that lives as long as the
// ADB connection. Reading needs no permission. Everything that changes the phone
// is a method of [Controls], which [Phone.Under] hands out for a [Fence]: the
// fence is asked immediately before each write, and a write that it refuses is
// not sent.
//
// A write is never repeated here. One that did not answer in time reports
// [ErrUnknownOutcome], because it may have happened. Two things are done without
// a fence because they only end something: a finger is lifted, and a helper that
// fails is stopped.
//
// # Ways
//
// Versions and makers tell the same thing in different words. What is read has
// several ways, each a few commands and a parser; the first that is understood
// is kept and goes first from then on, for ten minutes. [Phone.Strategies] lists
// the ways that work, for a record that outlives the connection.
//
// # What is not trusted
//
// What a phone prints is untrusted: every answer has a bound, is parsed
// strictly, and a part that does not parse is an error, never a guess. Apps
// choose the titles of their windows: lines that a title could have made are not
// believed.
//
// docs/phone.md lists each capability with its commands, and what has never been
// run on a real phone.
package phone
