// Package signpost shows on a phone's own screen how a person reaches the rack: its addresses, large, and the first as a
// QR code for another phone's camera. A technician without network needs no display, no label and no list then.
//
// The page comes through the cable: the phone listens on a port of its loopback and hands the connections to this rack (adb
// reverse), so that the phone needs no network, and a browser opens it. Show wakes the phone, opens the page, and puts the
// phone back to its home screen at the end. Whoever calls it has the slot's lease: only a free phone is used.
//
// The page has no script and loads nothing; what connects to it is a phone, and gets the page or nothing.
package signpost
