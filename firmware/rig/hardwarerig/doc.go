// Package hardwarerig plays the hardware around the emulated board: hubs that are fed by its GPIO lines, the hand at its
// button, the eye on its lights, and the manager of services that keeps lines over a restart of rackd.
//
// [Relays] follows QEMU's trace of the lines: one that goes off takes the phones behind it off the bus, one that comes on
// brings them back, as new as a phone is that was without power. Each change is kept with QEMU's time, so that an edge that
// nobody has asked for is found however short it was.
//
// The program in manager stands in for systemd inside the board.
package hardwarerig
