// Package phonesimtest has doubles for tests of usb/phonesim: System, a small Android in memory; Clock, a time that jumps; and
// Guest, the host controller and driver at the other end of usbredir.
package phonesimtest
