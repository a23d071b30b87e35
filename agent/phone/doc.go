// Package phone offers an Android phone as capabilities: read the element tree,
// take a screenshot, ask what is in front, touch, type, press keys, start and
// stop apps. It speaks to the phone through ADB services only; nothing is
// installed on the phone.
//
// [Attach] probes the phone once and returns a [Phone] that lives as long as the
// ADB connection. Reading needs no permission. Everything that changes the phone
// is a method of [Controls], which [Phone.Under] hands out for a [Fence]: the
// fence is asked immediately before each write, and a write that it refuses is
// not sent.
//
// A write is never repeated here. One that did not answer in time reports
// [ErrUnknownOutcome], because it may have happened.
//
// What a phone prints is untrusted: every answer has a bound, is parsed
// strictly, and a part that does not parse is an error, never a guess.
package phone
