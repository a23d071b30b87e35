// Package power switches what feeds the phones: a whole hub by a GPIO line, or one port of a hub by
// requests to it. Both are an Outlet with a Switch; a Supply has them all and keeps the state that is wanted.
//
//	supply, err := power.New(power.Config{Outlets: outlets, Store: store, Phones: phones, Hubs: usb, ...})
//	go supply.Run(ctx)                                        // applies what is wanted, and applies it again
//	err = supply.Cycle(ctx, "hub A", power.Automatic)          // off, wait, on
//	err = supply.Set(ctx, "hub B port 3", false, power.Person) // until somebody says otherwise
//
// What is wanted is stored before anything is switched. Switching is spread over time: things are switched
// on with a stagger between them, at most so many at once, one at a time on each hub, and nothing is off for
// less than board.MinOff. The port of the uplink is never switched.
//
// Hubs lie, so nothing is believed but the effect: after power was taken, the phones must have left the bus
// and their batteries must not have charged. A Cut says what was seen; docs/power.md has the table of
// behaviours. What is found wrong, powered again by a kernel, a hub or its reset, is put right a few times
// and then left alone and reported.
//
// Maintenance stops all switching that nobody has asked for: hands may be inside the rack.
//
// The package asks for phones and stores through small interfaces; powertest has doubles for them and hubs
// with each of the lies.
package power
