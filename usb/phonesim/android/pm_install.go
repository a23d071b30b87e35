package android

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/screen"
)

// installed is a package that was installed by somebody.
type installed struct {
	manifest  *apk.Manifest
	path      string
	installer string
	first, at time.Time
}

// installOptions are the flags of "pm install".
type installOptions struct {
	replace, grant, test, downgrade bool
	installer                       string
	size                            int64 // -1: not told
	rest                            []string
}

const (
	// installCost is what checking and optimizing a package takes besides copying it.
	installCost = 1500 * time.Millisecond
	copyRate    = 50 << 20 // bytes a second
)

// failure is why a package is refused, as "Failure [...]" has it.
type failure struct{ code, detail string }

func (f failure) Error() string {
	if f.detail == "" {
		return f.code
	}
	return f.code + ": " + f.detail
}

// installArguments reads what "install" and "install-create" have in common.
func (c *call) installArguments(args []string) (o installOptions, bad string) {
	o = installOptions{size: -1, replace: c.release.version >= 10} // since Android 10 -r is the rule
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch a := args[i]; a {
		case "-r":
			o.replace = true
		case "-R":
			o.replace = false
		case "-g":
			o.grant = true
		case "-t":
			o.test = true
		case "-d":
			o.downgrade = true
		case "-i":
			o.installer = value()
		case "-S":
			n, err := strconv.ParseInt(value(), 10, 64)
			if err != nil || n < 0 {
				return o, "-S"
			}
			o.size = n
		case "--user", "--abi", "--install-location", "--originating-uri", "--referrer", "-p":
			value()
		case "-l", "-s", "-f", "-q", "--dont-kill", "--full", "--preload", "--force-queryable", "--no-streaming", "--bypass-low-target-sdk-block":
		case "-":
			o.rest = append(o.rest, a)
		default:
			if strings.HasPrefix(a, "-") {
				return o, a
			}
			o.rest = append(o.rest, a)
		}
	}
	return o, ""
}

func (c *call) pmInstall(args []string) int {
	o, bad := c.installArguments(args)
	if bad != "" {
		c.errorf("Error: Unknown option: %s\n", bad)
		return 1
	}
	path := ""
	if len(o.rest) > 0 {
		path = o.rest[0]
	}
	if (path == "" || path == "-") && o.size < 0 {
		c.errorf("Error: must either specify a package size or an APK file\n")
		return 1
	}
	data, status := c.packageFile(path, o.size)
	if data == nil {
		return status
	}
	return c.finishInstall(data, o)
}

// packageFile reads a package from a file or from standard input. No data means that the reason is printed.
func (c *call) packageFile(path string, size int64) (data []byte, status int) {
	used, capacity := c.files.Usage()
	free := capacity - used
	if path != "" && path != "-" {
		f, err := c.OpenFile(c.abs(path))
		if err != nil {
			return nil, c.noSuchPackage(path)
		}
		defer f.Close()
		info, err := c.Stat(c.abs(path))
		if err != nil {
			return nil, c.noSuchPackage(path)
		}
		size, c.in = info.Size(), f
	}
	if size > free || c.Faults().StorageFull {
		if path == "" || path == "-" {
			io.Copy(io.Discard, io.LimitReader(c.in, min(size, capacity))) // the host goes on to send
		}
		return nil, c.noRoom()
	}
	if !c.spend(time.Duration(float64(size) / copyRate * float64(time.Second))) {
		return nil, exitKilled
	}
	// The file has its size from the beginning; what does not come stays zero.
	data = make([]byte, size)
	io.ReadFull(c.in, data)
	if c.ctx.Err() != nil {
		return nil, exitKilled
	}
	return data, 0
}

func (c *call) noSuchPackage(path string) int {
	if c.release.version < 8 {
		c.printf("Failure [INSTALL_FAILED_INVALID_URI]\n")
		return 1
	}
	c.errorf("Error: Unable to open file: %s\nConsider using a file under /data/local/tmp/\n", path)
	return c.exception("install", "java.lang.IllegalArgumentException: Error: Can't open file: "+path,
		"com.android.server.pm.PackageManagerShellCommand.setParamsSize(PackageManagerShellCommand.java:654)")
}

func (c *call) noRoom() int {
	switch v := c.release.version; {
	case v < 9:
		c.printf("Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]\n")
		return 1
	case v < 14:
		return c.exception("install", "android.os.ParcelableException: java.io.IOException: Requested internal only, but not enough space",
			"android.util.ExceptionUtils.wrap(ExceptionUtils.java:34)")
	}
	c.printf("Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE: Failed to override installation location]\n")
	return 1
}

func (c *call) finishInstall(data []byte, o installOptions) int {
	if !c.spend(installCost) {
		return exitKilled
	}
	if err := c.install(data, o); err != nil {
		c.printf("Failure [%v]\n", err)
		return 1
	}
	c.printf("Success\n")
	return 0
}

// install puts a package into the phone. Its signature is not looked at.
func (c *call) install(data []byte, o installOptions) error {
	if c.Faults().InstallDenied {
		return failure{"INSTALL_FAILED_USER_RESTRICTED", "Install canceled by user"}
	}
	base := fmt.Sprintf("/data/app/vmdl%d.tmp/base.apk", 100000000+c.hash(fmt.Sprint(len(data)))%900000000)
	m, err := apk.Read(bytes.NewReader(data), int64(len(data)))
	switch {
	case errors.Is(err, apk.ErrNotAPK):
		return failure{"INSTALL_PARSE_FAILED_NOT_APK", "Failed to parse " + base}
	case err != nil:
		return failure{"INSTALL_PARSE_FAILED_BAD_MANIFEST", "Failed parse during installPackageLI: " + base}
	}
	if err := c.admits(m, o, base); err != nil {
		return err
	}
	d := c.Device
	a, update := d.find(m.Package)
	path := d.installPath(m.Package)
	view := d.files.As(uidRoot, 0)
	if update && !a.system {
		_ = view.Remove(a.path) // its new version has its own place
	}
	if err := view.MkdirAll(path[:lastSlash(path)], 0o771); err == nil {
		err = d.files.Put(path, 0o644, data)
		if err != nil {
			return failure{"INSTALL_FAILED_INSUFFICIENT_STORAGE", ""}
		}
	}
	if err := d.screen.Install(screen.Package{
		Name: m.Package, Activity: shortActivity(m.Package, m.Launcher()), Version: m.VersionName, Label: m.Label, Permissions: m.Permissions,
	}); err != nil {
		return failure{"INSTALL_FAILED_INTERNAL_ERROR", err.Error()}
	}
	d.register(m, path, o)
	d.killed(m.Package)
	d.logf("I", "PackageManager", "installed %s %s", m.Package, m.VersionName)
	return nil
}

// admits checks a package against the phone and what it has.
func (c *call) admits(m *apk.Manifest, o installOptions, base string) error {
	v := c.release.version
	if m.MinSDK > c.release.api {
		return failure{"INSTALL_FAILED_OLDER_SDK", fmt.Sprintf("Failed parse during installPackageLI: %s (at Binary XML file line #7): "+
			"Requires newer sdk version #%d (current version is #%d)", base, m.MinSDK, c.release.api)}
	}
	if least := map[int]int{14: 23, 15: 24}[v]; m.TargetSDK < least {
		return failure{"INSTALL_FAILED_DEPRECATED_SDK_VERSION", fmt.Sprintf("App package must target at least SDK version %d, but found %d", least, m.TargetSDK)}
	}
	if m.TestOnly && !o.test {
		return failure{"INSTALL_FAILED_TEST_ONLY", map[bool]string{true: "installPackageLI"}[v >= 9]}
	}
	a, there := c.find(m.Package)
	if !there {
		return nil
	}
	if !o.replace {
		return failure{"INSTALL_FAILED_ALREADY_EXISTS", "Attempt to re-install " + m.Package + " without first uninstalling."}
	}
	old, _ := strconv.ParseInt(a.code, 10, 64)
	if m.VersionCode >= old || o.downgrade && (v < 10 || m.Debuggable) {
		return nil
	}
	if v < 12 {
		return failure{"INSTALL_FAILED_VERSION_DOWNGRADE", ""}
	}
	return failure{"INSTALL_FAILED_VERSION_DOWNGRADE", fmt.Sprintf("Downgrade detected: Update version code %d is older than current %d", m.VersionCode, old)}
}

// installPath is a new place for a package; its random parts differ from one installation to the next.
func (d *Device) installPath(pkg string) string {
	d.mu.Lock()
	d.installs++
	n := d.installs
	d.mu.Unlock()
	if d.release.version < 11 {
		return fmt.Sprintf("/data/app/%s-%d/base.apk", pkg, n)
	}
	return fmt.Sprintf("/data/app/~~%s/%s-%s/base.apk", d.label(fmt.Sprint(pkg, n, "a")), pkg, d.label(fmt.Sprint(pkg, n, "b")))
}

// register notes what a package brings.
func (d *Device) register(m *apk.Manifest, path string, o installOptions) {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &installed{manifest: m, path: path, installer: o.installer, first: now, at: now}
	if old := d.installed[m.Package]; old != nil {
		p.first = old.first
	} else if m.Package == settingsApp {
		d.settingsStopped = true
	}
	d.installed[m.Package] = p
	delete(d.gone, m.Package)
	for _, class := range m.InputMethods() {
		name := m.Package + "/" + shortActivity(m.Package, class)
		if _, known := d.methods[name]; !known {
			d.methods[name] = false
			d.fresh[name] = now.Add(time.Duration(float64(methodDelay) * d.config.Latency))
		}
	}
	if d.grants[m.Package] == nil {
		d.grants[m.Package] = map[string]bool{}
	}
	if o.grant {
		for _, name := range m.Permissions {
			if runtimePermissions[name] {
				d.grants[m.Package][name] = true
			}
		}
	}
}
