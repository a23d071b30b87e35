// Package usbredir reads and writes the usbredir protocol, as far as a device with control and bulk
// endpoints needs it.
//
// A Conn starts by saying hello; it reads with 12-byte headers until the other side's hello has come and
// with the negotiated header size from then on. Every packet has a Go type (Hello, Control, Bulk...); a
// packet of a type that is not known here, of a wrong length or beyond the limits is an error, and the
// connection is of no use after it. Both directions of each packet are spoken, so that a test can play the
// guest; isochronous and interrupt packets, filters and bulk streams are never offered and are refused.
//
// Source of the format: https://www.spice-space.org/static/docs/usb-redirection-protocol.txt
package usbredir
