package android

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultProperties are those of a phone with the given configuration.
func (d *Device) defaultProperties() map[string]string {
	c, r := d.config, d.release
	id := strings.Join([]string{"phonerack", c.Name, c.Name}, "/")
	fingerprint := fmt.Sprintf("%s:%s/%s/1234567:user/release-keys", id, r.name, r.build)
	p := map[string]string{
		"dev.bootcomplete":                "1",
		"init.svc.adbd":                   "running",
		"init.svc.bootanim":               "stopped",
		"net.bt.name":                     "Android",
		"persist.sys.locale":              "en-US",
		"persist.sys.timezone":            c.Zone.String(),
		"persist.sys.usb.config":          "adb",
		"ro.adb.secure":                   "1",
		"ro.boot.serialno":                c.Serial,
		"ro.bootmode":                     "unknown",
		"ro.build.characteristics":        "default",
		"ro.build.date.utc":               "1704067200",
		"ro.build.display.id":             r.build,
		"ro.build.fingerprint":            fingerprint,
		"ro.build.id":                     r.build,
		"ro.build.tags":                   "release-keys",
		"ro.build.type":                   "user",
		"ro.build.version.codename":       r.codename,
		"ro.build.version.incremental":    "1234567",
		"ro.build.version.release":        r.name,
		"ro.build.version.sdk":            strconv.Itoa(r.api),
		"ro.build.version.security_patch": r.patch,
		"ro.crypto.state":                 "encrypted",
		"ro.debuggable":                   "0",
		"ro.hardware":                     c.Name,
		"ro.product.board":                c.Name,
		"ro.product.brand":                c.Manufacturer,
		"ro.product.cpu.abi":              "arm64-v8a",
		"ro.product.cpu.abilist":          "arm64-v8a,armeabi-v7a,armeabi",
		"ro.product.device":               c.Name,
		"ro.product.locale":               "en-US",
		"ro.product.manufacturer":         c.Manufacturer,
		"ro.product.model":                c.Model,
		"ro.product.name":                 c.Name,
		"ro.secure":                       "1",
		"ro.serialno":                     c.Serial,
		"ro.sf.lcd_density":               strconv.Itoa(d.screen.Display().PhysicalDensity),
		"ro.zygote":                       "zygote64_32",
		"service.adb.tcp.port":            "-1",
		"sys.boot_completed":              "1",
		"sys.usb.config":                  "adb",
		"sys.usb.state":                   "adb",
	}
	if r.version >= 11 {
		p["ro.build.version.release_or_codename"] = r.name
		p["ro.product.system.model"] = c.Model
	}
	maps.Copy(p, c.Properties)
	return p
}

// buildProp is the file that the properties of the build come from.
func (d *Device) buildProp() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(d.properties)) {
		if strings.HasPrefix(k, "ro.build.") {
			fmt.Fprintf(&b, "%s=%s\n", k, d.properties[k])
		}
	}
	return b.String()
}

// Property returns a system property, or nothing.
func (d *Device) Property(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.properties[name]
}

func getprop(c *call) int {
	if !c.spend(5 * time.Millisecond) {
		return exitKilled
	}
	if len(c.args) > 2 {
		c.errorf("getprop: Max 2 arguments\n")
		return 1
	}
	if len(c.args) > 0 {
		v := c.Property(c.args[0])
		if v == "" {
			v = c.arg(1)
		}
		c.printf("%s\n", v)
		return 0
	}
	c.mu.Lock()
	all := maps.Clone(c.properties)
	c.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(all)) {
		c.printf("[%s]: [%s]\n", k, all[k])
	}
	return 0
}

// maxProperties bounds the properties that setprop makes; the kernel's area is full then.
const maxProperties = 2000

func setprop(c *call) int {
	if len(c.args) != 2 {
		c.errorf("setprop: Needs 2 arguments\n")
		return 1
	}
	key, value := c.args[0], c.args[1]
	c.mu.Lock()
	_, exists := c.properties[key]
	ok := key != "" && !strings.HasPrefix(key, ".") && !strings.HasSuffix(key, ".") && !strings.Contains(key, "..") &&
		!strings.HasPrefix(key, "ro.") && allowedProperty(key) && len(value) <= 91 && len(key) < 256 &&
		strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:") == "" &&
		(exists || len(c.properties) < maxProperties)
	if ok {
		c.properties[key] = value
	}
	c.mu.Unlock()
	switch {
	case ok:
		return 0
	case c.release.version < 9:
		// The request is dropped without a word.
		return 0
	case len(value) > 91:
		c.errorf("setprop: value '%s' too long; try '%s'\n", value, value[:91])
		return 1
	}
	c.errorf("Failed to set property '%s' to '%s'.\nSee dmesg for error reason.\n", key, value)
	return 1
}

// allowedProperty tells what the shell user may set on a phone of users.
func allowedProperty(key string) bool {
	for _, prefix := range []string{"debug.", "log.", "persist.log.", "persist.debug.", "persist.sys.", "service.adb.", "sys.usb.", "test.", "vendor.debug."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
