// Package wire holds what rack and cloud both have to know about each other's
// messages. It is the one package of sync that every other part may import.
//
// A [Message] is one thing said: a type, a body, perhaps attachments. [Seal]
// makes a frame of it for one [Topic], signed with [Keys] that both sides derive
// from the secret of the rack's enrolment; [Open] proves and reads a frame. The
// broker in between is trusted with nothing: a frame that was altered, or moved
// to another topic, is refused before it is parsed. docs/wire.md describes the
// bytes, testdata/vectors.json has examples of them.
//
// A [Refusal] is how anything in phonerack says no: a code, its arguments, and
// whether the same request may succeed later. It travels as JSON exactly so,
// and becomes a sentence only where a person reads it: [Refusal.Sentence] looks
// the code up in the catalogue of a language. Every sentence says what was
// refused, why, and what to do about it.
//
// The package never does I/O.
package wire
