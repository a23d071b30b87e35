package rig

import (
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed guest/init
var guestInit []byte

//go:embed guest/channel
var guestChannel []byte

//go:embed guest/start
var guestStart []byte

// library folders of the unpacked guest packages, and where the guest's loader looks.
var guestLibraries = []string{"lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"}

const guestLoader = "ld-linux-aarch64.so.1"

// moduleArguments are given to a module when it is loaded. A hub that nothing is plugged into is not put to sleep: QEMU
// loses what is plugged in while the kernel suspends the hub, and the phone is not seen until something else wakes it.
var moduleArguments = map[string]string{"usbcore": "autosuspend=-1"}

// initramfs makes the guest's root: busybox, modules, the libraries that the board's programs need, and the files of
// the configuration. It is not compressed: emulated, unpacking would take longer than all else of the boot.
func (k *Kit) initramfs(c *BoardConfig) ([]byte, error) {
	return k.pack(c, k.modules, k.modulesDir(), c.moduleNames())
}

// pack is initramfs with named modules of a kernel's tree, whose files are in dir.
func (k *Kit) pack(c *BoardConfig, tree *moduleTree, dir string, names []string) ([]byte, error) {
	a := newArchive()
	if err := a.host("/bin/busybox", filepath.Join(k.guestDir(), "bin", "busybox")); err != nil {
		return nil, err
	}
	a.link("/bin/sh", "busybox")
	for _, dir := range []string{"/etc", "/root", "/mnt", "/var/lib", "/rootfs"} {
		a.dir(dir)
	}
	a.file("/init", 0o755, guestInit)
	a.file("/rig/channel", 0o644, guestChannel)
	a.file("/rig/start", 0o644, guestStart)
	a.file("/rig/config", 0o644, c.shellConfig())
	a.file("/rig/boot", 0o644, []byte(strings.Join(c.Init, "\n")+"\n"))
	a.file("/etc/inittab", 0o644, []byte("::once:/bin/sh /rig/boot\n::shutdown:/bin/sync\n"))
	a.file("/etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	a.file("/etc/group", 0o644, []byte("root:x:0:\n"))

	modules, err := tree.order(names)
	if err != nil {
		return nil, err
	}
	var order strings.Builder
	for _, file := range modules {
		fmt.Fprintln(&order, path.Base(file), moduleArguments[moduleName(file)])
		if err := a.host("/rig/modules/"+path.Base(file), filepath.Join(dir, file)); err != nil {
			return nil, err
		}
	}
	a.file("/rig/modules/order", 0o644, []byte(order.String()))

	libraries, err := k.libraries(c)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		if err := a.host("/lib/"+name, libraries[name]); err != nil {
			return nil, err
		}
	}
	for _, to := range slices.Sorted(maps.Keys(c.Files)) {
		if err := a.host(to, c.Files[to]); err != nil {
			return nil, fmt.Errorf("file %s of the board: %w", to, err)
		}
	}
	for _, to := range slices.Sorted(maps.Keys(c.Contents)) {
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(c.Contents[to], "#!") {
			mode = 0o755
		}
		a.file(to, mode, []byte(c.Contents[to]))
	}
	return a.bytes(), nil
}

// shellConfig is what guest/init reads.
func (c *BoardConfig) shellConfig() []byte {
	flag := func(on bool) string {
		if on {
			return "yes"
		}
		return ""
	}
	return fmt.Appendf(nil, "ROOTFS=%s\nREADONLY=%s\nNETWORK=%s\nWRITABLE='%s'\n", flag(c.RootFS), flag(c.ReadOnlyRoot), flag(c.Network), strings.Join(c.Writable, " "))
}

// libraries finds the shared libraries that the board's programs need, and those of these: name -> file of the host.
// A program for another machine, or a library that is not among the guest's packages, is an error here rather than a
// puzzle in the guest.
func (k *Kit) libraries(c *BoardConfig) (map[string]string, error) {
	found := map[string]string{}
	var need func(of, name string) error
	add := func(file string) error {
		names, err := importedLibraries(file)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := need(file, name); err != nil {
				return err
			}
		}
		return nil
	}
	need = func(of, name string) error {
		if found[name] != "" {
			return nil
		}
		for _, dir := range guestLibraries {
			file := filepath.Join(k.guestDir(), dir, name)
			if _, err := os.Stat(file); err == nil {
				found[name] = file
				return add(file)
			}
		}
		return fmt.Errorf("%s needs %s, which is not among the guest's packages", of, name)
	}
	for _, from := range c.Files {
		err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return add(p)
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// importedLibraries lists what a program or library asks its loader for, with the loader itself; nothing for a file that
// is no program.
func importedLibraries(file string) ([]string, error) {
	f, err := elf.Open(file)
	if bad := (*elf.FormatError)(nil); errors.As(err, &bad) {
		return nil, nil
	}
	if err != nil {
		if info, statErr := os.Stat(file); statErr == nil && info.Size() < 64 { // shorter than an ELF header
			return nil, nil
		}
		return nil, err
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 {
		return nil, fmt.Errorf("%s is for %s, the board is EM_AARCH64", file, f.Machine)
	}
	names, err := f.ImportedLibraries()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if !slices.Contains(names, guestLoader) {
		names = append(names, guestLoader)
	}
	return names, nil
}
