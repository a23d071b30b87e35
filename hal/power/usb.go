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
	return &usbPort{u, hub, companion, port, make(chan struct{}, 1)}
}

type usbPort struct {
	usb            *USB
	hub, companion string
	port           int
	asking         chan struct{} // a token for who asks
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
	halves := p.halves()
	if on && len(halves) == 2 {
		halves[0], halves[1] = halves[1], halves[0]
	}
	var all error
	for _, hub := range halves {
		if err := p.setHalf(ctx, hub, on); err != nil {
			all = errors.Join(all, fmt.Errorf("port %d of the hub at %s: %w", p.port, hub, err))
		}
	}
	return all
}

func (p *usbPort) setHalf(ctx context.Context, hub string, on bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	value := "1"
	if on {
		value = "0"
	}
	f, err := os.OpenFile(filepath.Join(p.usb.portDir(hub, p.port), "disable"), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(value)
		return errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	request := byte(clearFeature)
	if on {
		request = setFeature
	}
	_, err = p.usb.control(ctx, hub, Setup{typePortOut, request, featurePortPower, uint16(p.port)}, nil)
	return err
}

// On implements Switch. It ends with ctx, whatever the kernel does: that keeps a hub to itself while it tries a phone that does not
// answer, 85 s, and who looks after all hubs asks one after the other. Only one question waits for it.
func (p *usbPort) On(ctx context.Context) (bool, error) {
	if err := take(ctx, p.asking); err != nil {
		return false, fmt.Errorf("port %d of the hub at %s is being asked already: %w", p.port, p.hub, err)
	}
	type answer struct {
		on  bool
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-p.asking }()
		on, err := p.on(ctx)
		answered <- answer{on, err}
	}()
	select {
	case a := <-answered:
		return a.on, a.err
	case <-ctx.Done():
		return false, fmt.Errorf("port %d of the hub at %s: the kernel does not give the hub: %w", p.port, p.hub, ctx.Err())
	}
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
