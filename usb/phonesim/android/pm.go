package android

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

func pmCommand(c *call) int {
	if !c.spend(90 * time.Millisecond) {
		return exitKilled
	}
	args := c.args
	if len(args) == 0 {
		c.printf("Package manager (package) commands:\n  help\n    Print this help text.\n")
		return exitMinus1
	}
	switch args[0] {
	case "list":
		return c.pmList(args[1:])
	case "path":
		return c.pmPath(args[1:])
	case "clear":
		return c.pmClear(args[1:])
	case "resolve-activity":
		return c.pmResolve(args[1:])
	case "query-activities":
		return c.pmQuery(args[1:])
	case "grant", "revoke":
		return c.pmGrant(args[0], args[1:])
	case "set-installer", "trim-caches", "compile":
		return 0
	case "enable", "disable", "disable-user", "default-state":
		return c.pmEnable(args[0], args[1:])
	case "get-max-users":
		c.printf("Maximum supported users: 4\n")
		return 0
	case "install":
		return c.pmInstall(args[1:])
	case "uninstall":
		return c.pmUninstall(args[1:])
	case "install-create", "install-write", "install-commit", "install-abandon":
		return c.pmSession(args[0], args[1:])
	}
	c.errorf("Unknown command: %s\n", args[0])
	return exitMinus1
}

// lastName is the first argument that is no option, as pm grant has it.
func lastName(args []string) string {
	for i := 0; i < len(args); i++ {
		if args[i] == "--user" {
			i++
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
	}
	return ""
}

func (c *call) known(pkg string) bool {
	_, ok := c.find(pkg)
	return ok
}

func (c *call) pmList(args []string) int {
	if len(args) == 0 {
		c.errorf("Error: didn't specify type of data to list\n")
		return exitMinus1
	}
	switch args[0] {
	case "packages", "package":
		return c.pmPackages(args[1:])
	case "users":
		c.printf("Users:\n\tUserInfo{0:Owner:c13} running\n")
	case "features":
		c.printf("feature:reqGlEsVersion=0x30002\nfeature:android.hardware.touchscreen\nfeature:android.hardware.wifi\n")
	case "libraries":
		c.printf("library:android.test.runner\n")
	case "permissions":
		c.printf("All Permissions:\n\n")
	default:
		c.errorf("Error: unknown list type '%s'\n", args[0])
		return exitMinus1
	}
	return 0
}

func (c *call) pmPackages(args []string) int {
	flags := map[string]bool{}
	filter := ""
	for i := 0; i < len(args); i++ {
		switch a := args[i]; a {
		case "--user":
			i++
		case "-3", "-s", "-f", "-d", "-e", "-U", "-i", "-u", "-l", "-a", "--show-versioncode":
			if flags[a] = true; a == "--show-versioncode" && c.release.version < 8 {
				c.errorf("Error: Unknown option: %s\n", a)
				return exitMinus1
			}
		default:
			if strings.HasPrefix(a, "-") {
				c.errorf("Error: Unknown option: %s\n", a)
				return exitMinus1
			}
			filter = a
		}
	}
	c.mu.Lock()
	disabled := maps.Clone(c.disabled)
	c.mu.Unlock()
	for _, a := range c.packages() {
		switch {
		case filter != "" && !strings.Contains(a.name, filter),
			flags["-3"] && a.system, flags["-s"] && !a.system,
			flags["-d"] && !disabled[a.name], flags["-e"] && disabled[a.name]:
			continue
		}
		line := "package:"
		if flags["-f"] {
			line += a.path + "="
		}
		line += a.name
		if flags["--show-versioncode"] {
			line += " versionCode:" + a.code
		}
		if flags["-i"] {
			line += "  installer=" + cmp.Or(a.installer, "null")
		}
		if flags["-U"] {
			line += " uid:" + strconv.Itoa(a.uid)
		}
		c.printf("%s\n", line)
	}
	return 0
}

// versionCode makes 10203 of 1.2.3.
func versionCode(version string) string {
	n := 0
	for part := range strings.SplitSeq(version, ".") {
		v, _ := strconv.Atoi(part)
		n = n*100 + max(0, min(v, 99))
		if n > 1e6 {
			break
		}
	}
	return strconv.Itoa(max(n, 1))
}

func (c *call) pmPath(args []string) int {
	name := lastName(args)
	if name == "" {
		c.errorf("Error: no package specified\n")
		return exitMinus1
	}
	a, ok := c.find(name)
	if !ok {
		return 1
	}
	c.printf("package:%s\n", a.path)
	return 0
}

func (c *call) pmClear(args []string) int {
	name := lastName(args)
	if !c.known(name) || c.screen.Clear(name) != nil {
		c.printf("Failed\n")
		return 1
	}
	c.stop(name)
	c.printf("Success\n")
	return 0
}

func (c *call) pmEnable(verb string, args []string) int {
	name := lastName(args)
	if !c.known(name) {
		return c.exception(verb, "java.lang.IllegalArgumentException: Unknown package: "+name,
			"com.android.server.pm.PackageManagerService.setEnabledSetting(PackageManagerService.java:20311)")
	}
	state := map[string]string{"enable": "enabled", "disable": "disabled", "disable-user": "disabled-user", "default-state": "default"}[verb]
	c.mu.Lock()
	if strings.HasPrefix(verb, "disable") {
		c.disabled[name] = true
	} else {
		delete(c.disabled, name)
	}
	c.mu.Unlock()
	if strings.HasPrefix(verb, "disable") {
		c.stop(name)
	}
	c.printf("Package %s new state: %s\n", name, state)
	return 0
}

// launchable finds the app that a resolve-activity or a start without component means.
func (c *call) launchable(name string) (app, bool) {
	a, ok := c.find(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	return a, ok && a.activity != "" && !c.disabled[name]
}

func (c *call) pmResolve(args []string) int {
	in, _ := parseIntent(args)
	name := in.target()
	a, ok := c.launchable(name)
	if !ok && in.action == actionMain && slices.Contains(in.categories, "android.intent.category.HOME") {
		a, ok = c.home()
	}
	if !ok {
		c.printf("No activity found\n")
		return 0
	}
	if slices.Contains(args, "--brief") {
		c.printf("priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n%s/%s\n", a.name, a.activity)
		return 0
	}
	c.printf("priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\nActivityInfo:\n"+
		"  name=%s\n  packageName=%s\n  enabled=true exported=true directBootAware=false\n",
		longActivity(a.name, a.activity), a.name)
	return 0
}

// home is the launcher.
func (c *call) home() (app, bool) {
	for _, a := range c.packages() {
		if strings.Contains(a.name, "launcher") && a.activity != "" {
			return a, true
		}
	}
	return app{}, false
}

func (c *call) pmQuery(args []string) int {
	in, _ := parseIntent(args)
	var found []app
	for _, a := range c.packages() {
		if t := in.target(); a.activity != "" && (t == "" || t == a.name) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		c.printf("No activities found\n")
		return 0
	}
	if !slices.Contains(args, "--brief") {
		c.printf("%d activities found:\n", len(found))
	}
	for i, a := range found {
		if slices.Contains(args, "--brief") {
			c.printf("priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n%s/%s\n", a.name, a.activity)
			continue
		}
		c.printf("  Activity #%d:\n    priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n"+
			"    ActivityInfo:\n      name=%s\n      packageName=%s\n", i, longActivity(a.name, a.activity), a.name)
	}
	return 0
}
