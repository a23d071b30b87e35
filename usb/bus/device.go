package bus

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Interface triples (class, subclass, protocol) that carry ADB over bulk endpoints.
const (
	classVendor     = 0xff
	subclassAndroid = 0x42
	protocolADB     = 0x01

	classDiagnostic    = 0xdc // ADB through the xHCI debug capability
	subclassDiagnostic = 0x02
)

// maxSerial bounds a serial number, in runes: a USB string descriptor holds at most 126 UTF-16 units.
const maxSerial = 126

// Device is one phone with an ADB interface, as sysfs shows it.
type Device struct {
	Path    string // port path, "1-1.2": bus 1, port 1 of the root hub, port 2 of the hub there
	Bus     int    // bus number, 1 and up
	Address int    // device number on the bus, 1 to 127; a new one after each plug or re-enumeration

	// Serial, Manufacturer and Product come from the phone: printable, bounded, perhaps empty,
	// perhaps the same on two phones. Bytes that are not printable text are written as \xNN.
	Serial, Manufacturer, Product string

	VendorID, ProductID uint16
	Speed               int // Mbit/s: 12 full, 480 high, 5000 and up SuperSpeed; 0 when the kernel does not know

	Config    int  // bConfigurationValue of the active configuration
	Interface int  // bInterfaceNumber of the ADB interface
	In, Out   byte // endpoint addresses of the two bulk endpoints, such as 0x81 and 0x01
	MaxPacket int  // wMaxPacketSize of the bulk endpoints, bytes: 64, 512 or 1024
}

// String names the phone as people look for it: by port path, then by what it calls itself.
func (d Device) String() string {
	if d.Serial == "" {
		return fmt.Sprintf("port %s (no serial)", d.Path)
	}
	return fmt.Sprintf("port %s (%s)", d.Path, d.Serial)
}

// Same reports whether d and o are one attachment of one phone: same port, same device number.
// After a replug the port is the same and the number is not.
func (d Device) Same(o Device) bool {
	return d.Path == o.Path && d.Bus == o.Bus && d.Address == o.Address
}

// SerialUsable reports whether the serial can name the phone at all: not empty, and plain enough
// that it was written by somebody who meant it. It may still be the same on two phones.
func (d Device) SerialUsable() bool {
	if d.Serial == "" || strings.Trim(d.Serial, "0?") == "" {
		return false
	}
	for _, r := range d.Serial {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._:-", r) {
			return false
		}
	}
	return true
}

// printable makes text from a phone safe to log and to show: bounded, valid UTF-8, no control characters.
func printable(raw string) string {
	var b strings.Builder
	n := 0
	for len(raw) > 0 && n < maxSerial {
		r, size := utf8.DecodeRuneInString(raw)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, raw[0])
		case !unicode.IsPrint(r):
			for _, c := range []byte(raw[:size]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteRune(r)
		}
		raw = raw[size:]
		n++
	}
	return strings.TrimSpace(b.String())
}
