package android

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// app is an installed package as the package manager knows it.
type app struct {
	name     string
	activity string // with a leading dot where it belongs to the package; "" has none to launch
	version  string
	code     string // the version as a number
	system   bool
	uid      int
	path     string

	permissions []string // requested
	installer   string
	minSDK      int
	targetSDK   int
}

// systemPackages are there besides the apps of the screen.
var systemPackages = []string{
	"android", "com.android.bluetooth", "com.android.inputdevices", "com.android.permissioncontroller", "com.android.phone",
	"com.android.providers.media", "com.android.providers.settings", "com.android.shell", "com.android.systemui", "com.android.vending", "com.google.android.gms",
	"com.google.android.inputmethod.latin", "com.google.android.webview",
}

// packages lists all apps by name.
func (d *Device) packages() []app {
	var list []app
	seen := map[string]bool{}
	for _, p := range d.screen.Packages() {
		seen[p.Name] = true
		list = append(list, app{
			name: p.Name, activity: shortActivity(p.Name, p.Activity), version: p.Version, code: versionCode(p.Version),
			system: p.System || isSystemName(p.Name), permissions: p.Permissions,
		})
	}
	for _, name := range systemPackages {
		if !seen[name] {
			list = append(list, app{name: name, version: d.release.name, code: versionCode(d.release.name), system: true})
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, p := range d.installed {
		if !seen[name] {
			list = append(list, app{name: name, activity: shortActivity(name, p.manifest.Launcher())})
		}
	}
	list = slices.DeleteFunc(list, func(a app) bool { return d.gone[a.name] })
	slices.SortFunc(list, func(a, b app) int { return cmp.Compare(a.name, b.name) })
	for i := range list {
		d.complete(&list[i])
	}
	return list
}

// complete adds what the package manager knows of an app; d.mu is held.
func (d *Device) complete(a *app) {
	if d.uids[a.name] == 0 {
		d.uids[a.name] = 10050 + len(d.uids)
	}
	a.uid = d.uids[a.name]
	switch a.name {
	case "android", "com.android.inputdevices", "com.android.providers.settings":
		a.uid = uidSystem
	case "com.android.shell":
		a.uid = uidShell
	}
	a.path, a.minSDK, a.targetSDK = d.apkPath(*a), 24, d.release.api
	if p := d.installed[a.name]; p != nil {
		m := p.manifest
		a.version, a.code, a.path, a.installer, a.permissions = m.VersionName, strconv.FormatInt(m.VersionCode, 10), p.path, p.installer, m.Permissions
		a.system, a.minSDK, a.targetSDK = false, m.MinSDK, m.TargetSDK
	}
}

func isSystemName(name string) bool {
	return strings.HasPrefix(name, "com.android.") || strings.HasPrefix(name, "com.google.android.")
}

func (d *Device) apkPath(a app) string {
	short := a.name[strings.LastIndexByte(a.name, '.')+1:]
	switch {
	case a.name == "android":
		return "/system/framework/framework-res.apk"
	case a.system:
		return "/system/app/" + short + "/" + short + ".apk"
	case d.release.version < 11:
		return fmt.Sprintf("/data/app/%s-1/base.apk", a.name)
	}
	return fmt.Sprintf("/data/app/~~%s/%s-%s/base.apk", d.label(a.name+"1"), a.name, d.label(a.name+"2"))
}

// label is the random part of a folder of an app: 16 bytes in base64, the same for a name.
func (d *Device) label(name string) string {
	var b [16]byte
	for i := range 4 {
		binary.LittleEndian.PutUint32(b[4*i:], d.hash(fmt.Sprint(name, i))*2654435761)
	}
	return base64.URLEncoding.EncodeToString(b[:])
}

// find looks up a package.
func (d *Device) find(name string) (app, bool) {
	for _, a := range d.packages() {
		if a.name == name {
			return a, true
		}
	}
	return app{}, false
}

// shortActivity writes an activity as Android does in component names: ".Main" for a class of the package.
func shortActivity(pkg, activity string) string {
	if rest, ok := strings.CutPrefix(activity, pkg+"."); ok && !strings.Contains(rest, "/") {
		return "." + rest
	}
	return activity
}

func longActivity(pkg, activity string) string {
	if strings.HasPrefix(activity, ".") {
		return pkg + activity
	}
	return activity
}

// focus is a window that has the input focus.
type focus struct{ pkg, activity string }

func (f focus) null() bool { return f.pkg == "" }

// keyguard is what has the focus while the phone is locked.
var keyguard = focus{"com.android.systemui", ""}

// focused gives the window with the focus, null in a transition, and the last app that had it.
func (d *Device) focused() (now, app focus) {
	pkg, activity := d.screen.Focus()
	shut := d.screen.Locked() || !d.screen.ScreenOn()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now = (focus{pkg, shortActivity(pkg, activity)}); now.pkg == keyguard.pkg {
		now = keyguard
	}
	if !now.null() && now != keyguard {
		d.lastFocus = now
	}
	app = d.lastFocus
	switch {
	case d.faults.NullFocus:
		now = focus{}
	case shut:
		now = keyguard
	}
	return now, app
}

// window is the name of a focused window between the braces of Window{...}.
func (d *Device) window(f focus) string {
	name := f.pkg + "/" + longActivity(f.pkg, f.activity)
	if f == keyguard {
		name = "NotificationShade"
		if d.release.version < 11 {
			name = "StatusBar"
		}
	}
	return fmt.Sprintf("%x u0 %s", d.hash("window"+name), name)
}

// record is an ActivityRecord between its braces.
func (d *Device) record(f focus) string {
	return fmt.Sprintf("%x u0 %s/%s t%d", d.hash("record"+f.pkg+f.activity), f.pkg, f.activity, d.task(f.pkg))
}

// task is the number of an app's task.
func (d *Device) task(pkg string) int { return 2 + int(d.hash("task"+pkg)%90) }

// pid is the number of an app's process; a restarted app gets a new one.
func (d *Device) pid(pkg string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pids[pkg] == 0 {
		d.pids[pkg] = 4000 + d.rng.IntN(20000)
	}
	return d.pids[pkg]
}

// stop ends an app.
func (d *Device) stop(pkg string) {
	d.screen.Stop(pkg)
	d.killed(pkg)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settingsStopped = d.settingsStopped || pkg == settingsApp
}

// killed ends the process of an app, whose windows are gone already.
func (d *Device) killed(pkg string) {
	if pkg == serverPackage || pkg == serverTests {
		d.killServer()
	}
	d.mu.Lock()
	if pkg == settingsApp {
		d.settingsUp = false
	}
	delete(d.pids, pkg)
	if d.lastFocus.pkg == pkg {
		d.lastFocus = focus{}
	}
	d.mu.Unlock()
}
