package bus

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a search for who holds a phone.
const (
	maxProcesses   = 10_000
	maxDescriptors = 100_000 // of all processes together
)

// Places are where the kernel shows what is looked for; "" is where it usually is.
type Places struct{ Proc, Sysfs, Devfs string }

// Holder names who holds the ADB interface of a phone: a program with its process, such as "adb (pid 812)", or a driver of the
// kernel; "" if that cannot be found out. It reads what other processes have open, which takes root or CAP_SYS_PTRACE; those
// that may not be looked at, and this process itself, are passed over. It ends with ctx.
func Holder(ctx context.Context, in Places, d Device) string {
	link := filepath.Join(cmp.Or(in.Sysfs, "/sys"), "bus/usb/devices", fmt.Sprintf("%s:%d.%d", d.Path, d.Config, d.Interface), "driver")
	if driver, err := os.Readlink(link); err == nil {
		if name := printable(filepath.Base(driver)); name != "usbfs" {
			return "the kernel's driver " + name
		}
	}
	proc := cmp.Or(in.Proc, "/proc")
	file := filepath.Join(cmp.Or(in.Devfs, "/dev"), fmt.Sprintf("bus/usb/%03d/%03d", d.Bus, d.Address))
	left := maxDescriptors
	for _, pid := range processes(proc) {
		if ctx.Err() != nil || left <= 0 {
			return ""
		}
		if pid == os.Getpid() || !has(filepath.Join(proc, strconv.Itoa(pid), "fd"), file, &left) {
			continue
		}
		name, err := readAttribute(filepath.Join(proc, strconv.Itoa(pid), "comm"))
		if name = printable(name); err != nil || name == "" {
			name = "a program"
		}
		return fmt.Sprintf("%s (pid %d)", name, pid)
	}
	return ""
}

// processes lists them by number.
func processes(proc string) []int {
	dir, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxProcesses) // what was read counts
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	slices.Sort(all)
	return all
}

// has tells whether one of a process's descriptors is a file.
func has(fds, file string, left *int) bool {
	dir, err := os.Open(fds)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(*left)
	*left -= len(names)
	return slices.ContainsFunc(names, func(name string) bool {
		target, err := os.Readlink(filepath.Join(fds, name))
		return err == nil && strings.HasPrefix(target, "/") && target == file
	})
}
