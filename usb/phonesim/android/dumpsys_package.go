package android

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

func dumpPackage(c *call, args []string) int {
	if len(args) == 0 {
		c.printf("Packages:\n")
		for _, a := range c.packages() {
			c.packageEntry(a)
		}
		return 0
	}
	a, ok := c.find(args[0])
	if !ok {
		c.printf("Unable to find package: %s\n", args[0])
		return 0
	}
	if a.activity != "" {
		c.printf("Activity Resolver Table:\n  Non-Data Actions:\n      %s:\n        %x %s/%s filter %x\n          Action: \"%s\"\n          Category: \"%s\"\n\n",
			actionMain, c.hash("activity"+a.name), a.name, a.activity, c.hash("filter"+a.name), actionMain, categoryLauncher)
	}
	c.printf("Packages:\n")
	c.packageEntry(a)
	return 0
}

func (c *call) packageEntry(a app) {
	flags := "[ HAS_CODE ALLOW_CLEAR_USER_DATA ]"
	if a.system {
		flags = "[ SYSTEM HAS_CODE ALLOW_CLEAR_USER_DATA ]"
	}
	user := "userId"
	if c.release.version >= 13 {
		user = "appId"
	}
	folder := a.path[:max(strings.LastIndexByte(a.path, '/'), 0)]
	c.printf("  Package [%s] (%x):\n    %s=%d\n    pkg=Package{%x %s}\n    codePath=%s\n    resourcePath=%s\n", a.name, c.hash("setting"+a.name), user, a.uid,
		c.hash("package"+a.name), a.name, folder, folder)
	c.printf("    versionCode=%s minSdk=%d targetSdk=%d\n    versionName=%s\n    flags=%s\n", a.code, a.minSDK, a.targetSDK, cmp.Or(a.version, "null"), flags)
	first, last := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	c.mu.Lock()
	if p := c.installed[a.name]; p != nil {
		first, last = p.first, p.at
	}
	c.mu.Unlock()
	const layout = "2006-01-02 15:04:05"
	c.printf("    firstInstallTime=%s\n    lastUpdateTime=%s\n", first.In(c.config.Zone).Format(layout), last.In(c.config.Zone).Format(layout))
	if a.installer != "" {
		c.printf("    installerPackageName=%s\n", a.installer)
	}
	c.permissions(a)
}

// permissions prints those that an app requests, that came with its installation and that its user rules over.
func (c *call) permissions(a app) {
	state := c.granted(a.name)
	names := slices.Sorted(slices.Values(a.permissions))
	if len(names) > 0 {
		c.printf("    requested permissions:\n")
	}
	for _, n := range a.permissions {
		mark := ""
		if restrictedPermissions[n] && c.release.version >= 10 {
			mark = ": restricted=true"
		}
		c.printf("      %s%s\n", n, mark)
	}
	var install, runtime []string
	for _, n := range names {
		switch {
		case runtimePermissions[n]:
			runtime = append(runtime, n)
		case !developmentPermissions[n] || state[n]:
			install = append(install, n)
		}
	}
	if len(install) > 0 {
		c.printf("    install permissions:\n")
	}
	for _, n := range install {
		c.printf("      %s: granted=true\n", n)
	}
	c.mu.Lock()
	enabled := map[bool]int{false: 0, true: 3}[c.disabled[a.name]]
	c.mu.Unlock()
	c.printf("    User 0: ceDataInode=%d installed=true hidden=false suspended=false stopped=false enabled=%d\n", 100000+a.uid, enabled)
	if len(runtime) > 0 {
		c.printf("      runtime permissions:\n")
	}
	for _, n := range runtime {
		flags := ""
		if c.release.version >= 9 {
			flags = ", flags=[ USER_SENSITIVE_WHEN_GRANTED|USER_SENSITIVE_WHEN_DENIED]"
		}
		c.printf("        %s: granted=%t%s\n", n, state[n], flags)
	}
}
