package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultTimeout is what the hardware of a Raspberry Pi can do (bcm2835_wdt: 15.99 s, in whole seconds 15).
const DefaultTimeout = 15 * time.Second

// Timeouts that are tried when the device refuses a longer one.
var shorter = []time.Duration{15 * time.Second, 10 * time.Second, 5 * time.Second}

// A Device is a watchdog that is armed. *Kernel is the real one, watchdogtest.Device a double.
type Device interface {
	// Feed starts the timeout anew.
	Feed() error
	// Timeout is the effective one.
	Timeout() time.Duration
	// Close ends the use of the device. With disarm it is stopped, where that is possible; else it runs on, and resets
	// the board.
	Close(disarm bool) error
}

// Boot says why the board was started last, as far as the device knows.
type Boot struct {
	ByWatchdog   bool // the watchdog reset it
	Overheat     bool
	UnderVoltage bool
}

// Kernel is a device of the kernel's watchdog interface (Documentation/watchdog/watchdog-api.rst).
type Kernel struct {
	file     *os.File
	calls    Calls
	timeout  time.Duration
	boot     Boot
	identity string
	stays    bool // nowayout, or a driver without magic close
}

// Calls are the requests to an open watchdog.
type Calls interface {
	SetTimeout(fd int, seconds int) error
	GetTimeout(fd int) (seconds int, err error)
	BootStatus(fd int) (flags int, err error)
	Info(fd int) (options uint32, identity string, err error)
	KeepAlive(fd int) error
}

// ioctls are the requests of this machine's kernel.
type ioctls struct{}

func (ioctls) SetTimeout(fd, seconds int) error {
	return unix.IoctlSetPointerInt(fd, unix.WDIOC_SETTIMEOUT, seconds)
}

func (ioctls) GetTimeout(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.WDIOC_GETTIMEOUT) }

func (ioctls) BootStatus(fd int) (int, error) {
	return unix.IoctlGetInt(fd, unix.WDIOC_GETBOOTSTATUS)
}

func (ioctls) Info(fd int) (uint32, string, error) {
	info, err := unix.IoctlGetWatchdogInfo(fd)
	if err != nil {
		return 0, "", err
	}
	return info.Options, unix.ByteSliceToString(info.Identity[:]), nil
}

func (ioctls) KeepAlive(fd int) error { return unix.IoctlWatchdogKeepalive(fd) }

// Open arms the watchdog at path, usually /dev/watchdog0, with the timeout or the next shorter one that it takes. sysfs
// is where sysfs is mounted; calls is nil for this machine's kernel. Only one process can have it open.
func Open(path, sysfs string, timeout time.Duration, calls Calls) (*Kernel, error) {
	if timeout < time.Second {
		return nil, fmt.Errorf("watchdog: a timeout of %v is less than a second", timeout)
	}
	if calls == nil {
		calls = ioctls{}
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the watchdog: %w", err)
	}
	k := &Kernel{file: f, calls: calls}
	if err := k.prepare(timeout); err != nil {
		// The device is armed already. Whether the 'V' stops it or not, feeding it is over.
		return nil, errors.Join(fmt.Errorf("watchdog %s: %w", path, err), k.Close(true))
	}
	name := filepath.Base(path)
	if name == "watchdog" {
		name = "watchdog0" // the old name of the first one
	}
	if raw, err := os.ReadFile(filepath.Join(sysfs, "class/watchdog", name, "nowayout")); err == nil {
		k.stays = k.stays || strings.TrimSpace(string(raw)) == "1"
	}
	return k, nil
}

func (k *Kernel) prepare(timeout time.Duration) error {
	fd := int(k.file.Fd())
	options, identity, err := k.calls.Info(fd)
	if err != nil {
		return fmt.Errorf("ask what it can do: %w", err)
	}
	k.identity, k.stays = identity, options&unix.WDIOF_MAGICCLOSE == 0
	if options&unix.WDIOF_SETTIMEOUT != 0 {
		if err := k.set(fd, timeout); err != nil {
			return err
		}
	}
	seconds, err := k.calls.GetTimeout(fd)
	if err != nil {
		return fmt.Errorf("read its timeout: %w", err)
	}
	if seconds < 1 {
		return fmt.Errorf("its timeout reads %d s", seconds)
	}
	k.timeout = time.Duration(seconds) * time.Second
	if flags, err := k.calls.BootStatus(fd); err == nil { // not every driver knows
		k.boot = Boot{
			ByWatchdog:   flags&unix.WDIOF_CARDRESET != 0,
			Overheat:     flags&unix.WDIOF_OVERHEAT != 0,
			UnderVoltage: flags&unix.WDIOF_POWERUNDER != 0,
		}
	}
	return nil
}

func (k *Kernel) set(fd int, timeout time.Duration) error {
	err := k.calls.SetTimeout(fd, int(timeout/time.Second))
	for _, d := range shorter {
		if err == nil {
			return nil
		}
		if d < timeout {
			err = k.calls.SetTimeout(fd, int(d/time.Second))
		}
	}
	if err != nil {
		return fmt.Errorf("set its timeout: %w", err)
	}
	return nil
}

// Feed implements Device.
func (k *Kernel) Feed() error { return k.calls.KeepAlive(int(k.file.Fd())) }

// Timeout implements Device.
func (k *Kernel) Timeout() time.Duration { return k.timeout }

// Boot tells why the board was started last.
func (k *Kernel) Boot() Boot { return k.boot }

// Identity is what the driver calls itself.
func (k *Kernel) Identity() string { return k.identity }

// Stays tells whether the device runs on whatever Close is asked for.
func (k *Kernel) Stays() bool { return k.stays }

// Close implements Device.
func (k *Kernel) Close(disarm bool) error {
	var err error
	if disarm {
		_, err = k.file.WriteString("V")
	}
	return errors.Join(err, k.file.Close())
}
