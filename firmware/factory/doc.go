// Package factory makes a rack what it was when it was delivered.
//
// A reset is asked for by a mark in the state folder (Ask): from then on it happens, whatever happens in between. The next
// start of rackd carries it out before it opens anything (Carry). Each step may be done again, and the mark goes last, so that
// a cut of power leaves a rack to which nothing has happened, or one that the next start makes new.
//
// It removes all that came from the cloud, from people and from phones: the identity, and of the state folder everything but
// what Plan.Kept names, the ADB keys (without which each phone would ask a person; Mark.Keys removes them too), the number of the
// database (the cloud takes no lower one again) and what is wanted of the phones' power: a reset switches nothing.
// The configuration and the files that it names stay, apart from the identity. A rack without it is not enrolled, and the file
// "unenrolled" says that this is no fault.
package factory
