// Package phonesimtest has doubles for tests around usb/phonesim: System, a small Android in memory, and
// Guest, the host controller and driver at the other end of usbredir.
package phonesimtest
