// Package watchdog feeds the hardware watchdog while the program makes progress, and only then.
//
// Each critical part of the program (the bus, each slot's owner, the store, the link) has a Part with a bound, and
// calls Progress when a round of its own work is done. Run feeds the device as long as every part has reported within
// its bound. There is no timer that feeds by itself: a timer proves that the scheduler lives, not that phones are
// looked after. A part that waits for the outside must report while it waits, so that a bad phone never resets the
// board. Parts without a device serve who feeds something else, such as a service manager's watchdog.
//
// When a part is late, Run first says which (Options.Late), then stops feeding; the board is reset a timeout later,
// unless every part reports again before. The device is opened late, when there is something to feed it with: a board
// that takes long to start is the boot loader's concern.
//
// When the program ends, its device stays armed, so that a shutdown that hangs is reset too; Options.Disarm writes the
// magic 'V' at an orderly end. A crash never disarms. A kernel built with nowayout ignores the 'V', which Open reads
// from sysfs and Run says.
//
// The effective timeout is read back (systemd#27427: a timeout above the hardware's, 15 s on a Raspberry Pi, silently
// meant none).
package watchdog
