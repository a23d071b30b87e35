// Package bus lists the phones on the USB bus and says when one comes or goes.
//
// Scan reads sysfs once. A Watcher keeps the list: kernel uevents make it look at once, and a
// periodic re-read makes sure that a missed event cannot hide a phone for good. Neither opens a
// device, so a phone that cannot be opened is still listed and hides no other.
//
// A phone is named by its port path ("1-1.2"), the only thing about it that never repeats on one
// controller: serial numbers may be missing, garbage or the same on two phones.
//
// The package never writes to sysfs, and never claims, resets or configures a device.
package bus
