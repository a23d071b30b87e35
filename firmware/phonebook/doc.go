// Package phonebook remembers phones: what a rack learnt of each one follows the
// phone from slot to slot and over restarts.
//
// A phone is known by its serial number. Some makers give a whole series one
// number: as soon as two phones with the same number sit in the rack, that number
// tells nothing, now and later, and such phones are known by their slots.
//
// [Book.Attach] gives the [Entry] of the phone in a slot until [Entry.Detach].
// [Entry.Update] is on disk when it returns. [Entry.Note] is for what may be lost
// in a crash, such as battery readings: it is kept in memory and written together
// with all others by [Book.Flush], so that a rack of phones does not wear its
// storage out.
package phonebook
