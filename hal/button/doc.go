// Package button reads the one button of a rack.
//
// How long it is held says what is meant: a short press asks the rack to identify itself, a long one switches
// maintenance on or off, and a very long one resets to factory settings. Nothing happens before the button is
// released, the light tells how far it is (Stage), and between the three lie spans that mean nothing: who is in doubt
// holds on or lets go there.
//
//	up to 1.5 s   identify         3 to 10 s   maintenance        20 to 40 s   factory reset
//
// A level counts when it was steady for Debounce. A button that is down when the program starts is not a press, since
// nobody knows for how long: a press that spans a restart does nothing. One that is down for more than StuckAfter is
// stuck: it does nothing, it is reported, and works again after its release.
//
// A Press is the logic alone, on levels with their times. Watch drives one from a pin.
package button
