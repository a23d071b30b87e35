package bus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Trouble is what the kernel says of a port where something was plugged in. sysfs does not show it: the device is not there,
// or is there without interfaces.
type Trouble int

// Troubles of a port.
const (
	NoTrouble  Trouble = iota
	Unreadable         // the kernel cannot talk to the device
	Full               // the controller has no room for it: no number, no resources or no bandwidth is left
)

// A message is what one record of the kernel's log says of USB.
type message struct {
	Path    string  // port path; "" when it is about a controller
	Trouble Trouble // of the port; NoTrouble when a device has come, or has left
	Most    int     // devices that the controller supports, hubs included; 0 when the message is of a port
}

// maxRecord bounds a record of the kernel's log: the kernel gives no longer one (PRINTK_MESSAGE_MAX, 2048).
const maxRecord = 8192

// What the kernel writes, drivers/usb/core/hub.c, config.c, message.c and drivers/usb/host/xhci.c and xhci-mem.c of Linux 6.
var (
	portLine       = regexp.MustCompile(`^usb (?:usb([0-9]{1,3})|([0-9]{1,3}-[0-9]{1,3}(?:\.[0-9]{1,3}){0,5}))-port([0-9]{1,3}): (.*)$`)
	deviceLine     = regexp.MustCompile(`^usb ([0-9]{1,3}-[0-9]{1,3}(?:\.[0-9]{1,3}){0,5}): (.*)$`)
	controllerLine = regexp.MustCompile(`^xhci[-_a-z]* [0-9a-zA-Z:.@_-]{1,40}: Max number of devices this xHCI host supports is ([0-9]{1,4})\.$`)
	unreadable     = regexp.MustCompile(`^(?:device descriptor read/(?:8|64|all), error -[0-9]+|device not accepting address [0-9]+, error -[0-9]+|unable to read config index [0-9]+ descriptor/[a-z0-9]+: -?[0-9]+|can't read configurations, error -[0-9]+)$`)
	noRoom         = regexp.MustCompile(`^(?:Not enough host controller resources for new device state\.|Not enough bandwidth for new device state\.|can't set config #[0-9]+, error -(?:12|28))$`)
	moved          = regexp.MustCompile(`^(?:New USB device found, |USB disconnect, device number [0-9]+$)`)
)

// parseRecord reads one record as /dev/kmsg gives it (Documentation/ABI/testing/dev-kmsg): false when it says nothing of a
// port or a controller. What processes have written to the log counts for nothing.
func parseRecord(record []byte) (message, bool) {
	if len(record) > maxRecord {
		return message{}, false
	}
	line, _, _ := bytes.Cut(record, []byte{'\n'}) // the rest names the device in another way
	head, text, ok := strings.Cut(string(line), ";")
	if !ok {
		return message{}, false
	}
	level, _, _ := strings.Cut(head, ",")
	const severities = 8 // a number below it has the facility 0: the kernel itself
	if n, err := strconv.ParseUint(level, 10, 16); err != nil || n >= severities {
		return message{}, false
	}
	if m := controllerLine.FindStringSubmatch(text); m != nil {
		most, err := strconv.Atoi(m[1])
		return message{Most: most}, err == nil && most > 0
	}
	if m := portLine.FindStringSubmatch(text); m != nil {
		path := m[2] + "." + m[3]
		if m[1] != "" {
			path = m[1] + "-" + m[3]
		}
		switch m[4] {
		case "unable to enumerate USB device":
			return message{Path: path, Trouble: Unreadable}, true
		case "couldn't allocate usb_device":
			return message{Path: path, Trouble: Full}, true
		}
		return message{}, false
	}
	m := deviceLine.FindStringSubmatch(text)
	switch {
	case m == nil:
		return message{}, false
	case unreadable.MatchString(m[2]):
		return message{Path: m[1], Trouble: Unreadable}, true
	case noRoom.MatchString(m[2]):
		return message{Path: m[1], Trouble: Full}, true
	}
	return message{Path: m[1]}, moved.MatchString(m[2])
}

// Records is the kernel's log. Record gives the next record without waiting; io.EOF when there is none now.
type Records interface{ Record() ([]byte, error) }

// Bounds of Troubles.
const (
	maxPorts = 1024  // with a trouble at the same time
	maxRound = 20000 // records that one Read takes: more than the kernel's buffer holds
)

// Troubles follows the kernel's log for ports with troubles. The zero value knows of none. It is not safe for concurrent use.
type Troubles struct {
	ports map[string]Trouble
	most  int
}

// Read takes what the log has got since. An error other than of a single record means that nothing more can be read.
func (t *Troubles) Read(log Records) error {
	for range maxRound {
		record, err := log.Record()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the kernel's log: %w", err)
		}
		if m, ok := parseRecord(record); ok {
			t.take(m)
		}
	}
	return nil
}

func (t *Troubles) take(m message) {
	switch {
	case m.Path == "":
		t.most = m.Most
	case m.Trouble == NoTrouble:
		t.Forget(m.Path)
	case t.ports[m.Path] != NoTrouble || len(t.ports) < maxPorts:
		if t.ports == nil {
			t.ports = map[string]Trouble{}
		}
		t.ports[m.Path] = m.Trouble
	}
}

// At is the trouble of a port.
func (t *Troubles) At(path string) Trouble { return t.ports[path] }

// Full gives the ports that a controller has no room for, in no order, and how many devices it supports; 0 if it did not say.
func (t *Troubles) Full() (paths []string, most int) {
	for path, trouble := range t.ports {
		if trouble == Full {
			paths = append(paths, path)
		}
	}
	return paths, t.most
}

// Forget says that what was known of a port, and of all behind it, counts no more: its power was off, or nothing is plugged in.
func (t *Troubles) Forget(path string) {
	for p := range t.ports {
		if p == path || strings.HasPrefix(p, path+".") {
			delete(t.ports, p)
		}
	}
}
