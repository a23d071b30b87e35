// Package board reads board files: what a controller is made of, and which USB port is which slot.
//
// A board file is TOML. It is read once, checked as a whole, and never written. Every fault is
// reported with its line and column, all faults at once, so that one round of mending is enough.
//
//	name = "two hubs of eight"
//
//	[[slot]]
//	number = 1          # what is printed beside the port
//	path   = "1-1.1"    # USB port path: bus 1, root port 1, hub port 1
//	label  = "A1"       # optional, shown to people
//	row    = 1          # optional, where the slot is in the rack, from 1
//	column = 1
package board
