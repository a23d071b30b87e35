// Package board reads board files: what a controller is made of, and which USB port is which slot.
//
// A board file is TOML. Load reads it and checks it as a whole: every fault is reported with its line
// and column, all faults at once, so that one round of mending is enough. A file may build upon one of
// the Models, and then has only what the model lacks. docs/boards.md has every key.
//
//	name  = "two hubs of four"
//	model = "rpi4"
//
//	[[hub]]
//	name  = "A"
//	path  = "1-1.1"     # USB port path: bus 1, root port 1, hub port 1
//	power = "line"      # the whole hub is fed by a GPIO line
//	line  = "GPIO17"
//
//	[[slot]]
//	number = 1          # what is printed beside the port
//	path   = "1-1.1.1"  # or: hub = "A", port = 1
//	label  = "A1"       # optional, shown to people
//	row    = 1          # optional, where the slot is in the rack, from 1
//	column = 1
//
// A Draft adds slots to a file, and a Lesson finds out which port is which slot while somebody plugs a
// phone into one after the other; rackctl board learn joins the two. The package does no other I/O: it
// switches nothing and reads no bus.
package board
