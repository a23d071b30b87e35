package bus

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxAttribute bounds what is read of one sysfs attribute: the kernel never gives more than a page.
const maxAttribute = 4096

// portPath is the kernel's name of a device that is not a root hub: bus, then a port a level.
var portPath = regexp.MustCompile(`^[0-9]+-[0-9]+(\.[0-9]+)*$`)

// Scan lists the phones with an ADB interface, ordered by port path. sysfs is where sysfs is
// mounted, "" for /sys. It reads files only; some of them the kernel gives no sooner than it is done with the device: a reset of
// one that does not answer takes a minute.
//
// The error joins what went wrong with single devices; the list is good all the same, and a
// device that could not be read hides no other. A device that vanishes while it is read is left
// out without an error.
func Scan(sysfs string) ([]Device, error) {
	devices, faults, err := scan(sysfs, nil)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.SortedFunc(maps.Keys(faults), ComparePaths) {
		err = errors.Join(err, fmt.Errorf("port %s: %w", path, faults[path]))
	}
	return devices, err
}

// scan is Scan with the faults of single devices by port path. Of an attachment that is among the known ones, by port path, nothing
// is read that the kernel may keep back. err means that nothing was listed.
func scan(sysfs string, known map[string]Device) (devices []Device, faults map[string]error, err error) {
	if sysfs == "" {
		sysfs = "/sys"
	}
	root := filepath.Join(sysfs, "bus/usb/devices")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("list USB devices: %s does not exist: is the kernel's USB support loaded and sysfs mounted?", root)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list USB devices: %w", err)
	}
	interfaces := map[string][]string{} // port path -> folders of its interfaces
	for _, e := range entries {
		if path, _, ok := strings.Cut(e.Name(), ":"); ok {
			interfaces[path] = append(interfaces[path], filepath.Join(root, e.Name()))
		}
	}
	faults = map[string]error{}
	for _, e := range entries {
		if !portPath.MatchString(e.Name()) {
			continue
		}
		d, ok, err := readDevice(filepath.Join(root, e.Name()), e.Name(), interfaces[e.Name()], known[e.Name()])
		switch {
		case gone(err):
		case err != nil:
			faults[e.Name()] = err
		case ok:
			devices = append(devices, d)
		}
	}
	slices.SortFunc(devices, func(a, b Device) int { return ComparePaths(a.Path, b.Path) })
	return devices, faults, nil
}

// readDevice reads one device; ok is false when it has no ADB interface. The known one is given back if it is the same attachment:
// for bConfigurationValue and the strings the kernel takes the device's lock (drivers/usb/core/sysfs.c), which it holds during a
// reset, so that one phone would keep all others from being seen.
func readDevice(dir, path string, interfaces []string, known Device) (d Device, ok bool, err error) {
	adb, ok, err := findADB(interfaces)
	if err != nil || !ok {
		return Device{}, false, err
	}
	d = adb
	d.Path = path
	r := reader{dir: dir}
	d.Bus = r.number("busnum", 10, 16)
	d.Address = r.number("devnum", 10, 8)
	if r.err == nil && d.Same(known) {
		return known, true, nil
	}
	d.VendorID = uint16(r.number("idVendor", 16, 16))
	d.ProductID = uint16(r.number("idProduct", 16, 16))
	d.Config = r.number("bConfigurationValue", 10, 8)
	if r.err != nil {
		return Device{}, false, r.err
	}
	// These are the phone's own words or may be unknown: their absence is no fault.
	d.Serial = printable(r.optional("serial"))
	d.Manufacturer = printable(r.optional("manufacturer"))
	d.Product = printable(r.optional("product"))
	if speed, err := strconv.ParseFloat(r.optional("speed"), 64); err == nil && speed > 0 && speed < 1e6 {
		d.Speed = int(speed)
	}
	return d, true, nil
}

// findADB looks through a device's interfaces for the one that carries ADB.
func findADB(folders []string) (Device, bool, error) {
	for _, dir := range folders {
		r := reader{dir: dir}
		class, sub, proto := r.number("bInterfaceClass", 16, 8), r.number("bInterfaceSubClass", 16, 8), r.number("bInterfaceProtocol", 16, 8)
		if r.err != nil {
			return Device{}, false, r.err
		}
		vendor := class == classVendor && sub == subclassAndroid && proto == protocolADB
		debug := class == classDiagnostic && sub == subclassDiagnostic && proto == protocolADB
		if !vendor && !debug {
			continue
		}
		d := Device{Interface: r.number("bInterfaceNumber", 16, 8)}
		if r.err != nil {
			return Device{}, false, r.err
		}
		if err := readEndpoints(dir, &d); err != nil {
			return Device{}, false, err
		}
		return d, true, nil
	}
	return Device{}, false, nil
}

// readEndpoints fills in the two bulk endpoints of an ADB interface.
func readEndpoints(dir string, d *Device) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "ep_") {
			continue
		}
		r := reader{dir: filepath.Join(dir, e.Name())}
		address, attributes := r.number("bEndpointAddress", 16, 8), r.number("bmAttributes", 16, 8)
		size := r.number("wMaxPacketSize", 16, 16)
		if r.err != nil {
			return r.err
		}
		const typeMask, bulk, sizeMask, in = 0x03, 0x02, 0x07ff, 0x80
		if attributes&typeMask != bulk {
			continue
		}
		if size &= sizeMask; size == 0 {
			return fmt.Errorf("endpoint %#02x of the ADB interface says a packet size of 0", address)
		}
		if address&in != 0 {
			d.In = byte(address)
		} else {
			d.Out = byte(address)
		}
		d.MaxPacket = size
	}
	if d.In == 0 || d.Out == 0 {
		return errors.New("the ADB interface lacks a bulk endpoint in each direction")
	}
	return nil
}

// gone tells that a device left the bus while it was read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// reader reads the attributes in one sysfs folder and remembers the first fault.
type reader struct {
	dir string
	err error
}

func (r *reader) text(name string) string {
	if r.err != nil {
		return ""
	}
	var s string
	s, r.err = readAttribute(filepath.Join(r.dir, name))
	return s
}

func (r *reader) optional(name string) string {
	s, err := readAttribute(filepath.Join(r.dir, name))
	if err != nil {
		return ""
	}
	return s
}

func (r *reader) number(name string, base, bits int) int {
	s := r.text(name)
	if r.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(s), base, bits)
	if err != nil {
		r.err = fmt.Errorf("attribute %s holds %q, which is not a number", name, printable(s))
	}
	return int(n)
}

func readAttribute(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAttribute))
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// ComparePaths orders port paths as the ports are numbered: 1-2 before 1-10, 1-1 before 1-1.1.
func ComparePaths(a, b string) int {
	return slices.CompareFunc(numbers(a), numbers(b), cmp.Compare[int])
}

func numbers(path string) []int {
	var ns []int
	for f := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '-' || r == '.' }) {
		n, _ := strconv.Atoi(f)
		ns = append(ns, n)
	}
	return ns
}
