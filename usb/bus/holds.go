package bus

import (
	"os"
	"path/filepath"
	"strings"
)

// Holding is what the kernel shows at a port.
type Holding int

// What a port can hold.
const (
	Nothing  Holding = iota
	ADB              // an interface FF/42/01
	Fastboot         // an interface FF/42/03
	Other            // a device with neither
)

// protocolFastboot is bInterfaceProtocol of fastboot beside the class and subclass of ADB (AOSP, fastboot.cpp).
const protocolFastboot = 0x03

// Holds tells what the kernel shows at a port path. sysfs is where sysfs is mounted, "" for /sys. It reads files only. A
// device that the kernel could not talk to is not in sysfs: its port holds Nothing.
func Holds(sysfs, path string) Holding {
	if sysfs == "" {
		sysfs = "/sys"
	}
	root := filepath.Join(sysfs, "bus/usb/devices")
	if !portPath.MatchString(path) {
		return Nothing
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return Nothing
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return Nothing
	}
	found := Other
	for _, e := range entries {
		if device, _, ok := strings.Cut(e.Name(), ":"); !ok || device != path {
			continue
		}
		r := reader{dir: filepath.Join(root, e.Name())}
		class, sub, proto := r.number("bInterfaceClass", 16, 8), r.number("bInterfaceSubClass", 16, 8), r.number("bInterfaceProtocol", 16, 8)
		switch {
		case r.err != nil:
		case proto == protocolADB && (class == classVendor && sub == subclassAndroid || class == classDiagnostic && sub == subclassDiagnostic):
			return ADB
		case class == classVendor && sub == subclassAndroid && proto == protocolFastboot:
			found = Fastboot
		}
	}
	return found
}
