package rig

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// BoardConfig says what a board is made of. The zero value is a board without hubs and phones.
type BoardConfig struct {
	Hubs  []Hub
	Ports []string // where a phone can be plugged: "1-2" on the controller (480 Mbit/s), "1-1.3" on a hub (12 Mbit/s)

	Files    map[string]string // guest path -> file or folder of the host; modes are kept
	Contents map[string]string // guest path -> content; what begins with "#!" can be executed
	Init     []string          // lines of shell to run once the board is up; their output goes to the console

	ReadOnlyRoot bool     // the guest's root is read-only after boot, but for Writable
	Writable     []string // guest folders that get an empty file system in memory

	RootFS  bool     // a small Debian with the real adb client, for RunRootFS; each boot sees it unchanged
	Drives  []Drive  // further disks: /dev/vda, /dev/vdb... (from /dev/vdb with RootFS)
	Modules []string // further kernel modules

	// Wires joins the board's GPIO lines, and the power of its hubs' ports, with the host: see Board.Changes and
	// Board.SetInput.
	Wires bool

	// Network gives the board a network card behind which there is the host's loopback alone, at HostAddress.
	Network bool

	CPUs   int      // 2 if 0
	Memory int      // MiB; 512 if 0, 1024 with RootFS
	Append []string // further words of the kernel's command line
	QEMU   []string // further arguments for QEMU
}

// Hub is a USB hub as QEMU has it: USB 1.1, whose ports can be switched off one by one.
type Hub struct {
	Path  string // where it is plugged in: "1-1", or "1-1.4" in another hub
	Ports int    // 1 to 8
}

// Drive is a disk, an image of the host without any format. Every write of the guest is on it at once, unless Snapshot or
// Cache says otherwise.
type Drive struct {
	Path     string
	Snapshot bool   // what the guest writes is thrown away
	Cache    string // as QEMU names it: "none" goes past the memory of the host, "writeback" through it; both leave it to the guest when to flush
	Socket   string // of an NBD server, instead of Path; it gets the guest's flushes
}

// HostAddress is where a board with a network finds what listens on the host's loopback.
const HostAddress = "10.0.2.2"

// Limits of the machine: ports of the controller (QEMU's xhci allows 15), ports of a hub, hubs one behind the other.
const (
	rootPorts = 15
	hubPorts  = 8
	hubDepth  = 5
)

// portPath is a place on the bus: the numbers of the ports from the controller on.
type portPath []int

// parsePort reads a port as sysfs names it: "1-1.4.2", of bus 1, the controller's USB 2 side.
func parsePort(s string) (portPath, error) {
	numbers, ok := strings.CutPrefix(s, "1-")
	if !ok {
		return nil, fmt.Errorf("port %q: must begin with 1-, the bus", s)
	}
	var p portPath
	for field := range strings.SplitSeq(numbers, ".") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || strconv.Itoa(n) != field {
			return nil, fmt.Errorf("port %q: %q is no port number", s, field)
		}
		p = append(p, n)
	}
	if p[0] > rootPorts {
		return nil, fmt.Errorf("port %q: the controller has %d ports", s, rootPorts)
	}
	return p, nil
}

// qemu gives the port as QEMU names it, "1.4.2".
func (p portPath) qemu() string {
	fields := make([]string, len(p))
	for i, n := range p {
		fields[i] = strconv.Itoa(n)
	}
	return strings.Join(fields, ".")
}

func (p portPath) String() string { return "1-" + p.qemu() }

// topology is what is plugged where, checked.
type topology struct {
	hubs   []portPath // a hub before those that are plugged into it
	sizes  []int
	phones []portPath
}

func (c *BoardConfig) topology() (*topology, error) {
	t := &topology{}
	size := map[string]int{} // hub -> number of its ports
	used := map[string]string{}
	claim := func(p portPath, by string) error {
		if other := used[p.String()]; other != "" {
			return fmt.Errorf("port %s is both %s and %s", p, other, by)
		}
		used[p.String()] = by
		if len(p) == 1 {
			return nil
		}
		hub := p[:len(p)-1]
		switch n, last := size[hub.String()], p[len(p)-1]; {
		case n == 0:
			return fmt.Errorf("port %s: there is no hub at %s", p, hub)
		case last > n:
			return fmt.Errorf("port %s: the hub at %s has %d ports", p, hub, n)
		}
		return nil
	}
	hubs := make([]Hub, len(c.Hubs))
	copy(hubs, c.Hubs)
	slices.SortStableFunc(hubs, func(a, b Hub) int { return strings.Count(a.Path, ".") - strings.Count(b.Path, ".") })
	for _, h := range hubs {
		p, err := parsePort(h.Path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("hub: %w", err)
		case h.Ports < 1 || h.Ports > hubPorts:
			return nil, fmt.Errorf("hub at %s: %d ports, must be 1 to %d", h.Path, h.Ports, hubPorts)
		case len(p) > hubDepth:
			return nil, fmt.Errorf("hub at %s: more than %d hubs one behind the other", h.Path, hubDepth)
		}
		if err := claim(p, "a hub"); err != nil {
			return nil, err
		}
		size[p.String()] = h.Ports
		t.hubs, t.sizes = append(t.hubs, p), append(t.sizes, h.Ports)
	}
	for _, s := range c.Ports {
		p, err := parsePort(s)
		if err == nil {
			err = claim(p, "a phone's")
		}
		if err != nil {
			return nil, err
		}
		t.phones = append(t.phones, p)
	}
	return t, nil
}

// guest checks what concerns the inside of the board.
func (c *BoardConfig) guest() error {
	check := func(p string) error {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, " \t\n'\"\\$`") {
			return fmt.Errorf("%q is no plain absolute guest path", p)
		}
		return nil
	}
	var err error
	for p := range c.Files {
		err = errors.Join(err, check(p))
	}
	for p := range c.Contents {
		if _, twice := c.Files[p]; twice {
			err = errors.Join(err, fmt.Errorf("%s is in both Files and Contents", p))
		}
		err = errors.Join(err, check(p))
	}
	for _, p := range c.Writable {
		err = errors.Join(err, check(p))
	}
	for _, d := range c.Drives {
		err = errors.Join(err, d.check())
	}
	return err
}

// check looks for what would mean something else on QEMU's command line.
func (d Drive) check() error {
	switch {
	case strings.ContainsAny(d.Path+d.Socket, ",?&"):
		return fmt.Errorf("drive %s%s: the path must not hold any of ,?&", d.Path, d.Socket)
	case (d.Path == "") == (d.Socket == ""):
		return fmt.Errorf("drive %q: needs either a path or a socket", d.Path)
	case d.Snapshot && d.Cache != "", d.Socket != "" && (d.Snapshot || d.Cache != ""):
		return fmt.Errorf("drive %s%s: a socket, a snapshot and a cache exclude each other", d.Path, d.Socket)
	case !slices.Contains([]string{"", "none", "writeback"}, d.Cache):
		return fmt.Errorf("drive %s: no cache is called %q", d.Path, d.Cache)
	}
	return nil
}

// argument is the drive as QEMU's -drive takes it.
func (d Drive) argument() (string, error) {
	if d.Socket != "" {
		path, err := filepath.Abs(d.Socket)
		return "if=virtio,format=raw,cache=writeback,file=nbd+unix:///?socket=" + path, err
	}
	path, err := filepath.Abs(d.Path)
	if d.Snapshot {
		return "if=virtio,format=raw,snapshot=on,file=" + path, err
	}
	return "if=virtio,format=raw,cache=" + cmp.Or(d.Cache, "writethrough") + ",file=" + path, err
}

func (c *BoardConfig) cpus() int {
	if c.CPUs == 0 {
		return 2
	}
	return c.CPUs
}

func (c *BoardConfig) memory() int {
	switch {
	case c.Memory != 0:
		return c.Memory
	case c.RootFS:
		return 1024
	}
	return 512
}

// moduleNames lists the kernel modules that the board loads.
func (c *BoardConfig) moduleNames() []string {
	names := []string{"virtio_pci", "virtio_console", "xhci_pci", "leds_gpio"}
	if c.RootFS || len(c.Drives) > 0 {
		names = append(names, "virtio_blk", "crc32c_generic", "ext4")
	}
	if c.Network {
		names = append(names, "virtio_net")
	}
	return append(names, c.Modules...)
}
