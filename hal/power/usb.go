package power

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// USB reads and switches hubs. The zero value uses the system's own folders.
type USB struct {
	Sysfs string // "" for /sys
	Devfs string // "" for /dev
	// Control makes a control transfer to a device's file below Devfs; nil for the kernel's usbfs.
	Control func(file string, s Setup, data []byte, timeout time.Duration) (n int, err error)

	write func(path, value string) error // to a file of sysfs; nil for the real one
	calls calls
}

// Setup is the head of a control transfer.
type Setup struct {
	Type, Request byte
	Value, Index  uint16
}

// Requests to hubs: USB 2.0, chapter 11.24, and USB 3.2, chapter 10.16.
const (
	typePortOut, typePortIn  = 0x23, 0xa3 // class, other
	getStatus                = 0
	clearFeature, setFeature = 1, 3
	featurePortPower         = 8
	powerBit, powerBitSuper  = 1 << 8, 1 << 9 // of wPortStatus
	superSpeed               = 5000           // Mbit/s
	maxAttribute             = 4096           // bytes: the kernel never gives more than a page
)

func (u *USB) device(path string) string {
	return filepath.Join(cmp.Or(u.Sysfs, "/sys"), "bus/usb/devices", path)
}

// portDir is the folder of a hub's port, which is there since Linux 3.9.
func (u *USB) portDir(hub string, port int) string {
	return filepath.Join(u.device(hub+":1.0"), fmt.Sprintf("%s-port%d", hub, port))
}

func attribute(parts ...string) (string, error) {
	f, err := os.Open(filepath.Join(parts...))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAttribute))
	return strings.TrimSpace(string(b)), err
}

func number(parts ...string) (int, error) {
	text, err := attribute(parts...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s holds %.20q, no number", filepath.Join(parts...), text)
	}
	return int(n), nil
}

// Generation implements Hubs: the number that the kernel gave the hub when it enumerated.
func (u *USB) Generation(path string) (n int, ok bool) {
	n, err := number(u.device(path), "devnum")
	return n, err == nil
}

// OverCurrent is how often a port took too much since its hub has come; false when the kernel does not
// count (before Linux 4.20), or there is no such port.
func (u *USB) OverCurrent(hub string, port int) (count int, ok bool, err error) {
	count, err = number(u.portDir(hub, port), "over_current_count")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return count, err == nil, err
}

// Port makes a switch of a hub's port. A hub on a USB 3 cable has two halves, and VBUS goes only when the
// port is off at both: companion is the port path of the SuperSpeed half, "" for none.
//
// Where the kernel has the port's attribute "disable" (Linux 6.0) it is used, since the kernel then leaves the
// port alone; else the hub is asked itself, and a kernel may give the power back.
func (u *USB) Port(hub, companion string, port int) Switch {
	return &usbPort{u, hub, companion, port}
}

type usbPort struct {
	usb            *USB
	hub, companion string
	port           int
}

// halves gives the hubs in the order in which they are switched off: first the one that the phone is not on
// (mvp/uhubctl#320).
func (p *usbPort) halves() []string {
	if p.companion == "" {
		return []string{p.hub}
	}
	if _, err := os.Stat(p.usb.device(fmt.Sprintf("%s.%d", p.companion, p.port))); err == nil {
		return []string{p.hub, p.companion}
	}
	return []string{p.companion, p.hub}
}

// Set implements Switch. It goes on to the other half when one fails: half off is no use.
func (p *usbPort) Set(ctx context.Context, on bool) error {
	return p.call(ctx, func(c *call) error { return p.set(ctx, c, on) })
}

func (p *usbPort) set(ctx context.Context, c *call, on bool) error {
	halves := p.halves()
	if on && len(halves) == 2 {
		halves[0], halves[1] = halves[1], halves[0]
	}
	var all error
	for _, hub := range halves {
		if err := p.setHalf(ctx, c, hub, on); err != nil {
			all = errors.Join(all, fmt.Errorf("port %d of the hub at %s: %w", p.port, hub, err))
		}
	}
	return all
}

// setHalf asks before it switches: both wait for the same lock in the kernel, and who gets it when nobody waits any more has only
// asked. That it switches is said before it looks whether somebody waits: who gives up asks for that after its context has ended.
func (p *usbPort) setHalf(ctx context.Context, c *call, hub string, on bool) error {
	_, err := p.halfOn(ctx, hub)
	c.writes.Store(true)
	defer c.writes.Store(false)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	value, request := "1", byte(clearFeature)
	if on {
		value, request = "0", setFeature
	}
	write := p.usb.write
	if write == nil {
		write = writeAttribute
	}
	err = write(filepath.Join(p.usb.portDir(hub, p.port), "disable"), value)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = p.usb.control(ctx, hub, Setup{typePortOut, request, featurePortPower, uint16(p.port)}, nil)
	return err
}

func writeAttribute(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// On implements Switch.
func (p *usbPort) On(ctx context.Context) (on bool, err error) {
	var is bool
	err = p.call(ctx, func(*call) (err error) {
		is, err = p.on(ctx)
		return err
	})
	if err == nil {
		on = is // else the call may still write to it
	}
	return on, err
}

// on asks both halves: VBUS is there while either gives it.
func (p *usbPort) on(ctx context.Context) (on bool, err error) {
	for _, hub := range p.halves() {
		half, err := p.halfOn(ctx, hub)
		if err != nil {
			return false, fmt.Errorf("port %d of the hub at %s: %w", p.port, hub, err)
		}
		on = on || half
	}
	return on, nil
}

func (p *usbPort) halfOn(ctx context.Context, hub string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	disabled, err := number(p.usb.portDir(hub, p.port), "disable")
	if err == nil {
		return disabled == 0, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	var status [4]byte
	n, err := p.usb.control(ctx, hub, Setup{typePortIn, getStatus, 0, uint16(p.port)}, status[:])
	if err != nil {
		return false, err
	}
	if n != len(status) {
		return false, fmt.Errorf("the status has %d bytes, must have %d", n, len(status))
	}
	bit := uint16(powerBit)
	if speed, err := number(p.usb.device(hub), "speed"); err == nil && speed >= superSpeed {
		bit = powerBitSuper
	}
	return binary.LittleEndian.Uint16(status[:])&bit != 0, nil
}

// control asks a hub itself.
func (u *USB) control(ctx context.Context, hub string, s Setup, data []byte) (int, error) {
	bus, err := number(u.device(hub), "busnum")
	if err != nil {
		return 0, err
	}
	address, err := number(u.device(hub), "devnum")
	if err != nil {
		return 0, err
	}
	timeout := time.Second
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(end), time.Millisecond))
	}
	transfer := u.Control
	if transfer == nil {
		transfer = usbfsControl
	}
	return transfer(filepath.Join(cmp.Or(u.Devfs, "/dev"), fmt.Sprintf("bus/usb/%03d/%03d", bus, address)), s, data, timeout)
}
