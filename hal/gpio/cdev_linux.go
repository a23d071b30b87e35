package gpio

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/warthog618/go-gpiocdev/uapi"
	"golang.org/x/sys/unix"
)

// Cdev is the kernel's character device. Only the version 2 of its interface is spoken (Linux 5.10).
//
// The lower package of go-gpiocdev is used: its Line does not give the file that Park needs.
type Cdev struct {
	Dev string // where the chips' files are; "" for /dev
}

var _ Kernel = (*Cdev)(nil)

// Chips implements Kernel. Symbolic links, which some systems keep for old numbers, are no chips.
func (k *Cdev) Chips() ([]string, error) {
	entries, err := os.ReadDir(k.dev())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "gpiochip") && e.Type()&fs.ModeCharDevice != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (k *Cdev) dev() string {
	if k.Dev == "" {
		return "/dev"
	}
	return k.Dev
}

// Open implements Kernel.
func (k *Cdev) Open(name string) (Chip, error) {
	f, err := os.OpenFile(filepath.Join(k.dev(), name), os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var info uapi.ChipInfo
	err = control(f, func(fd uintptr) (err error) {
		info, err = uapi.GetChipInfo(fd)
		return err
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("ask %s what it is: %w", name, err)
	}
	return &cdevChip{f, uapi.BytesToString(info.Name[:]), uapi.BytesToString(info.Label[:]), int(info.Lines)}, nil
}

// Adopt implements Kernel.
func (k *Cdev) Adopt(p Parked) (Handle, error) {
	fd, err := unix.FcntlInt(p.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	const kind = "anon_inode:gpio-line"
	if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || target != kind {
		unix.Close(fd)
		return nil, errors.Join(fmt.Errorf("the file is %q, no handle of a GPIO line", target), err)
	}
	return newHandle(fd)
}

// control lets f work on the file without taking it from the runtime's poller.
func control(file *os.File, f func(fd uintptr) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(fd) }); err != nil {
		return err
	}
	return inner
}

type cdevChip struct {
	*os.File
	name, label string
	lines       int
}

func (c *cdevChip) Name() string  { return c.name }
func (c *cdevChip) Label() string { return c.label }
func (c *cdevChip) Lines() int    { return c.lines }

// Info implements Chip.
func (c *cdevChip) Info(offset int) (Info, error) {
	var li uapi.LineInfoV2
	err := control(c.File, func(fd uintptr) (err error) {
		li, err = uapi.GetLineInfoV2(fd, offset)
		return err
	})
	return Info{
		Name: uapi.BytesToString(li.Name[:]), Consumer: uapi.BytesToString(li.Consumer[:]),
		Used: li.Flags.IsUsed(), Output: li.Flags.IsOutput(), ActiveLow: li.Flags.IsActiveLow(),
	}, err
}

// Request implements Chip.
func (c *cdevChip) Request(offset int, consumer string, config Config) (Handle, error) {
	r := uapi.LineRequest{Lines: 1, Config: lineConfig(config)}
	r.Offsets[0] = uint32(offset)
	copy(r.Consumer[:len(r.Consumer)-1], consumer)
	if err := control(c.File, func(fd uintptr) error { return uapi.GetLine(fd, &r) }); err != nil {
		return nil, err
	}
	return newHandle(int(r.Fd))
}

// lineConfig writes a Config as the kernel reads it. The value travels with the direction.
func lineConfig(c Config) uapi.LineConfig {
	var out uapi.LineConfig
	flag := func(on bool, f uapi.LineFlagV2) {
		if on {
			out.Flags |= f
		}
	}
	flag(c.ActiveLow, uapi.LineFlagV2ActiveLow)
	flag(c.Output, uapi.LineFlagV2Output)
	flag(c.Input, uapi.LineFlagV2Input)
	flag(c.Rising, uapi.LineFlagV2EdgeRising)
	flag(c.Falling, uapi.LineFlagV2EdgeFalling)
	flag(c.Pull == PullNone, uapi.LineFlagV2BiasDisabled)
	flag(c.Pull == PullUp, uapi.LineFlagV2BiasPullUp)
	flag(c.Pull == PullDown, uapi.LineFlagV2BiasPullDown)
	if c.Output {
		out.AddAttribute(uapi.LineConfigAttribute{Attr: uapi.OutputValues(uapi.LineBitmap(0).Set(0, bit(c.Active))).Encode(), Mask: 1})
	}
	return out
}

func bit(active bool) int {
	if active {
		return 1
	}
	return 0
}

type cdevHandle struct{ file *os.File }

// newHandle owns fd from here on.
func newHandle(fd int) (Handle, error) {
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime's poller waits for events
		unix.Close(fd)
		return nil, err
	}
	return &cdevHandle{os.NewFile(uintptr(fd), "gpio-line")}, nil
}

// Value implements Handle.
func (h *cdevHandle) Value() (bool, error) {
	values := uapi.LineValues{Mask: 1}
	err := control(h.file, func(fd uintptr) error { return uapi.GetLineValuesV2(fd, &values) })
	return values.Get(0) == 1, err
}

// Set implements Handle.
func (h *cdevHandle) Set(active bool) error {
	values := uapi.LineValues{Mask: 1, Bits: uapi.LineBitmap(bit(active))}
	return control(h.file, func(fd uintptr) error { return uapi.SetLineValuesV2(fd, values) })
}

// Configure implements Handle; events of before are dropped.
func (h *cdevHandle) Configure(c Config) error {
	config := lineConfig(c)
	return control(h.file, func(fd uintptr) error {
		if err := uapi.SetLineConfigV2(fd, &config); err != nil {
			return err
		}
		for c.Input && readEvent(int(fd)) == nil {
		}
		return nil
	})
}

const eventSize = 48 // bytes of struct gpio_v2_line_event

func readEvent(fd int) error {
	var event [eventSize]byte
	n, err := unix.Read(fd, event[:])
	if err == nil && n != eventSize {
		return fmt.Errorf("an event of %d bytes", n)
	}
	return err
}

// Event implements Handle.
func (h *cdevHandle) Event(timeout time.Duration) error {
	var end time.Time
	if timeout >= 0 {
		end = time.Now().Add(timeout)
	}
	if err := h.file.SetReadDeadline(end); err != nil {
		return err
	}
	raw, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Read(func(fd uintptr) bool {
		inner = readEvent(int(fd))
		return !errors.Is(inner, unix.EAGAIN) && !errors.Is(inner, unix.EINTR)
	})
	return errors.Join(err, inner)
}

// Place implements Handle: Linux has the chip and the line in a handle's fdinfo since 6.1.
func (h *cdevHandle) Place() (p Place, ok bool, err error) {
	var text []byte
	err = control(h.file, func(fd uintptr) (err error) {
		text, err = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
		return err
	})
	if err != nil {
		return Place{}, false, err
	}
	return parsePlace(string(text))
}

// parsePlace reads the fields gpio-chip and gpio-line of a fdinfo; ok is false when they are not there.
func parsePlace(text string) (p Place, ok bool, err error) {
	found := 0
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		key, value, _ := strings.Cut(scan.Text(), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "gpio-chip":
			p.Chip = value
			found++
		case "gpio-line":
			if p.Offset, err = strconv.Atoi(value); err != nil || p.Offset < 0 {
				return Place{}, false, fmt.Errorf("fdinfo says that the line is %q", value)
			}
			found++
		}
	}
	switch found {
	case 0:
		return Place{}, false, nil
	case 2:
		return p, p.Chip != "", nil
	}
	return Place{}, false, errors.New("fdinfo does not tell one line of one chip: the handle is of several lines")
}

// Park implements Handle.
func (h *cdevHandle) Park() (Parked, error) {
	fd := -1
	err := control(h.file, func(from uintptr) (err error) {
		fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "gpio-line"), nil
}

// Close implements Handle.
func (h *cdevHandle) Close() error { return h.file.Close() }
