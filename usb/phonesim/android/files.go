package android

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"phonerack/usb/phonesim/android/memfs"
)

// Numbers of users and groups.
const (
	uidRoot   = 0
	uidSystem = 1000
	uidShell  = 2000
	gidSdcard = 1015
)

// buildFiles makes the image that a phone has after its first boot.
func (d *Device) buildFiles() error {
	d.files = memfs.New(d.config.Storage, d.now)
	d.shell = d.files.As(uidShell, uidShell, 1004, 1007, 1011, gidSdcard, 1028, 3001, 3002, 3003, 3006, 3009, 9997)
	root := d.files.As(uidRoot, 0)
	b := &builder{files: d.files, root: root}
	b.mount(memfs.Mount{Device: "/dev/block/dm-0", Point: "/system"}, 0o755, uidRoot, 0)
	b.mount(memfs.Mount{Device: "/dev/block/dm-1", Point: "/vendor"}, 0o755, uidRoot, 2000)
	b.mount(memfs.Mount{Device: "/dev/block/dm-2", Point: "/product"}, 0o755, uidRoot, 0)
	b.mount(memfs.Mount{Device: "/dev/block/dm-3", Point: "/data"}, 0o771, uidSystem, uidSystem)
	b.mount(memfs.Mount{Device: "tmpfs", Point: "/dev"}, 0o755, uidRoot, 0)
	b.mount(memfs.Mount{Device: "proc", Point: "/proc", NoExec: true}, 0o555, uidRoot, 0)
	b.mount(memfs.Mount{Device: "sysfs", Point: "/sys", NoExec: true}, 0o755, uidRoot, 0)
	b.dir("/storage", 0o751, uidRoot, 1028)
	b.dir("/storage/self", 0o751, uidRoot, 1028)
	b.mount(memfs.Mount{Device: "/dev/fuse", Point: "/storage/emulated", NoExec: true}, 0o771, uidRoot, gidSdcard)
	b.mount(memfs.Mount{Device: "/dev/fuse", Point: "/storage/emulated/0", NoExec: true, Emulated: true}, 0o771, uidRoot, gidSdcard)
	for _, name := range []string{"Alarms", "Android", "Android/data", "DCIM", "Download", "Movies", "Music", "Pictures"} {
		b.dir("/storage/emulated/0/"+name, 0o771, uidRoot, gidSdcard)
	}
	b.link("/storage/emulated/0", "/sdcard")
	b.link("/storage/emulated/0", "/storage/self/primary")
	b.link("/storage/self/primary", "/mnt/sdcard")
	b.link("/system/bin", "/bin")
	b.link("/system/etc", "/etc")
	for _, p := range []struct {
		path string
		mode fs.FileMode
	}{{"/data/app", 0o771}, {"/data/data", 0o771}, {"/data/local", 0o751}, {"/data/misc", 0o771}, {"/data/system", 0o775}} {
		b.dir(p.path, p.mode, uidSystem, uidSystem)
	}
	b.dir("/data/local/tmp", 0o771, uidShell, uidShell)
	for _, n := range commandNames() {
		b.file("/system/bin/"+n, 0o755, "\x7fELF\x02\x01\x01\x00")
	}
	b.file("/system/build.prop", 0o600, d.buildProp())
	b.file("/system/etc/hosts", 0o644, "127.0.0.1       localhost\n::1             ip6-localhost\n")
	b.devices(d)
	b.proc(d)
	b.packages(d)
	for _, point := range []string{"/system", "/vendor", "/product"} {
		b.check(d.files.Seal(point))
	}
	d.files.SetFull(d.faults.StorageFull)
	return b.err
}

// builder makes files and keeps the first error.
type builder struct {
	files *memfs.FS
	root  *memfs.View
	err   error
}

func (b *builder) check(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) mount(m memfs.Mount, perm fs.FileMode, uid, gid int) {
	b.check(b.files.Mount(m, perm, uid, gid))
}

func (b *builder) dir(p string, perm fs.FileMode, uid, gid int) {
	b.check(b.root.MkdirAll(p, perm))
	b.check(b.root.Chmod(p, perm))
	b.check(b.root.Chown(p, uid, gid))
}

func (b *builder) link(target, p string) {
	if dir := p[:lastSlash(p)]; dir != "" {
		b.check(b.root.MkdirAll(dir, 0o755))
	}
	b.check(b.root.Symlink(target, p))
}

func lastSlash(p string) int {
	for i := len(p) - 1; i > 0; i-- {
		if p[i] == '/' {
			return i
		}
	}
	return 0
}

func (b *builder) file(p string, perm fs.FileMode, content string) {
	b.check(b.files.Put(p, perm, []byte(content)))
}

func (b *builder) devices(d *Device) {
	zero := func(p []byte) (int, error) { clear(p); return len(p), nil }
	random := func(p []byte) (int, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i := range p {
			p[i] = byte(d.rng.Uint32())
		}
		return len(p), nil
	}
	noSpace := func([]byte) (int, error) { return 0, syscall.ENOSPC }
	noTTY := func() error { return syscall.ENXIO }
	b.check(b.files.PutDevice("/dev/null", 0o666, memfs.Device{}))
	b.check(b.files.PutDevice("/dev/zero", 0o666, memfs.Device{Read: zero}))
	b.check(b.files.PutDevice("/dev/full", 0o666, memfs.Device{Read: zero, Write: noSpace}))
	b.check(b.files.PutDevice("/dev/random", 0o666, memfs.Device{Read: random}))
	b.check(b.files.PutDevice("/dev/urandom", 0o666, memfs.Device{Read: random}))
	b.check(b.files.PutDevice("/dev/tty", 0o666, memfs.Device{Err: noTTY}))
	b.link("/proc/self/fd", "/dev/fd")
}

func (b *builder) proc(d *Device) {
	gen := func(p string, fn func() string) {
		b.check(b.files.PutGenerated(p, 0o444, func() []byte { return []byte(fn()) }))
	}
	gen("/proc/uptime", func() string {
		up := d.uptime().Seconds()
		return fmt.Sprintf("%.2f %.2f\n", up, up*3.1)
	})
	gen("/proc/sys/kernel/random/boot_id", func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.bootID + "\n"
	})
	gen("/proc/version", func() string { return "Linux version " + d.release.kernel + " (build@sim) #1 SMP PREEMPT\n" })
	gen("/proc/meminfo", func() string {
		return "MemTotal:        5833560 kB\nMemFree:          312484 kB\nMemAvailable:    2471836 kB\nBuffers:            8420 kB\n"
	})
	gen("/proc/cpuinfo", func() string { return "processor\t: 0\nBogoMIPS\t: 38.40\nHardware\t: phonerack simulation\n" })
	gen("/proc/loadavg", func() string { return "1.00 1.00 1.00 1/1200 4242\n" })
	gen("/sys/class/power_supply/battery/capacity", func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fmt.Sprintf("%d\n", d.battery.real.Level)
	})
}

// packages puts an APK of each app where package manager says it is.
func (b *builder) packages(d *Device) {
	for _, p := range d.packages() {
		b.file(p.path, 0o644, "PK\x03\x04")
	}
}

// Stat follows links.
func (d *Device) Stat(path string) (fs.FileInfo, error) { return d.shell.Stat(path) }

// Lstat does not.
func (d *Device) Lstat(path string) (fs.FileInfo, error) { return d.shell.Lstat(path) }

// ReadDir lists a folder by name.
func (d *Device) ReadDir(path string) ([]fs.FileInfo, error) { return d.shell.ReadDir(path) }

// OpenFile opens a file to read. A folder is refused with EISDIR.
func (d *Device) OpenFile(path string) (io.ReadCloser, error) {
	f, err := d.shell.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// CreateFile starts a file that appears at Close; folders above it are made, and a file of that name is
// replaced. The result has SetModTime and Abandon. With fs.ModeSymlink in mode the content
// is the target of a link.
func (d *Device) CreateFile(path string, mode fs.FileMode, mtime time.Time) (io.WriteCloser, error) {
	if mode&fs.ModeSymlink != 0 {
		return &linkFile{view: d.shell, path: path}, nil
	}
	f, err := d.shell.Create(path, mode, mtime)
	if err != nil {
		return nil, err
	}
	return &upload{f}, nil
}

// upload is a file under construction.
type upload struct{ *memfs.File }

// SetModTime sets the time that the file will have.
func (u *upload) SetModTime(mtime time.Time) { u.File.SetModTime(mtime) }

// Abandon gives the space back.
func (u *upload) Abandon() { u.Abort() }

// linkFile collects the target of a link.
type linkFile struct {
	view   *memfs.View
	path   string
	target []byte
}

func (l *linkFile) Write(p []byte) (int, error) {
	if len(l.target)+len(p) > 4096 {
		return 0, &fs.PathError{Op: "symlink", Path: l.path, Err: syscall.ENAMETOOLONG}
	}
	l.target = append(l.target, p...)
	return len(p), nil
}

func (l *linkFile) Close() error {
	if err := l.view.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.view.Symlink(string(l.target), l.path)
}
