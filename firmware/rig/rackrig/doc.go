// Package rackrig puts a whole rack together for tests and for the demo: rackd and rackctl on the
// emulated board (or on this machine, over byte streams) with simulated phones in its slots.
//
// Simulate makes a phone: a display with apps, the small Android behind it, and the USB device
// before it. BootBoard starts an emulated board with rackd on a read-only root, without HOME, as
// on the product; StartNative starts rackd as a process of this machine. Both are a Rack: Ctl runs
// rackctl there, Fetch brings a folder from there. Ask reads what rackctl says in JSON, WaitState and
// WaitSlots wait for phones and slots.
package rackrig
