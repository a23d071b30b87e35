// Package gpio drives lines of the GPIO character device (version 2 of its interface) as pins of
// periph.io's conn.
//
// What hangs on a line is often the power of twenty phones, so the package is careful about edges:
//
//   - An output is requested together with its value, in one call to the kernel. A line that already
//     drives can be taken over with the level that it has (Keep).
//   - Reading never touches the direction: it asks the kernel for the value of the line as it is. A pin
//     requested as an output refuses to become an input, and the other way round.
//   - Halt and Close leave the value. What the kernel then does is the affair of the chip's driver: a
//     PL061 keeps level and direction, pinctrl-bcm2835 and -bcm2711 turn the line into an input when its last
//     handle is closed, unless they run with persist_gpio_outputs=1 (Linux 6.12 and later; measured,
//     docs/power.md). A process that is killed closes its handles too.
//   - So a handle can be parked: Park gives its file under a name, for a store that outlives the
//     process (systemd's, FDSTORE=1), and Options.Parked takes such files back. A parked file is used only
//     after the kernel has confirmed that it is the line that was asked for, held by us.
//
// A line is found by its name, or by its chip's label and an offset, never by a chip's number, which
// changes between kernels. Levels are logical: High means active, whatever the polarity of the line.
//
// Lines talks to the kernel through the interface Kernel; Cdev is the real one, gpiotest.Kernel the
// double, which records each edge and behaves like the kernel when handles are closed.
package gpio
