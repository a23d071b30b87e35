package android

import (
	"maps"
	"slices"
	"strings"
	"time"

	"phonerack/usb/phonesim/screen"
)

func (c *call) pmUninstall(args []string) int {
	keep := slices.Contains(args, "-k")
	forUser := slices.Contains(args, "--user")
	pkg := lastName(args)
	if pkg == "" {
		c.errorf("Error: package name not specified\n")
		return 1
	}
	if !c.spend(600 * time.Millisecond) {
		return exitKilled
	}
	a, ok := c.find(pkg)
	switch {
	case !ok && c.release.version >= 9:
		c.printf("Failure [not installed for 0]\n")
		return 1
	case !ok, a.system && !forUser, c.inScreen(pkg) && c.screen.Uninstall(pkg, keep) != nil:
		c.printf("Failure [DELETE_FAILED_INTERNAL_ERROR]\n")
		return 1
	}
	c.unregister(a)
	c.killed(pkg)
	c.printf("Success\n")
	return 0
}

func (c *call) inScreen(pkg string) bool {
	return slices.ContainsFunc(c.screen.Packages(), func(p screen.Package) bool { return p.Name == pkg })
}

// unregister forgets a package and what it has brought.
func (d *Device) unregister(a app) {
	if !a.system {
		_ = d.files.As(uidRoot, 0).Remove(a.path)
	}
	d.mu.Lock()
	delete(d.installed, a.name)
	delete(d.grants, a.name)
	delete(d.disabled, a.name)
	d.gone[a.name] = true
	current := d.settings["secure"]["default_input_method"]
	for name := range maps.Clone(d.methods) {
		if strings.HasPrefix(name, a.name+"/") {
			delete(d.methods, name)
			if name == current {
				current = latinIME
			}
		}
	}
	d.mu.Unlock()
	d.selectIME(current)
}
