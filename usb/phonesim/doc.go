// Package phonesim simulates an Android phone as a host that speaks ADB sees it: a USB device with one ADB
// interface, the daemon behind it, and what can be wrong with either. It is the test double of usb/adb and the
// phone of the demonstration, and it shares no code with usb/adb, so that each judges the other.
//
// A Phone is made by New from a Config, whose System is the Android behind the daemon (usb/phonesim/android has one
// with a screen, phonesimtest one for tests), or by NewBridge, which puts a real daemon behind the same USB device.
// It is plugged in as often as ServeRedir or ServeStream is called, and unplugged when that call ends: ServeRedir
// takes a connection to QEMU's usb-redir device, ServeStream any byte stream.
//
// The phone is as unforgiving as the phones that were reported to break: transfers that are cut wrongly, a missing or stray
// zero-length packet, a read without room, a second WRTE before the OKAY and so on end as on a real phone, and Phone.Violations
// tells which rule it was. Faults make the phone misbehave instead, and can be changed while it runs.
//
// What a host does cannot block the phone, and every goroutine ends with the call that started it. Nothing of the
// machine it runs on is reachable through it.
package phonesim
