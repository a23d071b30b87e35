// Package usblink opens phones through libusb and returns adb.Links. It is the
// only package that imports gousb (cgo, libusb-1.0).
//
// # Life
//
// A [Host] opens any number of phones, each with a device handle of its own. Their transfers share
// a libusb context and its event thread, but wait for each other nowhere: a transfer that the kernel
// never gives back costs its own link only. A phone that libusb does not list makes it list the bus
// anew, because its list may miss a device for good (libusb#1571).
//
// # What it leaves alone
//
// It never detaches kernel drivers, never changes the configuration, and sends
// SET_INTERFACE only when ADB sits on an alternate setting other than 0 (on
// some Pixels it breaks every later transfer). It clears a halt when it is told to
// and where there is one only: clearing an endpoint that is not halted broke bulk
// transfers on several phones. After a stall (adb.ErrStall) the ways back are
// [Host.ClearHalt], then [Host.Reset], then a power cycle of the port.
//
// # Blocking
//
// Every call is bounded. A transfer whose context ended is cancelled and waited
// for two seconds; if the kernel still has it then, it is abandoned with
// [ErrStuck]: the link is dead, Close reports ErrStuck too, and its handle is
// released in the background when the transfer comes back, if ever.
package usblink
