// Package action is the one list of what a person or a program may ask of a rack.
//
// The control socket, and whatever comes beside it, never acts on a phone by itself: it names an action and hands over
// arguments as JSON. Registry.Call then does the same for all of them: it checks the role of the actor, decodes the
// arguments strictly, bounds the time, takes the slot's lease for an act that writes to a phone (or borrows the actor's
// own hold), runs the act, and writes one line to the audit log. Each no is a *wire.Refusal.
//
// What acts on phones is behind the interfaces Rack and Phone, so that this package needs no phone to be tested. The
// structs of arguments and results are also what the client of the control socket sends and reads.
package action
