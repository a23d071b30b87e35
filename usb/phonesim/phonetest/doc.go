// Package phonetest serves a whole simulated phone (usb/phonesim with its Android and screen) to a test of a host. Start makes
// it and gives the host's end of its cable; what the host does with that is the test's. It is apart from phonesimtest, which
// the tests of the simulator itself use.
package phonetest
